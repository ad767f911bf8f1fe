"""Logs the events of a job as lines: requirement, offer, slot, deployment, state, failure, restart."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from flinkmagic.scheduling.clock import Clock

MOST_EVENTS = 100_000


@dataclass(frozen=True)
class JobEvent:
    """One line of a job's log."""

    at_ms: float
    source: str
    text: str

    def __str__(self) -> str:
        return self.since(0.0)

    def since(self, start_ms: float) -> str:
        """Return a line that begins with the time from an instant to the event."""
        return f"{(self.at_ms - start_ms) / 1000.0:12.3f}s  {self.source:<16} {self.text}"


class JobEventLog:
    """Keeps the last events; the oldest are dropped.

    Flink has no such log: its components write to the log of the process. Here it belongs to the job, so that a
    notebook can show it.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._events: deque[JobEvent] = deque(maxlen=MOST_EVENTS)

    def add(self, source: str, text: str) -> None:
        """Record an event of a component, at the present instant."""
        self._events.append(JobEvent(self._clock.now_ms(), source, text))

    def events(self) -> tuple[JobEvent, ...]:
        """Return a copy, oldest first, for readers on other threads."""
        return tuple(self._events)
