"""Runs the handle of one vertex as a Spark stage, on a thread that nothing else runs on meanwhile.

What Spark is asked for, by kind of handle (seen on 3.5.9 and 4.3.0):

- shuffle map stage: ``SparkContext.submitMapStage``, waited for inside the JVM. A map stage whose outputs are all there
  is not submitted: Spark would finish that job twice and log ``DAGScheduler: No stages registered for job`` (its
  `handleMapStageSubmitted` finds the stage available after `submitStage` has already finished the job).
- broadcast: ``relationFuture``; subquery: ``executeCollect``.
- write: the command's ``executeCollect`` inside ``SQLExecution.withNewExecutionId``, so that the SQL tab and the query
  listeners of the session see it as a plain write.
- result and boundary: a pass over the rows that are kept; see `reuse.kept_results`. A result is a query of the session,
  too; a boundary is not the user's, and has no name under which listeners would see it.
"""

from __future__ import annotations

import functools
import logging
import threading
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from py4j.protocol import Py4JError, Py4JJavaError

from flinkmagic.capturing.writes.sparks_errors import is_cancelled
from flinkmagic.deployment.java_classes import CLASSES
from flinkmagic.deployment.stages.free_slots import await_free_slots
from flinkmagic.deployment.stages.observations import Observations
from flinkmagic.deployment.stages.python_workers import ExecutorWatch, end_python_workers
from flinkmagic.deployment.stages.session_queries import in_session, query_name, session_query
from flinkmagic.deployment.stages.spark_jobs import JobProperties, cancel_jobs
from flinkmagic.deployment.stages.stage_threads import StageThreads
from flinkmagic.deployment.stages.write_retries import EarlierRun, prepare_write_retry
from flinkmagic.errors.base import InvariantViolatedError
from flinkmagic.jvm.java import java_class, option, static_method
from flinkmagic.planning.adaptive_stages import AS_PLANNED, StageAdaptation
from flinkmagic.planning.handles import (
    BoundaryStageHandle,
    BroadcastStageHandle,
    ResultStageHandle,
    ShuffleMapStageHandle,
    StageHandle,
    SubqueryStageHandle,
    WriteStageHandle,
    renew_region,
)
from flinkmagic.reuse.kept_results import KeptResults
from flinkmagic.reuse.map_outputs import MapOutputs

if TYPE_CHECKING:
    from py4j.java_gateway import JavaObject
    from pyspark import SparkContext

_LOG = logging.getLogger(__name__)

EARLY = "-early"
"""The suffix of the tag of jobs that run before a vertex's own stage: the sampling of a range exchange."""


@dataclass(frozen=True)
class StageOutcome:
    """The outcome of a stage."""

    error: BaseException | None = None
    """Why it failed; None if it is done."""
    bytes_by_partition: tuple[int, ...] | None = None
    """For a shuffle, the real size of each partition, over all map tasks."""
    adaptation: StageAdaptation = AS_PLANNED
    """How the stage's run differed from its plan."""


class StageCancelledError(Exception):
    """Raised on a stage's thread if the stage was cancelled before it was submitted to Spark."""


