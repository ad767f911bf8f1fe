"""Cells run in a kernel of their own, in a folder of their own."""

from __future__ import annotations

import os
import queue
import re
import shutil
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil
from jupyter_client.manager import KernelManager

ROOT = Path(__file__).parents[3]
CELL_S = 300
STARTED = """
from pyspark.sql import SparkSession
spark = (SparkSession.builder.master("local[2]").appName("notebook").config("spark.driver.memory", "{memory}")
    .config("spark.ui.enabled", "false").config("spark.ui.showConsoleProgress", "false")
    .config("spark.sql.warehouse.dir", "warehouse").getOrCreate())
spark.sparkContext.setLogLevel("OFF")
sc = spark.sparkContext
spark.range(10).groupBy("id").count().count()
"""
MODE = "%load_ext flinkmagic\n%flinkgraph on {}\n"
_UNSTABLE = (
    (re.compile(r"0x[0-9a-f]+"), "0x"),
    (re.compile(r"#\d+L?"), "#N"),
    (re.compile(r"plan_id=\d+"), "plan"),
    (re.compile(r"[0-9a-f]{8}-[0-9a-f-]{27}"), "UUID"),
    (re.compile(r"_[0-9a-f]{12,}"), "_UID"),
)


@dataclass
class NotedCell:
    """What a cell left.

    Attributes
    ----------
    text, value : str
        What it printed, and its last line's value as text, without what two runs never share.
    error : str
        Class and beginning of the message of what it raised.
    seconds : float
        From when it was sent until the kernel was idle.
    out_of_memory : bool
        Whether anything that it left tells of that.
    shown : str
        The last display, as text.
    """

    text: str = ""
    value: str = ""
    error: str = ""
    seconds: float = 0.0
    out_of_memory: bool = False
    shown: str = ""
    _parts: list[str] = field(default_factory=list)

    def take(self, kind: str, content: dict[str, Any]) -> None:
        """Take a message of the kernel's."""
        if kind == "stream":
            self._heed_memory(content["text"])
            if content["name"] == "stdout":
                self._parts.append(content["text"])
        elif kind == "execute_result":
            self.value = _steady(content["data"].get("text/plain", ""))
        elif kind in ("display_data", "update_display_data"):
            self.shown = content["data"].get("text/plain", self.shown)
        elif kind == "error":
            self.error = f"{content['ename']}: {content['evalue'][:300]}"
            self._heed_memory(content["evalue"] + "".join(content["traceback"]))

    def close(self, seconds: float) -> None:
        """The kernel is idle again."""
        self.seconds = seconds
        self.text = _steady("".join(self._parts))

    def _heed_memory(self, text: str) -> None:
        self.out_of_memory |= "OutOfMemoryError" in text

    def same_output(self, other: NotedCell) -> bool:
        return (self.text, self.value) == (other.text, other.value)


def _steady(text: str) -> str:
    for pattern, put in _UNSTABLE:
        text = pattern.sub(put, text)
    lines = (line.rstrip() for line in text.splitlines())
    # What the mode says of itself is no output of the cell's.
    return "\n".join(line for line in lines if line and not line.startswith("The session mode is"))


class NotebookKernel:
    """A kernel with a session, to be used as a context manager.

    Parameters
    ----------
    data : Path
        The folder of data; it stands in the kernel's folder under the name `data`.
    on : bool
        Whether the session mode is on.
    memory : str
        The driver's.
    durable : str
        The options of the session mode that make its answers durable.
    mode_first : bool
        Whether the mode is on before the session begins.
    also : str
        Code that the cell runs, too, that starts the session.
    folder : Path, optional
        The kernel's folder, which stays, to be used by another one with its data; by default a new one.
    """

    def __init__(
        self,
        data: Path,
        *,
        on: bool,
        memory: str,
        durable: str = "",
        folder: Path | None = None,
        mode_first: bool = False,
        also: str = "",
    ) -> None:
        mode = MODE.format(durable) if on else ""
        session = STARTED.format(memory=memory)
        self._data, self._begin = data, f"{mode}{session}{also}" if mode_first else f"{session}{mode}{also}"
        self._stays = folder is not None
        self._folder = folder or Path(tempfile.mkdtemp(dir=data.parent))

    def __enter__(self) -> NotebookKernel:
        if not (self._folder / "data").exists():
            # Links, because writing copies would go on while the first cells run.
            shutil.copytree(self._data, self._folder / "data", copy_function=os.link)
        self._manager = KernelManager(kernel_name="python3")
        path = os.pathsep.join(filter(None, (str(ROOT), os.environ.get("PYTHONPATH"))))
        # A fixed seed of hashes: sets would print in another order.
        environment = {
            **os.environ,
            "PYTHONPATH": path,
            "PYTHONHASHSEED": "0",
            "PYSPARK_PYTHON": sys.executable,
            "SPARK_LOCAL_DIRS": str(self._folder / "local"),
        }
        self._manager.start_kernel(cwd=str(self._folder), env=environment)
        self._client = self._manager.client()
        self._client.start_channels()
        self._client.wait_for_ready(timeout=CELL_S)
        [started] = self.run([self._begin])
        if started.error:
            raise RuntimeError(f"the session did not start: {started.error}")
        return self

    def __exit__(self, *raised: object) -> None:
        processes = psutil.Process(self._manager.provisioner.pid).children(recursive=True)
        self._client.stop_channels()
        self._manager.shutdown_kernel(now=True)
        # Spark's process ends by itself when its parent is gone; the next run shall have the machine for itself.
        _, lingering = psutil.wait_procs(processes, timeout=30)
        for process in lingering:
            process.kill()
        if not self._stays:
            shutil.rmtree(self._folder, ignore_errors=True)

    def run(self, cells: Sequence[str]) -> list[NotedCell]:
        """What each cell left."""
        return [self._cell(cell) for cell in cells]

    def _cell(self, cell: str) -> NotedCell:
        left = NotedCell()
        start = time.perf_counter()
        sent = self._client.execute(cell, allow_stdin=False)
        try:
            while True:
                message = self._client.get_iopub_msg(timeout=CELL_S)
                if message["parent_header"].get("msg_id") != sent:
                    continue
                if message["msg_type"] == "status" and message["content"]["execution_state"] == "idle":
                    break
                left.take(message["msg_type"], message["content"])
        except queue.Empty:
            self._manager.interrupt_kernel()
            left.error = f"CellTimeoutError: nothing came for {CELL_S} s"
        left.close(time.perf_counter() - start)
        return left
