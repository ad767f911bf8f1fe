"""Runs one job: its scheduler, its slots, its executors (Flink's `JobMaster`)."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from flinkmagic.errors.scheduling import SlotLostError, TaskExecutorLostError
from flinkmagic.graph.execution_graph import ExecutionGraph
from flinkmagic.scheduling.clock import Clock
from flinkmagic.scheduling.default_scheduler import DefaultScheduler
from flinkmagic.scheduling.execution_graph_info import ExecutionGraphInfo
from flinkmagic.scheduling.heartbeat import HeartbeatManager, HeartbeatOptions
from flinkmagic.scheduling.job_event_log import JobEventLog
from flinkmagic.scheduling.job_status import JobListener, JobStatus
from flinkmagic.scheduling.main_thread import ComponentMainThreadExecutor
from flinkmagic.scheduling.slot_pool_service import SlotPoolService, SlotPoolServiceSchedulerFactory
from flinkmagic.scheduling.slots.resource_gateways import ResourceManagerGateway, SlotOffer
from flinkmagic.scheduling.task_executor_gateway import TaskExecutionStateTransition, TaskExecutorGateway


class JobMaster(JobListener):
    """Runs one job on slots that executors offer.

    The chain, each link of which is in the event log: the scheduler asks for slots, the pool declares what it
    requires to the resource manager, executors offer slots, the pool accepts, requests are matched, tasks
    are deployed.

    Everything runs on the main thread.

    Parameters
    ----------
    factory : SlotPoolServiceSchedulerFactory
        Makes the slot pool and the scheduler. They, the resource manager and the executors' gateways differ between a
        simulated cluster and Spark.
    resource_manager : ResourceManagerGateway
        Told what the job requires. Departure from Flink: it leads as long as the process lives.
    listeners : sequence of JobListener
        Called with each transition, before the master.
    on_over : callable
        Called with the last snapshot of the job when it is over and nothing of it runs.
    """

    def __init__(
        self,
        execution_graph: ExecutionGraph,
        *,
        main_thread: ComponentMainThreadExecutor,
        clock: Clock,
        factory: SlotPoolServiceSchedulerFactory,
        resource_manager: ResourceManagerGateway,
        event_log: JobEventLog,
        heartbeat: HeartbeatOptions | None = None,
        listeners: Sequence[JobListener] = (),
        on_over: Callable[[ExecutionGraphInfo], None] = lambda _info: None,
    ) -> None:
        self.execution_graph = execution_graph
        self.job_id = execution_graph.job_id
        self.event_log = event_log
        self._main_thread = main_thread
        self._resource_manager = resource_manager
        self._is_registered = False
        self._task_managers: dict[str, TaskExecutorGateway] = {}
        self._on_over = on_over
        self._heartbeats = HeartbeatManager(clock, main_thread, heartbeat, self.disconnect_task_manager)
        self.slot_pool: SlotPoolService = factory.create_slot_pool_service(self._declare)
        self.scheduler: DefaultScheduler = factory.create_scheduler(self.slot_pool, (*listeners, self))

    def start(self) -> None:
        """Register with the resource manager and start scheduling."""
        self._is_registered = True
        self._resource_manager.register_job_master(self)
        self._declare(self.slot_pool.required)
        self.scheduler.start_scheduling()

    def cancel(self) -> None:
        """End the job for good."""
        self.scheduler.cancel()

    def suspend(self, cause: BaseException) -> None:
        """End the job here, so that another master may take it up."""
        self.scheduler.suspend(cause)

    def request_job(self) -> ExecutionGraphInfo:
        """Return a snapshot of the job; callable from any thread."""
        return self.scheduler.request_job()

    # -- the resource manager --------------------------------------------------------------------------

    def _declare(self, required: int) -> None:
        def declare() -> None:
            if self._is_registered:
                self._resource_manager.declare_required_resources(self.job_id, self.slot_pool.required)

        self._main_thread.execute(declare)

    def notify_not_enough_resources(self, acquired: int) -> None:
        self.event_log.add("job master", f"hears that there are no more than {acquired} slots for it")
        self.slot_pool.notify_not_enough_resources(acquired)

    # -- task executors --------------------------------------------------------------------------------

    def register_task_manager(self, resource_id: str, gateway: TaskExecutorGateway) -> None:
        if self._task_managers.get(resource_id) is gateway:
            return
        if resource_id in self._task_managers:
            self.disconnect_task_manager(resource_id, TaskExecutorLostError(resource_id, "it registered again"))
        self.event_log.add("job master", f"{resource_id} registers")
        self._task_managers[resource_id] = gateway
        self._heartbeats.monitor(resource_id, lambda: gateway.heartbeat_from_job_manager(self.job_id))

    def offer_slots(self, resource_id: str, offers: Sequence[SlotOffer]) -> list[SlotOffer]:
        """Take the offered slots that are needed; none from an executor that is not registered."""
        gateway = self._task_managers.get(resource_id)
        if gateway is None or self.scheduler.job_status.is_terminal:
            return []
        return self.slot_pool.offer_slots(offers, resource_id, gateway)

    def update_task_execution_state(self, transition: TaskExecutionStateTransition) -> bool:
        return self.scheduler.update_task_execution_state(transition)

    def heartbeat_from_task_manager(self, resource_id: str) -> None:
        self._heartbeats.heard_from(resource_id)

    def fail_slot(self, resource_id: str, allocation_id: str, cause: BaseException) -> None:
        if self.slot_pool.fail_allocation(allocation_id):
            self.scheduler.fail_slot(allocation_id, SlotLostError(allocation_id, resource_id, str(cause)))

    def disconnect_task_manager(self, resource_id: str, cause: BaseException) -> None:
        """Remove an executor, with its slots and what was stored there."""
        if self._task_managers.pop(resource_id, None) is None:
            return
        self._heartbeats.unmonitor(resource_id)
        if self.slot_pool.release_task_manager(resource_id, cause):
            self.scheduler.task_executor_lost(resource_id, cause)

    # -- the job (JobListener) -------------------------------------------------------------------------

    def on_job_status_changed(self, old: JobStatus, new: JobStatus, at_ms: float, cause: BaseException | None) -> None:
        """Release everything when the job is over, once the call that ended it has returned."""
        if new.is_terminal:
            self._main_thread.execute(self._over)

    def _over(self) -> None:
        self.slot_pool.close_async().when_complete(lambda _value, _error: self._closed())

    def _closed(self) -> None:
        self._heartbeats.stop()
        if self._is_registered:
            self._is_registered = False
            self._resource_manager.disconnect_job_master(self.job_id)
        self._on_over(self.request_job())
