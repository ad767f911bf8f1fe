"""Runs a loop's supersteps one after the other.

1. Each superstep is a job: compiled through the graphs and deployed by the session's dispatcher. Nothing of it is
   retained, so that planning looks at one superstep, however many there were.
2. Its rows are kept. Those of the superstep before are kept until the next one has ended: from them Spark computes what
   is lost with an executor. Then their lineage is cut, and those before them are released (`SuperstepRows`). Of few
   rows the next superstep reads a copy that the driver holds, and nothing before it is kept.
3. A failure repeats tasks of one superstep, as its restart strategy says; when that gives up, the loop has failed.
4. Between supersteps `until` is asked whether the loop has converged.
5. A superstep has no more partitions than the first one had, or than a shuffle would have: a step that takes a union of
   its input would have more partitions, and tasks, each time. They are merged as by `DataFrame.coalesce`.
"""

from __future__ import annotations

import functools
import inspect
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame
from pyspark.sql.types import BooleanType

from flinkmagic.amounts import count, duration
from flinkmagic.capturing.driver.impurity import impure_reason
from flinkmagic.capturing.hooks.call_hooks import reads_of
from flinkmagic.capturing.hooks.current_capture import calling_the_user
from flinkmagic.capturing.program import Program
from flinkmagic.capturing.writes.pending import Effects
from flinkmagic.capturing.writes.sparks_errors import release_log
from flinkmagic.deployment.failures import short_reason
from flinkmagic.deployment.stages.session_queries import query_over_plan
from flinkmagic.display import GraphView, mime_bundle, to_svg
from flinkmagic.display.palette import JOB_GLYPHS
from flinkmagic.errors.base import is_from_signal
from flinkmagic.errors.iterations import IterationArgumentsError, IterationCancelledError, SuperstepFailedError
from flinkmagic.jvm.java import dataset_class, execution_of
from flinkmagic.options import BATCH, NO_RETENTION
from flinkmagic.planning.clones import KeptClones, SessionClones
from flinkmagic.planning.java_classes import CLASSES
from flinkmagic.scheduling.job_status import JobStatus
from flinkmagic.session.iterations.loop_checkpoint import LoopCheckpoint
from flinkmagic.session.iterations.loop_view import last_measures, loop_stream_graph, loop_view, supersteps_table
from flinkmagic.session.iterations.superstep import STATE, Superstep, SuperstepGraph, SuperstepRows, hold
from flinkmagic.session.known_loops import KnownLoop, remember
from flinkmagic.session.line_as_job import root_error, wait_or_cancel

if TYPE_CHECKING:
    from flinkmagic.capturing.recorder import Recorder
    from flinkmagic.graph.stream_graph import StreamGraph
    from flinkmagic.options import JobOptions
    from flinkmagic.session.job import Job

Until = Callable[[DataFrame, DataFrame], Any]

_NUMBER = "superstep"
"""The parameter through which a step gets the number of its superstep."""


