"""One job's master: its scheduler, its slots, its executors (Flink's `JobMaster`)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from flinkmagic.errors.scheduling import SlotLostError, TaskExecutorLostError
from flinkmagic.graph.execution_graph import ExecutionGraph
from flinkmagic.scheduling.clock import Clock
from flinkmagic.scheduling.heartbeat import HeartbeatManager
from flinkmagic.scheduling.job_event_log import JobEventLog
from flinkmagic.scheduling.job_listener import JobListener
from flinkmagic.scheduling.main_thread import ComponentMainThreadExecutor
from flinkmagic.scheduling.recovery.leader_retrieval import LeaderRetrievalService
from flinkmagic.scheduling.scheduler_ng import SchedulerNG
from flinkmagic.scheduling.slots.declarative_slot_pool import DeclarativeSlotPool
from flinkmagic.scheduling.slots.declarative_slot_pool_bridge import DeclarativeSlotPoolBridge
from flinkmagic.scheduling.slots.physical_slot_provider import PhysicalSlotProvider
from flinkmagic.scheduling.slots.resource_gateways import ManagedTaskExecutorGateway, ResourceManagerGateway, SlotOffer
from flinkmagic.scheduling.task_executor_gateway import TaskExecutionStateTransition

if TYPE_CHECKING:
    from flinkmagic.graph.execution_state import ExecutionState
    from flinkmagic.scheduling.job_status import JobStatus
    from flinkmagic.scheduling.recovery.recovered_job import RecoveredJob


class SchedulerNGFactory(Protocol):
    """Makes a scheduler over a slot provider (Flink's `SchedulerNGFactory`)."""

    def __call__(
        self,
        execution_graph: ExecutionGraph,
        slot_provider: PhysicalSlotProvider,
        listeners: Sequence[JobListener],
        event_log: JobEventLog,
    ) -> SchedulerNG: ...


@dataclass(frozen=True)
class JobMasterOptions:
    """What can be set about slots and heartbeats; the names are those of the classes that read them."""

    slot_request_timeout_ms: float | None = 300_000.0
    batch_slot_timeout_ms: float | None = 300_000.0
    idle_slot_timeout_ms: float = 50_000.0
    heartbeat_interval_ms: float = 10_000.0
    heartbeat_timeout_ms: float = 50_000.0


class JobMaster:
    """Runs one job on slots that a resource manager has its executors offer.

    The chain, each link of which is in the event log: the scheduler asks for slots, the pool declares what it
    requires, the resource manager asks executors, these offer, the pool accepts, requests are matched, tasks
    are deployed.

    Everything runs on the main thread.
    """

    def __init__(
        self,
        execution_graph: ExecutionGraph,
        *,
        main_thread: ComponentMainThreadExecutor,
        clock: Clock,
        scheduler_factory: SchedulerNGFactory,
        resource_manager: LeaderRetrievalService[ResourceManagerGateway],
        event_log: JobEventLog,
        options: JobMasterOptions | None = None,
        listeners: Sequence[JobListener] = (),
        on_over: Callable[[JobStatus], None] = lambda _status: None,
    ) -> None:
        options = options or JobMasterOptions()
        self.execution_graph = execution_graph
        self.event_log = event_log
        self._main_thread = main_thread
        self._resource_manager_retriever = resource_manager
        self._resource_manager: ResourceManagerGateway | None = None
        self._task_managers: dict[str, ManagedTaskExecutorGateway] = {}
        self._on_over = on_over
        self.slot_pool = DeclarativeSlotPool(clock, self._declare, event_log, options.idle_slot_timeout_ms)
        self.slot_provider = DeclarativeSlotPoolBridge(
            self.slot_pool,
            clock=clock,
            main_thread=main_thread,
            event_log=event_log,
            slot_request_timeout_ms=options.slot_request_timeout_ms,
            batch_slot_timeout_ms=options.batch_slot_timeout_ms,
        )
        self._heartbeats = HeartbeatManager(
            clock, main_thread, options.heartbeat_interval_ms, options.heartbeat_timeout_ms, self._on_silent_executor
        )
        self.scheduler = scheduler_factory(execution_graph, self.slot_provider, (*listeners, self), event_log)

    @property
    def job_id(self) -> str:
        """The job."""
        return self.execution_graph.job_id

    def start(self, recovered: RecoveredJob | None = None) -> None:
        """Find the resource manager and start scheduling."""
        self._resource_manager_retriever.start(self._on_resource_manager)
        self.scheduler.start_scheduling(recovered)

    def cancel(self) -> None:
        """End the job for good."""
        self.scheduler.cancel()

    def suspend(self, cause: BaseException) -> None:
        """End the job here, so that another master may take it up."""
        self.scheduler.suspend(cause)

    # -- the resource manager --------------------------------------------------------------------------

    def _on_resource_manager(self, leader: ResourceManagerGateway | None) -> None:
        if self._resource_manager is not None and leader is not self._resource_manager:
            self._resource_manager.disconnect_job_master(self.job_id)
        self._resource_manager = leader
        if leader is not None:
            leader.register_job_master(self)
            self._declare(self.slot_pool.required)

    def _declare(self, required: int) -> None:
        def declare() -> None:
            if self._resource_manager is not None:
                self._resource_manager.declare_required_resources(self.job_id, self.slot_pool.required)

        self._main_thread.execute(declare)

    def notify_not_enough_resources(self, acquired: int) -> None:
        """Take the resource manager's word that it has no more than `acquired` slots for this job."""
        self.event_log.add("job master", f"hears that there are no more than {acquired} slots for it")
        self.slot_provider.notify_not_enough_resources(acquired)

    # -- task executors --------------------------------------------------------------------------------

    def register_task_manager(self, resource_id: str, gateway: ManagedTaskExecutorGateway) -> None:
        """Take an executor's word that it has slots for this job."""
        if self._task_managers.get(resource_id) is gateway:
            return
        if resource_id in self._task_managers:
            self.disconnect_task_manager(resource_id, TaskExecutorLostError(resource_id, "it registered again"))
        self.event_log.add("job master", f"{resource_id} registers")
        self._task_managers[resource_id] = gateway
        self._heartbeats.monitor(resource_id, lambda: gateway.heartbeat_from_job_manager(self.job_id))

    def offer_slots(self, resource_id: str, offers: Sequence[SlotOffer]) -> list[SlotOffer]:
        """Take those of the offered slots that are needed; none of an executor that is not registered."""
        gateway = self._task_managers.get(resource_id)
        if gateway is None or self.scheduler.job_status.is_terminal:
            return []
        return self.slot_pool.offer_slots(offers, resource_id, gateway)

    def update_task_execution_state(self, transition: TaskExecutionStateTransition) -> bool:
        """Take news of an attempt."""
        return self.scheduler.update_task_execution_state(transition)

    def heartbeat_from_task_manager(self, resource_id: str) -> None:
        """Take an executor's sign of life."""
        self._heartbeats.heard_from(resource_id)

    def fail_slot(self, resource_id: str, allocation_id: str, cause: BaseException) -> None:
        """Take news of a slot that an executor lost."""
        if self.slot_pool.contains(allocation_id):
            self.slot_pool.release_slot(allocation_id)
            self.scheduler.fail_slot(allocation_id, SlotLostError(allocation_id, resource_id, str(cause)))

    def disconnect_task_manager(self, resource_id: str, cause: BaseException) -> None:
        """Strike an executor out, with its slots and what lay there."""
        if self._task_managers.pop(resource_id, None) is None:
            return
        self._heartbeats.unmonitor(resource_id)
        for allocation_id in self.slot_pool.slots_on(resource_id):
            self.slot_pool.release_slot(allocation_id)
        self.scheduler.task_executor_lost(resource_id, cause)

    def _on_silent_executor(self, resource_id: str) -> None:
        reason = f"no sign of life for {self._heartbeats.timeout_ms:g} ms"
        self.disconnect_task_manager(resource_id, TaskExecutorLostError(resource_id, reason))

    # -- the job (JobListener) -------------------------------------------------------------------------

    def on_job_status_changed(self, old: JobStatus, new: JobStatus, at_ms: float, cause: BaseException | None) -> None:
        """Let everything go when the job is over, once the call that ended it has returned."""
        if new.is_terminal:
            self._main_thread.execute(lambda: self._over(new))

    def on_execution_state_changed(
        self, vertices: Sequence[int], state: ExecutionState, at_ms: float, error: BaseException | None
    ) -> None:
        """Single executions do not concern the master."""

    def _over(self, status: JobStatus) -> None:
        self._heartbeats.stop()
        self.slot_provider.close()
        self._resource_manager_retriever.stop(self._on_resource_manager)
        if self._resource_manager is not None:
            self._resource_manager.disconnect_job_master(self.job_id)
        self._on_over(status)