class StageRunner:
    """Runs the handles of one deployment's stages, and holds what they share.

    Parameters
    ----------
    jsession : JavaObject
        The clone of the session on which the job was planned.
    done : callable
        Called with each stage that is done, on its thread, before anything else learns of it.
    count_rows : callable
        Called with the tag of a stage that reads kept rows, and with the ids of the metrics that count them, before it
        goes to Spark.
    """

    def __init__(
        self,
        sc: SparkContext,
        jsession: JavaObject | None,
        properties: JobProperties,
        kept: KeptResults,
        observations: Observations,
        done: Callable[[StageHandle, KeptResults], None] = lambda _handle, _kept: None,
        count_rows: Callable[[str, str], None] = lambda _tag, _metrics: None,
    ) -> None:
        self.sc = sc
        self.jsession = jsession
        self.properties = properties
        self.kept = kept
        self._observations = observations
        self._done = done
        self._count_rows = count_rows
        self._map_outputs = MapOutputs(sc)
        self._watch = ExecutorWatch.of(sc)
        self._jsc = sc._jsc.sc()

    def run(
        self,
        handle: StageHandle,
        tag: str,
        description: str,
        earlier: EarlierRun | None,
        ready: Callable[[], None],
    ) -> StageOutcome:
        """Run a handle to its end on the calling thread, which must run nothing else meanwhile.

        `ready` is called before anything goes to Spark, and may raise.
        """
        outcome = self._run(handle, tag, description, earlier, ready)
        self._observations.collect(handle)
        return replace(outcome, adaptation=handle.adaptation)

    def _run(
        self,
        handle: StageHandle,
        tag: str,
        description: str,
        earlier: EarlierRun | None,
        ready: Callable[[], None],
    ) -> StageOutcome:
        session = handle.session or self.jsession
        if isinstance(handle, ShuffleMapStageHandle) and handle.tasks == 0:
            return StageOutcome(bytes_by_partition=(0,) * handle.output_partitions)
        if any(one.calls_python for one in (handle, *handle.upstream)):
            self._watch.start(self.sc, lambda tag, description: self.properties.enter(tag, description, session))
        self.properties.enter(tag + EARLY if handle.starts_jobs_early else tag, description, session)
        if earlier is not None and (handle.upstream or self.kept.stored_partitions(handle) > len(earlier.counted)):
            self.kept.forget(handle)
        if earlier is not None and handle.upstream:
            renew_region(handle)
        elif earlier is not None:
            handle.renew()
        if handle.starts_jobs_early:
            ready()
        handle.make()
        for one in handle.upstream:
            one.shuffle_dependency  # noqa: B018 - the number of the shuffle says whose the stage is
        handle.adaptation  # noqa: B018 - to be known before Spark tells of the stage's tasks
        metrics = handle.row_metrics()
        if metrics:
            self._count_rows(tag, metrics)
        if handle.starts_jobs_early:
            self.properties.enter(tag, description, session)
        if isinstance(handle, ShuffleMapStageHandle):
            return self._run_shuffle_map(handle, ready)
        if isinstance(handle, BroadcastStageHandle):
            ready()
            handle.exchange.relationFuture().get()
        elif isinstance(handle, SubqueryStageHandle):
            ready()
            handle.subquery.executeCollect()
        elif isinstance(handle, WriteStageHandle):
            plan = handle.plan
            if earlier is not None:
                prepare_write_retry(self.sc, plan, handle.name, earlier)
            ready()
            self._write(handle, plan, session)
        elif isinstance(handle, ResultStageHandle):
            self._keep_result(handle, ready, session)
        elif isinstance(handle, BoundaryStageHandle):
            batches = self.kept.batches(handle)
            ready()
            self._in_sql_execution(handle.query_execution, None, batches)
        else:
            raise InvariantViolatedError(f"there is a way to run a {type(handle).__name__}")
        try:
            self._done(handle, self.kept)
        except Exception as error:  # noqa: BLE001 - what the stage wrote is committed
            again = "a kernel that takes the job up does it again"
            _LOG.warning("%r is done, but that could not be recorded, so %s: %s", handle.name, again, error)
        return StageOutcome()

    def _write(self, handle: WriteStageHandle, plan: JavaObject, jsession: JavaObject | None) -> None:
        """Run a write's plan as a query of the session in which the user asked for it."""
        user = handle.user_write
        if user is None:
            self._in_sql_execution(handle.query_execution, "command", plan)
            return
        planned = handle.query_execution
        user.prepare(planned.sparkSession())
        metrics = handle.observed.metrics if handle.observed is not None else None
        told = session_query(self.sc, planned, user.spark._jsparkSession, user.command, plan, metrics)
        try:
            name = query_name(user.kind)
            self._in_sql_execution(told, name, plan, jsession)
        finally:
            user.refresh()

    def _keep_result(self, handle: ResultStageHandle, ready: Callable[[], None], session: JavaObject | None) -> None:
        """Compute and keep a result's rows, as a query of the user's session."""
        batches = self.kept.batches(handle)
        if handle.upstream:
            # A job that reads the rows must not find the shuffles behind them: they are gone with this one.
            batches.localCheckpoint()
        ready()
        planned, observed = handle.query_execution, handle.observed
        query = planned.logical() if observed is None else observed.query
        metrics = None if observed is None else observed.metrics
        told = session_query(self.sc, planned, self.kept.jsession, query, handle.plan, metrics)
        self._in_sql_execution(told, "collect", batches, session)

    def _run_shuffle_map(self, handle: ShuffleMapStageHandle, ready: Callable[[], None]) -> StageOutcome:
        dependency = handle.shuffle_dependency
        tasks = dependency.rdd().getNumPartitions()
        if tasks == 0:
            return StageOutcome(bytes_by_partition=(0,) * handle.output_partitions)
        if self._map_outputs.are_complete(dependency, tasks):
            return self._written(handle, self._map_outputs.statistics(dependency))
        ready()
        future = self._jsc.submitMapStage(dependency)
        static_method(self.sc._jvm, "org.apache.spark.util.ThreadUtils", "awaitReady")(future, _forever(self.sc._jvm))
        answer = future.value().get()
        if answer.isFailure():
            raise self._as_python(answer.failed().get())
        return self._written(handle, answer.get())

    def _written(self, handle: ShuffleMapStageHandle, statistics: JavaObject) -> StageOutcome:
        if handle.written is not None:
            handle.written(statistics)
        # As text: each number of an array would cost a call.
        text = static_method(self.sc._jvm, "java.util.Arrays", "toString")(statistics.bytesByPartitionId())
        numbers = tuple(int(number) for number in text.strip("[]").split(",") if number)
        return StageOutcome(bytes_by_partition=numbers)

    def _in_sql_execution(
        self,
        query_execution: JavaObject,
        name: str | None,
        target: JavaObject,
        jsession: JavaObject | None = None,
    ) -> None:
        """Run something as a query, under the configuration of another session if one is given."""
        body = CLASSES.new_instance(self.sc._gateway, "StageBody", target)
        if jsession is not None:
            body = in_session(self.sc, jsession, body)
        run = static_method(self.sc._jvm, "org.apache.spark.sql.execution.SQLExecution", "withNewExecutionId")
        run(query_execution, option(self.sc._jvm, name), body)

    def _as_python(self, throwable: JavaObject) -> BaseException:
        """Return what a call of PySpark's raises for an error of Spark's: py4j's own for one that it does not know."""
        from pyspark.errors.exceptions.captured import UnknownException, convert_exception

        converted = convert_exception(throwable)
        if isinstance(converted, UnknownException):
            return Py4JJavaError("An error occurred while running a stage.\n", throwable)
        return converted