class Iteration:
    """A loop, run once by the thread that calls `run`."""

    def __init__(
        self,
        name: str,
        step: Callable[..., Any],
        until: Until | None,
        most: int,
        options: JobOptions,
        recorder: Recorder | None,
    ) -> None:
        self.name = name
        self.supersteps: list[Superstep] = []
        """Those that have ended, in order, without those that another process has run."""
        self.status = JobStatus.CREATED
        self.converged = False
        """Whether `until` has ended the loop."""
        self.max_iterations = most
        self._step = step
        self._until = until
        self._is_tested = until is not None
        self._options = replace(options, mode=BATCH, retain=NO_RETENTION, checkpoint_dir=None)
        self._folder = options.checkpoint_dir
        self._recorder = recorder
        self._lock = threading.Lock()
        self._job: Job | None = None
        self._is_cancelled = False
        self._number = 0
        self._n_data = 0
        self._parallelism = 1
        self._most_partitions = 0
        self._is_bounded = False
        self._clones = KeptClones()
        self._step_name = getattr(step, "__name__", "step")
        self._is_numbered = _takes_number(step)
        self._rows: deque[SuperstepRows] = deque()
        self._data: list[SuperstepRows] = []
        self._checkpoint: LoopCheckpoint | None = None
        self._begun = time.monotonic()
        self._ended = threading.Event()

    @property
    def outcome(self) -> str:
        """How many supersteps ran, and how they ended."""
        ended = "converged" if self.converged else "not converged" if self._is_tested else ""
        return ", ".join(filter(None, [count(self._number, "superstep"), ended]))

    def summary(self) -> str:
        """Return how the loop went, superstep by superstep."""
        return f"{self.name}: {self.status}, {self.outcome}\n{supersteps_table(self.supersteps)}".rstrip()

    def stream_graph(self) -> StreamGraph:
        """Return Flink's graph of the loop: a head and a tail around the step, and the edge that feeds back."""
        return loop_stream_graph(self.name, self._step_name, self._parallelism, self.outcome, data=self._n_data)

    def to_svg(self) -> str:
        """Return the graph as a picture."""
        return to_svg(self.view())

    def view(self) -> GraphView:
        """Return the graph as readers see it, with the outcome of the supersteps."""
        return loop_view(self.stream_graph(), self.supersteps)

    def progress(self) -> str:
        """Return one line: state, superstep, its tasks, what `until` measured last, and the time until now.

        Such as ``ranks ▶ RUNNING superstep 4 of 30 · 3/8 tasks · moved 4.95 · 2.1 s``.
        """
        with self._lock:
            job = self._job
        parts = [f"superstep {min(self._number + 1, self.max_iterations)} of {self.max_iterations}"]
        if job is not None:
            snapshot = job.snapshot()
            parts.append(f"{snapshot.task_counts.get('FINISHED', 0)}/{snapshot.n_tasks} tasks")
        parts += last_measures(self.supersteps)
        parts.append(duration((time.monotonic() - self._begun) * 1000))
        return f"{self.name} {JOB_GLYPHS.get(str(self.status), '○')} {self.status} {' · '.join(parts)}"

    def wait(self, timeout: float | None = None) -> JobStatus:
        """Wait until the loop has ended, or for `timeout` seconds at most; return its status."""
        self._ended.wait(timeout)
        return self.status if self._ended.is_set() else JobStatus.RUNNING

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> Mapping[str, str]:
        if not self.supersteps:
            return {"text/plain": self.summary()}
        bundle = mime_bundle(self.view(), summary=f"{self.status}, {self.outcome}")
        return {**bundle, "text/plain": self.summary()}

    def cancel(self) -> None:
        """End the loop's Spark work, from any thread, in a superstep or between two; `run` then raises."""
        with self._lock:
            self._is_cancelled = True
            job = self._job
        if job is not None:
            job.cancel()

    def run(self, initial: DataFrame, data: Sequence[DataFrame] = ()) -> DataFrame:
        """Run the loop; return a DataFrame over the rows of its last superstep.

        The step gets `data` before the state: the rows of each are computed once, unless the user has cached them.

        Raises
        ------
        SuperstepFailedError
            If a superstep has failed and its restart strategy gives up.
        IterationCancelledError
            After `cancel`.
        """
        try:
            return self._run(initial, data)
        finally:
            self._ended.set()

    def _run(self, initial: DataFrame, data: Sequence[DataFrame]) -> DataFrame:
        self.status = JobStatus.RUNNING
        try:
            self._n_data = len(data)
            last = self._loop(initial, [self._kept_data(one) for one in data])
        except BaseException as error:
            is_ended = isinstance(error, (IterationCancelledError, KeyboardInterrupt)) or is_from_signal(error)
            self._end(JobStatus.CANCELED if is_ended else JobStatus.FAILED)
            raise
        finally:
            # The loop is remembered, but must not hold its functions and the cell, which the user may let go of.
            del self._step, self._until, self._recorder, self._clones
        self.status = JobStatus.FINISHED
        if self._checkpoint is not None:
            self._checkpoint.close()
        # What is made of it refers to this plan in the JVM, even where no name does. Its columns are new: they
        # belong to this call of the loop.
        result = last.toDF(*last.columns)
        remember(self._rows[-1].dataset_id(), KnownLoop(self.view(), f"{self.name}: {self.outcome}"))
        hold(result, [*self._data, *self._rows])
        self._data, self._rows = [], deque()
        return result

    def _kept_data(self, data: DataFrame) -> DataFrame:
        if data.storageLevel.useMemory or data.storageLevel.useDisk:
            return data
        self._data.append(SuperstepRows(self._deployed(self._graph(data), 0)))
        return self._data[-1].frame

    def _end(self, status: JobStatus) -> None:
        self.status = status
        if self._checkpoint is not None and status is JobStatus.CANCELED:
            self._checkpoint.close()
        for rows in (*self._data, *self._rows):
            rows.release()
        self._data, self._rows = [], deque()

    def _loop(self, initial: DataFrame, data: Sequence[DataFrame]) -> DataFrame:
        current, number = initial, 0
        while number < self.max_iterations and not self.converged:
            self._check_cancelled()
            started = time.monotonic()
            graph = self._compiled(data, current, number + 1)
            if self._folder is not None and self._checkpoint is None:
                self._checkpoint = LoopCheckpoint(str(self._folder), self.name, graph.key())
                found = self._checkpoint.find(initial.sparkSession, initial.schema)
                if found is not None:
                    number, current = self._taken_up(*found)
                    continue
            job = self._deployed(graph, number + 1)
            self._rows.append(SuperstepRows(job))
            made, number = self._rows[-1].state, number + 1
            measures = self._measured(current, made)
            self.converged = next(iter(measures.values()), False) is True
            self._let_go()
            if self._checkpoint is not None:
                self._checkpoint.write(number, made)
            current, self._number = made, number
            tasks = sum(task.role != "helper" for task in job.tasks())
            seconds = time.monotonic() - started
            self.supersteps.append(Superstep(number, seconds, graph.planning_seconds, tasks, measures))
        return self._rows[-1].frame

    def _taken_up(self, number: int, frame: DataFrame) -> tuple[int, DataFrame]:
        """Keep the rows that a former process has recorded: the next superstep deletes their files."""
        self._rows.append(SuperstepRows(self._deployed(self._graph(frame), number)))
        self._number = number
        return number, self._rows[-1].state

    def _let_go(self) -> None:
        """Apply rule 2, once the rows of another superstep are there."""
        needed = 2
        if len(self._rows) > 1 and self._rows[-2].is_local:
            needed = 1
        elif len(self._rows) > 1:
            self._rows[-2].cut()
        while len(self._rows) > needed:
            self._rows.popleft().release()

    def _check_cancelled(self) -> None:
        if self._is_cancelled:
            raise IterationCancelledError(self.name, len(self.supersteps))

    def _compiled(self, data: Sequence[DataFrame], current: DataFrame, number: int) -> SuperstepGraph:
        numbered = {_NUMBER: number} if self._is_numbered else {}
        with calling_the_user(self._recorder):
            made = self._step(*data, current, **numbered)
        returned = f"What the step of the loop {self.name!r} returns in superstep {number}"
        if not isinstance(made, DataFrame):
            raise IterationArgumentsError(type(made), "a DataFrame", returned)
        if made.dtypes != current.dtypes:
            expected = f"of the columns that it was given ({_columns(current)})"
            raise IterationArgumentsError(_columns(made), expected, returned)
        return self._bounded(made)

    def _bounded(self, made: DataFrame) -> SuperstepGraph:
        """Compile a superstep by rule 5."""
        graph = self._graph(made.coalesce(self._most_partitions) if self._is_bounded else made)
        if not self._most_partitions:
            self._most_partitions = max(graph.partitions, self._options.parallelism or 2 * graph.slots_planned_for)
        if graph.partitions <= self._most_partitions or self._is_bounded:
            return graph
        self._is_bounded = True
        bounded = self._bounded(made)
        bounded.planning_seconds += graph.planning_seconds
        return bounded

    def _graph(self, df: DataFrame) -> SuperstepGraph:
        """Compile the graph that computes a DataFrame."""
        _settle(self._recorder, df)
        program = self._recorder.so_far() if self._recorder is not None else Program(df.sparkSession)
        program.results, program.namespace = {STATE: df}, None
        try:
            return SuperstepGraph(program, self.name, self._options, self._clones)
        except (Py4JError, PySparkException) as error:  # Spark may compute rows of the driver while it plans
            raise SuperstepFailedError(self.name, self._number + 1, [short_reason(str(error))]) from error

    def _deployed(self, graph: SuperstepGraph, number: int) -> Job:
        self._parallelism = max(vertex.parallelism for vertex in graph.job_graph.vertices.values())
        job = graph.run(wait=False)
        try:
            wait_or_cancel(job, self._watch)
        except BaseException:  # an interrupt
            job.release()
            raise
        finally:
            with self._lock:
                self._job = None
        status = job.status
        if status is JobStatus.FINISHED:
            return job
        failure = root_error(job)
        causes = [short_reason(str(entry.root.error)) for entry in job.exceptions()]
        job.release()
        if status is JobStatus.CANCELED:
            raise IterationCancelledError(self.name, len(self.supersteps))
        release_log(failure)
        raise SuperstepFailedError(self.name, number, causes)

    def _watch(self, job: Job) -> None:
        with self._lock:
            self._job = job
        if self._is_cancelled:
            job.cancel()

    def _measured(self, previous: DataFrame, current: DataFrame) -> Mapping[str, Any]:
        """Return what `until` has returned; the first value says whether the loop ends."""
        if self._until is None:
            return {}
        self._check_cancelled()
        with calling_the_user(self._recorder):
            answer = self._until(previous, current)
        if isinstance(answer, bool) or type(answer).__name__ in ("bool_", "bool"):  # NumPy's, before 2 and since
            return {"converged": bool(answer)}
        returned = f"What until of the loop {self.name!r} returns"
        expected = "a bool, or a DataFrame of one row whose first column is boolean"
        if not isinstance(answer, DataFrame) or not answer.schema or answer.schema[0].dataType != BooleanType():
            raise IterationArgumentsError(answer, expected, returned)
        rows = self._few_rows(answer)
        if len(rows) != 1:
            raise IterationArgumentsError(count(len(rows), "row"), expected, returned)
        return dict(rows[0].asDict())

    def _few_rows(self, df: DataFrame) -> list[Any]:
        """Collect two rows of a DataFrame that is planned with as many partitions as a superstep.

        The last two: each `LocalLimit` that Spark derives from a limit has a counter of another name, so the code of
        every superstep would be compiled anew (``BaseLimitExec``, 3.5 to 4.1).
        """
        spark, query = df.sparkSession, execution_of(df).analyzed()
        clones = SessionClones(spark, self._options, self._clones)
        clone, gateway = clones.of(None), spark.sparkContext._gateway
        planned = clones.plan(query, clone)
        joined = CLASSES.shared_instance(gateway, "LocalJoins").evaluated(planned.optimizedPlan())
        if joined is not None:
            planned = clones.plan(joined, clone)
        plan = CLASSES.shared_instance(gateway, "DriverRows").broadcast(planned.executedPlan())
        execution = query_over_plan(spark.sparkContext, clone.session, query, plan)
        return DataFrame(dataset_class(spark._jvm)(execution, df._jdf.encoder()), spark).tail(2)


def _takes_number(step: Callable[..., Any]) -> bool:
    try:
        parameters = inspect.signature(step).parameters
    except (TypeError, ValueError):  # a C function without a signature
        return False
    is_given = isinstance(step, functools.partial) and _NUMBER in step.keywords
    return _NUMBER in parameters and not is_given


def _settle(recorder: Recorder | None, df: DataFrame) -> None:
    """Run pending writes that a superstep would read, since it runs now, as an action does."""
    if recorder is not None:
        recorder.calls.use([df])
        if recorder.pending:
            impure = impure_reason(execution_of(df).analyzed()) is not None
            recorder.settle(Effects(reads_of([df]), unknown=impure, fresh=False))


def _columns(df: DataFrame) -> str:
    return ", ".join(f"{name} {kind}" for name, kind in df.dtypes)
