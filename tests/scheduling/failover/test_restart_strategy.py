"""Whether and when a job restarts."""

from __future__ import annotations

import random

import pytest

from flinkmagic.errors.usage import InvalidValueError
from flinkmagic.scheduling.clock import ManualClock
from flinkmagic.scheduling.failover.restart_strategy import (
    ExponentialDelayRestartBackoffTimeStrategy,
    FailureRateRestartBackoffTimeStrategy,
    FixedDelayRestartBackoffTimeStrategy,
    NoRestartBackoffTimeStrategy,
    parse_duration_ms,
    parse_restart_strategy,
)
from tests.virtual_time import advance

ERROR = ValueError()


def test_none() -> None:
    strategy = NoRestartBackoffTimeStrategy()
    assert strategy.notify_failure(ERROR)
    assert not strategy.can_restart()


def test_fixed_delay_counts_attempts() -> None:
    strategy = FixedDelayRestartBackoffTimeStrategy(2, 30.0)
    allowed = []
    for _ in range(4):
        strategy.notify_failure(ERROR)
        allowed.append(strategy.can_restart())
    assert allowed == [True, True, False, False]
    assert strategy.backoff_ms() == 30.0


def test_failure_rate_forgets_what_is_long_ago() -> None:
    clock = ManualClock()
    strategy = FailureRateRestartBackoffTimeStrategy(clock, 2, 100.0, 5.0)
    allowed = []
    for at_ms in (0.0, 10.0, 101.0, 105.0, 205.5):
        clock.advance_to(at_ms)
        strategy.notify_failure(ERROR)
        allowed.append(strategy.can_restart())
    # the third comes 101 ms after the first; the fourth 95 ms after the second
    assert allowed == [True, True, True, False, True]


def test_exponential_delay_grows_to_its_limit_and_recovers_in_a_calm() -> None:
    clock = ManualClock()
    strategy = ExponentialDelayRestartBackoffTimeStrategy(
        clock, initial_ms=100.0, max_ms=350.0, multiplier=2.0, reset_threshold_ms=1_000.0, jitter=0.0
    )
    waits = []
    for _ in range(4):
        assert strategy.notify_failure(ERROR)
        waits.append(strategy.backoff_ms())
        advance(clock, waits[-1] + 1.0)
    assert waits == [100.0, 200.0, 350.0, 350.0]
    advance(clock, 1_000.0)
    strategy.notify_failure(ERROR)
    assert strategy.backoff_ms() == 100.0


def test_a_failure_before_the_restart_belongs_to_it() -> None:
    clock = ManualClock()
    strategy = ExponentialDelayRestartBackoffTimeStrategy(clock, initial_ms=100.0, jitter=0.0, attempts_before_reset=1)
    assert strategy.notify_failure(ERROR)
    clock.advance_to(60.0)
    assert not strategy.notify_failure(ERROR)
    assert strategy.backoff_ms() == 40.0
    assert strategy.can_restart()
    clock.advance_to(101.0)
    assert strategy.notify_failure(ERROR)
    assert not strategy.can_restart()


def test_jitter_stays_within_its_bounds_and_follows_the_seed() -> None:
    def waits() -> list[float]:
        found = []
        for seed in range(50):
            strategy = ExponentialDelayRestartBackoffTimeStrategy(
                ManualClock(), initial_ms=100.0, jitter=0.25, random_source=random.Random(seed)
            )
            strategy.notify_failure(ERROR)
            found.append(strategy.backoff_ms())
        return found

    assert waits() == waits()
    assert min(waits()) >= 75.0
    assert max(waits()) <= 125.0
    assert len(set(waits())) > 40


@pytest.mark.parametrize(
    "make",
    [
        lambda: FixedDelayRestartBackoffTimeStrategy(-1, 0.0),
        lambda: FailureRateRestartBackoffTimeStrategy(ManualClock(), 0, 1.0, 1.0),
        lambda: FailureRateRestartBackoffTimeStrategy(ManualClock(), 1, 0.0, 1.0),
        lambda: ExponentialDelayRestartBackoffTimeStrategy(ManualClock(), initial_ms=10.0, max_ms=5.0),
        lambda: ExponentialDelayRestartBackoffTimeStrategy(ManualClock(), multiplier=1.0),
        lambda: ExponentialDelayRestartBackoffTimeStrategy(ManualClock(), jitter=1.5),
    ],
)
def test_senseless_settings_are_refused(make) -> None:
    with pytest.raises(InvalidValueError, match=r"^the .* must be .*, not -?\d"):
        make()


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("none", "NoRestart"),
        ("fixed-delay:3:1s", "FixedDelayRestartBackoffTimeStrategy(attempts=3, delay=1000 ms)"),
        ("failure-rate:2:5m:200ms", "FailureRate"),
        ("exponential-delay", "ExponentialDelay"),
    ],
)
def test_strategies_by_name(text: str, name: str) -> None:
    strategy = parse_restart_strategy(text)(ManualClock(), random.Random(0))
    assert str(strategy).startswith(name)


@pytest.mark.parametrize(
    "text", ["", "never", "fixed-delay", "fixed-delay:x:1s", "fixed-delay:1", "failure-rate:0:1s:1s"]
)
def test_strategies_that_cannot_be_read(text: str) -> None:
    with pytest.raises(InvalidValueError, match="fixed-delay:3:1s"):
        parse_restart_strategy(text)


def test_durations() -> None:
    assert [parse_duration_ms(text) for text in ("2", "1.5s", "200ms", ".5m", "1h", "soon", "-1s")] == [
        2_000.0, 1_500.0, 200.0, 30_000.0, 3_600_000.0, None, None,
    ]  # fmt: skip
