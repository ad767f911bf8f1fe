"""Provides the one thread that owns all state of a job (Flink's `ComponentMainThreadExecutor`).

Everything that changes the scheduler's state runs here, one call after the other. Other threads hand in their calls
with `execute`. Calls run by the instant at which they are due, and those of one instant in the order in which they were
handed in. The manual executor keeps the same order, which is why a run under it is the same every time.
"""

from __future__ import annotations

import heapq
import itertools
import logging
import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import Protocol, TypeVar

from flinkmagic.errors.base import InvariantViolatedError
from flinkmagic.errors.scheduling import MainThreadStoppedError
from flinkmagic.scheduling.clock import Clock, ManualClock

_LOG = logging.getLogger(__name__)

Action = Callable[[], object]
T = TypeVar("T")


class ScheduledCall:
    """A call that was handed to a main thread; `cancel()` withdraws it."""

    __slots__ = ("action",)

    def __init__(self, action: Action) -> None:
        self.action: Action | None = action

    def cancel(self) -> None:
        """Withdraw the call; do nothing if it ran already."""
        self.action = None


class ComponentMainThreadExecutor(Protocol):
    """Runs calls one after the other on the thread that owns the state."""

    def execute(self, action: Action) -> None:
        """Run `action` after the calls that are due already; callable from any thread."""

    def schedule(self, action: Action, delay_ms: float) -> ScheduledCall:
        """Run `action` in `delay_ms` milliseconds; callable from any thread."""

    @property
    def is_current(self) -> bool:
        """Whether the caller is on the main thread."""

    def assert_running_in_main_thread(self) -> None:
        """Raise if the caller is not on the main thread."""


def ask(main_thread: ComponentMainThreadExecutor, question: Callable[[], T], timeout_s: float) -> T:
    """Run `question` on the main thread, called from any thread; return its answer or raise what it raises."""
    if main_thread.is_current:
        return question()
    answer: Future[T] = Future()

    def put() -> None:
        try:
            answer.set_result(question())
        except BaseException as error:  # noqa: BLE001 - it is the caller's
            answer.set_exception(error)

    main_thread.execute(put)
    return answer.result(timeout_s)


class _Agenda:
    """Calls by the instant at which they are due, then by the order of arrival."""

    def __init__(self) -> None:
        self._heap: list[tuple[float, int, ScheduledCall]] = []
        self._arrivals = itertools.count()

    def add(self, action: Action, at_ms: float) -> ScheduledCall:
        call = ScheduledCall(action)
        heapq.heappush(self._heap, (at_ms, next(self._arrivals), call))
        return call

    def next_due_ms(self) -> float:
        """Return when the next call that was not withdrawn is due; infinity if there is none."""
        heap = self._heap
        while heap and heap[0][2].action is None:
            heapq.heappop(heap)
        return heap[0][0] if heap else float("inf")

    def pop(self) -> Action | None:
        """Remove and return the next call; None if there is none, or it was withdrawn meanwhile."""
        if not self._heap:
            return None
        call = heapq.heappop(self._heap)[2]
        action, call.action = call.action, None
        return action


class ManualMainThreadExecutor:
    """A main thread that runs calls only when told to, and advances its clock to the instant of each."""

    def __init__(self, clock: ManualClock) -> None:
        self.clock = clock
        self._agenda = _Agenda()

    def execute(self, action: Action) -> None:
        self._agenda.add(action, self.clock.now_ms())

    def schedule(self, action: Action, delay_ms: float) -> ScheduledCall:
        return self._agenda.add(action, self.clock.now_ms() + max(delay_ms, 0.0))

    @property
    def is_current(self) -> bool:
        return True

    def assert_running_in_main_thread(self) -> None:
        """Do nothing: every caller is on the main thread here."""

    @property
    def next_due_ms(self) -> float:
        """When the next call is due; infinity if there is none."""
        return self._agenda.next_due_ms()

    def run_next(self) -> bool:
        """Run the next call, advancing time to it; return False if there is none."""
        due_ms = self._agenda.next_due_ms()
        action = self._agenda.pop()
        if action is None:
            return False
        self.clock.advance_to(max(due_ms, self.clock.now_ms()))
        action()
        return True

    def run_ready(self) -> None:
        """Run all calls that are due now, and what they hand in for now; time does not move."""
        while self._agenda.next_due_ms() <= self.clock.now_ms():
            self.run_next()


class MainThreadExecutor:
    """A main thread that is a real thread.

    Parameters
    ----------
    on_uncaught : callable
        Called with what a call raised; the thread continues.
    """

    def __init__(self, name: str, clock: Clock, on_uncaught: Callable[[BaseException], None]) -> None:
        self._on_uncaught = on_uncaught
        self._clock = clock
        self._agenda = _Agenda()
        self._condition = threading.Condition()
        self._stopped = False
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._thread.start()

    def execute(self, action: Action) -> None:
        self.schedule(action, 0.0)

    def schedule(self, action: Action, delay_ms: float) -> ScheduledCall:
        with self._condition:
            if self._stopped:
                raise MainThreadStoppedError(self._thread.name)
            call = self._agenda.add(action, self._clock.now_ms() + max(delay_ms, 0.0))
            self._condition.notify()
        return call

    @property
    def is_current(self) -> bool:
        return threading.current_thread() is self._thread

    def assert_running_in_main_thread(self) -> None:
        if not self.is_current:
            asking = threading.current_thread().name
            raise InvariantViolatedError(f"what belongs to {self._thread.name!r} is done there, and not on {asking!r}")

    def stop(self) -> None:
        """Stop after the calls that are due already; what is scheduled for later is dropped.

        Those that are due may hold a question (`ask`), whose caller waits for the answer.
        """
        with self._condition:
            self._stopped = True
            self._condition.notify()
        if threading.current_thread() is not self._thread:
            self._thread.join(10.0)

    def _run(self) -> None:
        while (action := self._take()) is not None:
            try:
                action()
            except BaseException as error:  # noqa: BLE001 - the thread must outlive one broken call
                self._report(error)

    def _take(self) -> Action | None:
        with self._condition:
            while True:
                wait_ms = self._agenda.next_due_ms() - self._clock.now_ms()
                if wait_ms <= 0:
                    action = self._agenda.pop()
                    if action is not None:
                        return action
                    continue
                if self._stopped:
                    return None
                self._condition.wait(None if wait_ms == float("inf") else wait_ms / 1000.0)

    def _report(self, error: BaseException) -> None:
        try:
            self._on_uncaught(error)
        except BaseException:  # noqa: BLE001 - as above
            _LOG.critical("the handler of uncaught errors failed as well", exc_info=True)
