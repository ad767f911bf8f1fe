"""What Spark's news means for executions: each rule of `subtask_states`, with a Spark that the test plays."""

from __future__ import annotations

import pytest
from fake_spark import FakeSpark, JobStarted, StageRef, TaskStarted

from flinkmagic.deployment.board.drive import LONGEST_SILENCE_MS
from flinkmagic.deployment.board.rules import NO_TASK
from flinkmagic.deployment.stages.write_retries import EarlierRun
from flinkmagic.errors.deployment import StageAbortedError, VertexFailedError
from flinkmagic.graph.execution_state import ExecutionState
from flinkmagic.scheduling.failover.restart_strategy import FixedDelayRestartBackoffTimeStrategy
from flinkmagic.scheduling.job_status import JobStatus
from tests.virtual_time import advance

CHAIN = {"Map": (2, []), "Write": (2, ["Map"])}


def execution(spark, name, subtask):
    return spark.graph.execution_vertex(spark.by_name[name].first + subtask).current_execution


def test_an_execution_is_scheduled_until_spark_launches_its_task():
    spark = FakeSpark(CHAIN)
    assert spark.running() == ["Map"]
    spark.job_started("Map")
    assert spark.state("Map") == ["SCHEDULED", "SCHEDULED"]
    spark.launch("Map", 1, executor="7")
    assert spark.state("Map") == ["SCHEDULED", "RUNNING"]
    assert execution(spark, "Map", 1).resource_id == "7"
    assert spark.state("Write") == ["CREATED", "CREATED"]


def test_consumers_go_when_their_producers_are_finished():
    spark = FakeSpark(CHAIN)
    spark.run("Map")
    assert spark.state("Map") == ["FINISHED", "FINISHED"]
    assert spark.running() == ["Write"]
    spark.run("Write")
    assert spark.scheduler.job_status is JobStatus.FINISHED
    assert spark.active_runs() == []
    assert {(one.rows_in, one.rows_out) for one in spark.drive.state.log.records()} == {(10, 20)}


def test_the_last_execution_waits_for_the_driver():
    spark = FakeSpark(CHAIN)
    spark.job_started("Map")
    tasks = [spark.launch("Map", partition) for partition in range(2)]
    spark.end(tasks[1])
    assert spark.state("Map") == ["RUNNING", "FINISHED"]
    spark.end(tasks[0])
    ended_at = spark.clock.now_ms()
    assert spark.state("Map") == ["RUNNING", "FINISHED"]
    advance(spark.clock, 50)
    spark.conclude("Map")
    assert spark.state("Map") == ["FINISHED", "FINISHED"]
    assert execution(spark, "Map", 0).timestamps[ExecutionState.FINISHED] == ended_at


def test_sparks_own_retry_belongs_to_the_same_execution():
    spark = FakeSpark(CHAIN)
    spark.job_started("Map")
    spark.end(spark.launch("Map", 0), "FAILED")
    assert spark.state("Map")[0] == "RUNNING"
    spark.end(spark.launch("Map", 0, executor="2"))
    assert spark.state("Map")[0] == "FINISHED"
    assert execution(spark, "Map", 0).attempt == 0
    assert [(task.attempt, task.state.name) for task in spark.drive.state.log.records()] == [
        (0, "FAILED"),
        (1, "FINISHED"),
    ]


def test_the_first_success_of_a_speculated_task_counts():
    spark = FakeSpark(CHAIN)
    spark.job_started("Map")
    slow = spark.launch("Map", 0)
    copy = spark.launch("Map", 0, executor="2", speculative=True)
    spark.end(copy)
    assert spark.state("Map")[0] == "FINISHED"
    spark.end(slow, "KILLED")
    assert spark.state("Map")[0] == "FINISHED"
    spark.end(spark.launch("Map", 1))
    spark.conclude("Map")
    assert spark.state("Map") == ["FINISHED", "FINISHED"]


