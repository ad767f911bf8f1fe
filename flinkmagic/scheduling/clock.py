"""Provides the clocks; the scheduler reads only the one that it is given (Flink's `Clock`)."""

from __future__ import annotations

import time
from typing import Protocol

from flinkmagic.errors.base import InvariantViolatedError


class Clock(Protocol):
    """Tells the scheduler the time."""

    def now_ms(self) -> float:
        """Return milliseconds since some fixed instant; never goes back."""


class SystemClock:
    """The machine's time, in milliseconds since the epoch.

    Counted by the monotonic clock from the instant of construction, so that a change of the system time cannot make it
    go back.
    """

    def __init__(self) -> None:
        self._offset_ms = time.time() * 1000.0 - time.monotonic() * 1000.0

    def now_ms(self) -> float:
        return self._offset_ms + time.monotonic() * 1000.0


class ManualClock:
    """A clock that moves only when it is told to (Flink's `ManualClock`)."""

    def __init__(self, start_ms: float = 0.0) -> None:
        self._now_ms = start_ms

    def now_ms(self) -> float:
        return self._now_ms

    def advance_to(self, at_ms: float) -> None:
        """Move to `at_ms`, which must not lie in the past."""
        if at_ms < self._now_ms:
            raise InvariantViolatedError(f"a clock that stands at {self._now_ms} ms goes on, not back to {at_ms} ms")
        self._now_ms = at_ms
