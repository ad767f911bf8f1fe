"""Declares where a scheduler gets its slots (Flink's `PhysicalSlotProvider`)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol, runtime_checkable

from flinkmagic.scheduling.completable_future import CompletableFuture
from flinkmagic.scheduling.task_executor_gateway import TaskExecutorGateway


@dataclass(frozen=True)
class PhysicalSlot:
    """A slot of a task executor that was given to this job (Flink's `PhysicalSlot`)."""

    allocation_id: str
    resource_id: str
    gateway: TaskExecutorGateway


@dataclass(eq=False)
class PhysicalSlotRequest:
    """Asks for one slot (Flink's `PhysicalSlotRequest`)."""

    slot_request_id: str
    """Unique within a job."""
    vertices: Sequence[int]
    """The execution vertices (global indices) that will share the slot, in ascending order."""
    slot_sharing_group: str = ""
    """The group that asks; for messages."""
    preferred_resource_ids: Sequence[str] = ()
    """Executors that hold what the vertices read, or whose slots they had before, best first."""
    slot_will_be_occupied_indefinitely: bool = False
    """Whether the slot is wanted for an unbounded job."""
    slot_future: CompletableFuture[PhysicalSlot] = field(default_factory=CompletableFuture)
    """The provider completes it on the main thread, possibly within the call that asks."""


class PhysicalSlotProvider(Protocol):
    """Gives slots (Flink's `PhysicalSlotProvider`).

    Departure from Flink: a request names the vertices that will share the slot. A provider that does not place single
    tasks itself (Spark does) needs them to know which launch fulfils which request.

    A provider may complete requests in any order and long after they were made. It reports a lost slot by failing the
    tasks in it (`DefaultScheduler.fail_slot`).
    """

    def allocate_physical_slots(self, requests: Sequence[PhysicalSlotRequest]) -> None:
        """Ask for slots; each request's future is completed with a slot, or failed."""

    def cancel_slot_request(self, slot_request_id: str) -> None:
        """Cancel a request that was not fulfilled yet; leave its future as it is."""

    def free_slot(self, allocation_id: str) -> None:
        """Return a slot that fulfilled a request and in which no task is left."""


@runtime_checkable
class BulkWatcher(Protocol):
    """An optional part of a slot provider (Flink's `PhysicalSlotRequestBulkChecker`)."""

    def watch_bulk(self, requests: Sequence[PhysicalSlotRequest]) -> None:
        """Fail requests that are needed together, of this call and of earlier ones, if they can never be fulfilled."""
