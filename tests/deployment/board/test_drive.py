"""What the drive asks of executors, and what it keeps of a job that has failed."""

from __future__ import annotations

from fake_spark import FakeSpark

from flinkmagic.deployment.board.rules import StageBoard
from flinkmagic.deployment.board.state import BoardState
from flinkmagic.deployment.watching.session_slots import SessionSlots
from flinkmagic.deployment.watching.task_events import ExecutorRemoved
from flinkmagic.scheduling.failover.restart_strategy import FixedDelayRestartBackoffTimeStrategy
from flinkmagic.scheduling.heartbeat import HeartbeatOptions
from flinkmagic.scheduling.job_event_log import JobEventLog
from flinkmagic.scheduling.job_status import JobStatus

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
    spark.say(ExecutorRemoved("7", "its machine is gone"))
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


def replayed(board, told):
    """What a board says when it is told of events again, each within the instruction within which it came."""
    events, said = list(told), []

    def replay_within(number):
        while events and events[0].within == number:
            for instruction in board.handle(events.pop(0).event):
                said.append(instruction)
                replay_within(len(said))

    replay_within(0)
    assert events == []
    return said


def test_the_events_of_a_failed_job_are_kept_and_lead_to_the_same_instructions_again(monkeypatch):
    said = []
    handle = StageBoard.handle

    def noted(board, event):
        for instruction in handle(board, event):
            said.append(instruction)
            yield instruction

    monkeypatch.setattr(StageBoard, "handle", noted)
    vertices = {"Map": (3, []), "Write": (2, ["Map"])}
    spark = FakeSpark(vertices, restart_strategy=FixedDelayRestartBackoffTimeStrategy(1, 10.0))
    spark.job_started("Map")
    tasks = [spark.launch("Map", partition, executor="7") for partition in range(3)]
    spark.say(ExecutorRemoved("7", "its machine is gone"))
    for task in tasks:
        spark.lose(task)
    for task in [spark.launch("Map", partition, executor="8") for partition in range(3)]:
        spark.end(task)
    spark.conclude("Map")
    for _ in range(2):
        spark.job_started("Write")
        spark.end(spark.launch("Write", 0))
        spark.end(spark.launch("Write", 1), "FAILED")
        spark.conclude("Write", RuntimeError("aborted"))
        spark.pass_time(20)
    assert spark.scheduler.job_status is JobStatus.FAILED
    monkeypatch.undo()
    state = BoardState(spark.graph, "t-", JobEventLog(spark.clock), restarts=True)
    again = replayed(StageBoard(state), spark.drive.told)
    assert {type(one).__name__ for one in again} >= {"Submit", "GiveSlot", "Report", "Replace", "TasksOver", "Later"}
    # Losses are errors, which equal only themselves.
    assert [repr(one) for one in again] == [repr(one) for one in said]
    state.validate()


def test_nothing_is_kept_of_a_job_that_has_finished():
    spark = FakeSpark(CHAIN)
    spark.run("Map")
    assert spark.drive.told != []
    spark.run("Write")
    assert spark.drive.told == []
