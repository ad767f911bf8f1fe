"""The clones of the session on which jobs are planned."""

from __future__ import annotations

import pytest

from flinkmagic.options import JobOptions
from flinkmagic.planning.clones import KeptClones, SessionClones
from flinkmagic.session import capture

ZONE = "spark.sql.session.timeZone"
OPTIONS = JobOptions(parallelism=3, slots=2)


@pytest.fixture
def snapshot(spark, tmp_path):
    """Return the session's state now, as a write's line sees it."""

    def taken():
        with capture(spark) as program:
            spark.range(1).write.mode("append").json(str(tmp_path / "out"))
        return program.writes[0].session

    return taken


@pytest.fixture
def zone(spark):
    """Return what sets the session's time zone."""
    spark.conf.set(ZONE, "UTC")
    yield lambda name: spark.conf.set(ZONE, name)
    spark.conf.unset(ZONE)


def test_the_next_job_of_a_session_in_the_same_state_is_planned_on_the_same_clone(spark, snapshot):
    kept = KeptClones()
    first = SessionClones(spark, OPTIONS, kept).of(snapshot()).session
    second = SessionClones(spark, OPTIONS, kept).of(snapshot()).session
    assert second is first
    other = SessionClones(spark, OPTIONS).of(snapshot()).session
    assert other is not first
    kept.clear()
    assert SessionClones(spark, OPTIONS, kept).of(snapshot()).session is not first


def test_another_state_has_another_clone_with_its_settings(spark, snapshot, zone):
    kept = KeptClones()
    first = SessionClones(spark, OPTIONS, kept).of(snapshot()).session
    zone("Asia/Tokyo")
    second = SessionClones(spark, OPTIONS, kept).of(snapshot()).session
    assert [one.sessionState().conf().getConfString(ZONE) for one in (first, second)] == ["UTC", "Asia/Tokyo"]
    zone("UTC")
    assert SessionClones(spark, OPTIONS, kept).of(snapshot()).session is first


def test_another_session_in_the_same_state_has_another_clone(spark, snapshot):
    kept, state = KeptClones(), snapshot()
    first = SessionClones(spark, OPTIONS, kept).of(state).session
    assert SessionClones(spark.newSession(), OPTIONS, kept).of(state).session is not first


def test_a_kept_clone_knows_no_tables(spark, snapshot):
    kept, state = KeptClones(), snapshot()
    clone = SessionClones(spark, OPTIONS, kept).of(state).session
    spark.range(3).write.mode("overwrite").saveAsTable("listed_before")
    try:
        assert clone.table("listed_before").count() == 3
        spark.range(5).write.mode("append").saveAsTable("listed_before")
        again = SessionClones(spark, OPTIONS, kept).of(state).session
        assert again is clone
        assert clone.table("listed_before").count() == 8
    finally:
        spark.sql("DROP TABLE listed_before")


def test_only_the_clones_of_the_last_states_are_kept(spark, snapshot, zone):
    kept = KeptClones()
    first = SessionClones(spark, OPTIONS, kept).of(snapshot()).session
    for hour in range(KeptClones.MOST):
        zone(f"+0{hour + 1}:00")
        SessionClones(spark, OPTIONS, kept).of(snapshot())
    zone("UTC")
    assert SessionClones(spark, OPTIONS, kept).of(snapshot()).session is not first
