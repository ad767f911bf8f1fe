"""Executors are asked for signs of life, and who gives none is told."""

from __future__ import annotations

from fake_spark import FakeSpark

from flinkmagic.deployment.watching.session_slots import SessionSlots
from flinkmagic.deployment.watching.task_events import ExecutorRemoved
from flinkmagic.scheduling.job_master import HeartbeatOptions

INTERVAL_MS, TIMEOUT_MS = HeartbeatOptions().interval_ms, HeartbeatOptions().timeout_ms
CHAIN = {"Map": (2, []), "Write": (1, ["Map"])}


def silent(spark):
    """Who was told of, as the job's log has it."""
    return [event.text.split()[0] for event in spark.scheduler.event_log.events() if event.source == "executors"]


def test_an_executor_that_spark_still_has_is_never_silent():
    spark = FakeSpark(CHAIN)
    spark.job_started("Map")
    spark.launch("Map", 0, executor="7")
    spark.pass_time(10 * TIMEOUT_MS)
    assert silent(spark) == []


def test_an_executor_that_spark_has_no_more_is_told_once():
    spark = FakeSpark(CHAIN)
    spark.job_started("Map")
    spark.launch("Map", 0, executor="7")
    spark.launch("Map", 1, executor="8")
    spark.session_slots.lost.add("7")
    spark.pass_time(TIMEOUT_MS + 2 * INTERVAL_MS)
    assert silent(spark) == ["7"]
    spark.pass_time(5 * TIMEOUT_MS)
    assert silent(spark) == ["7"]


def test_an_executor_whose_loss_spark_told_is_not_asked_any_more():
    spark = FakeSpark(CHAIN)
    spark.job_started("Map")
    spark.launch("Map", 0, executor="7")
    spark.session_slots.lost.add("7")
    spark.say(ExecutorRemoved(spark.clock.now_ms(), "7", "its machine is gone"))
    spark.pass_time(2 * TIMEOUT_MS)
    assert silent(spark) == []


def test_the_end_of_the_job_ends_the_asking():
    spark = FakeSpark(CHAIN)
    spark.run("Map")
    spark.run("Write")
    assert spark.overs == 1
    spark.session_slots.lost.add("1")
    spark.pass_time(5 * TIMEOUT_MS)
    assert silent(spark) == []


def test_sparks_status_store_tells_who_is_there(spark):
    slots = SessionSlots(spark.sparkContext)
    assert slots.is_active("driver")
    assert not slots.is_active("no-such-executor")
