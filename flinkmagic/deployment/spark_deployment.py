"""Runs a planned job on the session's own Spark: connects scheduler, slots, gateways, monitor and results."""

from __future__ import annotations

import logging
import uuid
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from py4j.protocol import Py4JError

from flinkmagic.deployment.board.drive import StageDrive
from flinkmagic.deployment.board.rules import NO_TASK
from flinkmagic.deployment.control_edges import control_edges
from flinkmagic.deployment.deployment import Deployment, DeploymentSnapshot
from flinkmagic.deployment.spark_job_master import SparkJobMaster
from flinkmagic.deployment.stages.observations import Observations
from flinkmagic.deployment.stages.spark_jobs import JobProperties
from flinkmagic.deployment.stages.stage_runner import StageRun, StageRunner
from flinkmagic.deployment.watching.task_monitor import TaskMonitor
from flinkmagic.deployment.watching.task_records import TaskRecord
from flinkmagic.errors.deployment import (
    ResultLeftOutError,
    ResultNotReadyError,
    ResultReleasedError,
    SessionLostError,
    is_out_of_room,
)
from flinkmagic.errors.job_store import CheckpointInUseError, JobLedElsewhereError
from flinkmagic.errors.usage import JobRunningError, UnknownNameError
from flinkmagic.graph.ancestors import with_inputs
from flinkmagic.graph.execution_graph import ExecutionGraph
from flinkmagic.graph.execution_job_vertex import ExecutionJobVertex
from flinkmagic.planning.adaptive_stages import StageAdaptation
from flinkmagic.planning.planner import PlannedJob
from flinkmagic.planning.sinks import PlannedBoundary, PlannedSink
from flinkmagic.planning.stage_handles import StageHandle, stage_handle
from flinkmagic.planning.stage_metrics import StageMetrics
from flinkmagic.reuse.checkpoints import Checkpoints
from flinkmagic.reuse.job_rows import JobRows
from flinkmagic.reuse.retention import Retention
from flinkmagic.reuse.work_done_before import NOTHING, TakenUp
from flinkmagic.scheduling.default_scheduler import DefaultScheduler, RecoveredJob
from flinkmagic.scheduling.execution_graph_info import ExecutionGraphInfo
from flinkmagic.scheduling.failover.restart_strategy import RestartBackoffTimeStrategy
from flinkmagic.scheduling.job_manager_runner import ANSWER_S, OnCompletion
from flinkmagic.scheduling.job_status import JobListener, JobStatus
from flinkmagic.scheduling.main_thread import ask
from flinkmagic.scheduling.recovery.job_graph_store import JobGraphStore, StoredJob
from flinkmagic.scheduling.recovery.job_journal import JobJournal

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_LOG = logging.getLogger(__name__)


