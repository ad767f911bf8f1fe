"""Where the time of a job went."""

from __future__ import annotations

import pytest

from flinkmagic.session.findings.critical_path import critical_path
from flinkmagic.session.findings.facts import InputFacts
from tests.session.findings.made_facts import job, task, vertex


def test_the_path_goes_through_what_ended_last():
    short = vertex(task(0, 1, 1), id="short")
    long = vertex(task(0, 1, 4), id="long")
    inputs = (InputFacts("short", "HASH", 1), InputFacts("long", "HASH", 1))
    last = vertex(task(0, 6, 2), task(1, 6, 3), id="last", inputs=inputs)
    path = critical_path(job(short, long, last, ended_ms=10_000.0))
    assert path.vertices == ("LONG", "LAST")
    assert (path.elapsed_s, path.path_s) == (pytest.approx(10.0), pytest.approx(4.0 + 3.0))
    # Before the first task, between the stages, and after the last one.
    assert path.driver_s == pytest.approx(1.0 + 1.0 + 1.0)
    assert str(path) == "of 10.0 s, 7.0 s is the critical path, 3.0 s the driver"


def test_waves_are_on_the_path_and_more_slots_would_end_them():
    waves = vertex(*[task(one, one // 2, 1) for one in range(8)])
    path = critical_path(job(waves))
    assert (path.path_s, path.least_s, path.driver_s) == (pytest.approx(4.0), pytest.approx(1.0), 0.0)
    assert (
        str(path) == "of 4.0 s, 4.0 s is the critical path, 0 ms the driver; more slots make it no shorter than 1.0 s"
    )


def test_stages_that_overlap_count_once():
    first = vertex(task(0, 0, 4), id="first")
    second = vertex(task(0, 1, 4), id="second", reads="HASH", of="first")
    path = critical_path(job(first, second))
    assert path.path_s == pytest.approx(5.0)


def test_a_job_without_tasks_has_none():
    from flinkmagic.session.findings.facts import JobFacts

    assert critical_path(JobFacts((), 0.0, 1000.0, 2)) is None
