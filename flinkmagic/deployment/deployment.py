"""Defines what every run of a planned job on the session's Spark offers to the dispatcher and to those who read it."""

from __future__ import annotations

import logging
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from concurrent.futures import wait as wait_for
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from flinkmagic.deployment.session_cluster import session_cluster
from flinkmagic.deployment.stages.spark_jobs import require_pinned_threads
from flinkmagic.deployment.watching.task_records import TaskRecord
from flinkmagic.errors.scheduling import MainThreadStoppedError
from flinkmagic.graph.execution_graph import ExecutionGraph
from flinkmagic.graph.execution_job_vertex import ExecutionJobVertex
from flinkmagic.graph.execution_state import ExecutionState
from flinkmagic.planning.adaptive_stages import StageAdaptation
from flinkmagic.planning.planner import PlannedJob
from flinkmagic.planning.sinks import PlannedBoundary, PlannedSink
from flinkmagic.planning.stage_metrics import StageMetrics
from flinkmagic.reuse.retention import Retention
from flinkmagic.reuse.work_done_before import NOTHING, TakenUp
from flinkmagic.scheduling.clock import SystemClock
from flinkmagic.scheduling.execution_graph_info import ExecutionGraphInfo
from flinkmagic.scheduling.failover.exception_history import RootExceptionHistoryEntry
from flinkmagic.scheduling.job_event_log import JobEventLog
from flinkmagic.scheduling.job_manager_runner import OnCompletion
from flinkmagic.scheduling.job_master import JobMaster
from flinkmagic.scheduling.job_status import JobListener, JobStatus
from flinkmagic.scheduling.main_thread import MainThreadExecutor
from flinkmagic.scheduling.recovery.job_graph_store import JobGraphStore, StoredJob
from flinkmagic.scheduling.recovery.job_journal import JobJournal

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_LOG = logging.getLogger(__name__)


@dataclass(frozen=True)
class DeploymentSnapshot:
    """The progress of a deployment at one instant; safe to keep and to read on any thread."""

    job: ExecutionGraphInfo
    tasks: tuple[TaskRecord, ...]
    """Every attempt so far."""
    slots_used: int
    """Slots in which a task of this job runs now."""
    slots_total: int
    """Slots that the job may use."""
    waiting_for: str = ""
    """Which pipelined region waits for how many slots; empty if none does."""
    slots_of_session: int = 0
    """Slots that the session's executors have; 0 if that is not known."""

    @classmethod
    def of(
        cls,
        info: ExecutionGraphInfo,
        tasks: Sequence[TaskRecord],
        slots_total: int,
        *,
        waiting_for: str = "",
        slots_of_session: int = 0,
    ) -> DeploymentSnapshot:
        """Return a job's snapshot with its tasks; a failure that was reported is not reported again as the job's."""
        job = replace(info, exception_history=without_repetition(info.exception_history))
        used = sum(task.end_ms is None for task in tasks)
        return cls(job, tuple(tasks), used, slots_total, waiting_for, slots_of_session)


def without_repetition(history: Sequence[RootExceptionHistoryEntry]) -> tuple[RootExceptionHistoryEntry, ...]:
    """Leave out the end of a job that repeats a failure which was reported when it happened."""
    told: set[int] = set()
    kept = []
    for entry in history:
        if not (entry.root.is_global and id(entry.root.error) in told):
            kept.append(entry)
        told.add(id(entry.root.error))
    return tuple(kept)


