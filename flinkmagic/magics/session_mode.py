"""Runs the session mode: captures each cell as it runs, without a magic in it, and defers nothing.

IPython's events begin and end the capture of a cell. ``pre_run_cell`` is triggered in the context in which the cell
then runs (the task of a cell that awaits, for example), so that the capture's context variable reaches the cell's code
(seen on IPython 8.39 and 9.18, in a terminal and in a kernel). ``post_run_cell`` may be triggered outside of that task.
Between cells PySpark is as it was, whether the mode is on or off.

A capture belongs to one Spark session from its start. A cell that finds no session runs plainly, even after it has
made one; so does the rest of a cell that stops its session. The next cell is captured.
"""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from py4j.protocol import Py4JError
from pyspark.sql import SparkSession

from flinkmagic import session
from flinkmagic.capturing.capture_listener import DeployingListener
from flinkmagic.capturing.capture_mode import CaptureMode
from flinkmagic.capturing.hooks.current_capture import outside_captures
from flinkmagic.capturing.source_code.source_location import CellSource
from flinkmagic.errors.base import UserError
from flinkmagic.errors.capturing import NotDeployedError, SparkConnectSessionError
from flinkmagic.jvm.java import is_gone
from flinkmagic.magics.cell import cell_labels, is_blank, name_of_cell
from flinkmagic.magics.cell_recorder import CellRecording, running_again
from flinkmagic.magics.graphs import cell_id
from flinkmagic.magics.spark_session import running_session, say_other_python
from flinkmagic.magics.tracebacks import show_without_ours
from flinkmagic.options import NO_RETENTION, OPTIONS, JobOptions
from flinkmagic.session.line_as_job import Line

if TYPE_CHECKING:
    from IPython.core.interactiveshell import ExecutionInfo, ExecutionResult
    from pyspark import SparkContext
    from pyspark.sql import DataFrame

    from flinkmagic.capturing.capture_listener import ActionCall, ReadCall
    from flinkmagic.capturing.program import Program
    from flinkmagic.capturing.source_code.source_location import SourceLocation
    from flinkmagic.magics.cell_card import CellCard
    from flinkmagic.magics.flink_magics import FlinkMagics
    from flinkmagic.session import Job, SessionActions

IDLE_S = 1.0
"""When no cell has begun for so long, nobody is going to wait for what runs in the background."""

PAUSE_S = 10.0
"""When no cell has begun for so long, the user reads: what later kernels need may be prepared."""

ASK_S = 600.0
"""The time between two looks at what later kernels need."""

_TIMED = ("<timed exec>", "<timed eval>")
"""The file names under which `%%time` compiles a cell's body."""


@dataclass(eq=False)
class RunningCell:
    """A cell that IPython runs; `%%capture` and the like run another one inside it."""

    info: ExecutionInfo
    """IPython's own description of it, which tells cells apart."""
    number: int
    """Its number; that of the outermost cell if it runs inside one."""
    card: CellCard | None = None
    """Shows what its lines take."""
    capture: AbstractContextManager[Program] | None = None
    """What captures it; None while nothing does."""
    program: Program | None = None
    """What is captured."""
    jobs: int = 0
    """How many jobs its lines have needed."""
    recording: CellRecording | None = None
    """What is recorded of it, to tell later whether its results are stale."""
    raised: bool = False
    """Whether it has ended in an exception."""

    def job_name(self) -> str:
        """Return a name for the job of its next line: no job takes up what another one of the cell has written."""
        self.jobs += 1
        name = name_of_cell(self.number)
        return name if self.jobs == 1 else f"{name}_{self.jobs}"


