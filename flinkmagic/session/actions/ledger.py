"""What a session has staked on later actions, and what that has saved.

To keep rows for later actions is a bet. The bounds, as the code keeps them:

1. One action's stake is at most a quarter of what the action is expected to take in plain Spark, or `LEAST` if that is
   more.
2. What is staked and has not been saved yet is, over the session, at most a twentieth of the time that plain Spark
   would have taken so far, the action itself included, plus half of what was saved.
3. Only what plain Spark would not have done counts as a stake: to parse what the action itself reads costs nothing.

So a session in which nothing is ever read twice is slower than plain Spark by a twentieth at most.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

from flinkmagic.jvm.contexts import kept_for_context

if TYPE_CHECKING:
    from pyspark import SparkContext

LEAST = 0.1
"""The seconds that an action may stake in any case, if the session may."""


class Ledger:
    """The bets of one SparkContext's session, in seconds; can be used from any thread. See `of`.

    Attributes
    ----------
    plain : float
        How long plain Spark would have taken for all actions so far.
    saved : float
        How much of that was saved.
    """

    def __init__(self) -> None:
        self.plain = 0.0
        self.saved = 0.0
        self._lock = threading.Lock()
        self._expected: dict[str, float] = {}
        self._stakes: dict[str, float] = {}  # what each has cost, less what it has saved; never below 0

    @staticmethod
    @kept_for_context
    def of(sc: SparkContext) -> Ledger:
        """Return that of a SparkContext."""
        return Ledger()

    def room(self, expected: float) -> float:
        """Return what an action may stake that is expected to take some seconds in plain Spark."""
        with self._lock:
            session = (self.plain + expected) / 20 + self.saved / 2 - sum(self._stakes.values())
        return max(0.0, min(max(LEAST, expected / 4), session))

    def expect(self, what: str, seconds: float) -> None:
        """Note how long an action took that read something as plain Spark does."""
        with self._lock:
            self._expected[what] = seconds

    def expected(self, what: str) -> float:
        """Return how long the last such action took; 0.0 if there was none."""
        with self._lock:
            return self._expected.get(what, 0.0)

    def note(self, seconds: float, saved: float = 0.0) -> None:
        """Note an action that took some seconds, and would have taken those that it saved, too."""
        with self._lock:
            self.plain += seconds + saved
            self.saved += saved

    def stake(self, what: str, seconds: float) -> None:
        """Note what it has cost to keep something."""
        with self._lock:
            self._stakes[what] = self._stakes.get(what, 0.0) + seconds

    def pays(self, what: str, seconds: float) -> None:
        """Note what something that is kept has saved."""
        with self._lock:
            self._stakes[what] = max(0.0, self._stakes.get(what, 0.0) - seconds)