class SparkDeployment(Deployment):
    """Runs a compiled job as Spark stages.

    Parameters
    ----------
    planned_job : PlannedJob
        What was planned; its handles stay referenced until `release`.
    listener : JobListener, optional
        Notified of each change, on the job's thread.
    restart_strategy : RestartBackoffTimeStrategy, optional
        Whether to restart after a failure; by default never.
    retention : Retention, optional
        What the job reuses of earlier ones and leaves for later ones. With one, the plan is released at the end.
    checkpoint_dir : Path, optional
        The dispatcher's store: where another process recorded, and will find, how far the job came.
    """

    _job_master: SparkJobMaster

    def __init__(
        self,
        planned_job: PlannedJob,
        execution_graph: ExecutionGraph,
        *,
        spark: SparkSession,
        slots: int | None = None,
        listener: JobListener | None = None,
        restart_strategy: RestartBackoffTimeStrategy | None = None,
        retention: Retention | None = None,
        checkpoint_dir: Path | None = None,
    ) -> None:
        super().__init__(planned_job, execution_graph, spark, slots)
        self._planned: PlannedJob | None = planned_job
        self._sc, self._retention = spark.sparkContext, retention
        self._checkpoint_dir = checkpoint_dir.absolute() if checkpoint_dir is not None else None
        self._taken_up = NOTHING
        self._prefix = f"flinkmagic-{uuid.uuid4().hex[:12]}-"
        self._kept = JobRows(spark, planned_job.origin.result_level)
        self._observations = Observations(spark)
        tails = [self._vertex_of.get(boundary.tail_id) for boundary in planned_job.boundaries]
        self._boundaries = [(one, tail) for one, tail in zip(planned_job.boundaries, tails, strict=True) if tail]
        self._monitor = TaskMonitor(self._sc, self._prefix)
        self._listeners = () if listener is None else (listener,)
        self._restart_strategy = restart_strategy
        self._properties: JobProperties

    # -- the course of the job -------------------------------------------------------------------------

    def start(self) -> None:
        """Begin, and return immediately. The calling thread's Spark properties (pool, tags) are the job's too.

        Raises
        ------
        CheckpointInUseError
            If another process, or an earlier run, leads the job with the same folder for checkpoints.
        JobStoreError
            If the journal in that folder is damaged, or is none.
        """
        folder = self._checkpoint_dir
        try:
            planned = self._planned
            assert planned is not None
            # Spark never forgets a pool: a part, of which there may be thousands, has that of the whole.
            origin = planned.origin
            pool = None if origin.is_part else self.group
            self._properties = JobProperties(
                self._sc, self.group, pool, is_callers=origin.is_line, session=self._spark._jsparkSession
            )
            self._submit(JobGraphStore(folder) if folder is not None else None, listed=not origin.is_part)
        except BaseException as error:  # nothing of it is at Spark, or not any more; no thread may remain
            self._monitor.stop()
            self.main_thread.stop()
            self._observations.close()
            self._let_go()
            if isinstance(error, JobLedElsewhereError):
                raise CheckpointInUseError(self._name, str(folder)) from None
            raise

    def create_job_master_service(
        self,
        former: StoredJob | None,
        journal: JobJournal | None,
        listeners: Sequence[JobListener],
        on_over: OnCompletion,
    ) -> SparkJobMaster:
        """Make the job's master, which begins with what exists already (`JobMasterServiceFactory`)."""
        planned = self._planned
        assert planned is not None
        done = {"done": self._retention.stage_done} if self._retention is not None else {}
        runner = StageRunner(
            self._sc,
            planned.session_clone,
            self._properties,
            self._kept,
            self._observations,
            count_rows=self._monitor.count_rows,
            **done,
        )
        self._job_master = SparkJobMaster(
            self.execution_graph,
            job_name=self._name,
            prefix=self._prefix,
            main_thread=self.main_thread,
            clock=self._clock,
            event_log=self.event_log,
            monitor=self._monitor,
            session_slots=self._cluster.resource_manager.slots,
            make_stage=partial(StageRun, runner),
            resource_manager=self._cluster.resource_manager,
            slots=self._slots,
            after=control_edges(planned, self._vertices),
            restart_strategy=self._restart_strategy,
            listeners=(*listeners, *self._listeners),
            on_over=partial(self._over, on_over),
        )
        self._monitor.start(
            lambda events: self._run(lambda: self._drive.handle(events)),
            lambda loss: self._run(lambda: self._lost(loss)),
        )
        recovered = self._recovered(planned, former, journal)
        if recovered is not None:
            ask(self.main_thread, partial(self._job_master.scheduler.recover, recovered), ANSWER_S)
        return self._job_master

    def _recovered(
        self, planned: PlannedJob, former: StoredJob | None, journal: JobJournal | None
    ) -> RecoveredJob | None:
        """Find what earlier jobs of the session, or a former leader of this one, have already done.

        A former leader's finished tasks mean nothing by themselves: what they made went with its session, except
        stored rows, and the writes that the journal names by their keys.
        """
        if self._retention is not None:
            checkpoints = None
            if journal is not None and self._checkpoint_dir is not None:
                checkpoints = Checkpoints(self._sc, self._checkpoint_dir, planned.name, former, journal)
            self._taken_up = self._retention.take_up(planned, self.execution_graph, self._kept, checkpoints)
        self._drive.partition_bytes.update(self._taken_up.partition_bytes(self.execution_graph))
        for index in self._taken_up.results:
            self._drive.take_up(self.execution_graph.job_vertices[index])
        self._observations.hold(stage_handle(one.job_vertex) for one in self._vertices if one is not None)
        return self._taken_up.recovered(self.execution_graph, self._drive.gateway_of(NO_TASK))

    def _handle_of(self, vertex: ExecutionJobVertex) -> StageHandle:
        return self._drive.state.members.stage_of(vertex.index).handle

    @property
    def _drive(self) -> StageDrive:
        return self._job_master.drive

    @property
    def scheduler(self) -> DefaultScheduler:
        """The job's scheduler, once it is started."""
        return self._job_master.scheduler

    def release(self) -> None:
        """Release kept results, and the JVM's objects that keep shuffle files alive. Only after the end.

        The execution graph still holds the stage handles; with it and the planned job the last of them go.
        """
        if not self.termination_future.done():
            raise JobRunningError(self._name)
        self._kept.release()
        self._planned = None
        self._drive.release()

    # -- what others read ------------------------------------------------------------------------------

    @property
    def status(self) -> JobStatus:
        return self._job_master.status

    def tasks(self) -> list[TaskRecord]:
        return self._drive.state.log.records()

    def finished_sinks(self) -> list[PlannedSink]:
        """Return the sinks whose writes are committed, or whose rows are kept, even if others failed.

        This includes a write that was committed while it was being cancelled: its execution is then CANCELED.
        """
        return [
            sink
            for sink, vertex in zip(self._sinks, self._vertices, strict=True)
            if vertex is not None and (self._is_finished(vertex) or vertex.index in self._drive.committed)
        ]

    @property
    def group(self) -> str:
        return self._prefix.rstrip("-")

    @property
    def taken_up(self) -> TakenUp:
        return self._taken_up

    @property
    def retention(self) -> Retention | None:
        return self._retention

    def partition_bytes(self) -> dict[str, tuple[int, ...]]:
        return dict(self._drive.partition_bytes)

    def adaptations(self) -> dict[str, StageAdaptation]:
        return dict(self._drive.adaptations)

    def metrics(self) -> dict[str, StageMetrics]:
        return dict(self._drive.metrics)

    def snapshot(self) -> DeploymentSnapshot:
        session = self._cluster.resource_manager.slots.total
        return DeploymentSnapshot.of(
            self._job_master.request_job(),
            self.tasks(),
            self._slots or session,
            waiting_for=self._drive.waiting_for,
            slots_of_session=session,
        )

    def result(self, name: str) -> DataFrame:
        """Return a DataFrame of the user's session over the rows of a result.

        Raises
        ------
        UnknownNameError
            If the job has no result of that name.
        ResultReleasedError
            After `release`.
        ResultNotReadyError
            If it is not computed, or not yet.
        ResultLeftOutError
            If it is not part of this run.
        """
        return self._kept.frame(self._result(name))

    def local_result(self, name: str, most_rows: int, most_bytes: int) -> DataFrame | None:
        return self._kept.local_frame(self._result(name), most_rows, most_bytes)

    def _result(self, name: str) -> StageHandle:
        """Return the handle of a result whose rows are there."""
        sink = next((sink for sink in self._sinks if sink.kind == "result" and sink.name == name), None)
        if sink is None:
            raise UnknownNameError("result", name, [sink.name for sink in self._sinks if sink.kind == "result"])
        if self._kept.is_released:
            raise ResultReleasedError(name)
        vertex = self._vertices[sink.index]
        if vertex is None:
            raise ResultLeftOutError(name, self._name)
        if not self._is_finished(vertex):
            raise ResultNotReadyError(name, str(self.status))
        return self._handle_of(vertex)

    def failed_to_keep(self) -> list[PlannedBoundary]:
        """Return the boundaries for which alone the job has failed: plain Spark does not run the stage that failed.

        If it computes the same rows anyway, it raises the same; but it may have room on disk where we had none.
        """
        entries = self.exceptions()
        root = entries[-1].root if entries else None
        if self.status is not JobStatus.FAILED or root is None or root.vertex is None:
            return []
        failed = self.execution_graph.job_vertex_of(root.vertex)
        found = [boundary for boundary, tail in self._boundaries if failed in with_inputs(tail)]
        is_plains = any(boundary.is_computed_anyway for boundary in found)
        return [] if is_plains and not is_out_of_room(root.error) else found

    def kept_boundaries(self) -> list[tuple[PlannedBoundary, DataFrame]]:
        found = [(one, self._handle_of(vertex)) for one, vertex in self._boundaries if self._is_finished(vertex)]
        return [(one, self._kept.frame(handle)) for one, handle in found if one.is_whole and self._kept.of(handle)]

    # -- inside ----------------------------------------------------------------------------------------

    def _leave(self) -> None:
        """End the deployment: retain what later jobs can use, and hold only kept rows in the JVM."""
        if self._retention is None or self._planned is None:
            return
        planned, self._planned = self._planned, None
        finished = [vertex.index for vertex in self.execution_graph.job_vertices if self._is_finished(vertex)]
        try:
            self._retention.retain(
                planned, self.execution_graph, self._kept, self.scheduler.job_status, finished,
                self._drive.partition_bytes,
            )  # fmt: skip
        except Exception as error:  # noqa: BLE001 - the job is over, and must not hang for what is kept of it
            if self._drive.state.is_lost:
                _LOG.debug("nothing of the job %r is retained, its session is gone: %s", self._name, error)
            else:
                _LOG.exception("A bug in flinkmagic: nothing of the job %r is retained; please report it.", self._name)
        finally:
            for vertex in self.execution_graph.job_vertices:
                if (handle := stage_handle(vertex.job_vertex)) is not None:
                    handle.let_go()

    def _let_go(self) -> None:
        """Release the rows of a job that was cancelled, or never began."""
        try:
            self._kept.clear()
        except (Py4JError, OSError) as gone:
            _LOG.debug("nothing to release, the session of the job %r is gone: %s", self._name, gone)

    def _lost(self, loss: BaseException) -> None:
        detail = str(loss).strip() or type(loss).__name__
        self._job_master.lose_session(SessionLostError(self._name, detail.splitlines()[0]))

    def _give_up(self, error: BaseException) -> None:
        self._job_master.fail(error)

    def _over(self, on_over: OnCompletion, info: ExecutionGraphInfo) -> None:
        """Record, on the job's thread, that the job is over and nothing of it runs."""
        try:
            self._monitor.stop()
            self._drive.close()
            self._observations.close()
            if info.job_status in (JobStatus.CANCELED, JobStatus.SUSPENDED):
                self._let_go()
            self._leave()
        finally:  # whoever waits for the job hears of its end, whatever fails here
            on_over(info)
            self.main_thread.stop()