class SessionMode:
    """Captures cells while `FlinkMagics.session` is set."""

    def __init__(self, magics: FlinkMagics) -> None:
        self._magics = magics
        self._shell = magics.shell
        self._running: list[RunningCell] = []
        self._programs: list[Program] = []
        self._is_connect_told = False
        self._timers: list[threading.Timer] = []
        """Begin what is to run while no cell does."""
        self._looked_at = float("-inf")

    def register(self) -> None:
        """Follow the shell's cells; what an earlier loading of the extension has registered is removed."""
        events = self._shell.events
        for event in ("pre_run_cell", "post_run_cell"):
            for callback in events.callbacks[event][:]:
                mode = getattr(callback, "__self__", None)
                if isinstance(mode, SessionMode):
                    mode.off()
                    events.unregister(event, callback)
        self._magics.session_programs = self._known
        events.register("pre_run_cell", self.begin)
        events.register("post_run_cell", self.end)
        self._magics.observe(lambda change: self.on() if change["new"] else self.off(), "session")

    def begin(self, info: ExecutionInfo) -> None:
        """Begin a cell (IPython's ``pre_run_cell``)."""
        for timer in self._timers:
            timer.cancel()
        self._timers = []
        again = running_again()
        number = self._running[0].number if self._running else self._number(info)
        number = number if again is None else again.number
        self._running.append(RunningCell(info, number))
        if self._magics.session:
            self.on()

    def end(self, result: ExecutionResult | None) -> None:
        """End a cell (IPython's ``post_run_cell``), however it has ended.

        A blank cell has not begun. IPython makes another description of a cell that ends in an exception of its event
        loop, and gives no result for a cell that was cancelled.
        """
        info = getattr(result, "info", None)
        found = next((place for place, cell in enumerate(self._running) if cell.info is info), None)
        if found is None and self._running and (info is None or info.raw_cell == self._running[-1].info.raw_cell):
            found = len(self._running) - 1
        if found is not None:
            self._running[found].raised = result is None or not result.success
        while found is not None and len(self._running) > found:
            self._leave(self._running.pop())
        if self._magics.session and not self._running:
            spark = self._session()
            if spark is not None:  # the cell may have begun it
                self._warm_up(spark)
                if session.needs_rehearsal(spark):
                    self._begin_after(IDLE_S, session.rehearse, spark, lambda: bool(self._running))
                if self._magics.class_archive and time.monotonic() - self._looked_at >= ASK_S:
                    self._begin_after(PAUSE_S, self._keep_classes, spark)

    def _begin_after(self, seconds: float, what: Callable[..., object], *args: Any) -> None:
        timer = threading.Timer(seconds, what, args)
        timer.daemon = True
        timer.start()
        self._timers.append(timer)

    def _keep_classes(self, spark: SparkSession) -> None:
        """Let later kernels start faster, once this one has carried out an action."""
        if not session.needs_rehearsal(spark):
            self._looked_at = time.monotonic()
            session.make_class_archive(spark.sparkContext)

    def on(self) -> None:
        """Capture the cell that runs, if one does, from here on."""
        cell = self._running[-1] if self._running else None
        if cell is not None and (cell.capture is not None or is_blank(cell.info.raw_cell)):
            return
        try:
            spark = self._session()
            if spark is None and self._magics.class_archive:
                session.offer_class_archive()
            if cell is None:  # the extension was loaded in the cell that runs: the next one is captured
                self._make_ready(spark)
                return
            source = self._source(cell) if spark is not None else None
            if spark is not None and source is not None:
                self._enter(cell, spark, source)
        except Exception as error:  # noqa: BLE001 - the cell runs plainly, and the user is told why
            self._magics.session = False
            reason = str(error) if isinstance(error, UserError) else f"{type(error).__name__}: {error}"
            print(f"The session mode is off, this cell runs plainly: {reason}", file=sys.stderr)

    def _make_ready(self, spark: SparkSession | None) -> None:
        """Do for the first cell what it would have to wait for."""
        self._warm_up(spark)
        if spark is None:  # while a JVM starts, Python has nothing to do
            with outside_captures():
                threading.Thread(target=self._import_card, name="flinkmagic-warm-up", daemon=True).start()
            return
        self._import_card()
        say_other_python(spark.sparkContext)
        for name in ("SessionActions", "SessionWrite", "capture"):
            getattr(session, name)

    def _import_card(self) -> None:
        """Import what shows the first action: as a widget, it takes all of ipywidgets."""
        import flinkmagic.magics.cell_card
        from flinkmagic.magics.live import in_notebook

        if in_notebook() and self._magics.progress == "widget":
            import flinkmagic.display.card_widget  # noqa: F401

    def off(self) -> None:
        """Stop capturing, from here on."""
        for cell in reversed(self._running):
            self._leave(cell)

    def _enter(self, cell: RunningCell, spark: SparkSession, source: CellSource) -> None:
        from flinkmagic.magics.cell_card import CellCard
        from flinkmagic.magics.live import in_notebook

        self._import_card()
        say_other_python(spark.sparkContext)
        if cell.card is None:
            cell.card = CellCard(
                in_notebook=in_notebook(),
                widget=self._magics.progress == "widget",
                jobs=self._magics.line_jobs,
                number=cell.number,
            )
        cell.recording = self._magics.cells.begin(cell.info.raw_cell, cell.number, cell_id(self._shell))
        actions = session.SessionActions(_line_options(self._magics), cell.card)
        entered = session.capture(
            spark,
            name=name_of_cell(cell.number),
            location=source,
            namespace=self._shell.user_ns,
            earlier=[*self._magics.graphs.programs(spark.sparkContext), *self._known(spark.sparkContext)],
            mode=CaptureMode.LINES,
            listener=_Lines(self._magics, cell, cell.card, actions),
        )
        cell.program = entered.__enter__()
        cell.capture = entered
        self._warm_up(spark)

    def _warm_up(self, spark: SparkSession | None) -> None:
        with outside_captures():  # its threads are none of the cell's
            session.warm_up(spark, _line_options(self._magics))

    def _leave(self, cell: RunningCell) -> None:
        """End a cell's capture; what later cells may continue from is kept as long as it has a name."""
        capture, program = cell.capture, cell.program
        cell.capture = cell.program = None
        if cell.card is not None:
            self._magics.line_jobs.add_drawings(cell.number, cell.card.end())
        if capture is None or program is None:
            self._magics.cells.drop(cell.recording)
            return
        try:
            # An exception of the cell is none of the capture's: nothing is pending that would depend on it.
            capture.__exit__(None, None, None)
            self._magics.cells.end(cell.recording, program, raised=cell.raised)
        except (Py4JError, OSError):
            self._magics.cells.drop(cell.recording)
            if not is_gone(program.spark):
                raise
            return  # the JVM has taken with it what could be continued from
        if program.lineage.calls and program.variables:
            program.eager = replace(program.eager, settlements=())
            self._programs.append(program)

    def _known(self, context: SparkContext) -> list[Program]:
        """Return what earlier cells have captured on a SparkContext and the notebook still has names for."""
        names = self._shell.user_ns
        self._programs = [
            program
            for program in self._programs
            if program.spark.sparkContext is context
            and any(names.get(name) is df for name, df in program.variables.items())
        ]
        return self._programs

    def _session(self) -> SparkSession | None:
        """Return the session that a cell is captured on; None if none runs, or none that can be captured."""
        try:
            return running_session(self._shell)
        except SparkConnectSessionError as error:
            if not self._is_connect_told:
                print(f"The session mode is on, and cells run plainly: {error}", file=sys.stderr)
            self._is_connect_told = True
        except (Py4JError, OSError):
            active = SparkSession._instantiatedSession
            if active is not None and not is_gone(active):
                raise
            # Else the JVM is gone, as the cell will find, or mends.
        return None

    def _number(self, info: ExecutionInfo) -> int:
        """Return the number of a cell that is about to run: the history does not hold it yet."""
        if info.store_history:
            return len(self._shell.history_manager.input_hist_parsed)
        return int(self._shell.execution_count)

    def _source(self, cell: RunningCell) -> CellSource | None:
        """Return the cell's text as IPython is going to compile it; None if it does not compile."""
        raw = cell.info.raw_cell
        text = getattr(cell.info, "transformed_cell", None)
        if text is None:  # before IPython 9
            try:
                text = self._shell.transform_cell(raw)
            except SyntaxError:  # which IPython is about to show
                return None
        filename = self._shell.compile.get_code_name(raw, text, self._number_in_name(cell))
        above = dict.fromkeys(_TIMED, 1) if raw.startswith("%%time") else {}
        # A magic gives a body a last line end.
        outer, body = self._running[0].info.raw_cell.rstrip("\n"), raw.rstrip("\n")
        if cell is not self._running[0] and outer.endswith(body):
            above = {filename: outer.removesuffix(body).count("\n")}
        # The body of a cell under a magic is a text that the magic is called with.
        source = f"# {raw}" if raw.startswith("%%") else text
        return CellSource(f"cell {cell.number}", filename, source, cell_labels(self._shell), above)

    def _number_in_name(self, cell: RunningCell) -> int:
        return cell.number if cell.info.store_history else self._number(cell.info)


