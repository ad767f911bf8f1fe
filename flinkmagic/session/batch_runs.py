"""Runs the function of a `foreachBatch`: what it writes for a batch is one graph, deployed before it returns.

1. Spark commits a batch when its function has returned, so it returns only when all its writes are done.
2. Lines of the function that need its earlier writes done (`count()`, a file that is read) wait for them.
3. Failures follow the rules of any line (`line_as_job`). What is raised fails the batch, and the checkpoint
   repeats it.
4. If plain Spark is to write the batch, it runs the same writes, each with the settings of its line. The user is told
   each reason once.
5. The stages run under the query's own job group, by which Spark's `stop()` ends them; the job that waits between two
   stages sees that the query's thread was interrupted, and ends too.
6. No rows or shuffle files of a batch remain. The last batch's graph is kept, to be shown.
7. Spark plans each batch: its optimiser uses the batch's own size and constraints, so that a plan of an earlier batch
   might give other rows, or broadcast too many. What does not depend on them, the session's clone with its settings, is
   kept from batch to batch until the query ends.
"""

from __future__ import annotations

import functools
import linecache
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Protocol

from py4j.protocol import Py4JJavaError

from flinkmagic.capturing.capture import capture
from flinkmagic.capturing.capture_listener import DeployingListener
from flinkmagic.capturing.capture_mode import CaptureMode
from flinkmagic.capturing.program import Program
from flinkmagic.capturing.session_snapshot import read_conf
from flinkmagic.capturing.source_code.source_location import CellSource
from flinkmagic.capturing.writes.sparks_errors import is_cancelled, sparks_own
from flinkmagic.errors.actions import ActionCancelledError, ActionFailedError, ran_plainly
from flinkmagic.errors.base import add_note
from flinkmagic.errors.capturing import NotDeployedError
from flinkmagic.errors.streaming import BatchFailedError, BatchStoppedError
from flinkmagic.jvm.java import java_class, session_state, static_method
from flinkmagic.options import NO_RETENTION, JobOptions
from flinkmagic.planning.clones import KeptClones
from flinkmagic.planning.run_origin import RunOrigin
from flinkmagic.session.line_as_job import Line, carry_out

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from flinkmagic.capturing.source_code.source_location import SourceLocation
    from flinkmagic.capturing.streams.deferred_stream import BatchCall, DeferredStream
    from flinkmagic.capturing.writes.deferred_write import DeferredWrite
    from flinkmagic.graph.job_graph import JobGraph
    from flinkmagic.session.line_as_job import RunningJob


class BatchGraph(Protocol):
    """What a batch needs of its compiled graph."""

    job_graph: JobGraph

    def run(self, wait: bool = True) -> RunningJob: ...

    def run_unshared(self) -> RunningJob | None: ...

    def to_svg(self) -> str: ...

    def summary(self) -> str: ...


@dataclass(frozen=True)
class BatchReport:
    """How a batch ended."""

    query: str
    batch_id: int
    """A batch that is repeated after a failure has the same number."""
    seconds: float
    """How long the function ran, with all that it wrote."""
    status: str
    """FINISHED, FAILED or CANCELED."""
    graphs: tuple[BatchGraph, ...] = ()
    """What it wrote: one graph, or several if a line of the function needed earlier writes done.

    Empty for a batch that wrote nothing, or that plain Spark wrote.
    """
    reason: str = ""
    """Why plain Spark wrote some of it; empty if it wrote none."""


MakeGraph = Callable[[Program, str | None, JobOptions, RunOrigin], "BatchGraph"]

_MOST_REPORTS = 100
_LOOK_S = 0.2
_INTERRUPT_S = 1.0


def carry_out_batches(
    stream: DeferredStream, cell: CellSource | None, options: JobOptions, make: MakeGraph
) -> BatchRuns | None:
    """Make what is returned run the function of a stream from now on; None if the stream has none."""
    if stream.batches is None:
        return None
    own = JobOptions(
        parallelism=options.parallelism,
        slots=options.slots,
        share=options.share,
        storage_level=options.storage_level,
        retain=NO_RETENTION,
    )
    runs = BatchRuns(stream.name, cell, own, make)
    stream.batches.carry_out = runs.run
    return runs


class BatchRuns:
    """Runs the batches of one query."""

    def __init__(self, query: str, cell: CellSource | None, options: JobOptions, make: MakeGraph) -> None:
        self.query = query
        self._cell, self._options, self._make = cell, options, make
        self._reports: deque[BatchReport] = deque(maxlen=_MOST_REPORTS)
        self._told: set[str] = set()
        self._clones = KeptClones()

    def reports(self) -> list[BatchReport]:
        """Return how the last batches ended, oldest first; only the newest has its graphs."""
        return list(self._reports)

    def close(self) -> None:
        """Release what only another batch would need: the session's clones."""
        self._clones.clear()

    def run(self, function: BatchCall, batch: DataFrame, batch_id: int) -> None:
        """Call the user's function with a batch, and return when all its writes are done."""
        one = _Batch(self, batch.sparkSession)
        started, status = time.monotonic(), "FAILED"
        try:
            with capture(
                batch.sparkSession,
                name=self.query,
                location=self._source(function),
                namespace={},
                mode=CaptureMode.FOREACH_BATCH,
                listener=one,
            ) as program:
                function(batch, batch_id)
            if program.writes:
                one.run_pending(program)
            status = "FINISHED"
        except Exception as error:
            status = "CANCELED" if one.is_cancelled else "FAILED"
            add_note(error, f"batch {batch_id} of {self.query}")
            raise
        finally:
            if self._reports:
                self._reports[-1] = replace(self._reports[-1], graphs=())
            seconds = time.monotonic() - started
            self._reports.append(
                BatchReport(self.query, batch_id, seconds, status, tuple(one.graphs), "; ".join(one.reasons))
            )

    def compiled(self, program: Program) -> BatchGraph:
        """Return the graph of what a batch has written so far."""
        return self._make(program, None, self._options, RunOrigin(is_line=True, is_part=True, clones=self._clones))

    def tell(self, line: Line, error: BaseException) -> str:
        """Tell the user, once for each reason, that plain Spark writes a batch; return the reason."""
        told = ran_plainly(line.text, line.where, error)
        if told not in self._told:
            self._told.add(told)
            line.say_plain(error)
        return told

    def _source(self, function: BatchCall) -> CellSource | None:
        """Return the cell that defines a function; None if a file does, in which its lines are found directly."""
        code = _code(function)
        cell = self._cell
        if cell is None or code is None:
            return None
        name = code.co_filename
        if name == cell.filename:
            return cell
        if name not in cell.labels:
            return None
        return CellSource(cell.labels[name], name, "".join(linecache.getlines(name)), cell.labels)


