"""Attempts are counted, dated and put into slots that no two tasks share."""

from __future__ import annotations

from flinkmagic.deployment.watching.task_events import TaskEnded, TaskMetrics, TaskStarted
from flinkmagic.deployment.watching.task_records import SlotNumbers, TaskLog
from flinkmagic.graph.execution_state import ExecutionState


def started(task_id, partition=0, executor="1", attempt=0):
    return TaskStarted(3, 0, partition, attempt, task_id, executor, 100.0 + task_id, False)


def ended(task, status="SUCCESS", error=""):
    metrics = TaskMetrics(1, 2, 3, 4, 5, 6, 7, 8, 9) if status == "SUCCESS" else None
    return TaskEnded(task, 500.0, status, metrics, "ExceptionFailure" if error else "", error)


def test_each_executor_numbers_its_slots_from_zero():
    slots = SlotNumbers({"1": 2, "2": 1}.get)
    assert [slots.take("1", 10), slots.take("1", 11), slots.take("2", 12)] == [0, 1, 0]
    slots.give_back("1", 10)
    assert slots.take("1", 13) == 0


def test_a_task_launched_before_the_end_of_the_last_one_was_told_gets_that_ones_slot():
    slots = SlotNumbers(lambda executor: 2)
    slots.take("1", 10), slots.take("1", 11)
    assert slots.take("1", 12) == 0  # for the moment
    assert slots.give_back("1", 11) == (12, 1)
    slots.give_back("1", 10)
    assert slots.take("1", 13) == 0


def test_the_end_of_the_host_leaves_its_slot_to_the_guest():
    slots = SlotNumbers(lambda executor: 1)
    slots.take("1", 10)
    assert slots.take("1", 11) == 0
    assert slots.give_back("1", 10) == (11, 0)
    assert slots.give_back("1", 11) is None
    assert slots.take("1", 12) == 0


def test_a_guest_that_ends_first_leaves_the_slot_to_the_host():
    slots = SlotNumbers(lambda executor: 1)
    slots.take("1", 10)
    slots.take("1", 11)
    assert slots.give_back("1", 11) is None
    slots.give_back("1", 10)
    assert slots.take("1", 12) == 0


def test_more_tasks_than_slots_can_hold_get_numbers_of_their_own():
    slots = SlotNumbers(lambda executor: 1)
    assert [slots.take("1", task) for task in (10, 11, 12)] == [0, 0, 1]


def test_attempts_of_a_subtask_are_counted_over_all_its_launches():
    log = TaskLog(SlotNumbers(lambda executor: 2))
    first, retry, other = started(1), started(2, attempt=1), started(3, partition=1)
    log.started(first, "v", "Map", "task")
    log.ended(ended(first, "FAILED", "boom"))
    log.started(retry, "v", "Map", "task")
    log.started(other, "v", "Map", "task")
    log.ended(ended(retry))
    failed, finished, running = log.records()
    assert (failed.attempt, failed.state, failed.error, failed.rows_in) == (0, ExecutionState.FAILED, "boom", None)
    assert (finished.attempt, finished.state, finished.slot) == (1, ExecutionState.FINISHED, "1_0")
    assert (finished.rows_in, finished.rows_out, finished.bytes_in, finished.bytes_out) == (1, 2, 3, 4)
    assert (finished.start_ms, finished.end_ms) == (102.0, 500.0)
    assert (running.subtask, running.attempt, running.state, running.end_ms, running.slot) == (
        1, 0, ExecutionState.RUNNING, None, "1_1",
    )  # fmt: skip


def test_roles_are_counted_apart():
    log = TaskLog(SlotNumbers(lambda executor: 2))
    log.started(started(1), "v", "Map", "helper")
    log.started(started(2), "v", "Map", "task")
    assert [(record.role, record.attempt) for record in log.records()] == [("helper", 0), ("task", 0)]


def test_a_settled_slot_is_in_the_record():
    log = TaskLog(SlotNumbers(lambda executor: 2))
    tasks = [started(number, partition=number) for number in (1, 2, 3)]
    for task in tasks:
        log.started(task, "v", "Map", "task")
    log.ended(ended(tasks[1]))
    assert [record.slot for record in log.records()] == ["1_0", "1_1", "1_1"]
