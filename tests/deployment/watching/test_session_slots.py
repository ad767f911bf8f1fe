"""The slots of a session's executors."""

from __future__ import annotations

from typing import Any

import pytest

from flinkmagic.deployment.watching import session_slots
from flinkmagic.deployment.watching.session_slots import SessionSlots
from flinkmagic.deployment.watching.task_events import ExecutorAdded


@pytest.fixture
def readings(monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """The executors that were read from Spark, time after time."""
    found: list[list[str]] = []
    real = session_slots.items

    def read(summaries: Any) -> list[Any]:
        executors: list[Any] = real(summaries)
        found.append([executor.id() for executor in executors])
        return executors

    monkeypatch.setattr(session_slots, "items", read)
    return found


def test_the_slots_of_local_mode_are_read_once(spark: Any, readings: list[list[str]]) -> None:
    slots = SessionSlots(spark.sparkContext)
    cores = spark.sparkContext.defaultParallelism
    slots.refresh()
    assert readings == [["driver"]]
    assert (slots.total, slots.of("driver")) == (cores, cores)


def test_the_slots_of_other_executors_are_read_again(
    spark: Any, readings: list[list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    slots = SessionSlots(spark.sparkContext)
    monkeypatch.setattr(slots, "_is_local", False)
    slots.take(ExecutorAdded("gone", 4))
    slots.refresh()
    assert len(readings) == 2
    assert slots.of("gone") == SessionSlots.UNKNOWN
