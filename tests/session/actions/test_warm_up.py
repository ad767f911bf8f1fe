"""What a session is prepared with, before its first action."""

from __future__ import annotations

import threading

import pytest

from flinkmagic.options import JobOptions
from flinkmagic.session import retained, warm_up
from flinkmagic.session.actions import warm_up as warm_up_module
from flinkmagic.session.actions.session_actions import SessionActions

DONE = threading.Thread(target=int)


@pytest.fixture
def rehearsed(monkeypatch):
    """The reports of the actions that are carried out."""
    made = []
    begin = SessionActions.__init__

    def began(self, *args, **kwargs):
        begin(self, *args, **kwargs)
        made.append(self)

    monkeypatch.setattr(SessionActions, "__init__", began)
    DONE.ident or DONE.start()
    return lambda: [report for actions in made for report in actions.reports]


def test_an_action_is_rehearsed_as_a_job_and_leaves_nothing(spark, rehearsed, capfd) -> None:
    kept, retained_before = spark.sparkContext._jsc.sc().getPersistentRDDs().size(), retained(spark)
    warm_up_module._rehearse(spark, DONE)
    (report,) = rehearsed()
    assert (report.method, report.status, report.is_driven, report.stages) == ("count", "FINISHED", True, 2)
    assert retained(spark) == retained_before
    assert spark.sparkContext._jsc.sc().getPersistentRDDs().size() == kept
    assert capfd.readouterr() == ("", "")


def test_what_fails_in_a_rehearsal_is_told_to_nobody(spark, rehearsed, capfd, monkeypatch) -> None:
    monkeypatch.setattr(SessionActions, "_compiled", lambda *_: 1 // 0)
    warm_up_module._rehearse(spark, DONE)
    (report,) = rehearsed()
    assert (report.status, report.is_driven) == ("FAILED", False)
    assert capfd.readouterr() == ("", "")


def test_a_session_is_prepared_once_and_without_options_runs_nothing(spark) -> None:
    warm_up(spark, JobOptions()).join(60)
    jobs = spark.sparkContext._jsc.sc().dagScheduler().numTotalJobs()
    threads = [warm_up(spark), warm_up(spark, JobOptions()), warm_up(spark, JobOptions())]
    assert not any(thread.is_alive() for thread in threads)
    assert threads[1] is threads[2] is not threads[0]
    assert spark.sparkContext._jsc.sc().dagScheduler().numTotalJobs() == jobs
