"""Runs the handle of one vertex as a Spark stage, on a thread that nothing else runs on meanwhile.

Writes and results run inside ``SQLExecution.withNewExecutionId``, as queries of the user's session (`session_queries`):
the SQL tab and the listeners see them as plain ones. Seen on 3.5.9 and 4.3.0.
"""

from __future__ import annotations

import functools
import logging
import threading
import time
import zlib
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from py4j.protocol import Py4JError, Py4JJavaError

from flinkmagic.capturing.writes.sparks_errors import is_cancelled, say_where, withheld_log
from flinkmagic.deployment.java_classes import CLASSES
from flinkmagic.deployment.stages.observations import Observations
from flinkmagic.deployment.stages.python_workers import PythonWorkerWatch, end_python_workers
from flinkmagic.deployment.stages.session_queries import run_as_query, session_query
from flinkmagic.deployment.stages.spark_jobs import JobProperties, cancel_jobs
from flinkmagic.deployment.stages.stage_place import HELPER, StagePlace
from flinkmagic.deployment.stages.stage_threads import STAGE_THREADS
from flinkmagic.deployment.stages.write_retries import EarlierRun, prepare_write_retry
from flinkmagic.jvm.contexts import jvm_context
from flinkmagic.jvm.java import items, java_class, static_method
from flinkmagic.planning.adaptive_stages import AS_PLANNED, StageAdaptation
from flinkmagic.planning.stage_handles import QueryStageHandle, StageHandle
from flinkmagic.planning.stage_metrics import StageMetrics
from flinkmagic.reuse.job_rows import JobRows
from flinkmagic.reuse.map_outputs import MapOutputs

if TYPE_CHECKING:
    from py4j.java_gateway import JavaObject
    from pyspark import SparkContext

_LOG = logging.getLogger(__name__)

EARLY = "-early"
"""The suffix of the tag of jobs that run before a vertex's own stage: the sampling of a range exchange."""

_PAUSE_S = 0.05
"""Between two looks at Spark's free slots."""

MEASURED_FROM_S = 0.05
"""What its operators have measured is not asked of a stage that took less: asking takes a millisecond. Of a broadcast
it is: a join with few rows may take long."""


class StageCancelledError(Exception):
    """Raised on a stage's thread if the stage was cancelled before it was submitted to Spark."""


@dataclass(frozen=True)
class StageOutcome:
    """How a stage ended."""

    error: BaseException | None = None
    """Why it failed; None if it is done."""
    bytes_by_partition: tuple[int, ...] | None = None
    """For a shuffle, the real size of each partition, over all map tasks."""
    adaptation: StageAdaptation = AS_PLANNED
    """How the stage's run differed from its plan."""
    metrics: tuple[StageMetrics, ...] = ()
    """What its operators have measured, and those of the other stages of its region, in the order of `upstream`;
    nothing of a stage that is over soon."""


