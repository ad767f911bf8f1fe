"""What a job remembers of its failures and its story."""

from __future__ import annotations

import pytest

from flinkmagic.scheduling import job_event_log
from flinkmagic.scheduling.clock import ManualClock
from flinkmagic.scheduling.execution_vertex_versioner import ExecutionVertexVersioner
from flinkmagic.scheduling.failover.exception_history import MOST_ENTRIES, ExceptionHistory, ExceptionHistoryEntry
from flinkmagic.scheduling.failover.restart_strategy import ExponentialDelayRestartBackoffTimeStrategy
from flinkmagic.scheduling.job_event_log import JobEventLog


def entry(vertex: int, at_ms: float = 0.0) -> ExceptionHistoryEntry:
    return ExceptionHistoryEntry(ValueError(f"of {vertex}"), at_ms, vertex, f"Task {vertex}", 0, "tm-1")


def test_only_the_last_failures_are_kept() -> None:
    history = ExceptionHistory()
    for vertex in range(MOST_ENTRIES + 1):
        history.add(entry(vertex), [vertex], True)
    assert [root.root.vertex for root in history.entries()] == list(range(1, MOST_ENTRIES + 1))


def test_failures_of_one_restart_stand_together() -> None:
    history = ExceptionHistory()
    history.add(entry(4), [4, 5], True)
    history.add(entry(2), [2, 5], False)
    (root,) = history.entries()
    assert root.root.vertex == 4
    assert [other.vertex for other in root.concurrent] == [2]
    assert root.restarted == [2, 4, 5]


def test_failures_within_a_waiting_restart_are_one_restart(job, bench) -> None:
    strategy = ExponentialDelayRestartBackoffTimeStrategy(ManualClock(), initial_ms=100.0, jitter=0.0)
    stages = [("a", 1, ()), ("b", 1, ()), ("c", 1, ("a:hash",)), ("d", 1, ("b:hash",))]
    b = bench(job(stages), restart_strategy=strategy).start()
    b.run(0, 1)
    b.fail(0)
    b.fail(1)
    info = b.scheduler.request_job()
    assert info.number_of_restarts == 1
    (root,) = info.exception_history
    assert (root.root.vertex, [other.vertex for other in root.concurrent], list(root.restarted)) == (0, [1], [0, 1])


def test_entries_tell_who_and_where() -> None:
    assert str(entry(3)) == "Task 3 failed on tm-1: of 3"
    assert str(ExceptionHistoryEntry(ValueError("bad"), 0.0)) == "the job failed: bad"
    named = ExceptionHistoryEntry(ValueError("Map (1/2) failed: bad"), 0.0, 0, "Map (1/2)", 0, "tm-1")
    assert str(named) == "Map (1/2) on tm-1 failed: bad"


def test_the_log_drops_its_oldest_lines(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(job_event_log, "MOST_EVENTS", 2)
    clock = ManualClock()
    log = JobEventLog(clock)
    for second in range(3):
        clock.advance_to(second * 1_000.0)
        log.add("scheduler", f"event {second}")
    assert [str(event).split() for event in log.events()] == [
        ["1.000s", "scheduler", "event", "1"], ["2.000s", "scheduler", "event", "2"],
    ]  # fmt: skip


def test_versions_tell_what_was_overtaken() -> None:
    versioner = ExecutionVertexVersioner(3)
    first = versioner.record_modifications([0, 1, 2])
    versioner.record_modifications([1])
    assert versioner.unmodified([0, 1, 2], first) == [0, 2]
    versioner.record_all()
    assert versioner.unmodified([0, 1, 2], first) == []
    assert versioner.is_modified(0, first[0])
