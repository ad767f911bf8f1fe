"""Holds the slots of a job, and the number that it has declared to need (Flink's `DeclarativeSlotPool`)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from flinkmagic.errors.base import InvariantViolatedError
from flinkmagic.scheduling.clock import Clock
from flinkmagic.scheduling.job_event_log import JobEventLog
from flinkmagic.scheduling.slots.physical_slot_provider import PhysicalSlot
from flinkmagic.scheduling.slots.resource_gateways import SlotOffer
from flinkmagic.scheduling.task_executor_gateway import TaskExecutorGateway

IDLE_SLOT_TIMEOUT_MS = 50_000.0
"""Flink's `slot.idle.timeout`."""


@dataclass
class _AllocatedSlot:
    physical: PhysicalSlot
    idle_since_ms: float | None
    """When it became free; None while it is reserved."""


class DeclarativeSlotPool:
    """Declares how many slots the job needs, accepts offers up to that, and lends them out.

    1. The need is declared as a number; executors that have slots offer some.
    2. An offer is accepted while the pool has fewer slots than are needed. A slot that was accepted before is accepted
       again.
    3. A slot is free or reserved. `on_new_slots` is notified of free ones.
    4. A free slot that is not needed is returned when it has been idle for `IDLE_SLOT_TIMEOUT_MS`.

    Departure from Flink: there are no resource profiles; every slot fits every request.

    Parameters
    ----------
    declare : callable
        Called with the number of slots needed in all, whenever that changes.
    """

    def __init__(self, clock: Clock, declare: Callable[[int], None], event_log: JobEventLog) -> None:
        self._clock = clock
        self._declare = declare
        self._event_log = event_log
        self.on_new_slots: Callable[[Sequence[PhysicalSlot]], None] = lambda _slots: None
        self.required = 0
        # invariant: _free holds exactly the allocation ids whose slot has an idle_since_ms
        self._slots: dict[str, _AllocatedSlot] = {}
        self._free: dict[str, None] = {}

    def increase_requirements_by(self, slots: int) -> None:
        """Need more slots."""
        self._set_requirements(self.required + slots)

    def decrease_requirements_by(self, slots: int) -> None:
        """Need fewer slots."""
        self._set_requirements(self.required - slots)

    def _set_requirements(self, required: int) -> None:
        if required < 0:
            raise InvariantViolatedError(f"a job needs 0 or more slots, not {required}")
        if required != self.required:
            self.required = required
            self._event_log.add("slot pool", f"declare {required} required slots")
            self._declare(required)

    @property
    def n_slots(self) -> int:
        """How many slots the pool has."""
        return len(self._slots)

    def free_slots(self) -> list[PhysicalSlot]:
        """Return the slots that are not reserved, those that became free first in front."""
        return [self._slots[allocation_id].physical for allocation_id in self._free]

    def slots_on(self, resource_id: str) -> list[str]:
        """Return the allocation ids of the slots on an executor."""
        return [a for a, slot in self._slots.items() if slot.physical.resource_id == resource_id]

    def contains(self, allocation_id: str) -> bool:
        """Return whether a slot is in the pool."""
        return allocation_id in self._slots

    def offer_slots(
        self, offers: Sequence[SlotOffer], resource_id: str, gateway: TaskExecutorGateway
    ) -> list[SlotOffer]:
        """Accept offers as far as slots are needed; return the accepted ones."""
        accepted, new = [], []
        for offer in offers:
            if offer.allocation_id in self._slots:
                accepted.append(offer)
            elif len(self._slots) < self.required:
                physical = PhysicalSlot(offer.allocation_id, resource_id, gateway)
                self._slots[offer.allocation_id] = _AllocatedSlot(physical, self._clock.now_ms())
                self._free[offer.allocation_id] = None
                accepted.append(offer)
                new.append(physical)
        self._event_log.add("slot pool", f"accept {len(accepted)} of {len(offers)} slots of {resource_id}")
        if new:
            self.on_new_slots(new)
        return accepted

    def reserve_free_slot(self, allocation_id: str) -> None:
        """Lend out a free slot."""
        del self._free[allocation_id]
        self._slots[allocation_id].idle_since_ms = None

    def free_reserved_slot(self, allocation_id: str) -> None:
        """Take back a slot that was lent out; it can be lent again immediately."""
        slot = self._slots[allocation_id]
        if slot.idle_since_ms is not None:
            raise InvariantViolatedError(f"the slot {allocation_id} is reserved when it is freed")
        slot.idle_since_ms = self._clock.now_ms()
        self._free[allocation_id] = None
        self.on_new_slots([slot.physical])

    def release_slot(self, allocation_id: str) -> None:
        """Remove a lost slot."""
        del self._slots[allocation_id]
        self._free.pop(allocation_id, None)

    def release_idle_slots(self) -> None:
        """Return free slots to their executors that are not needed and have been idle for long."""
        excess = len(self._slots) - self.required
        long_ago = self._clock.now_ms() - IDLE_SLOT_TIMEOUT_MS
        for allocation_id in list(self._free):
            slot = self._slots[allocation_id]
            if excess > 0 and slot.idle_since_ms is not None and slot.idle_since_ms <= long_ago:
                excess -= 1
                self._return(allocation_id, slot)

    def return_all(self) -> None:
        """Return all slots, as the job is over."""
        for allocation_id, slot in list(self._slots.items()):
            self._return(allocation_id, slot)

    def _return(self, allocation_id: str, slot: _AllocatedSlot) -> None:
        self.release_slot(allocation_id)
        self._event_log.add("slot pool", f"give {allocation_id} back to {slot.physical.resource_id}")
        slot.physical.gateway.free_slot(allocation_id)
