"""A real kernel, asked as a notebook front end would ask it."""

from __future__ import annotations

import logging
import math
import re
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from IPython.core.interactiveshell import InteractiveShell
from IPython.utils.capture import capture_output
from jupyter_client.manager import KernelManager
from pyspark.sql import functions

_COLOURS = re.compile(r"\x1b\[[0-9;]*m")


@pytest.fixture(autouse=True)
def no_findings(monkeypatch: pytest.MonkeyPatch) -> None:
    """However slow the machine is, no line and no job tells what lost its time: tests compare all that they tell."""
    monkeypatch.setattr("flinkmagic.session.actions.action_graph.LONG_MS", math.inf)
    monkeypatch.setattr("flinkmagic.session.findings.find.NOTABLE_S", math.inf)


@dataclass
class Cell:
    """What a front end would show below a cell once it has run.

    Attributes
    ----------
    status : str
        ``ok`` or ``error``.
    displays : list of dict
        MIME bundles, with later updates of a display in the place of the first.
    updates : list of dict
        Every bundle that came for a display, in order.
    elsewhere : list of dict
        Every bundle that came for the display of an earlier cell.
    value : dict
        The bundle of the cell's own value; empty where it has none.
    """

    status: str = "ok"
    stdout: str = ""
    stderr: str = ""
    error: str = ""
    error_name: str = ""
    value: dict[str, Any] = field(default_factory=dict)
    displays: list[dict[str, Any]] = field(default_factory=list)
    updates: list[dict[str, Any]] = field(default_factory=list)
    elsewhere: list[dict[str, Any]] = field(default_factory=list)


class Kernel:
    """Executes cells and gathers their outputs."""

    def __init__(self, manager: KernelManager) -> None:
        self.manager = manager
        self.come_back()

    def run(self, code: str, timeout: float = 180, cell: str | None = None) -> Cell:
        """Execute a cell; `cell` is its lasting name, which front ends send along."""
        shown, places = Cell(), {}

        def take(message: dict[str, Any]) -> None:
            kind, content = message["msg_type"], message["content"]
            if kind == "stream":
                setattr(shown, content["name"], getattr(shown, content["name"]) + content["text"])
            elif kind == "execute_result":
                shown.value = content["data"]
            elif kind in ("display_data", "update_display_data"):
                identity = content.get("transient", {}).get("display_id")
                if kind == "update_display_data" and identity not in places:
                    shown.elsewhere.append(content["data"])
                    return
                shown.updates.append(content["data"])
                if kind == "update_display_data":
                    shown.displays[places[identity]] = content["data"]
                else:
                    places[identity] = len(shown.displays)
                    shown.displays.append(content["data"])
            elif kind == "error":
                shown.error_name = content["ename"]
                shown.error = _COLOURS.sub("", "\n".join(content["traceback"]))

        session, made = self._client.session, self._client.session.msg

        def named(kind: str, *arguments: Any, **options: Any) -> dict[str, Any]:
            message: dict[str, Any] = made(kind, *arguments, **options)
            if kind == "execute_request" and cell is not None:
                message["metadata"]["cellId"] = cell
            return message

        session.msg = named
        try:
            reply = self._client.execute_interactive(code, output_hook=take, timeout=timeout)
        finally:
            session.msg = made
        shown.status = reply["content"]["status"]
        return shown

    def send(self, code: str) -> None:
        """Execute a cell and wait for nothing."""
        self._client.execute(code)

    def click(self, comm: str, content: dict[str, Any]) -> None:
        """Send a widget's message to a thread of the kernel that is free, as JupyterLab does."""
        control, session = self._client.control_channel, self._client.session
        control.send(session.msg("create_subshell_request"))
        made = control.get_msg(timeout=60)["content"]
        message = session.msg("comm_msg", {"comm_id": comm, "data": {"method": "custom", "content": content}})
        message["header"]["subshell_id"] = made["subshell_id"]
        self._client.shell_channel.send(message)

    def come_back(self) -> None:
        """Connect, as a notebook does that is opened."""
        self._client = self.manager.client()
        self._client.start_channels()
        self._client.wait_for_ready(timeout=60)

    def leave(self) -> None:
        """Disconnect, as a notebook does that is closed; the kernel goes on."""
        self._client.stop_channels()

    def close(self) -> None:
        self.leave()
        self.manager.shutdown_kernel(now=True)
        shutil.rmtree(Path(self.manager.connection_file).parent)


