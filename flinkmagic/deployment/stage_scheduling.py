"""What decides in a deployment, wired together: scheduler, slots, runs of vertices, gateways; and how the job ends."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from flinkmagic.deployment.executor_gateways import ExecutorGateways
from flinkmagic.deployment.independent_regions import FinishIndependentRegions
from flinkmagic.deployment.spark_slot_provider import SparkSlotProvider
from flinkmagic.deployment.stage_host import StageHost
from flinkmagic.deployment.watching.session_slots import SessionSlots
from flinkmagic.deployment.watching.task_events import ExecutorRemoved
from flinkmagic.deployment.watching.task_monitor import TaskMonitor
from flinkmagic.graph.execution_graph import ExecutionGraph
from flinkmagic.scheduling.clock import Clock
from flinkmagic.scheduling.default_scheduler import DefaultScheduler
from flinkmagic.scheduling.failover.restart_strategy import RestartBackoffTimeStrategy
from flinkmagic.scheduling.job_event_log import JobEventLog
from flinkmagic.scheduling.job_listener import JobListener
from flinkmagic.scheduling.job_status import JobStatus
from flinkmagic.scheduling.main_thread import ComponentMainThreadExecutor
from flinkmagic.scheduling.recovery.recovered_job import RecoveredJob


class StageScheduling:
    """Runs the stages of one job under Flink's scheduler; on the main thread.

    It knows Spark only by what it is given: a monitor that tells of tasks, the slots of the session, and the stages
    that `host.make_stage` makes.

    Parameters
    ----------
    execution_graph : ExecutionGraph
        The job.
    job_name : str
        For descriptions in Spark's UI.
    prefix : str
        What the tags of the job's Spark jobs begin with.
    main_thread : ComponentMainThreadExecutor
        Where all of it happens.
    clock : Clock
        What waits are counted by.
    monitor : TaskMonitor
        Tells of tasks.
    session_slots : SessionSlots
        Of the session.
    slots : int, optional
        How many of them the job may use; by default all.
    after : mapping of int to sequence of int, optional
        By the index of a job vertex, those that must be finished before it is submitted.
    restart_strategy : RestartBackoffTimeStrategy, optional
        Whether to restart after a failure; by default never.
    listeners : sequence of JobListener
        Hear of each change.
    on_over : callable
        Called once, when the job is over and nothing of it runs any more.
    """

    def __init__(
        self,
        execution_graph: ExecutionGraph,
        *,
        job_name: str,
        prefix: str,
        main_thread: ComponentMainThreadExecutor,
        clock: Clock,
        monitor: TaskMonitor,
        session_slots: SessionSlots,
        slots: int | None = None,
        after: Mapping[int, Sequence[int]] | None = None,
        restart_strategy: RestartBackoffTimeStrategy | None = None,
        listeners: Sequence[JobListener] = (),
        on_over: Callable[[], None],
    ) -> None:
        self._main_thread = main_thread
        self._clock = clock
        self._on_over = on_over
        self._is_over = False
        event_log = JobEventLog(clock)
        self.gateways = ExecutorGateways(
            execution_graph.job_id, main_thread, clock, is_active=session_slots.is_active, on_silent=self._on_silent
        )
        self.host = StageHost(execution_graph, prefix, monitor, main_thread, job_name, session_slots, self.gateways)
        self.provider = SparkSlotProvider(
            execution_graph,
            main_thread=main_thread,
            start_run=self.host.start_run,
            session_slots=lambda: session_slots.total,
            slots=slots,
            after=after,
            idle=self._on_idle,
            event_log=event_log,
        )
        self._endgame = FinishIndependentRegions(restart_strategy, clock)
        self.scheduler = DefaultScheduler(
            execution_graph,
            main_thread=main_thread,
            clock=clock,
            slot_provider=self.provider,
            restart_strategy=self._endgame,
            event_log=event_log,
            slot_sharing_groups=self.provider.stages.slot_sharing_groups(),
            listeners=listeners,
            # A shuffle's files go as a whole, with the planned job.
            release_partitions=False,
        )
        self.host.connect(self.scheduler, self.provider, restarts=restart_strategy is not None)

    @property
    def status(self) -> JobStatus:
        """The state of the job as a whole."""
        return self.status_of(self.scheduler.job_status)

    def status_of(self, status: JobStatus) -> JobStatus:
        """FAILING instead of RESTARTING while the regions that do not depend on a failed one are let finish."""
        is_endgame = status is JobStatus.RESTARTING and self._endgame.fatal_cause is not None
        return JobStatus.FAILING if is_endgame else status

    def start(self, recovered: RecoveredJob | None = None) -> None:
        """Begin, or go on where results are there already."""
        self.scheduler.termination_future.add_done_callback(lambda _: self._on_idle())
        self.scheduler.start_scheduling(recovered)

    def fail(self, error: BaseException) -> None:
        """End the job for good, for a reason that is no single task's."""
        if not self.scheduler.job_status.is_terminal:
            self._endgame.give_up()
            self.scheduler.handle_global_failure(error)

    def lose_session(self, cause: BaseException) -> None:
        """Spark is gone: nothing runs any more, and no news will come."""
        if not self.scheduler.job_status.is_terminal:
            self._endgame.give_up()
            self.host.lose_session(cause)

    def _on_silent(self, executor: str) -> None:
        self.scheduler.event_log.add("executors", f"{executor} is gone: Spark has it no more, and did not say so")
        reason = "it gave no sign of life"
        self.host.tracker.handle([ExecutorRemoved(self._clock.now_ms(), executor, reason)])

    def _on_idle(self) -> None:
        """Nothing runs. The job is over, or can go no further, or waits for a restart."""
        if self._is_over or self.provider.active_runs():
            return
        if self.scheduler.termination_future.done():
            self._is_over = True
            self._on_over()
        elif self._endgame.fatal_cause is not None and not self._endgame.has_given_up:
            wait_ms = self._endgame.restart_due_in_ms
            if wait_ms > 0:
                self._main_thread.schedule(self._on_idle, wait_ms + 1.0)
            else:
                self._endgame.give_up()
                self.scheduler.handle_global_failure(self._endgame.fatal_cause)