class Deployment(ABC):
    """Runs a compiled job once, on the session's SparkContext.

    The session's dispatcher runs it (as a `JobMasterServiceFactory`), and others read the run through it. All state
    belongs to one thread; every method here may be called from any thread.

    Parameters
    ----------
    execution_graph : ExecutionGraph
        A new one of the planned job's job graph, or of the part of it that some of its sinks need; only this deployment
        changes it.
    slots : int, optional
        How many slots the job may use simultaneously; by default all that the session has.
    """

    _job_master: JobMaster

    def __init__(
        self, planned_job: PlannedJob, execution_graph: ExecutionGraph, spark: SparkSession, slots: int | None
    ) -> None:
        require_pinned_threads(spark.sparkContext)
        self.execution_graph = execution_graph
        self.termination_future: Future[JobStatus] = Future()
        """Done when the job is over and nothing of it runs."""
        self._name, self._sinks = planned_job.name, planned_job.sinks
        self._spark, self._slots = spark, slots
        self._cluster = session_cluster(spark.sparkContext)
        self._vertex_of = {node.id: one for one in execution_graph.job_vertices for node in one.job_vertex.operators}
        """The job vertex of each operator, by the operator's id."""
        self._vertices = [self._vertex_of.get(sink.transformation_id) for sink in planned_job.sinks]
        """The job vertex of each sink; None for one that is not part of the run."""
        self._clock = SystemClock()
        self.event_log = JobEventLog(self._clock)
        self.main_thread = MainThreadExecutor(f"flinkmagic-{self._name}", self._clock, self._uncaught)
        """The thread on which everything in the job happens."""

    # -- the course of the job -------------------------------------------------------------------------

    @abstractmethod
    def start(self) -> None:
        """Begin, and return immediately."""

    @abstractmethod
    def create_job_master_service(
        self,
        former: StoredJob | None,
        journal: JobJournal | None,
        listeners: Sequence[JobListener],
        on_over: OnCompletion,
    ) -> JobMaster:
        """Make the job's master (`JobMasterServiceFactory`)."""

    def wait(self, timeout: float | None = None) -> JobStatus:
        """Wait until the job is over, at most `timeout` seconds; return its status then."""
        # Not by `result(timeout)`: a handler of the user's for a signal may raise a TimeoutError, too.
        done, _ = wait_for([self.termination_future], timeout)
        return self.termination_future.result() if done else self.status

    def cancel(self) -> None:
        """End all of this job's Spark work, and nothing else in the session; return immediately."""
        self._run(self._job_master.cancel)

    @abstractmethod
    def release(self) -> None:
        """Release what is kept of the job. Only after the end."""

    # -- what others read ------------------------------------------------------------------------------

    @property
    def status(self) -> JobStatus:
        """The state of the job as a whole, according to its master."""
        return self._job_master.request_job().job_status

    def exceptions(self) -> tuple[RootExceptionHistoryEntry, ...]:
        """Return the failures of the job, oldest first."""
        return without_repetition(self._job_master.request_job().exception_history)

    @abstractmethod
    def tasks(self) -> list[TaskRecord]:
        """Return one record for each task attempt of Spark's, in the order of launch."""

    @abstractmethod
    def finished_sinks(self) -> list[PlannedSink]:
        """Return the sinks that are done, even if others failed."""

    @abstractmethod
    def snapshot(self) -> DeploymentSnapshot:
        """Return the job's progress."""

    @abstractmethod
    def result(self, name: str) -> DataFrame:
        """Return a DataFrame of the user's session over the rows of a result."""

    def local_result(self, name: str, most_rows: int, most_bytes: int) -> DataFrame | None:
        """Return a DataFrame over a copy of a result's rows that the driver holds; None if there are more of them.

        A stream has no results.
        """
        return None

    @property
    def group(self) -> str:
        """The Spark job group of its stages; empty where it has none."""
        return ""

    @property
    def taken_up(self) -> TakenUp:
        """What exists already and does not run."""
        return NOTHING

    @property
    def retention(self) -> Retention | None:
        """The retained results as it sees them; None where none are."""
        return None

    def partition_bytes(self) -> dict[str, tuple[int, ...]]:
        """Return the bytes of each partition by the id of the job vertex that wrote the shuffle."""
        return {}

    def adaptations(self) -> dict[str, StageAdaptation]:
        """Return how a stage's run differed from its plan, by the id of its job vertex."""
        return {}

    def metrics(self) -> dict[str, StageMetrics]:
        """Return what the operators of a stage have measured, by the id of its job vertex, once it is done."""
        return {}

    def failed_to_keep(self) -> list[PlannedBoundary]:
        """Return the boundaries for which alone the job has failed: plain Spark does not run the stage that failed."""
        return []

    def kept_boundaries(self) -> list[tuple[PlannedBoundary, DataFrame]]:
        """Return the boundaries whose rows are kept whole, each with a DataFrame of the user's session over them."""
        return []

    # -- inside ----------------------------------------------------------------------------------------

    def _submit(self, store: JobGraphStore | None = None, *, listed: bool = True) -> None:
        """Hand the job to the session's dispatcher; raise what keeps it from starting."""
        result = self._cluster.dispatcher.submit_job(self, store, listed=listed)
        if result.done() and (error := result.exception()) is not None:
            raise error
        result.add_done_callback(self._ended)

    def _ended(self, result: Future[JobStatus]) -> None:
        if (error := result.exception()) is not None:
            self.termination_future.set_exception(error)
        else:
            self.termination_future.set_result(result.result())

    def _run(self, action: Callable[[], object]) -> None:
        """Hand a call to the job's thread; nothing remains to be done for one that comes after the end."""
        try:
            self.main_thread.execute(action)
        except MainThreadStoppedError:
            if not self.termination_future.done():
                raise

    def _is_finished(self, vertex: ExecutionJobVertex) -> bool:
        return bool((self.execution_graph.state[vertex.slice] == ExecutionState.FINISHED.value).all())

    def _uncaught(self, error: BaseException) -> None:
        _LOG.error("A bug in flinkmagic ends the job %r; please report it.", self._name, exc_info=error)
        self._give_up(error)

    @abstractmethod
    def _give_up(self, error: BaseException) -> None:
        """End the job for good."""