def _start(folder: Path) -> Kernel:
    # Ports of TCP are chosen here and bound by the kernel a second later: another process may have them by then.
    # The name of a socket's file is short: Linux allows 107 characters.
    sockets = Path(tempfile.mkdtemp(prefix="kernel-"))
    manager = KernelManager(kernel_name="python3", transport="ipc", connection_file=str(sockets / "kernel.json"))
    log = folder / "kernel.log"
    with log.open("w") as said:
        manager.start_kernel(cwd=str(folder), stdout=said, stderr=said)
    try:
        return Kernel(manager)
    except RuntimeError as error:
        raise RuntimeError(f"{error}. It said:\n{log.read_text(errors='replace')[-4000:]}") from error


@pytest.fixture
def bare_kernel(tmp_path: Path) -> Iterator[Kernel]:
    """A kernel in which nothing has been run."""
    kernel = _start(tmp_path)
    yield kernel
    kernel.close()


@pytest.fixture
def start_kernel(tmp_path: Path) -> Iterator[Callable[[], Kernel]]:
    """Starts kernels that work in the same folder."""
    started: list[Kernel] = []

    def start() -> Kernel:
        started.append(_start(tmp_path))
        return started[-1]

    yield start
    for kernel in started:
        if kernel.manager.is_alive():
            kernel.close()


@pytest.fixture(scope="module")
def kernel(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kernel]:
    """A kernel with the extension loaded and a session named `spark`, in a folder of its own."""
    kernel = _start(tmp_path_factory.mktemp("kernel"))
    started = kernel.run(
        "%load_ext flinkmagic\n"
        "import flinkmagic\n"
        "from pyspark.sql import functions as F\n"
        "spark = flinkmagic.local_session('magics', 'local[2]', {'spark.ui.enabled': 'false', "
        "'spark.driver.memory': '1g', 'spark.ui.showConsoleProgress': 'false', "
        "'spark.sql.warehouse.dir': 'warehouse'})\n"
    )
    assert started.status == "ok", started.error
    yield kernel
    kernel.close()


@pytest.fixture
def folder(kernel: Kernel) -> Path:
    """The folder that the kernel works in."""
    return Path(kernel.run("import os; print(os.getcwd())").stdout.strip())


@dataclass
class Shown:
    """What a cell of the `notebook` has left: its value, what it printed, the bundles that it displayed, and where."""

    value: Any
    stdout: str
    stderr: str
    displays: list[dict[str, Any]]
    error: BaseException | None
    places: list[str]


class Notebook:
    """A shell in this process with the extension loaded: cells share the tests' own Spark session."""

    def __init__(self, shell: InteractiveShell) -> None:
        self.shell = shell
        self.names = shell.user_ns

    def run(self, code: str) -> Shown:
        """Run a cell as IPython runs it."""
        with capture_output() as captured:
            done = self.shell.run_cell(code, store_history=True)
        bundles = [output.data for output in captured.outputs]
        places = [(output.transient or {}).get("display_id", "") for output in captured.outputs]
        error = done.error_in_exec or done.error_before_exec
        return Shown(done.result, _COLOURS.sub("", captured.stdout), captured.stderr, bundles, error, places)


@pytest.fixture
def notebook(spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Notebook]:
    """A shell whose names are the test's own, in a folder of its own."""
    monkeypatch.chdir(tmp_path)
    # The shell makes its names those of `__main__`, where processes look that other tests start.
    monkeypatch.setitem(sys.modules, "__main__", sys.modules["__main__"])
    shell = InteractiveShell.instance()
    sys.modules["__main__"] = shell.user_module
    shell.reset(new_session=False)
    shell.config.FlinkMagics.class_archive = False  # a pause in a test is none of a user's
    shell.run_cell("%reload_ext flinkmagic")
    shell.user_ns.update(spark=spark, F=functions)
    yield Notebook(shell)
    shell.reset(new_session=False)


class Heard(logging.Handler):
    """What PySpark logs of errors: the beginnings of their messages, and the classes of what was being handled."""

    def __init__(self) -> None:
        super().__init__()
        self.logged: list[tuple[str, str]] = []

    def emit(self, record: logging.LogRecord) -> None:
        handled = record.exc_info[0] if record.exc_info else None
        self.logged.append((record.getMessage().partition("]")[0], handled.__name__ if handled else ""))


@pytest.fixture
def heard() -> Iterator[list[tuple[str, str]]]:
    """What PySpark has logged of errors of SQL texts."""
    logger = pytest.importorskip("pyspark.logger").PySparkLogger.getLogger("SQLQueryContextLogger")
    handler = Heard()
    logger.addHandler(handler)
    yield handler.logged
    logger.removeHandler(handler)