def test_what_spark_skips_is_finished_without_a_task():
    spark = FakeSpark(CHAIN)
    spark.conclude("Map", bytes_by_partition=(1, 2))
    assert spark.state("Map") == ["FINISHED", "FINISHED"]
    assert {execution(spark, "Map", subtask).resource_id for subtask in range(2)} == {NO_TASK}
    assert spark.drive.state.log.records() == []
    assert spark.drive.partition_bytes == {spark.by_name["Map"].id: (1, 2)}


def test_a_failure_fails_the_task_that_failed_last_and_cancels_the_job():
    spark = FakeSpark(CHAIN)
    spark.job_started("Map")
    tasks = [spark.launch("Map", partition) for partition in range(2)]
    spark.end(tasks[1], "FAILED", "java.lang.ArithmeticException: / by zero")
    spark.conclude("Map", RuntimeError("Job aborted due to stage failure"))
    assert spark.state("Map") == ["RUNNING", "FAILED"]  # Spark is still ending the other
    assert spark.scheduler.job_status is JobStatus.RESTARTING
    spark.end(tasks[0], "KILLED")
    assert spark.state("Map") == ["FAILED", "FAILED"]
    assert isinstance(execution(spark, "Map", 0).error, StageAbortedError)
    error = execution(spark, "Map", 1).error
    assert isinstance(error, VertexFailedError)
    assert (error.cause, error.vertex) == ("java.lang.ArithmeticException: / by zero", "Source: Map (2/2)")
    assert spark.scheduler.job_status is JobStatus.FAILED
    assert spark.state("Write") == ["CANCELED", "CANCELED"]


def test_a_success_after_the_stage_was_given_up_counts_for_nothing():
    spark = FakeSpark(CHAIN)
    spark.job_started("Map")
    tasks = [spark.launch("Map", partition) for partition in range(2)]
    spark.end(tasks[1], "FAILED")
    spark.conclude("Map", RuntimeError("aborted"))
    spark.end(tasks[0])
    assert spark.state("Map") == ["FAILED", "FAILED"]
    assert spark.drive.state.log.records()[0].state is ExecutionState.FINISHED  # which is what Spark says of the task


def test_a_failure_on_the_driver_fails_what_is_held():
    spark = FakeSpark({"Map": (2, []), "Write": (1, ["Map"])})
    spark.run("Map")
    spark.job_started("Write")
    spark.end(spark.launch("Write", 0))
    assert spark.state("Write") == ["RUNNING"]
    spark.conclude("Write", RuntimeError("commit failed"))
    assert spark.state("Write") == ["FAILED"]
    assert str(execution(spark, "Write", 0).error) == "Sink: Write failed: commit failed"
    assert spark.scheduler.job_status is JobStatus.FAILED


def test_a_failure_before_any_task_fails_an_execution_that_still_waits():
    spark = FakeSpark(CHAIN)
    spark.conclude("Map", RuntimeError("no such file"))
    assert sorted(spark.state("Map")) == ["CANCELED", "FAILED"]
    assert spark.scheduler.job_status is JobStatus.FAILED


def test_independent_vertices_finish_before_the_job_fails():
    spark = FakeSpark({"Bad": (1, []), "WriteBad": (1, ["Bad"]), "Good": (1, []), "WriteGood": (1, ["Good"])})
    assert sorted(spark.running()) == ["Bad", "Good"]
    spark.job_started("Bad")
    spark.end(spark.launch("Bad", 0), "FAILED")
    spark.conclude("Bad", RuntimeError("aborted"))
    assert spark.scheduler.job_status is JobStatus.RESTARTING
    spark.run("Good")
    assert spark.running() == ["WriteGood"]
    spark.run("WriteGood")
    assert spark.scheduler.job_status is JobStatus.FAILED
    assert (spark.state("WriteGood"), spark.state("WriteBad")) == (["FINISHED"], ["CANCELED"])


def test_cancel_waits_for_the_tasks_to_end():
    spark = FakeSpark(CHAIN)
    spark.job_started("Map")
    task = spark.launch("Map", 0)
    spark.main_thread.execute(spark.scheduler.cancel)
    spark.settle()
    assert spark.stage("Map").is_cancelled
    assert spark.state("Map") == ["CANCELING", "CANCELED"]
    spark.conclude("Map", RuntimeError("cancelled"))
    assert spark.scheduler.job_status is JobStatus.CANCELLING
    assert len(spark.active_runs()) == 1
    assert not spark.stage("Map").has_no_tasks
    spark.end(task, "KILLED")
    assert spark.scheduler.job_status is JobStatus.CANCELED
    assert spark.active_runs() == []
    assert spark.stage("Map").has_no_tasks


