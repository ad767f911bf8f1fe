"""Lets the sinks that do not depend on a failure finish, if no restart will repair it."""

from __future__ import annotations

from flinkmagic.errors.deployment import StageAbortedError
from flinkmagic.scheduling.clock import Clock
from flinkmagic.scheduling.failover.restart_strategy import (
    HELD_MS,
    NoRestartBackoffTimeStrategy,
    RestartBackoffTimeStrategy,
)


class FinishIndependentRegions:
    """Lets the regions that do not depend on a failed one finish before the job fails.

    Flink fails a job at the first failure that may not be restarted, and cancels everything. A notebook's job often has
    several sinks, and the intact ones are wanted. So if the strategy behind this one refuses a restart, this one grants
    it, with a wait that never ends: what failed and what depends on it stays where it is, the rest continues. When
    nothing is left that could run, the deployment sets `has_given_up` and fails the job for good.

    Tasks that Spark ended together with the stage of a failed one count as part of that failure.

    Parameters
    ----------
    strategy : RestartBackoffTimeStrategy, optional
        Decides about real restarts; by default there are none.
    """

    def __init__(self, strategy: RestartBackoffTimeStrategy | None, clock: Clock) -> None:
        self._strategy = strategy or NoRestartBackoffTimeStrategy()
        self._clock = clock
        self.has_given_up = False
        """Whether no further restart is granted; the deployment sets it."""
        self._restart_due_ms = float("-inf")
        self.fatal_cause: BaseException | None = None
        """The first failure that may not be restarted; after it nothing is restarted."""

    @property
    def restart_due_in_ms(self) -> float:
        """The remaining wait for a real restart; 0 if none is due."""
        return max(0.0, self._restart_due_ms - self._clock.now_ms())

    def notify_failure(self, cause: BaseException) -> bool:
        """Count a failure."""
        if isinstance(cause, StageAbortedError) and not self.has_given_up:
            return False
        is_new = self._strategy.notify_failure(cause)
        if self.fatal_cause is None and not self._strategy.can_restart():
            self.fatal_cause = cause
        return is_new

    def can_restart(self) -> bool:
        """Return True, until it has given up."""
        return not self.has_given_up

    def backoff_ms(self) -> float:
        """Return the wait before a real restart; `HELD_MS` if there will be none."""
        if self.fatal_cause is not None:
            return HELD_MS
        wait_ms = self._strategy.backoff_ms()
        self._restart_due_ms = max(self._restart_due_ms, self._clock.now_ms() + wait_ms)
        return wait_ms

    def __str__(self) -> str:
        return str(self._strategy)
