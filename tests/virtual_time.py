"""Time that tests move."""

from __future__ import annotations

from flinkmagic.scheduling.clock import ManualClock
from flinkmagic.scheduling.main_thread import ManualMainThreadExecutor


def advance(clock: ManualClock, ms: float) -> None:
    """Let some milliseconds pass."""
    clock.advance_to(clock.now_ms() + ms)


def run_until(main_thread: ManualMainThreadExecutor, at_ms: float) -> None:
    """Run all calls that are due up to `at_ms`, and leave the clock there."""
    while main_thread.next_due_ms <= at_ms:
        main_thread.run_next()
    main_thread.clock.advance_to(max(at_ms, main_thread.clock.now_ms()))