def test_a_cancelled_stage_whose_job_starts_late_is_cancelled_again():
    spark = FakeSpark(CHAIN)
    spark.main_thread.execute(spark.scheduler.cancel)
    spark.settle()
    assert spark.stage("Map").cancels == 1
    assert spark.scheduler.job_status is JobStatus.CANCELED
    assert len(spark.active_runs()) == 1  # its thread has not ended
    spark.job_started("Map")
    assert spark.stage("Map").cancels == 2
    task = spark.launch("Map", 0)
    spark.end(task, "KILLED")
    spark.conclude("Map", RuntimeError("cancelled"))
    assert spark.active_runs() == []


def test_a_restart_submits_only_what_is_not_finished():
    spark = FakeSpark(
        {"Map": (4, []), "Write": (1, ["Map"])}, restart_strategy=FixedDelayRestartBackoffTimeStrategy(1, 100.0)
    )
    spark.job_started("Map")
    tasks = [spark.launch("Map", partition) for partition in range(3)]
    spark.end(tasks[0])
    spark.end(tasks[1], "FAILED")
    spark.conclude("Map", RuntimeError("aborted"))
    # One failure, told when the stage is really dead: task 2 still runs.
    assert spark.state("Map") == ["FINISHED", "RUNNING", "RUNNING", "SCHEDULED"]
    spark.end(tasks[2], "KILLED")
    # Flink's rule: who consumes them needs the fourth as well, so it is restarted with them.
    assert spark.state("Map") == ["FINISHED", "FAILED", "FAILED", "CANCELED"]
    assert spark.running() == []
    spark.pass_time(100)
    assert spark.running() == ["Map"]
    assert spark.state("Map") == ["FINISHED", "SCHEDULED", "SCHEDULED", "SCHEDULED"]
    spark.job_started("Map")
    for task in [spark.launch("Map", partition) for partition in (1, 2, 3)]:
        spark.end(task)
    spark.conclude("Map")
    assert spark.state("Map") == ["FINISHED"] * 4
    assert [execution(spark, "Map", subtask).attempt for subtask in range(4)] == [0, 1, 1, 1]
    (entry,) = spark.scheduler.request_job().exception_history
    assert [type(other.error) for other in entry.concurrent] == [StageAbortedError]


def test_where_restarts_are_possible_a_write_counts_as_a_whole():
    spark = FakeSpark(CHAIN, restart_strategy=FixedDelayRestartBackoffTimeStrategy(1, 100.0))
    spark.run("Map")
    spark.job_started("Write")
    tasks = [spark.launch("Write", partition) for partition in range(2)]
    spark.end(tasks[0])
    assert spark.state("Write") == ["RUNNING", "RUNNING"]
    spark.end(tasks[1], "FAILED")
    spark.conclude("Write", RuntimeError("aborted"))
    assert spark.state("Write") == ["FAILED", "FAILED"]
    spark.pass_time(100)
    assert spark.stage("Write").earlier == EarlierRun(launched=True, reached_commit=False, counted=frozenset({0}))
    spark.run("Write")
    assert spark.scheduler.job_status is JobStatus.FINISHED
    assert [execution(spark, "Write", subtask).attempt for subtask in range(2)] == [1, 1]


def test_a_success_that_came_too_late_is_not_counted_for_the_restarted_stage():
    spark = FakeSpark(CHAIN, restart_strategy=FixedDelayRestartBackoffTimeStrategy(1, 100.0))
    spark.run("Map")
    spark.job_started("Write")
    tasks = [spark.launch("Write", partition) for partition in range(2)]
    spark.end(tasks[0], "FAILED")
    spark.conclude("Write", RuntimeError("aborted"))
    spark.end(tasks[1])
    spark.pass_time(100)
    assert spark.stage("Write").earlier == EarlierRun(launched=True, reached_commit=False)


