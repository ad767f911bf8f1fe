"""Schedulers and restart strategies by the names that options give them (Flink's factories and loaders)."""

from __future__ import annotations

import random
import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from flinkmagic.errors import RestartStrategyError, UnknownSchedulerError
from flinkmagic.scheduling.clock import Clock
from flinkmagic.scheduling.failover.restart_strategy import (
    ExponentialDelayRestartBackoffTimeStrategy,
    FailureRateRestartBackoffTimeStrategy,
    FixedDelayRestartBackoffTimeStrategy,
    NoRestartBackoffTimeStrategy,
    RestartBackoffTimeStrategy,
)

if TYPE_CHECKING:
    from flinkmagic.scheduling.default_scheduler import DefaultScheduler

SCHEDULERS = ("default",)
"""The names that `--scheduler` takes (`jobmanager.scheduler`). Flink's other scheduler for batch jobs, the adaptive
one, is derived from this one, too."""

RestartStrategyFactory = Callable[[Clock, random.Random], RestartBackoffTimeStrategy]

_UNITS_MS = {"ms": 1.0, "s": 1_000.0, "m": 60_000.0, "h": 3_600_000.0, "": 1_000.0}


def check_scheduler(name: str) -> str:
    """Return a scheduler's name, if there is one of it.

    Raises
    ------
    UnknownSchedulerError
        Where there is none.
    """
    if name not in SCHEDULERS:
        raise UnknownSchedulerError(name, list(SCHEDULERS))
    return name


def create_scheduler(name: str, *arguments: Any, **options: Any) -> DefaultScheduler:
    """Make the scheduler of that name; the arguments are its class's (Flink's `SchedulerNGFactory`)."""
    check_scheduler(name)
    # Not before it is needed: names alone are checked and completed when no job is near.
    from flinkmagic.scheduling.default_scheduler import DefaultScheduler

    return DefaultScheduler(*arguments, **options)


def parse_duration_ms(text: str) -> float | None:
    """Milliseconds of `1.5s`, `200ms`, `2m`, `1h` or plain seconds; None of anything else."""
    match = re.fullmatch(r"\s*(\d+(?:\.\d*)?|\.\d+)\s*(ms|s|m|h|)\s*", text)
    return None if match is None else float(match[1]) * _UNITS_MS[match[2]]


def parse_restart_strategy(text: str) -> RestartStrategyFactory:
    """A restart strategy as an option gives it.

    `none`, `fixed-delay:3:1s` (attempts, delay), `failure-rate:3:5m:1s` (failures, interval, delay),
    `exponential-delay`.
    """
    name, *words = text.split(":")
    if name == "none" and not words:
        return lambda clock, chance: NoRestartBackoffTimeStrategy()
    if name == "exponential-delay" and not words:
        return lambda clock, chance: ExponentialDelayRestartBackoffTimeStrategy(clock, random_source=chance)
    counts = {"fixed-delay": 2, "failure-rate": 3}
    times = [parse_duration_ms(word) for word in words[1:]]
    if counts.get(name) != len(words) or not words[0].isdigit() or None in times:
        raise RestartStrategyError(text)
    count, delays = int(words[0]), [time for time in times if time is not None]
    if name == "fixed-delay":
        return lambda clock, chance: FixedDelayRestartBackoffTimeStrategy(count, delays[0])
    if count == 0 or delays[0] == 0:
        raise RestartStrategyError(text)
    return lambda clock, chance: FailureRateRestartBackoffTimeStrategy(clock, count, delays[0], delays[1])
