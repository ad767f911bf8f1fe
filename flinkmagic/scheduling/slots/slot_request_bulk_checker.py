"""Finds regions that can never get their slots (Flink's `PhysicalSlotRequestBulkChecker`)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from flinkmagic.errors.scheduling import NoResourceAvailableError
from flinkmagic.scheduling.clock import Clock
from flinkmagic.scheduling.main_thread import ComponentMainThreadExecutor
from flinkmagic.scheduling.slots.physical_slot_provider import PhysicalSlotRequest


@dataclass
class _Bulk:
    requests: Sequence[PhysicalSlotRequest]
    unfulfillable_since_ms: float | None

    @property
    def is_pending(self) -> bool:
        return any(not request.slot_future.is_done for request in self.requests)


class PhysicalSlotRequestBulkChecker:
    """Fails the requests of a region that could not all be fulfilled for a while, however other regions fare.

    A bulk is the requests that one region needs; if regions share slots, some of them may have been made for others
    before. It can be fulfilled if there are as many slots as it needs, not counting those that other tasks of an
    unbounded job hold for good.

    Parameters
    ----------
    usable_slots : callable
        How many slots the requests of a bulk could have.
    timeout_ms : float
        Flink's `slot.request.timeout`.
    """

    def __init__(
        self,
        clock: Clock,
        main_thread: ComponentMainThreadExecutor,
        usable_slots: Callable[[Sequence[PhysicalSlotRequest]], int],
        fail: Callable[[PhysicalSlotRequest, BaseException], None],
        timeout_ms: float,
    ) -> None:
        self._clock = clock
        self._main_thread = main_thread
        self._usable_slots = usable_slots
        self._fail = fail
        self._timeout_ms = timeout_ms

    def watch(self, requests: Sequence[PhysicalSlotRequest]) -> None:
        """Check a bulk from now on, until it is fulfilled or failed."""
        bulk = _Bulk(requests, self._clock.now_ms())
        if bulk.is_pending:
            self._main_thread.schedule(lambda: self._check(bulk), self._timeout_ms)

    def _check(self, bulk: _Bulk) -> None:
        timeout_ms = self._timeout_ms
        if not bulk.is_pending:
            return
        usable = self._usable_slots(bulk.requests)
        now_ms = self._clock.now_ms()
        if usable >= len(bulk.requests):
            bulk.unfulfillable_since_ms = None
        elif bulk.unfulfillable_since_ms is None:
            bulk.unfulfillable_since_ms = now_ms
        elif now_ms - bulk.unfulfillable_since_ms >= timeout_ms:
            groups = sorted({request.slot_sharing_group for request in bulk.requests})
            error = NoResourceAvailableError(len(bulk.requests), usable, groups, timeout_ms)
            for request in bulk.requests:
                if not request.slot_future.is_done:
                    self._fail(request, error)
            return
        self._main_thread.schedule(lambda: self._check(bulk), timeout_ms)