class StageRunner:
    """Runs the handles of one deployment's stages, and holds what they share (`StageHost`).

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
        kept: JobRows,
        observations: Observations,
        done: Callable[[StageHandle, JobRows], None] = lambda _handle, _kept: None,
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
        self._watch = PythonWorkerWatch.of(sc)
        self._jsc = jvm_context(sc)

    def run(self, stage: StageRun) -> StageOutcome:
        """Run a stage to its end on the calling thread, which must run nothing else meanwhile."""
        handle, started = stage.handle, time.monotonic()
        if handle.tasks or not handle.is_map_stage:  # Spark refuses a map stage without partitions
            self._prepare(stage)
        try:
            sizes = handle.run(self, stage.ready)
        finally:
            if handle.clean_up is not None:
                handle.clean_up()
        try:
            self._done(handle, self.kept)
        except Exception as error:  # noqa: BLE001 - what the stage wrote is committed
            again = "a kernel that takes the job up does it again"
            _LOG.warning("%r is done, but that could not be recorded, so %s: %s", handle.name, again, error)
        self._observations.collect(handle)
        is_asked = handle.is_measured or time.monotonic() - started >= MEASURED_FROM_S
        metrics = measured(handle) if is_asked else ()
        return StageOutcome(bytes_by_partition=sizes, adaptation=handle.adaptation, metrics=metrics)

    def _prepare(self, stage: StageRun) -> None:
        """Make the JVM's object of the handle, under the stage's tag."""
        handle, tag, earlier = stage.handle, stage.tag, stage.earlier
        session = handle.session or self.jsession
        if any(one.calls_python for one in (handle, *handle.upstream)):
            self._watch.start(self.sc, lambda tag, description: self.properties.enter(tag, description, "", session))
        if handle.starts_jobs_early:
            helper = str(replace(stage.place, kind=HELPER))
            self.properties.enter(tag + EARLY, stage.description, helper, session)
        else:
            self.properties.enter(tag, stage.description, str(stage.place), session)
        if earlier is not None:
            if handle.upstream or self.kept.stored_partitions(handle) > len(earlier.counted):
                self.kept.forget(handle)
            handle.renew()
        if handle.starts_jobs_early:
            stage.ready()
        made = handle.make()
        for one in handle.upstream:
            one.make()  # the number of the shuffle says whose the stage is
        handle.adaptation  # noqa: B018 - to be known before Spark tells of the stage's tasks
        metrics = handle.row_metrics()
        if metrics:
            self._count_rows(tag, metrics)
        if handle.starts_jobs_early:
            self.properties.enter(tag, stage.description, str(stage.place), session)
        if earlier is not None and handle.is_committed:
            prepare_write_retry(self.sc, made, handle.name, earlier)

    # -- StageHost -------------------------------------------------------------------------------------

    def batches(self, handle: StageHandle) -> JavaObject:
        """Return the RDD over which a pass computes and keeps the handle's rows; start nothing."""
        return self.kept.batches(handle)

    def write_shuffle(
        self, dependency: JavaObject, written: Callable[[JavaObject], object] | None, ready: Callable[[], None]
    ) -> tuple[int, ...]:
        """Run a map stage, and wait for it inside the JVM.

        One whose outputs are all there is not submitted: Spark would finish that job twice and log ``DAGScheduler: No
        stages registered for job`` (its `handleMapStageSubmitted` finds the stage available after `submitStage` has
        already finished the job).
        """
        tasks = dependency.rdd().getNumPartitions()
        if tasks == 0:
            return ()
        if self._map_outputs.are_complete(dependency, tasks):
            statistics = self._map_outputs.statistics(dependency)
        else:
            ready()
            statistics = self._run_map_stage(dependency)
        if written is not None:
            written(statistics)
        # As text: each number of an array would cost a call.
        text = static_method(self.sc._jvm, "java.util.Arrays", "toString")(statistics.bytesByPartitionId())
        return tuple(int(number) for number in text.strip("[]").split(",") if number)

    def _run_map_stage(self, dependency: JavaObject) -> JavaObject:
        future = self._jsc.submitMapStage(dependency)
        static_method(self.sc._jvm, "org.apache.spark.util.ThreadUtils", "awaitReady")(future, _forever(self.sc._jvm))
        answer = future.value().get()
        if answer.isFailure():
            raise self._as_python(answer.failed().get())
        return answer.get()

    def run_users_query(
        self, handle: QueryStageHandle, query: JavaObject, name: str, target: JavaObject, jsession: JavaObject | None
    ) -> None:
        """Run what a write or a result asks for as a query of the user's session, under the clone's configuration."""
        metrics = handle.observed.metrics if handle.observed is not None else None
        planned, plan, session = handle.query_execution, handle.make(), jsession or self.kept.jsession
        self.run_query(session_query(self.sc, planned, session, query, plan, metrics), name, target, handle.session)

    def run_query(
        self, query_execution: JavaObject, name: str | None, target: JavaObject, jsession: JavaObject | None = None
    ) -> None:
        """Run something as a query, under the configuration of another session if one is given.

        Raises
        ------
        DriverClassesRefusedError
            If that is not possible: without it a write would use another configuration than that of its line.
        """
        body = CLASSES.new_instance(self.sc._gateway, "StageBody", target)
        if jsession is not None:
            body = CLASSES.new_instance(self.sc._gateway, "InSession", jsession, body)
        run_as_query(self.sc, query_execution, name, body)

    def _as_python(self, throwable: JavaObject) -> BaseException:
        """Return what a call of PySpark's raises for an error of Spark's: py4j's own for one that it does not know."""
        from pyspark.errors.exceptions.captured import UnknownException, convert_exception

        # In py4j's words: its own error would end the call itself, which here has only begun the stage.
        error = Py4JJavaError("", throwable)  # `StageRun` says where it occurred
        try:
            raise error  # what is converted is logged with the error that is being handled
        except Py4JJavaError:
            converted = convert_exception(throwable)
        return error if isinstance(converted, UnknownException) else converted


