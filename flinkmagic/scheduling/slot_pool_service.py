"""Declares what a job's master asks of the job's slots (Flink's `SlotPoolService`)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from flinkmagic.scheduling.clock import Clock
from flinkmagic.scheduling.completable_future import CompletableFuture
from flinkmagic.scheduling.default_scheduler import DefaultScheduler
from flinkmagic.scheduling.job_event_log import JobEventLog
from flinkmagic.scheduling.job_status import JobListener
from flinkmagic.scheduling.main_thread import ComponentMainThreadExecutor
from flinkmagic.scheduling.slots.declarative_slot_pool import DeclarativeSlotPool
from flinkmagic.scheduling.slots.declarative_slot_pool_bridge import DeclarativeSlotPoolBridge
from flinkmagic.scheduling.slots.physical_slot_provider import PhysicalSlotProvider
from flinkmagic.scheduling.slots.resource_gateways import SlotOffer
from flinkmagic.scheduling.task_executor_gateway import TaskExecutorGateway


class SlotPoolService(PhysicalSlotProvider, Protocol):
    """Takes the slots that executors offer to a job, and gives them to its scheduler."""

    @property
    def required(self) -> int:
        """How many slots the job needs now."""

    def offer_slots(
        self, offers: Sequence[SlotOffer], resource_id: str, gateway: TaskExecutorGateway
    ) -> list[SlotOffer]:
        """Take the offered slots that are needed, and return them."""

    def fail_allocation(self, allocation_id: str) -> bool:
        """Remove a slot that an executor has lost; return False if the pool does not have it."""

    def release_task_manager(self, resource_id: str, cause: BaseException) -> bool:
        """Remove the slots of a lost executor; return whether what ran and was stored there is lost with it."""

    def notify_not_enough_resources(self, acquired: int) -> None:
        """Handle the news that there are no more slots than `acquired` for this job."""

    def close_async(self) -> CompletableFuture[None]:
        """Return everything, as the job is over; the future is done when nothing of the job runs any more."""


class SlotPoolServiceSchedulerFactory(Protocol):
    """Makes the pool and the scheduler of a job, which fit each other (Flink's class of that name)."""

    def create_slot_pool_service(self, declare: Callable[[int], None]) -> SlotPoolService:
        """Make the pool; it calls `declare` with the number of slots that the job needs, whenever that changes."""

    def create_scheduler(self, slot_pool: SlotPoolService, listeners: Sequence[JobListener]) -> DefaultScheduler:
        """Make the scheduler over the pool."""


SchedulerNGFactory = Callable[[PhysicalSlotProvider, Sequence[JobListener]], DefaultScheduler]
"""Makes a scheduler over a slot provider (Flink's `SchedulerNGFactory`)."""


@dataclass(frozen=True)
class DefaultSlotPoolServiceSchedulerFactory:
    """Flink's own pair: a declarative slot pool behind its bridge, and the scheduler of `scheduler_factory`.

    `slot_request_timeout_ms` and `batch_slot_timeout_ms` are described by the class that reads them.
    """

    main_thread: ComponentMainThreadExecutor
    clock: Clock
    event_log: JobEventLog
    scheduler_factory: SchedulerNGFactory
    slot_request_timeout_ms: float = 300_000.0
    batch_slot_timeout_ms: float = 300_000.0

    def create_slot_pool_service(self, declare: Callable[[int], None]) -> DeclarativeSlotPoolBridge:
        """Make a declarative pool with its bridge."""
        return DeclarativeSlotPoolBridge(
            DeclarativeSlotPool(self.clock, declare, self.event_log),
            clock=self.clock,
            main_thread=self.main_thread,
            event_log=self.event_log,
            slot_request_timeout_ms=self.slot_request_timeout_ms,
            batch_slot_timeout_ms=self.batch_slot_timeout_ms,
        )

    def create_scheduler(self, slot_pool: SlotPoolService, listeners: Sequence[JobListener]) -> DefaultScheduler:
        return self.scheduler_factory(slot_pool, listeners)
