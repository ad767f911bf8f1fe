"""Requirements, offers, slots and requests: the declarative pool and its bridge to single requests."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from flinkmagic.errors.base import InvariantViolatedError
from flinkmagic.errors.scheduling import NoResourceAvailableError
from flinkmagic.scheduling.clock import ManualClock
from flinkmagic.scheduling.job_event_log import JobEventLog
from flinkmagic.scheduling.main_thread import ManualMainThreadExecutor
from flinkmagic.scheduling.slots import declarative_slot_pool, declarative_slot_pool_bridge
from flinkmagic.scheduling.slots.declarative_slot_pool import DeclarativeSlotPool
from flinkmagic.scheduling.slots.declarative_slot_pool_bridge import DeclarativeSlotPoolBridge
from flinkmagic.scheduling.slots.physical_slot_provider import PhysicalSlot, PhysicalSlotRequest
from flinkmagic.scheduling.slots.request_slot_matching import match_requests
from flinkmagic.scheduling.slots.resource_gateways import SlotOffer
from tests.virtual_time import run_until


@pytest.fixture(autouse=True)
def _frequent_checks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(declarative_slot_pool_bridge, "IDLE_CHECK_MS", 100.0)
    monkeypatch.setattr(declarative_slot_pool, "IDLE_SLOT_TIMEOUT_MS", 1_000.0)


class Executor:
    """Notes what slots come back."""

    def __init__(self, resource_id: str = "tm-1") -> None:
        self.resource_id = resource_id
        self.freed: list[str] = []

    def free_slot(self, allocation_id: str) -> None:
        self.freed.append(allocation_id)


class Pool:
    """A pool with its bridge, and what it has declared."""

    def __init__(self, **options: Any) -> None:
        self.clock = ManualClock()
        self.main_thread = ManualMainThreadExecutor(self.clock)
        self.log = JobEventLog(self.clock)
        self.declared: list[int] = []
        self.pool = DeclarativeSlotPool(self.clock, self.declared.append, self.log)
        self.bridge = DeclarativeSlotPoolBridge(
            self.pool,
            clock=self.clock,
            main_thread=self.main_thread,
            event_log=self.log,
            **options,
        )
        self.executor = Executor()

    def offer(self, *allocation_ids: str, executor: Executor | None = None) -> list[str]:
        executor = executor or self.executor
        offers = [SlotOffer(allocation_id) for allocation_id in allocation_ids]
        accepted = self.pool.offer_slots(offers, executor.resource_id, executor)
        return [offer.allocation_id for offer in accepted]

    def ask(self, *names: str, preferred: Sequence[str] = (), streaming: bool = False) -> list[PhysicalSlotRequest]:
        requests = [
            PhysicalSlotRequest(name, (n,), f"group of {name}", preferred, streaming) for n, name in enumerate(names)
        ]
        self.bridge.allocate_physical_slots(requests)
        self.bridge.watch_bulk(requests)
        return requests


def given(*requests: PhysicalSlotRequest) -> list[str | None]:
    return [slot and slot.allocation_id for slot, _ in map(outcome, requests)]


def outcome(request: PhysicalSlotRequest) -> tuple[PhysicalSlot | None, BaseException | None]:
    heard: list[tuple[PhysicalSlot | None, BaseException | None]] = [(None, None)]
    request.slot_future.when_complete(lambda slot, error: heard.append((slot, error)))
    return heard[-1]


def test_what_is_asked_for_is_declared_in_one_number() -> None:
    p = Pool()
    p.ask("a", "b", "c")
    p.bridge.cancel_slot_request("b")
    p.ask("d")
    assert p.declared == [3, 2, 3]


def test_offers_are_accepted_up_to_what_is_required() -> None:
    p = Pool()
    requests = p.ask("a", "b")
    assert p.offer("s1", "s2", "s3") == ["s1", "s2"]
    assert given(*requests) == ["s1", "s2"]
    assert p.offer("s1", "s3") == ["s1"]
    assert p.pool.n_slots == 2


def test_a_returned_slot_goes_to_whom_waits_for_longest() -> None:
    p = Pool()
    first, second, third = p.ask("a", "b", "c")
    p.offer("s1")
    assert given(first, second, third) == ["s1", None, None]
    p.bridge.free_slot("s1")
    assert given(first, second, third) == ["s1", "s1", None]
    assert p.declared == [3, 2]


def test_a_free_slot_is_used_before_another_is_waited_for() -> None:
    p = Pool()
    p.ask("a", "b")
    p.offer("s1", "s2")
    p.bridge.free_slot("s2")
    (again,) = p.ask("c")
    assert given(again) == ["s2"]
    assert not p.bridge._pending


def test_a_free_slot_on_a_preferred_executor_is_taken_first() -> None:
    p = Pool()
    p.ask("a", "b")
    far, near = Executor("far"), Executor("near")
    p.offer("s1", executor=far)
    p.offer("s2", executor=near)
    p.bridge.free_slot("s1")
    p.bridge.free_slot("s2")
    assert given(*p.ask("c", preferred=["elsewhere", "near"])) == ["s2"]


def test_idle_slots_that_are_not_needed_go_back() -> None:
    p = Pool()
    p.ask("a", "b")
    p.offer("s1", "s2")
    p.bridge.free_slot("s1")
    run_until(p.main_thread, 900.0)
    assert p.executor.freed == []
    run_until(p.main_thread, 1_200.0)
    assert p.executor.freed == ["s1"]
    assert p.pool.n_slots == 1


def test_idle_slots_that_are_needed_stay() -> None:
    p = Pool()
    p.ask("a")
    p.offer("s1")
    p.pool.increase_requirements_by(1)
    p.bridge.free_slot("s1")
    run_until(p.main_thread, 5_000.0)
    assert p.executor.freed == []


def test_closing_gives_everything_back() -> None:
    p = Pool()
    p.ask("a", "b")
    p.offer("s1", "s2")
    assert p.bridge.close_async().is_done
    assert p.executor.freed == ["s1", "s2"]


def test_a_lost_slot_is_struck_out_and_its_return_lowers_the_requirement_only() -> None:
    p = Pool()
    p.ask("a")
    p.offer("s1")
    p.pool.release_slot("s1")
    p.bridge.free_slot("s1")
    assert p.pool.required == 0
    assert p.executor.freed == []


@pytest.mark.parametrize("streaming", [True, False])
def test_a_bulk_that_can_never_be_had_fails_with_how_many_it_needs_and_who_asks(streaming: bool) -> None:
    p = Pool(slot_request_timeout_ms=500.0)
    requests = p.ask("a", "b", "c", streaming=streaming)
    p.offer("s1")
    run_until(p.main_thread, 2_000.0)
    assert given(requests[0]) == ["s1"]
    errors = [outcome(request)[1] for request in requests[1:]]
    assert all(isinstance(error, NoResourceAvailableError) for error in errors)
    assert str(errors[0]) == (
        "A region needs 3 slots together, and 1 became available within 500 ms. It requests: group of a, group of b, "
        "group of c. Give the job more slots, or lower the parallelism of these groups."
    )


def test_a_bulk_that_others_keep_waiting_does_not_fail() -> None:
    p = Pool(slot_request_timeout_ms=500.0)
    p.ask("a", "b")
    p.offer("s1", "s2")
    waiting = p.ask("c", "d")
    run_until(p.main_thread, 60_000.0)
    assert given(*waiting) == [None, None]


def test_slots_that_unbounded_tasks_hold_do_not_count_for_others() -> None:
    p = Pool(slot_request_timeout_ms=500.0)
    p.ask("a", streaming=True)
    p.offer("s1")
    (other,) = p.ask("b", streaming=True)
    run_until(p.main_thread, 2_000.0)
    assert isinstance(outcome(other)[1], NoResourceAvailableError)


def test_bounded_jobs_fail_when_there_is_no_slot_at_all() -> None:
    p = Pool(batch_slot_timeout_ms=500.0)
    (request,) = p.ask("a")
    run_until(p.main_thread, 400.0)
    assert given(request) == [None]
    run_until(p.main_thread, 1_100.0)
    assert isinstance(outcome(request)[1], NoResourceAvailableError)
    assert p.pool.required == 0


def test_when_there_is_no_more_unbounded_jobs_fail_immediately_and_bounded_ones_wait() -> None:
    p = Pool()
    (bounded,) = p.ask("a")
    (unbounded,) = p.ask("b", streaming=True)
    p.bridge.notify_not_enough_resources(0)
    assert isinstance(outcome(unbounded)[1], NoResourceAvailableError)
    assert not bounded.slot_future.is_done


def test_a_slot_is_not_lent_twice() -> None:
    p = Pool()
    p.ask("a")
    p.offer("s1")
    with pytest.raises(KeyError):
        p.pool.reserve_free_slot("s1")
    p.bridge.free_slot("s1")
    p.bridge.free_slot("s1")
    with pytest.raises(InvariantViolatedError, match="is reserved when"):
        p.pool.free_reserved_slot("s1")
    with pytest.raises(InvariantViolatedError, match="slots, not -1"):
        p.pool.decrease_requirements_by(1)


def slot(name: str, resource_id: str) -> PhysicalSlot:
    return PhysicalSlot(name, resource_id, None)  # type: ignore[arg-type]


def wanting(name: str, *preferred: str) -> PhysicalSlotRequest:
    return PhysicalSlotRequest(name, (0,), preferred_resource_ids=preferred)


def test_matching_by_preference_keeps_the_order_of_requests() -> None:
    slots = [slot("s1", "x"), slot("s2", "y")]
    requests = [wanting("a"), wanting("b", "x"), wanting("c", "x", "y")]
    matches = match_requests(slots, requests)
    assert [(r.slot_request_id, s.allocation_id) for r, s in matches] == [("a", "s2"), ("b", "s1")]
