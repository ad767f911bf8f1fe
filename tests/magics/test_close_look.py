"""When a job is looked at closely."""

from __future__ import annotations

import pytest

from flinkmagic.display.findings import FindingsView
from flinkmagic.display.snapshot import JobSnapshot
from flinkmagic.magics import live_view
from flinkmagic.magics.live_view import CloseLook
from flinkmagic.scheduling.job_status import JobStatus


class Looked:
    """A job that notes how it is looked at; a close look takes some time."""

    def __init__(self, clock: list[float], seconds: float) -> None:
        self.status, self.closely, self._clock, self._seconds = JobStatus.RUNNING, 0, clock, seconds

    def snapshot(self, *, closely: bool = False) -> JobSnapshot:
        if not closely:
            return JobSnapshot("looked", "RUNNING", self._clock[0])
        self.closely += 1
        self._clock[0] += self._seconds
        return JobSnapshot("looked", findings=FindingsView(f"look {self.closely}"))


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    now = [100.0]
    monkeypatch.setattr(live_view.time, "monotonic", lambda: now[0])
    return now


def test_a_running_job_is_looked_at_closely_only_while_somebody_reads(clock: list[float]) -> None:
    job = Looked(clock, seconds=0.0)
    look = CloseLook(job)
    for _ in range(20):
        assert look.snapshot(is_read=False).findings is None
        clock[0] += 0.25
    assert job.closely == 0
    for _ in range(20):
        look.snapshot(is_read=True)
        clock[0] += 0.25
    assert job.closely == 5  # once a second
    kept = look.snapshot(is_read=False)
    assert (kept.findings, kept.elapsed_ms) == (FindingsView("look 5"), clock[0])


def test_looks_that_take_long_are_rare(clock: list[float]) -> None:
    job = Looked(clock, seconds=0.5)
    look = CloseLook(job)
    begun = clock[0]
    while clock[0] < begun + 100.0:
        look.snapshot(is_read=True)
        clock[0] += 0.25
    assert job.closely * 0.5 <= 0.06 * 100.0
    assert job.closely >= 9


def test_a_job_that_is_over_is_looked_at_closely_anyway(clock: list[float]) -> None:
    job = Looked(clock, seconds=0.0)
    look = CloseLook(job)
    job.status = JobStatus.FINISHED
    assert look.snapshot(is_read=False).findings == FindingsView("look 1")