class _Lines(DeployingListener):
    """Carries out what the lines of a cell ask for."""

    def __init__(self, magics: FlinkMagics, cell: RunningCell, card: CellCard, actions: SessionActions) -> None:
        self._magics, self._cell, self._card, self._actions = magics, cell, card, actions

    def run_pending(self, program: Program) -> None:
        """Deploy what one line writes.

        Raises
        ------
        NotDeployedError, ActionCancelledError, ActionFailedError, PySparkException
            As `carry_out`.
        """
        write = program.writes[-1]
        written = session.SessionWrite(program, self._cell.job_name(), _line_options(self._magics))
        act, is_shown = self._card.begin(write.text, write.location.line_in_cell), False

        def watch(job: Job) -> None:
            nonlocal act, is_shown
            self._magics.line_jobs.add(job, self._cell.number, write.location)
            act, is_shown = self._card.follow(act, written.graph, job), True

        left: list[str] = []
        try:
            written.run(watch)
        except NotDeployedError:  # which tells why
            left.append("plain Spark carries it out")
            raise
        finally:
            if is_shown:
                self._card.finish(act, [*left, *written.remarks()])
            else:
                self._card.drop(act)

    def raised(self, error: BaseException) -> None:
        show_without_ours(self._magics.shell, error)

    def act(self, call: ActionCall) -> Any:
        self._magics.cells.act(self._cell.recording, call.df)
        return self._actions.run(call)

    def read(self, call: ReadCall) -> DataFrame:
        return self._actions.read(call)

    def cached(self, df: DataFrame, text: str) -> None:
        self._actions.cached(df, text)

    def ran_plainly(self, location: SourceLocation, text: str, refusal: Exception, seconds: float) -> None:
        reason = refusal.__cause__ or refusal if isinstance(refusal, NotDeployedError) else refusal
        if isinstance(reason, UserError):
            # A rule of ours, of which the user's output shows as little as without the mode.
            self._card.left_to_spark(text, location.line_in_cell, seconds, str(reason).splitlines()[0])
        else:
            Line(text, str(location)).say_plain(reason)


def _line_options(magics: FlinkMagics) -> JobOptions:
    """Return the options of a line's graph."""
    options = {option.name: getattr(magics, option.name) for option in OPTIONS}
    if options["retain"] != NO_RETENTION:
        options["retain"] = "session"
    # A line that runs again writes again, also in another kernel.
    return JobOptions(**{**options, "checkpoint_dir": None})