class _Batch(DeployingListener):
    """One batch while its function runs."""

    def __init__(self, runs: BatchRuns, spark: SparkSession) -> None:
        self._runs = runs
        self._spark = spark
        self.graphs: list[BatchGraph] = []
        self.reasons: list[str] = []
        self.is_cancelled = False

    def run_pending(self, program: Program) -> None:
        """Run the pending writes, and return when they are done."""
        location = program.writes[0].location
        job: RunningJob | None = None
        graph: BatchGraph | None = None

        def run() -> RunningJob:
            nonlocal graph
            graph = self._runs.compiled(program)
            return graph.run(wait=False)

        def watch(running: RunningJob) -> None:
            nonlocal job
            job = running
            while not job.wait(_LOOK_S).is_terminal:
                if self._is_interrupted():
                    raise self._stopped(location)

        def unshared(failed: RunningJob, _: BaseException) -> RunningJob | None:
            assert graph is not None
            following = graph.run_unshared()
            if following is not None:
                failed.release()
            return following

        plain: BaseException | None = None
        raised: Exception | None = None
        line = Line(f"a batch of {self._runs.query}", str(location), is_several=True)
        try:
            carry_out(line, run, watch, unshared)
        except NotDeployedError as refusal:  # rule 4
            plain = refusal.__cause__
        except Exception as error:  # noqa: BLE001 - raised below, without another one as its context
            raised = error
        if job is not None:
            failed = plain or raised
            if failed is not None and self._is_stopped(failed):
                plain, raised = None, self._stopped(location)
            job.release()
        if plain is not None:
            self.reasons.append(self._runs.tell(line, plain))
            for write in program.writes:
                write_plainly(write)
            return
        if graph is not None:
            self.graphs.append(graph)
        if raised is not None:
            raise self._of_batch(raised, line).with_traceback(None)

    def _stopped(self, location: SourceLocation) -> BatchStoppedError:
        self.is_cancelled = True
        return BatchStoppedError(str(location))

    def _is_interrupted(self) -> bool:
        """Return whether Spark stops the query: this thread's JVM counterpart is the query's own thread."""
        return bool(static_method(self._spark._jvm, "java.lang.Thread", "currentThread")().isInterrupted())

    def _is_stopped(self, failed: BaseException) -> bool:
        """Return whether Spark stops the query: it cancels its jobs, and interrupts its thread right after that."""
        # The interrupt may be yet to come if jobs were cancelled: by Spark, or as ours (`ActionCancelledError`).
        may_come = isinstance(failed, ActionCancelledError) or is_cancelled(failed)
        waits_until = time.monotonic() + (_INTERRUPT_S if may_come else 0.0)
        while not (is_interrupted := self._is_interrupted()) and time.monotonic() < waits_until:
            time.sleep(_INTERRUPT_S / 20)
        return is_interrupted

    def _of_batch(self, error: Exception, line: Line) -> Exception:
        """Return the error that the batch raises for its line's error."""
        if not isinstance(error, (ActionCancelledError, ActionFailedError)):
            return error
        self.is_cancelled = isinstance(error, ActionCancelledError)
        wrapped = BatchFailedError(line.where, error.__cause__)
        wrapped.__cause__ = error.__cause__
        return wrapped


def _code(function: Any) -> Any:
    """Return the code of a function, bound method, partial or callable object; None if it is not written in Python."""
    while isinstance(function, functools.partial):
        function = function.func
    function = getattr(function, "__func__", function)
    if not hasattr(function, "__code__"):
        function = vars(type(function)).get("__call__")
    return getattr(function, "__code__", None)


def write_plainly(write: DeferredWrite) -> None:
    """Run Spark's own command of a write, with the settings of its line.

    Raises
    ------
    PySparkException
        What Spark raises.
    """
    spark: Any = write.df.sparkSession
    state = session_state(spark)
    if read_conf(spark._jsparkSession) != dict(write.session.conf):
        clone = spark._jsparkSession.cloneSession()
        write.session.apply_to(clone.sessionState().conf())
        state = clone.sessionState()
    mode = java_class(spark._jvm, "org.apache.spark.sql.execution.CommandExecutionMode").ALL()
    try:
        state.executePlan(write.command, mode).assertCommandExecuted()
    except Py4JJavaError as error:  # PySpark has not converted it
        raise sparks_own(error) from None