def test_a_restarted_write_hears_that_its_commit_had_failed():
    once = FixedDelayRestartBackoffTimeStrategy(1, 1.0)
    spark = FakeSpark({"Map": (1, []), "Write": (1, ["Map"])}, restart_strategy=once)
    spark.run("Map")
    assert spark.stage("Write").earlier is None
    spark.job_started("Write")
    spark.end(spark.launch("Write", 0))
    spark.conclude("Write", RuntimeError("commit failed"))
    spark.pass_time(1)
    assert spark.stage("Write").earlier == EarlierRun(launched=True, reached_commit=True, counted=frozenset({0}))


def test_jobs_beside_the_vertexs_own_are_helpers():
    spark = FakeSpark({"Map": (2, []), "Write": (2, ["Map"])})
    spark.run("Map")
    spark.job_started("Write", tasks=1)  # some small job of the command
    spark.end(spark.launch("Write", 0))
    assert spark.state("Write") == ["SCHEDULED", "SCHEDULED"]
    spark.run("Write")
    assert [task.role for task in spark.drive.state.log.records()] == ["task", "task", "helper", "task", "task"]


def test_a_run_is_not_over_before_its_helpers_are():
    spark = FakeSpark(CHAIN)
    spark.run("Map")
    spark.job_started("Write", tasks=1)
    helper = spark.launch("Write", 0)
    spark.job_started("Write")
    for task in [spark.launch("Write", partition) for partition in range(2)]:
        spark.end(task)
    spark.conclude("Write")
    assert spark.scheduler.job_status is JobStatus.FINISHED
    assert len(spark.active_runs()) == 1
    spark.end(helper, "KILLED")
    assert spark.active_runs() == []


def test_what_a_helper_said_is_the_cause_where_no_task_of_the_vertex_failed():
    spark = FakeSpark(CHAIN)
    spark.run("Map")
    spark.job_started("Write", tasks=1)
    spark.end(spark.launch("Write", 0), "FAILED", "java.lang.ArithmeticException: / by zero")
    spark.conclude("Write", RuntimeError("Job aborted"))
    assert execution(spark, "Write", 0).error.cause == "java.lang.ArithmeticException: / by zero"


def test_lost_outputs_are_made_again_as_recovery_of_their_vertex():
    spark = FakeSpark(CHAIN)
    spark.run("Map")
    shuffle = spark.stage("Map").stage_id
    write = spark.stage("Write")
    again, own = StageRef(90, shuffle, 2), StageRef(91, None, 2)
    spark.say(JobStarted(50, write.tag, (again, own)))
    task = TaskStarted(90, 1, 1, 0, 900, "1", spark.clock.now_ms(), False)
    spark.say(task)
    spark.end(task)
    record = spark.drive.state.log.records()[-1]
    assert (record.vertex_id, record.role, record.subtask) == (spark.by_name["Map"].id, "recovery", 1)
    assert spark.state("Map") == ["FINISHED", "FINISHED"]


def test_the_end_of_the_session_is_the_end_of_the_job():
    spark = FakeSpark(CHAIN)
    spark.job_started("Map")
    spark.launch("Map", 0)
    spark.main_thread.execute(lambda: spark.job_master.lose_session(ConnectionError("gone")))
    spark.settle()
    assert spark.scheduler.job_status is JobStatus.FAILED
    assert spark.active_runs() == []


def test_the_end_of_the_session_is_the_end_of_tasks_that_spark_was_ending():
    spark = FakeSpark(CHAIN)
    spark.job_started("Map")
    tasks = [spark.launch("Map", partition) for partition in range(2)]
    spark.end(tasks[0], "FAILED")
    spark.conclude("Map", RuntimeError("aborted"))
    assert spark.state("Map") == ["FAILED", "RUNNING"]
    spark.main_thread.execute(lambda: spark.job_master.lose_session(ConnectionError("gone")))
    spark.settle()
    assert spark.active_runs() == []
    assert spark.scheduler.job_status is JobStatus.FAILED
    assert spark.overs == 1


