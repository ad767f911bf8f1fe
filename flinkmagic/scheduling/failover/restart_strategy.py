"""Decides whether a failed job is restarted, and after what wait (Flink's `RestartBackoffTimeStrategy` family).

A new strategy is a class, and a branch in `parse_restart_strategy`. What Tab offers is in `options.STRATEGY`.
"""

from __future__ import annotations

import random
import re
from collections import deque
from collections.abc import Callable
from typing import Protocol

from flinkmagic.errors.base import InvariantViolatedError
from flinkmagic.errors.usage import InvalidValueError
from flinkmagic.scheduling.clock import Clock

RESTART_STRATEGIES = (
    "none, fixed-delay:ATTEMPTS:DELAY, failure-rate:FAILURES:INTERVAL:DELAY or exponential-delay, "
    "such as fixed-delay:3:1s"
)
"""What `parse_restart_strategy` reads, in words."""

_UNITS_MS = {"ms": 1.0, "s": 1_000.0, "m": 60_000.0, "h": 3_600_000.0, "": 1_000.0}


HELD_MS = 1e10
"""A wait of four months: the tasks are held until whoever asked for it ends the job. A thread waits hardly longer."""


class RestartBackoffTimeStrategy(Protocol):
    """Counts failures and decides on restarts (Flink's `RestartBackoffTimeStrategy`).

    The order of calls is Flink's: `notify_failure`, then `can_restart`, then `backoff_ms`.
    """

    def notify_failure(self, cause: BaseException) -> bool:
        """Count a failure; return False if it belongs to the attempt that is still waiting to restart."""

    def can_restart(self) -> bool:
        """Return whether the job may restart after the last failure."""

    def backoff_ms(self) -> float:
        """Return how long to wait before that restart."""


class NoRestartBackoffTimeStrategy:
    """Never restarts (Flink's `none`)."""

    def notify_failure(self, cause: BaseException) -> bool:
        return True

    def can_restart(self) -> bool:
        return False

    def backoff_ms(self) -> float:
        return 0.0

    def __str__(self) -> str:
        return "NoRestartBackoffTimeStrategy"


class FixedDelayRestartBackoffTimeStrategy:
    """Restarts up to `attempts` times, `delay_ms` after each failure (Flink's `fixed-delay`)."""

    def __init__(self, attempts: int, delay_ms: float) -> None:
        _require(attempts >= 0, attempts, "0 or more", "the number of restart attempts")
        _require(delay_ms >= 0, delay_ms, "0 or more", "the restart delay in ms")
        self._attempts = attempts
        self._delay_ms = delay_ms
        self._failures = 0

    def notify_failure(self, cause: BaseException) -> bool:
        self._failures += 1
        return True

    def can_restart(self) -> bool:
        return self._failures <= self._attempts

    def backoff_ms(self) -> float:
        return self._delay_ms

    def __str__(self) -> str:
        return f"FixedDelayRestartBackoffTimeStrategy(attempts={self._attempts}, delay={self._delay_ms:g} ms)"


class FailureRateRestartBackoffTimeStrategy:
    """Restarts unless more than `max_failures` fall into `interval_ms` (Flink's `failure-rate`)."""

    def __init__(self, clock: Clock, max_failures: int, interval_ms: float, delay_ms: float) -> None:
        _require(max_failures > 0, max_failures, "greater than 0", "the number of failures per interval")
        _require(interval_ms > 0, interval_ms, "greater than 0", "the interval in ms")
        _require(delay_ms >= 0, delay_ms, "0 or more", "the restart delay in ms")
        self._clock = clock
        self._max_failures = max_failures
        self._interval_ms = interval_ms
        self._delay_ms = delay_ms
        self._failures_at: deque[float] = deque(maxlen=max_failures + 1)

    def notify_failure(self, cause: BaseException) -> bool:
        self._failures_at.append(self._clock.now_ms())
        return True

    def can_restart(self) -> bool:
        if len(self._failures_at) <= self._max_failures:
            return True
        return self._clock.now_ms() - self._failures_at[0] > self._interval_ms

    def backoff_ms(self) -> float:
        return self._delay_ms

    def __str__(self) -> str:
        return (
            f"FailureRateRestartBackoffTimeStrategy(max_failures={self._max_failures}, "
            f"interval={self._interval_ms:g} ms, delay={self._delay_ms:g} ms)"
        )


