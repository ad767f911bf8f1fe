"""The master of a job on Spark: Flink's `JobMaster`, plus decisions about Spark's stages and about the job's end."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from flinkmagic.deployment.independent_regions import FinishIndependentRegions
from flinkmagic.deployment.spark_slot_pool import SparkSlotPool
from flinkmagic.deployment.stage_host import StageHost
from flinkmagic.deployment.vertices.stage_members import StageMembers
from flinkmagic.deployment.watching.session_slots import SessionSlots
from flinkmagic.deployment.watching.task_monitor import TaskMonitor
from flinkmagic.graph.execution_graph import ExecutionGraph
from flinkmagic.scheduling.clock import Clock
from flinkmagic.scheduling.default_scheduler import DefaultScheduler
from flinkmagic.scheduling.failover.restart_strategy import RestartBackoffTimeStrategy
from flinkmagic.scheduling.job_event_log import JobEventLog
from flinkmagic.scheduling.job_listener import JobListener
from flinkmagic.scheduling.job_master import JobMaster
from flinkmagic.scheduling.job_status import JobStatus
from flinkmagic.scheduling.main_thread import ComponentMainThreadExecutor
from flinkmagic.scheduling.scheduler_ng import ExecutionGraphInfo
from flinkmagic.scheduling.slot_pool_service import SlotPoolService
from flinkmagic.scheduling.slots.resource_gateways import ResourceManagerGateway


@dataclass(frozen=True)
class SparkSchedulerFactory:
    """Makes the slot pool of a job on Spark, and Flink's scheduler over it (a `SlotPoolServiceSchedulerFactory`).

    The fields are parameters of `SparkJobMaster` and of the classes that are made.
    """

    execution_graph: ExecutionGraph
    host: StageHost
    main_thread: ComponentMainThreadExecutor
    clock: Clock
    event_log: JobEventLog
    session_slots: SessionSlots
    slots: int | None
    after: Mapping[int, Sequence[int]]
    restart_strategy: RestartBackoffTimeStrategy

    def create_slot_pool_service(self, declare: Callable[[int], None]) -> SparkSlotPool:
        """Make the pool, which asks the host to submit vertices to Spark."""
        return SparkSlotPool(
            self.execution_graph,
            main_thread=self.main_thread,
            start_run=self.host.start_run,
            start_region=self.host.start_region,
            session_slots=lambda: self.session_slots.total,
            event_log=self.event_log,
            declare=declare,
            slots=self.slots,
            after=self.after,
        )

    def create_scheduler(self, slot_pool: SlotPoolService, listeners: Sequence[JobListener]) -> DefaultScheduler:
        """Make the scheduler over the pool."""
        return DefaultScheduler(
            self.execution_graph,
            main_thread=self.main_thread,
            clock=self.clock,
            slot_provider=slot_pool,
            restart_strategy=self.restart_strategy,
            event_log=self.event_log,
            slot_sharing_groups=StageMembers(self.execution_graph).slot_sharing_groups(),
            listeners=listeners,
            # A shuffle's files go as a whole, with the planned job.
            release_partitions=False,
        )


class SparkJobMaster(JobMaster):
    """Runs the stages of one job under Flink's scheduler; on the main thread.

    It knows Spark only through its parameters: a monitor that reports tasks, the slots of the session, and the stages
    that `host.make_stage` makes. If a failure allows no restart, it lets the regions finish that do not depend on the
    failed one, before the job fails (`FinishIndependentRegions`).

    Parameters
    ----------
    execution_graph : ExecutionGraph
        The job.
    job_name : str
        For descriptions in Spark's UI.
    prefix : str
        How the tags of the job's Spark jobs begin.
    main_thread : ComponentMainThreadExecutor
        The thread on which all of it happens.
    clock : Clock
        The clock that counts waits.
    event_log : JobEventLog
        The job's event log.
    monitor : TaskMonitor
        Reports tasks.
    session_slots : SessionSlots
        The slots of the session.
    resource_manager : ResourceManagerGateway
        The session's.
    slots : int, optional
        How many slots the job may use; by default all.
    after : mapping of int to sequence of int, optional
        By the index of a job vertex, those that must be finished before it is submitted.
    restart_strategy : RestartBackoffTimeStrategy, optional
        Whether to restart after a failure; by default never.
    listeners : sequence of JobListener
        Are notified of each change.
    on_over : callable
        Called with the last snapshot of the job, once, when it is over and nothing of it runs any more.
    """

    slot_pool: SparkSlotPool
    scheduler: DefaultScheduler

    def __init__(
        self,
        execution_graph: ExecutionGraph,
        *,
        job_name: str,
        prefix: str,
        main_thread: ComponentMainThreadExecutor,
        clock: Clock,
        event_log: JobEventLog,
        monitor: TaskMonitor,
        session_slots: SessionSlots,
        resource_manager: ResourceManagerGateway,
        slots: int | None = None,
        after: Mapping[int, Sequence[int]] | None = None,
        restart_strategy: RestartBackoffTimeStrategy | None = None,
        listeners: Sequence[JobListener] = (),
        on_over: Callable[[ExecutionGraphInfo], None],
    ) -> None:
        self.host = StageHost(execution_graph, prefix, monitor, main_thread, job_name, session_slots, clock)
        self._endgame = FinishIndependentRegions(restart_strategy, clock)
        factory = SparkSchedulerFactory(
            execution_graph, self.host, main_thread, clock, event_log, session_slots, slots, after or {}, self._endgame
        )
        super().__init__(
            execution_graph,
            main_thread=main_thread,
            clock=clock,
            factory=factory,
            resource_manager=resource_manager,
            event_log=event_log,
            listeners=listeners,
            on_over=on_over,
        )
        self.slot_pool.on_idle = self._on_idle
        self.host.connect(self, self.scheduler, self.slot_pool, restarts=restart_strategy is not None)

    @property
    def status(self) -> JobStatus:
        """The state of the job as a whole.

        FAILING also while the regions that do not depend on a failed one are still finishing; the scheduler itself then
        says RESTARTING.
        """
        return self._status_of(self.scheduler.job_status)

    def request_job(self) -> ExecutionGraphInfo:
        """Return a snapshot of the job, with `status`; callable from any thread."""
        info = super().request_job()
        return replace(info, job_status=self._status_of(info.job_status))

    def _status_of(self, status: JobStatus) -> JobStatus:
        is_endgame = status is JobStatus.RESTARTING and self._endgame.fatal_cause is not None
        return JobStatus.FAILING if is_endgame else status

    def fail(self, error: BaseException) -> None:
        """End the job for good, for a reason that concerns no single task."""
        if not self.scheduler.job_status.is_terminal:
            self._endgame.give_up()
            self.scheduler.handle_global_failure(error)

    def lose_session(self, cause: BaseException) -> None:
        """End the job because Spark is gone: nothing runs any more, and no news will come."""
        if not self.scheduler.job_status.is_terminal:
            self._endgame.give_up()
            self.host.lose_session(cause)

    def _on_idle(self) -> None:
        """Handle that nothing runs: the job is over, or can go no further, or waits for a restart."""
        if self.slot_pool.active_runs() or self.scheduler.job_status.is_terminal:
            return
        if self._endgame.fatal_cause is not None and not self._endgame.has_given_up:
            wait_ms = self._endgame.restart_due_in_ms
            if wait_ms > 0:
                self._main_thread.schedule(self._on_idle, wait_ms + 1.0)
            else:
                self._endgame.give_up()
                self.scheduler.handle_global_failure(self._endgame.fatal_cause)
