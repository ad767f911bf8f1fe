"""Answers requests for single slots from a pool that declares numbers (Flink's `DeclarativeSlotPoolBridge`)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from flinkmagic.errors.scheduling import NoResourceAvailableError
from flinkmagic.scheduling.clock import Clock
from flinkmagic.scheduling.completable_future import CompletableFuture
from flinkmagic.scheduling.job_event_log import JobEventLog
from flinkmagic.scheduling.main_thread import ComponentMainThreadExecutor
from flinkmagic.scheduling.slots.declarative_slot_pool import DeclarativeSlotPool
from flinkmagic.scheduling.slots.physical_slot_provider import PhysicalSlot, PhysicalSlotRequest
from flinkmagic.scheduling.slots.request_slot_matching import Match, match_requests
from flinkmagic.scheduling.slots.resource_gateways import SlotOffer
from flinkmagic.scheduling.slots.slot_request_bulk_checker import PhysicalSlotRequestBulkChecker
from flinkmagic.scheduling.task_executor_gateway import TaskExecutorGateway

IDLE_CHECK_MS = 10_000.0
"""How often the pool looks for idle slots."""


class DeclarativeSlotPoolBridge:
    """Provides physical slots from a declarative pool (with `PhysicalSlotProviderImpl` in it).

    1. A request takes a free slot immediately, preferably on an executor that it prefers; else it waits. Either way the
       pool's requirement grows by one until the slot, or the request, is returned.
    2. `match_requests` assigns new and returned slots to waiting requests.
    3. A bulk of requests (`watch_bulk`) that cannot be fulfilled together fails after `slot_request_timeout_ms`.
    4. Requests of a bounded job fail when the pool has had no slot at all for `batch_slot_timeout_ms`.
    5. When the resource manager has no more, requests of an unbounded job fail immediately: they need all their slots
       simultaneously. Those of a bounded job wait their turn.
    """

    def __init__(
        self,
        pool: DeclarativeSlotPool,
        *,
        clock: Clock,
        main_thread: ComponentMainThreadExecutor,
        event_log: JobEventLog,
        slot_request_timeout_ms: float = 300_000.0,
        batch_slot_timeout_ms: float = 300_000.0,
    ) -> None:
        self.pool = pool
        pool.on_new_slots = self._match
        self._clock = clock
        self._main_thread = main_thread
        self._event_log = event_log
        self._batch_slot_timeout_ms = batch_slot_timeout_ms
        self._bulk_checker = PhysicalSlotRequestBulkChecker(
            clock, main_thread, self._usable_slots, self._fail, slot_request_timeout_ms
        )
        self._pending: dict[str, PhysicalSlotRequest] = {}
        self._fulfilled: dict[str, PhysicalSlotRequest] = {}
        """By allocation id. Invariant: the pool requires as many slots as these two have entries."""
        self._no_slot_since_ms: float | None = None
        self._is_batch_check_due = False
        self._is_idle_check_due = False
        self._is_closed = False

    def allocate_physical_slots(self, requests: Sequence[PhysicalSlotRequest]) -> None:
        """Ask for the slots of one call."""
        free = self.pool.free_slots()
        matches: list[Match] = []
        for request in requests:
            slot = _take_preferred(free, request.preferred_resource_ids)
            if slot is None:
                self._pending[request.slot_request_id] = request
            else:
                matches.append((request, slot))
                self._reserve(request, slot)
        if len(matches) < len(requests):
            groups = sorted({request.slot_sharing_group for request in requests})
            self._event_log.add("slot pool", f"{len(requests) - len(matches)} requests wait, of {', '.join(groups)}")
        self.pool.increase_requirements_by(len(requests))
        self._complete(matches)
        self._watch_batch_requests()
        self._watch_idle_slots()

    def watch_bulk(self, requests: Sequence[PhysicalSlotRequest]) -> None:
        """Fail requests that are needed together if they cannot be fulfilled together."""
        self._bulk_checker.watch(requests)

    def cancel_slot_request(self, slot_request_id: str) -> None:
        """Cancel a request that waits."""
        if self._pending.pop(slot_request_id, None) is not None:
            self.pool.decrease_requirements_by(1)

    def free_slot(self, allocation_id: str) -> None:
        """Return a slot; for one that was lost, only record that it is not needed any more."""
        if self._fulfilled.pop(allocation_id, None) is None:
            return
        if self.pool.contains(allocation_id):
            self.pool.free_reserved_slot(allocation_id)
        self.pool.decrease_requirements_by(1)

    def notify_not_enough_resources(self, acquired: int) -> None:
        waiting = [r for r in self._pending.values() if r.slot_will_be_occupied_indefinitely]
        if waiting:
            groups = sorted({request.slot_sharing_group for request in waiting})
            error = NoResourceAvailableError(self.pool.required, acquired, groups)
            for request in waiting:
                self._fail(request, error)

    # -- SlotPoolService ---------------------------------------------------------------------------------

    @property
    def required(self) -> int:
        return self.pool.required

    def offer_slots(
        self, offers: Sequence[SlotOffer], resource_id: str, gateway: TaskExecutorGateway
    ) -> list[SlotOffer]:
        return self.pool.offer_slots(offers, resource_id, gateway)

    def fail_allocation(self, allocation_id: str) -> bool:
        if not self.pool.contains(allocation_id):
            return False
        self.pool.release_slot(allocation_id)
        return True

    def release_task_manager(self, resource_id: str, cause: BaseException) -> bool:
        """Remove the slots of a lost executor; what ran and was stored there is lost with it."""
        for allocation_id in self.pool.slots_on(resource_id):
            self.pool.release_slot(allocation_id)
        return True

    def close_async(self) -> CompletableFuture[None]:
        """Return everything, as the job is over."""
        self._is_closed = True
        self.pool.return_all()
        closed: CompletableFuture[None] = CompletableFuture()
        closed.complete(None)
        return closed

    def _match(self, slots: Sequence[PhysicalSlot]) -> None:
        matches = match_requests(slots, self._pending.values())
        for request, slot in matches:
            del self._pending[request.slot_request_id]
            self._reserve(request, slot)
        self._complete(matches)

    def _reserve(self, request: PhysicalSlotRequest, slot: PhysicalSlot) -> None:
        self.pool.reserve_free_slot(slot.allocation_id)
        self._fulfilled[slot.allocation_id] = request

    def _complete(self, matches: Iterable[Match]) -> None:
        for request, slot in matches:
            if self._fulfilled.get(slot.allocation_id) is request:
                self._event_log.add("slot pool", f"{request.slot_request_id} gets {slot.allocation_id}")
                request.slot_future.complete(slot)

    def _fail(self, request: PhysicalSlotRequest, error: BaseException) -> None:
        if self._pending.pop(request.slot_request_id, None) is not None:
            self.pool.decrease_requirements_by(1)
            self._event_log.add("slot pool", f"{request.slot_request_id} fails: {error}")
            request.slot_future.complete_exceptionally(error)

    def _usable_slots(self, bulk: Sequence[PhysicalSlotRequest]) -> int:
        own = {request.slot_request_id for request in bulk}
        taken = sum(
            1
            for request in self._fulfilled.values()
            if request.slot_will_be_occupied_indefinitely and request.slot_request_id not in own
        )
        return self.pool.n_slots - taken

    # -- timeouts ----------------------------------------------------------------------------------------

    def _watch_batch_requests(self) -> None:
        if not self._is_batch_check_due and self._pending:
            if self.pool.n_slots == 0:
                self._no_slot_since_ms = self._clock.now_ms()
            self._is_batch_check_due = True
            self._main_thread.schedule(self._check_batch_requests, self._batch_slot_timeout_ms)

    def _check_batch_requests(self) -> None:
        self._is_batch_check_due = False
        timeout_ms, now_ms = self._batch_slot_timeout_ms, self._clock.now_ms()
        if self._is_closed:
            return
        if self.pool.n_slots:
            self._no_slot_since_ms = None
        elif self._no_slot_since_ms is not None and now_ms - self._no_slot_since_ms >= timeout_ms:
            for request in list(self._pending.values()):
                error = NoResourceAvailableError(1, 0, [request.slot_sharing_group], timeout_ms)
                self._fail(request, error)
        self._watch_batch_requests()

    def _watch_idle_slots(self) -> None:
        if not self._is_idle_check_due:
            self._is_idle_check_due = True
            self._main_thread.schedule(self._check_idle_slots, IDLE_CHECK_MS)

    def _check_idle_slots(self) -> None:
        self._is_idle_check_due = False
        if not self._is_closed:
            self.pool.release_idle_slots()
            if self.pool.n_slots:
                self._watch_idle_slots()


def _take_preferred(free: list[PhysicalSlot], preferred: Sequence[str]) -> PhysicalSlot | None:
    """Remove a free slot from the list: on the first preferred executor that has one, else the first."""
    if not free:
        return None
    for resource_id in preferred:
        for index, slot in enumerate(free):
            if slot.resource_id == resource_id:
                return free.pop(index)
    return free.pop(0)
