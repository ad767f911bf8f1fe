"""A notebook inside this process: the shell of IPython with the extension loaded, and what each cell left.

A kernel of its own costs seconds and hides its objects; here a cell runs beside the caller, on the caller's session.
Texts of ours go to displays, as in a notebook, so that standard output is the cell's.
"""

from __future__ import annotations

import re
import signal
import sys
import types
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from IPython.core.displayhook import DisplayHook
from IPython.core.interactiveshell import InteractiveShell
from IPython.utils.capture import capture_output
from traitlets.config import Config

from flinkmagic import session

if TYPE_CHECKING:
    from flinkmagic.capturing.program import Program
    from flinkmagic.capturing.writes.deferred_write import Settlement
    from flinkmagic.session import SessionActions
    from flinkmagic.session.actions.action_report import ActionReport

_UNSTABLE = (
    (re.compile(r"0x[0-9a-f]{6,}"), "0x…"),
    (re.compile(r"#\d+L?\b"), "#…"),
    (re.compile(r"(plan_id|rdd|RDD|jdd|\bo)(\[|=)?\d+"), r"\1\2…"),
    (re.compile(r"(?<=_)[0-9a-f]{12}\b"), "…"),
    (re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"), "…"),
    (re.compile(r"^(CPU times|Wall time): .*$", re.MULTILINE), r"\1"),
    (re.compile(r"<ipython-input-\d+-[0-9a-f]+>|/tmp/ipykernel_\d+/\d+\.py"), "<cell>"),
)
"""What differs between two runs of the same cell in one process: addresses, ids that are counted on, uids."""


def steady(text: str) -> str:
    """A text without what two runs of the same cell never share."""
    for pattern, put in _UNSTABLE:
        text = pattern.sub(put, text)
    return text


class _SilentHook(DisplayHook):
    """Keeps the value of the last line in `_` and `Out`, as IPython does, and shows nothing."""

    def write_output_prompt(self) -> None:
        pass

    def write_format_data(self, format_dict: Any, md_dict: Any = None) -> None:
        pass


class _Shell(InteractiveShell):
    """IPython's shell, which says that it has a front end and does not print tracebacks."""

    displayhook_class = _SilentHook
    kernel = None
    traceback_text = ""

    def _showtraceback(self, etype: Any, evalue: Any, stb: list[str]) -> None:
        self.traceback_text = "\n".join(stb)

    def enable_gui(self, gui: Any = None) -> None:
        pass


@dataclass
class Left:
    """What a cell left.

    Attributes
    ----------
    value : object
        That of its last line; None where it has none, or where a semicolon silences it.
    stdout, stderr : str
        What was printed.
    displays : list
        MIME bundles.
    error : BaseException, optional
        What it raised.
    traceback : str
        As IPython would show it.
    programs : list of Program
        What was captured in it.
    reports : list of ActionReport
        What became of its actions, with the session mode on.
    """

    value: Any = None
    stdout: str = ""
    stderr: str = ""
    displays: list[Any] = field(default_factory=list)
    error: BaseException | None = None
    traceback: str = ""
    programs: list[Program] = field(default_factory=list)
    reports: list[ActionReport] = field(default_factory=list)

    @property
    def error_class(self) -> str:
        return type(self.error).__name__ if self.error is not None else ""

    @property
    def settlements(self) -> list[Settlement]:
        return [one for program in self.programs for one in program.eager.settlements]


class CellTimeoutError(Exception):
    """A cell did not end in time."""


@contextmanager
def time_limit(seconds: float) -> Iterator[list[float]]:
    """Raise `CellTimeoutError` in the main thread where the block takes longer; the list tells that it did."""
    rung: list[float] = []

    def ring(number: int, frame: Any) -> None:
        rung.append(seconds)
        raise CellTimeoutError(f"not over after {seconds:.0f} s")

    before = signal.signal(signal.SIGALRM, ring)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield rung
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


class NotebookShell:
    """Runs cells; to be used as a context manager, because IPython has one shell a process.

    Attributes
    ----------
    namespace : dict
        The user's.
    """

    def __init__(self) -> None:
        self._programs: list[Program] = []
        self._actions: list[SessionActions] = []

    def __enter__(self) -> NotebookShell:
        self._main, self._capture = sys.modules["__main__"], session.capture
        self._carry_out = session.SessionActions
        self._hooks = (sys.displayhook, sys.excepthook)
        InteractiveShell.clear_instance()
        config = Config()
        config.HistoryManager.enabled = False
        config.FlinkMagics.progress = "line"
        config.FlinkMagics.class_archive = False  # a pause in a test is none of a user's
        # The module's name is the kernel's: functions of the cell are pickled by value only from there.
        self.shell = _Shell.instance(config=config, user_module=types.ModuleType("__main__"))
        self.shell.run_line_magic("load_ext", "flinkmagic")
        session.capture = self._remembered
        session.SessionActions = self._carrying_out
        return self

    def __exit__(self, *raised: object) -> None:
        session.capture, session.SessionActions = self._capture, self._carry_out
        sys.modules["__main__"] = self._main
        sys.displayhook, sys.excepthook = self._hooks
        _Shell.clear_instance()

    @contextmanager
    def _remembered(self, *arguments: Any, **options: Any) -> Iterator[Program]:
        with self._capture(*arguments, **options) as program:
            self._programs.append(program)
            yield program

    def _carrying_out(self, *arguments: Any) -> SessionActions:
        self._actions.append(self._carry_out(*arguments))
        return self._actions[-1]

    @property
    def namespace(self) -> dict[str, Any]:
        return self.shell.user_ns

    @property
    def magics(self) -> Any:
        return self.shell.magics_manager.registry["FlinkMagics"]

    def begin(self, **names: Any) -> None:
        """Begin another notebook: no name is bound but these, no graph is known."""
        self.shell.user_ns.clear()
        self.shell.init_user_ns()
        hook = self.shell.displayhook
        hook._ = hook.__ = hook.___ = ""  # as its flush(), which collects garbage besides
        self.shell.user_ns.update(names)
        self.magics.graphs = type(self.magics.graphs)()

    def run(self, cell: str, *, seconds: float | None = None) -> Left:
        """Run one cell.

        Raises
        ------
        CellTimeoutError
            Where it takes longer than so many seconds.
        """
        self._programs, self._actions = [], []
        self.shell.traceback_text = ""
        limit: AbstractContextManager[list[float]] = nullcontext([]) if seconds is None else time_limit(seconds)
        with capture_output() as captured, limit as rung:
            result = self.shell.run_cell(cell, store_history=True)
        error = result.error_before_exec or result.error_in_exec
        if rung:  # the cell may have wrapped the exception, or swallowed it
            raise CellTimeoutError(f"a cell was not over after {seconds:.0f} s")
        silent = error is not None or self.shell.displayhook.quiet()
        return Left(
            value=None if silent else result.result,
            stdout=captured.stdout,
            stderr=captured.stderr,
            displays=[output.data for output in captured.outputs],
            error=error,
            traceback=self.shell.traceback_text,
            programs=self._programs,
            reports=[report for actions in self._actions for report in actions.reports],
        )


def comparable(value: Any) -> object:
    """A value as another run's can be compared with it: DataFrames by schema and rows."""
    from pyspark.sql import DataFrame

    if isinstance(value, DataFrame):
        schema = value.schema.simpleString()
        rows = [] if value.isStreaming else sorted(steady(repr(row)) for row in value.collect())
        return ("DataFrame", schema, rows)
    if isinstance(value, types.FunctionType):
        return ("function", value.__qualname__)
    return (type(value).__name__, steady(repr(value)))


def lines_kept(plain: str, ours: str) -> bool:
    """Whether all lines of a plain run's output stand in ours, in order, and none of them twice over."""
    wanted = [line.rstrip() for line in steady(plain).splitlines() if line.strip()]
    found = [line.rstrip() for line in steady(ours).splitlines() if line.strip()]
    rest: Sequence[str] = found
    for line in wanted:
        if line not in rest:
            return False
        rest = rest[rest.index(line) + 1 :]
    return all(found.count(line) == wanted.count(line) for line in set(wanted))