def test_ends_that_spark_never_tells_of_are_not_waited_for_for_ever(caplog):
    spark = FakeSpark(CHAIN)
    spark.job_started("Map")
    tasks = [spark.launch("Map", partition) for partition in range(2)]
    spark.end(tasks[0], "FAILED")
    spark.conclude("Map", RuntimeError("aborted"))
    spark.pass_time(LONGEST_SILENCE_MS - 1000)
    assert spark.state("Map") == ["FAILED", "RUNNING"]
    spark.pass_time(2000)
    assert spark.state("Map") == ["FAILED", "FAILED"]
    assert spark.scheduler.job_status is JobStatus.FAILED
    assert spark.active_runs() == []
    assert "they count as ended" in caplog.text


def test_nothing_is_overdue_where_spark_told_all(caplog):
    spark = FakeSpark(CHAIN)
    spark.run("Map")
    spark.run("Write")
    spark.pass_time(2 * LONGEST_SILENCE_MS)
    assert caplog.text == ""
    assert spark.scheduler.job_status is JobStatus.FINISHED


@pytest.mark.parametrize("name", ["Map", "Write"])
def test_a_task_of_an_unknown_stage_is_passed_over(name):
    spark = FakeSpark(CHAIN)
    spark.say(TaskStarted(77, 0, 0, 0, 1, "1", 0.0, False))
    assert spark.drive.state.log.records() == []


def test_a_task_that_reads_several_partitions_does_the_work_of_several_subtasks():
    spark = FakeSpark({"Map": (4, []), "Write": (4, ["Map"])})
    spark.run("Map")
    spark.merged("Write", 2)
    run = spark.active_runs()[0]
    assert run.unfinished == 2
    tasks = [spark.launch("Write", partition) for partition in range(2)]
    assert spark.state("Write") == ["RUNNING", "RUNNING", "SCHEDULED", "SCHEDULED"]
    spark.end(tasks[0])
    spark.end(tasks[1])
    assert spark.state("Write") == ["FINISHED", "RUNNING", "SCHEDULED", "SCHEDULED"]
    assert run.unfinished == 0
    spark.conclude("Write")
    assert spark.state("Write") == ["FINISHED"] * 4
    assert execution(spark, "Write", 3).resource_id == NO_TASK
    assert spark.scheduler.job_status is JobStatus.FINISHED


def test_a_write_with_merged_partitions_has_reached_its_commit_when_its_tasks_have_succeeded():
    once = FixedDelayRestartBackoffTimeStrategy(1, 1.0)
    spark = FakeSpark({"Map": (3, []), "Write": (3, ["Map"])}, restart_strategy=once)
    spark.run("Map")
    spark.merged("Write", 1)
    assert not spark.active_runs()[0].has_all_successes
    spark.end(spark.launch("Write", 0))
    spark.conclude("Write", RuntimeError("commit failed"))
    spark.pass_time(1)
    assert spark.stage("Write").earlier == EarlierRun(launched=True, reached_commit=True, counted=frozenset({0}))
    spark.merged("Write", 1)
    spark.end(spark.launch("Write", 0))
    spark.conclude("Write")
    assert spark.state("Write") == ["FINISHED"] * 3


def test_a_failed_task_with_merged_partitions_fails_its_job_and_runs_again():
    once = FixedDelayRestartBackoffTimeStrategy(1, 1.0)
    spark = FakeSpark({"Map": (3, []), "Write": (3, ["Map"])}, restart_strategy=once)
    spark.run("Map")
    spark.merged("Write", 2)
    spark.end(spark.launch("Write", 0))
    spark.end(spark.launch("Write", 1), "FAILED")
    spark.conclude("Write", RuntimeError("aborted"))
    spark.pass_time(1)
    assert spark.stage("Write").earlier == EarlierRun(launched=True, reached_commit=False, counted=frozenset({0}))
    spark.merged("Write", 2)
    for partition in range(2):
        spark.end(spark.launch("Write", partition))
    spark.conclude("Write")
    assert spark.scheduler.job_status is JobStatus.FINISHED