def measured(handle: StageHandle) -> tuple[StageMetrics, ...]:
    """Return what a stage that is done, and those of its region, have measured; nothing if that cannot be read."""
    try:
        return tuple(one.metrics() for one in (handle, *handle.upstream))
    except (Py4JError, AttributeError, LookupError, TypeError, ValueError, zlib.error) as error:
        # What the stage has made is there: only findings lack its measures.
        _LOG.warning("The metrics of %r could not be read, so findings do without them: %s", handle.name, error)
        return ()


class StageRun:
    """One submission of a vertex's stage to Spark.

    Parameters
    ----------
    tag : str
        The tag under which its Spark jobs are submitted; no other submission has it.
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
        place: StagePlace,
        earlier: EarlierRun | None,
        on_outcome: OnOutcome,
    ) -> None:
        self.handle, self.tag, self.description, self.place, self.earlier = handle, tag, description, place, earlier
        self._runner = runner
        self._on_outcome = on_outcome
        self.waiting_for = ""
        """What it waits for before it goes to Spark: slots that other jobs hold."""
        self._turn: Callable[[], None] | None = None
        self._cancelled = threading.Event()
        self._tasks_over = threading.Event()
        self._has_ended = threading.Event()

    def start(self, turn: Callable[[], None] | None = None) -> None:
        """Begin on a thread that nothing else runs on meanwhile; wait for `turn` before anything is submitted."""
        self._turn = turn
        STAGE_THREADS.start(self.tag, self._run)

    def ready(self) -> None:
        """Wait until it may go to Spark.

        Raises
        ------
        StageCancelledError
            If it was cancelled meanwhile.
        """
        turn, self._turn = self._turn, None
        if turn is not None:
            turn()
        self._check_wanted()
        needed, vertices = self.handle.slots, 1 + len(self.handle.upstream)
        while vertices > 1 and (free := _free_slots(self._runner.sc)) < needed:
            region = f"the region of {self.handle.name} ({vertices} vertices) waits for {needed} slots"
            others = f"Spark's other jobs leave {max(0, free)}"
            self.waiting_for = f"{region}, which it needs simultaneously, and {others}"
            time.sleep(_PAUSE_S)
            self._check_wanted()
        self.waiting_for = ""

    def _check_wanted(self) -> None:
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
            with withheld_log():  # it may run again
                outcome = self._runner.run(self)
        except BaseException as error:  # noqa: BLE001 - whatever ends the stage is its outcome
            say_where(error, "running a stage")
            outcome = StageOutcome(error=error, adaptation=self.handle.known_adaptation)
            if is_cancelled(error) and not self._cancelled.is_set():  # by the user, at Spark: not by `cancel`
                end_python_workers(self._runner.sc, self.tag, self._tasks_over.is_set)
        try:
            self._on_outcome(self, outcome)
        finally:
            self._has_ended.set()


def _free_slots(sc: SparkContext) -> int:
    """Return Spark's slots without those that its running and waiting tasks need, as its DAGScheduler counts them.

    Spark fails the job of a region with ``CONCURRENT_SCHEDULER_INSUFFICIENT_SLOT`` if its tasks do not all fit beside
    the running and waiting tasks of other jobs, the user's own among them. Our slot pool knows only the tasks of our
    jobs; so the region's own thread counts Spark's just before it submits. Seen on 4.3.0.
    """
    context = jvm_context(sc)
    total = int(context.maxNumConcurrentTasks(context.resourceProfileManager().defaultResourceProfile()))
    pool = context.taskScheduler().rootPool()
    # It lists the sets of tasks that are still to be launched, and counts those that run of all sets.
    waiting = sum(
        int(tasks.numTasks()) - int(tasks.tasksSuccessful()) - int(tasks.runningTasks())
        for tasks in items(pool.getSortedTaskSetQueue())
    )
    return total - int(pool.runningTasks()) - waiting


@functools.lru_cache(maxsize=4)
def _forever(jvm: Any) -> JavaObject:
    return java_class(jvm, "scala.concurrent.duration.Duration").Inf()


OnOutcome = Callable[[StageRun, StageOutcome], None]
"""Called, on the stage's thread, with the stage's outcome."""