class StageRun:
    """One submission of a vertex's stage to Spark.

    Parameters
    ----------
    tag : str
        The tag under which its Spark jobs are submitted; no other submission has it.
    description : str
        What Spark's UI shows for its jobs.
    earlier : EarlierRun, optional
        How far the vertex came when it was submitted before; None if it was not.
    on_outcome : callable
        Called once, on the stage's thread.
    """

    def __init__(
        self,
        runner: StageRunner,
        handle: StageHandle,
        tag: str,
        description: str,
        earlier: EarlierRun | None,
        on_outcome: OnOutcome,
    ) -> None:
        self.handle = handle
        self.tag = tag
        self._runner = runner
        self._description = description
        self._earlier = earlier
        self._on_outcome = on_outcome
        self.waiting_for = ""
        """What it waits for before it goes to Spark: slots that other jobs hold."""
        self._turn: Callable[[], None] | None = None
        self._cancelled = threading.Event()
        self._tasks_over = threading.Event()
        self._has_ended = threading.Event()

    @property
    def is_cancelled(self) -> bool:
        """Whether `cancel` was called."""
        return self._cancelled.is_set()

    def start(self, threads: StageThreads, turn: Callable[[], None] | None = None) -> None:
        """Begin on a thread that nothing else runs on meanwhile; wait for `turn` before anything is submitted."""
        self._turn = turn
        threads.start(self.tag, self._run)

    def _ready(self) -> None:
        turn, self._turn = self._turn, None
        if turn is not None:
            turn()
        self.check_wanted()
        if self.handle.upstream:
            await_free_slots(self._runner.sc, self)

    def check_wanted(self) -> None:
        """Raise if it was cancelled.

        Raises
        ------
        StageCancelledError
            Then.
        """
        if self._cancelled.is_set():
            raise StageCancelledError

    def cancel(self) -> None:
        """End this stage's Spark jobs. Call it again for a job that starts later under the tag."""
        first = not self._cancelled.is_set()
        self._cancelled.set()
        tags = [self.tag, self.tag + EARLY] if self.handle.starts_jobs_early else [self.tag]
        try:
            for tag in tags:
                cancel_jobs(self._runner.sc, tag)
                if first:
                    end_python_workers(self._runner.sc, tag, self._tasks_over.is_set)
        except (Py4JError, OSError, AttributeError) as gone:
            _LOG.debug("nothing to cancel under %s, the session is gone: %s", self.tag, gone)

    def tasks_over(self) -> None:
        """Record that no task of this submission is left."""
        self._tasks_over.set()

    def join(self, timeout_s: float) -> bool:
        """Wait until its thread runs nothing of it; return whether that is so."""
        return self._has_ended.wait(timeout_s)

    def _run(self) -> None:
        try:
            outcome = self._runner.run(self.handle, self.tag, self._description, self._earlier, self._ready)
        except BaseException as error:  # noqa: BLE001 - whatever ends the stage is its outcome
            outcome = StageOutcome(error=error, adaptation=self.handle.known_adaptation)
            if is_cancelled(error) and not self.is_cancelled:  # by the user, at Spark: not by `cancel`
                end_python_workers(self._runner.sc, self.tag, self._tasks_over.is_set)
        try:
            self._on_outcome(self, outcome)
        finally:
            self._has_ended.set()


@functools.lru_cache(maxsize=4)
def _forever(jvm: Any) -> JavaObject:
    return java_class(jvm, "scala.concurrent.duration.Duration").Inf()


OnOutcome = Callable[[StageRun, StageOutcome], None]
"""Called, on the stage's thread, with the stage's outcome."""
