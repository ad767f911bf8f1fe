"""Runs a job on Spark: Flink's `JobMaster`, plus decisions about Spark's stages and about the job's end."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from flinkmagic.deployment.board.drive import MakeStage, StageDrive
from flinkmagic.deployment.board.messages import SessionLost
from flinkmagic.deployment.board.rules import StageBoard
from flinkmagic.deployment.board.state import BoardState
from flinkmagic.deployment.independent_regions import FinishIndependentRegions
from flinkmagic.deployment.watching.session_slots import SessionSlots
from flinkmagic.deployment.watching.task_monitor import TaskMonitor
from flinkmagic.graph.execution_graph import ExecutionGraph
from flinkmagic.scheduling.clock import Clock
from flinkmagic.scheduling.execution_graph_info import ExecutionGraphInfo
from flinkmagic.scheduling.failover.restart_strategy import RestartBackoffTimeStrategy
from flinkmagic.scheduling.job_event_log import JobEventLog
from flinkmagic.scheduling.job_master import JobMaster
from flinkmagic.scheduling.job_status import JobListener, JobStatus
from flinkmagic.scheduling.main_thread import ComponentMainThreadExecutor
from flinkmagic.scheduling.slots.resource_gateways import ResourceManagerGateway


class SparkJobMaster(JobMaster):
    """Runs the stages of one job under Flink's scheduler; on the main thread.

    It knows Spark only through its parameters: a monitor that reports tasks, the slots of the session, and the stages
    that `make_stage` makes. If a failure allows no restart, it lets the regions finish that do not depend on the
    failed one, before the job fails (`FinishIndependentRegions`).

    Parameters
    ----------
    prefix : str
        How the tags of the job's Spark jobs begin.
    slots : int, optional
        How many slots the job may use; by default all.
    after : mapping of int to sequence of int, optional
        By the index of a job vertex, those that must be finished before it is submitted.
    on_over : callable
        Called with the last snapshot of the job, once, when it is over and nothing of it runs any more.
    """

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
        make_stage: MakeStage,
        resource_manager: ResourceManagerGateway,
        slots: int | None = None,
        after: Mapping[int, Sequence[int]] | None = None,
        restart_strategy: RestartBackoffTimeStrategy | None = None,
        listeners: Sequence[JobListener] = (),
        on_over: Callable[[ExecutionGraphInfo], None],
    ) -> None:
        self._endgame = FinishIndependentRegions(restart_strategy, clock)
        restarts = restart_strategy is not None
        state = BoardState(execution_graph, prefix, event_log, limit=slots, after=after, restarts=restarts)
        self.drive = StageDrive(
            self,
            execution_graph,
            StageBoard(state),
            job_name=job_name,
            main_thread=main_thread,
            clock=clock,
            event_log=event_log,
            monitor=monitor,
            session_slots=session_slots,
            make_stage=make_stage,
            restart_strategy=self._endgame,
            on_idle=self._on_idle,
        )
        super().__init__(
            execution_graph,
            main_thread=main_thread,
            clock=clock,
            factory=self.drive,
            resource_manager=resource_manager,
            event_log=event_log,
            listeners=listeners,
            on_over=on_over,
        )

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
            self._endgame.has_given_up = True
            self.scheduler.handle_global_failure(error)

    def lose_session(self, cause: BaseException) -> None:
        """End the job because Spark is gone: nothing runs any more, and no news will come."""
        if not self.scheduler.job_status.is_terminal:
            self._endgame.has_given_up = True
            self.drive.tell(SessionLost(cause))

    def _on_idle(self) -> None:
        """Decide what follows when nothing runs: the job is over, can go no further, or waits for a restart."""
        if self.drive.state.active or self.scheduler.job_status.is_terminal:
            return
        if self._endgame.fatal_cause is not None and not self._endgame.has_given_up:
            wait_ms = self._endgame.restart_due_in_ms
            if wait_ms > 0:
                self._main_thread.schedule(self._on_idle, wait_ms + 1.0)
            else:
                self._endgame.has_given_up = True
                self.scheduler.handle_global_failure(self._endgame.fatal_cause)