class ExponentialDelayRestartBackoffTimeStrategy:
    """Waits longer with each failure, and less again after a quiet time (Flink's `exponential-delay`).

    Failures before a restart that is already pending belong to it. The numbers are Flink's defaults.

    Parameters
    ----------
    clock : Clock
        Measures the quiet time.
    initial_ms, max_ms : float
        The first wait and the longest one.
    reset_threshold_ms : float
        How long no failure may happen before the wait is reset to the first one.
    jitter : float
        The largest random change of the wait, up or down, as a fraction of it.
    attempts_before_reset : int, optional
        After this many restarts without a quiet time the job fails; None means never.
    """

    def __init__(
        self,
        clock: Clock,
        *,
        initial_ms: float = 1_000.0,
        max_ms: float = 60_000.0,
        multiplier: float = 1.5,
        reset_threshold_ms: float = 3_600_000.0,
        jitter: float = 0.1,
        attempts_before_reset: int | None = None,
        random_source: random.Random | None = None,
    ) -> None:
        _require(1 <= initial_ms <= max_ms, initial_ms, f"1 to the longest one, {max_ms:g}", "the first wait in ms")
        _require(multiplier > 1, multiplier, "greater than 1", "the multiplier")
        _require(reset_threshold_ms >= 1, reset_threshold_ms, "1 or more", "the reset threshold in ms")
        _require(0 <= jitter <= 1, jitter, "between 0 and 1", "the jitter")
        self._clock = clock
        self._initial_ms = initial_ms
        self._max_ms = max_ms
        self._multiplier = multiplier
        self._reset_threshold_ms = reset_threshold_ms
        self._jitter = jitter
        self._attempts_before_reset = attempts_before_reset
        self._random = random_source if random_source is not None else random.Random()
        self._current_ms = initial_ms
        self._attempts = 0
        self._next_restart_ms: float | None = None

    def notify_failure(self, cause: BaseException) -> bool:
        now_ms = self._clock.now_ms()
        if self._next_restart_ms is not None and now_ms <= self._next_restart_ms:
            return False
        if self._next_restart_ms is None or now_ms - self._next_restart_ms >= self._reset_threshold_ms:
            self._current_ms = self._initial_ms
            self._attempts = 0
        else:
            self._current_ms = min(self._current_ms * self._multiplier, self._max_ms)
        self._next_restart_ms = now_ms + min(self._with_jitter(), self._max_ms)
        self._attempts += 1
        return True

    def can_restart(self) -> bool:
        return self._attempts_before_reset is None or self._attempts <= self._attempts_before_reset

    def backoff_ms(self) -> float:
        if self._next_restart_ms is None:
            raise InvariantViolatedError("a failure was counted before its backoff is asked for")
        return max(self._next_restart_ms - self._clock.now_ms(), 0.0)

    def _with_jitter(self) -> float:
        return self._current_ms * (1.0 + self._jitter * self._random.uniform(-1.0, 1.0))

    def __str__(self) -> str:
        return (
            f"ExponentialDelayRestartBackoffTimeStrategy(initial={self._initial_ms:g} ms, "
            f"max={self._max_ms:g} ms, multiplier={self._multiplier:g}, attempts={self._attempts})"
        )


def _require(is_met: bool, value: float, expected: str, name: str) -> None:
    if not is_met:
        raise InvalidValueError(value, expected, name)


RestartStrategyFactory = Callable[[Clock, random.Random], RestartBackoffTimeStrategy]


def parse_duration_ms(text: str) -> float | None:
    """Return milliseconds of `1.5s`, `200ms`, `2m`, `1h` or plain seconds; None for anything else."""
    match = re.fullmatch(r"\s*(\d+(?:\.\d*)?|\.\d+)\s*(ms|s|m|h|)\s*", text)
    return None if match is None else float(match[1]) * _UNITS_MS[match[2]]


def parse_restart_strategy(text: str) -> RestartStrategyFactory:
    """Read a restart strategy from an option's text (Flink's `RestartBackoffTimeStrategyFactoryLoader`).

    `none`, `fixed-delay:3:1s` (attempts, delay), `failure-rate:3:5m:1s` (failures, interval, delay),
    `exponential-delay`.

    Raises
    ------
    InvalidValueError
        If it is none of them.
    """
    if not isinstance(text, str):
        raise InvalidValueError(text, RESTART_STRATEGIES, "restart")
    name, *words = text.split(":")
    if name == "none" and not words:
        return lambda clock, chance: NoRestartBackoffTimeStrategy()
    if name == "exponential-delay" and not words:
        return lambda clock, chance: ExponentialDelayRestartBackoffTimeStrategy(clock, random_source=chance)
    counts = {"fixed-delay": 2, "failure-rate": 3}
    times = [parse_duration_ms(word) for word in words[1:]]
    if counts.get(name) != len(words) or not words[0].isdigit() or None in times:
        raise InvalidValueError(text, RESTART_STRATEGIES, "restart")
    count, delays = int(words[0]), [time for time in times if time is not None]
    if name == "fixed-delay":
        return lambda clock, chance: FixedDelayRestartBackoffTimeStrategy(count, delays[0])
    if count == 0 or delays[0] == 0:
        raise InvalidValueError(text, RESTART_STRATEGIES, "restart")
    return lambda clock, chance: FailureRateRestartBackoffTimeStrategy(clock, count, delays[0], delays[1])
