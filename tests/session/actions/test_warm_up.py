"""What a session is prepared with, before its first action."""

from __future__ import annotations

import pytest

from flinkmagic.options import JobOptions
from flinkmagic.session import needs_rehearsal, rehearse, retained, warm_up
from flinkmagic.session.actions import warm_up as warm_up_module
from flinkmagic.session.actions.keeping_budget import KeepingBudget
from flinkmagic.session.actions.session_actions import SessionActions


@pytest.fixture
def rehearsed(spark, monkeypatch):
    """Rehearse in a session that has made no action; return the reports of the actions that are carried out."""
    made, begun = [], []
    begin = SessionActions.__init__

    def began(self, *args, **kwargs):
        begin(self, *args, **kwargs)
        made.append(self)

    monkeypatch.setattr(SessionActions, "__init__", began)
    monkeypatch.setattr(warm_up_module, "_rehearsing", lambda sc: begun)
    monkeypatch.setattr(KeepingBudget.of(spark.sparkContext), "plain", 0.0)

    def run():
        rehearse(spark).join(60)
        return [report for actions in made for report in actions.reports]

    return run


def test_an_action_is_rehearsed_as_a_job_once_and_leaves_nothing(spark, rehearsed, capfd) -> None:
    persistent = spark.sparkContext._jsc.getPersistentRDDs
    kept, retained_before = set(persistent()), retained(spark)
    assert needs_rehearsal(spark)
    (report,) = rehearsed()
    assert not needs_rehearsal(spark)
    assert (report.method, report.status, report.is_driven, report.stages) == ("count", "FINISHED", True, 2)
    assert rehearsed() == [report]
    assert retained(spark) == retained_before
    assert set(persistent()) <= kept  # what nobody refers to any more goes at any time
    assert capfd.readouterr() == ("", "")


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
