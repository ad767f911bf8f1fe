"""Limits the time that a session spends on keeping rows for later actions, by the time that kept rows have saved.

A *stake* is time spent on rows that a later action may never read. `kept_frames` and `text_reads` decide on it. Its
bounds:

1. One action's stake is at most a quarter of what the action is expected to take in plain Spark, or `LEAST` if that is
   more.
2. What the session has staked and not saved yet is at most a twentieth of the time that plain Spark would have taken
   so far, the action itself included, plus half of what was saved.
3. What is kept first in a JVM counts `FIRST` times: all code that keeps it runs for the first time.
4. Only what plain Spark would not have done counts as a stake: to parse what the action itself reads costs nothing.

So a session in which nothing is ever read twice is slower than plain Spark by a twentieth at most.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

from flinkmagic.jvm.contexts import kept_for_context

if TYPE_CHECKING:
    from pyspark import SparkContext

LEAST = 0.1
"""The seconds that any action may stake, if the session may."""

FIRST = 3.0
"""How much longer keeping takes while nothing has been kept; on two cores 0.5 to 0.8 s for what takes 0.2 s later."""


class KeepingBudget:
    """The stakes and savings of one SparkContext, in seconds; any thread may use it. See `of`."""

    def __init__(self) -> None:
        self.plain = 0.0
        """How long plain Spark would have taken for all actions so far."""
        self.saved = 0.0
        """How much of that was saved."""
        self._lock = threading.Lock()
        self._expected: dict[str, float] = {}
        self._stakes: dict[str, float] = {}  # costs less savings of each; never below 0

    @staticmethod
    @kept_for_context
    def of(sc: SparkContext) -> KeepingBudget:
        """Return the budget of a SparkContext."""
        return KeepingBudget()

    def room(self, expected: float) -> float:
        """Return the seconds that an action may stake, by the seconds that plain Spark is expected to take for it.

        They are those that keeping takes in a JVM that has kept something, as those of `stake` are.
        """
        with self._lock:
            session = (self.plain + expected) / 20 + self.saved / 2 - sum(self._stakes.values())
            return max(0.0, min(max(LEAST, expected / 4), session)) / self._pace()

    def _pace(self) -> float:
        return 1.0 if self._stakes else FIRST

    def expect(self, what: str, seconds: float) -> None:
        """Note how long an action took that read `what` as plain Spark does."""
        with self._lock:
            self._expected[what] = seconds

    def expected(self, what: str) -> float:
        """Return how long the last such action took; 0.0 if there was none."""
        with self._lock:
            return self._expected.get(what, 0.0)

    def note(self, seconds: float, saved: float = 0.0) -> None:
        """Note how long an action took; in plain Spark it would have taken the saved seconds too."""
        with self._lock:
            self.plain += seconds + saved
            self.saved += saved

    def stake(self, what: str, seconds: float) -> None:
        """Note what it has cost to keep `what`."""
        with self._lock:
            self._stakes[what] = self._stakes.get(what, 0.0) + seconds * self._pace()

    def pays(self, what: str, seconds: float) -> None:
        """Note what the kept `what` has saved."""
        with self._lock:
            self._stakes[what] = max(0.0, self._stakes.get(what, 0.0) - seconds)
