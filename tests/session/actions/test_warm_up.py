"""What a session is prepared with, before its first action."""

from __future__ import annotations

import gc
from dataclasses import replace

import pytest

from flinkmagic.options import JobOptions
from flinkmagic.session import needs_rehearsal, rehearse, retained, warm_up
from flinkmagic.session.actions import warm_up as warm_up_module
from flinkmagic.session.actions.keeping_budget import KeepingBudget
from flinkmagic.session.actions.kept_frames import KeptFrames
from flinkmagic.session.actions.session_actions import SessionActions


@pytest.fixture
def rehearsed(spark, monkeypatch):
    """Rehearse in a session that has made no action; return the reports of the actions that are carried out."""
    made = []
    note = SessionActions._note

    def noted(self, report, error=None):
        done = note(self, report, error)
        made.append(replace(done, graph=None))  # it holds the rows that its job has kept
        return done

    monkeypatch.setattr(SessionActions, "_note", noted)
    rehearsal = warm_up_module._Rehearsal(spark.sparkContext)
    monkeypatch.setattr(warm_up_module, "_rehearsal", lambda sc: rehearsal)
    monkeypatch.setattr(KeepingBudget.of(spark.sparkContext), "plain", 0.0)

    def run(is_late=lambda: False):
        del made[:]
        rehearse(spark, is_late).join(60)
        return list(made)

    return run


def test_actions_are_rehearsed_as_jobs_once_and_leave_nothing(spark, rehearsed, capfd) -> None:
    sc = spark.sparkContext
    persistent = sc._jsc.getPersistentRDDs
    kept, retained_before, frames = set(persistent()), retained(spark), KeptFrames.of(sc)
    read_before = frames.within_reach(sc)
    assert needs_rehearsal(spark)
    first, counted, keeps, *others = rehearsed()
    assert not needs_rehearsal(spark)
    for report in (first, counted, keeps, *others):
        assert (report.method, report.status, report.is_driven) == ("count", "FINISHED", True)
    assert "kept a DataFrame" in keeps.note
    assert others
    assert all(report.reused for report in others)
    assert rehearsed() == []
    assert retained(spark) == retained_before
    gc.collect()
    assert set(persistent()) <= kept  # what nobody refers to any more goes at any time
    assert (frames.within_reach(sc), KeepingBudget.of(sc).plain) == (read_before, 0.0)
    assert capfd.readouterr() == ("", "")


def test_when_a_cell_begins_the_rehearsal_stops_and_goes_on_in_the_next_pause(spark, rehearsed) -> None:
    asked = iter((False, False, True))
    before = rehearsed(is_late=lambda: next(asked))
    assert len(before) == 2
    assert needs_rehearsal(spark)
    reports = rehearsed()
    assert len(reports) == warm_up_module.REREADS - 1
    assert [bool(report.note) for report in reports[:3]] == [False, True, False]  # the second one keeps the rows again
    assert all(report.reused for report in reports[2:])


def test_what_fails_in_a_rehearsal_is_told_to_nobody(rehearsed, capfd, monkeypatch) -> None:
    monkeypatch.setattr(SessionActions, "_compiled", lambda *_: 1 // 0)
    (report,) = rehearsed()
    assert (report.status, report.is_driven) == ("FAILED", False)
    assert capfd.readouterr() == ("", "")


@pytest.mark.usefixtures("rehearsed")
def test_after_an_action_none_needs_to_be_rehearsed(spark) -> None:
    KeepingBudget.of(spark.sparkContext).note(0.1)
    assert not needs_rehearsal(spark)


def test_a_session_is_prepared_once_without_a_job(spark) -> None:
    jobs = spark.sparkContext._jsc.sc().dagScheduler().numTotalJobs()
    warming = warm_up(spark, JobOptions())
    warming.join(60)
    assert warm_up(spark) is warming
    assert spark.sparkContext._jsc.sc().dagScheduler().numTotalJobs() == jobs
