"""Lost executors in a Spark that the test plays: rules 7 to 11 of the board."""

from __future__ import annotations

from fake_spark import METRICS, FakeSpark, JobEnded, JobStarted, StageRef, TaskEnded, TaskStarted

from flinkmagic.deployment.watching.task_events import RESUBMITTED, ExecutorRemoved
from flinkmagic.errors.scheduling import ExecutorLostError, OutputLostError
from flinkmagic.graph.execution_state import ExecutionState
from flinkmagic.scheduling.failover.restart_strategy import FixedDelayRestartBackoffTimeStrategy
from flinkmagic.scheduling.job_status import JobStatus
from tests.virtual_time import advance

CHAIN = {"Map": (2, []), "Write": (2, ["Map"])}


def vertex(spark, name, subtask):
    return spark.graph.execution_vertex(spark.by_name[name].first + subtask)


def story(spark, name, subtask):
    """The states of all executions of a subtask, oldest first."""
    of = vertex(spark, name, subtask)
    return [execution.state.name for execution in (*of.prior_executions, of.current_execution)]


def resubmit(spark, task):
    """Spark takes back the success of a task whose stage still runs."""
    spark.say(TaskEnded(task, task.launched_ms + 1, "SUCCESS", None, RESUBMITTED, "Resubmitted (lost executor)"))


class Recovery:
    """A stage of the job of a consumer, which makes lost outputs of a producer once more."""

    def __init__(self, spark, consumer, producer, stage_id=900):
        self.spark, self.stage_id, self.ids = spark, stage_id, iter(range(stage_id + 1, stage_id + 99))
        shuffle, tag = spark.stage(producer).stage_id, spark.stage(consumer).tag
        stage = spark.stage(consumer)
        stage.stage_id, stage.job_id = next(self.ids), next(self.ids)
        own = StageRef(stage.stage_id, None, spark.by_name[consumer].parallelism)
        lost = StageRef(stage_id, shuffle, spark.by_name[producer].parallelism)
        spark.say(JobStarted(stage.job_id, tag, (lost, own)))

    def launch(self, partition, executor="2"):
        advance(self.spark.clock, 1)
        at_ms = self.spark.clock.now_ms()
        task = TaskStarted(self.stage_id, 0, partition, 0, next(self.ids), executor, at_ms, False)
        self.spark.say(task)
        return task


def test_a_task_lost_with_its_executor_is_another_execution():
    spark = FakeSpark(CHAIN)
    spark.job_started("Map")
    lost = spark.launch("Map", 0, executor="1")
    other = spark.launch("Map", 1, executor="2")
    spark.lose(lost)
    assert spark.state("Map") == ["SCHEDULED", "RUNNING"]
    error = vertex(spark, "Map", 0).prior_executions[0].error
    assert isinstance(error, ExecutorLostError)
    assert str(error) == "The executor 1 is lost: Command exited with code 137"
    again = spark.launch("Map", 0, executor="2")
    assert spark.state("Map") == ["RUNNING", "RUNNING"]
    assert vertex(spark, "Map", 0).current_execution.resource_id == "2"
    spark.end(again)
    spark.end(other)
    spark.conclude("Map")
    spark.run("Write")
    assert spark.scheduler.job_status is JobStatus.FINISHED
    assert story(spark, "Map", 0) == ["FAILED", "FINISHED"]
    assert story(spark, "Map", 1) == ["FINISHED"]
    assert [(one.attempt, one.state.name) for one in spark.drive.state.log.records() if one.subtask == 0][:2] == [
        (0, "FAILED"),
        (1, "FINISHED"),
    ]
    (entry,) = spark.scheduler.request_job().exception_history
    assert (entry.root.resource_id, entry.concurrent) == ("1", ())
    assert len(spark.stages) == 2  # Spark was asked for each vertex once


def test_where_a_copy_of_the_task_runs_on_the_execution_does_too():
    spark = FakeSpark(CHAIN)
    spark.job_started("Map")
    lost = spark.launch("Map", 0, executor="1")
    copy = spark.launch("Map", 0, executor="2", speculative=True)
    spark.lose(lost)
    assert spark.state("Map")[0] == "RUNNING"
    spark.end(copy)
    assert story(spark, "Map", 0) == ["FINISHED"]


def test_an_output_lost_while_its_stage_runs_is_made_by_another_execution():
    spark = FakeSpark({"Map": (3, []), "Write": (1, ["Map"])})
    spark.job_started("Map")
    tasks = [spark.launch("Map", partition, executor="1") for partition in range(3)]
    spark.end(tasks[0])
    assert spark.state("Map") == ["FINISHED", "RUNNING", "RUNNING"]
    resubmit(spark, tasks[0])
    assert spark.state("Map") == ["SCHEDULED", "RUNNING", "RUNNING"]
    assert story(spark, "Map", 0) == ["FINISHED", "SCHEDULED"]
    record = spark.drive.state.log.records()[0]
    assert (record.state, record.reason, record.rows_out) == (ExecutionState.FINISHED, RESUBMITTED, METRICS.rows_out)
    for task in [*tasks[1:], spark.launch("Map", 0, executor="2")]:
        spark.end(task)
    spark.conclude("Map")
    assert spark.state("Map") == ["FINISHED"] * 3
    assert [len(story(spark, "Map", subtask)) for subtask in range(3)] == [2, 1, 1]


def test_a_held_success_that_is_taken_back_fails_its_execution():
    spark = FakeSpark({"Map": (1, []), "Write": (1, ["Map"])})
    spark.job_started("Map")
    task = spark.launch("Map", 0, executor="1")
    spark.end(task)
    assert spark.state("Map") == ["RUNNING"]
    resubmit(spark, task)
    assert story(spark, "Map", 0) == ["FAILED", "SCHEDULED"]
    assert spark.drive.state.active[spark.by_name["Map"].index].unfinished == 1
    spark.end(spark.launch("Map", 0, executor="2"))
    spark.conclude("Map")
    assert story(spark, "Map", 0) == ["FAILED", "FINISHED"]


def test_lost_outputs_are_made_by_new_executions_of_their_vertex():
    spark = FakeSpark(CHAIN)
    spark.run("Map")
    spark.say(ExecutorRemoved("1", "worker lost"))
    recovery = Recovery(spark, "Write", "Map")
    task = recovery.launch(1)
    assert spark.state("Map") == ["FINISHED", "RUNNING"]
    assert spark.state("Write") == ["SCHEDULED", "SCHEDULED"]
    assert vertex(spark, "Map", 1).current_execution.resource_id == "2"
    spark.end(task)
    assert story(spark, "Map", 1) == ["FINISHED", "FINISHED"]
    for own in [spark.launch("Write", partition, executor="2") for partition in range(2)]:
        spark.end(own)
    spark.conclude("Write")
    assert spark.scheduler.job_status is JobStatus.FINISHED
    (entry,) = spark.scheduler.request_job().exception_history
    assert str(entry.root.error) == ("The output of Source: Map (2/2) is lost with the executor 1, and is made again.")
    again = [one for one in spark.drive.state.log.records() if one.role == "recovery"]
    assert [(one.vertex_id, one.subtask, one.attempt) for one in again] == [(spark.by_name["Map"].id, 1, 1)]
    assert spark.scheduler.request_job().number_of_restarts == 0


def test_a_fetch_failure_fails_the_reader_and_makes_its_input_again():
    spark = FakeSpark(CHAIN)
    spark.run("Map")
    shuffle = spark.stage("Map").stage_id
    recovery = Recovery(spark, "Write", "Map")
    reader = spark.launch("Write", 0, executor="2")
    spark.lose(reader, f"FetchFailed:{shuffle}:1", f"FetchFailed(null, shuffleId={shuffle}, mapIndex=1, mapId=5, ...)")
    assert spark.state("Write") == ["SCHEDULED", "SCHEDULED"]
    error = vertex(spark, "Write", 0).prior_executions[0].error
    assert isinstance(error, OutputLostError)
    assert error.task == "Source: Map (2/2)"
    spark.end(recovery.launch(1))
    for own in [spark.launch("Write", partition, executor="2") for partition in range(2)]:
        spark.end(own)
    spark.conclude("Write")
    assert spark.scheduler.job_status is JobStatus.FINISHED
    assert (story(spark, "Write", 0), story(spark, "Map", 1)) == (["FAILED", "FINISHED"], ["FINISHED", "FINISHED"])
    assert len(spark.scheduler.request_job().exception_history) == 1


def test_a_remaking_task_that_is_lost_too_is_a_third_execution():
    spark = FakeSpark(CHAIN)
    spark.run("Map")
    recovery = Recovery(spark, "Write", "Map")
    spark.lose(recovery.launch(0, executor="2"))
    assert story(spark, "Map", 0) == ["FINISHED", "FAILED", "SCHEDULED"]
    spark.end(recovery.launch(0, executor="3"))
    assert story(spark, "Map", 0) == ["FINISHED", "FAILED", "FINISHED"]


def test_a_result_of_an_earlier_job_is_made_once_more_by_its_own_vertex():
    spark = FakeSpark(CHAIN)
    dependency = type("Dependency", (), {"shuffleId": lambda self: 4711})()
    handle = spark.by_name["Map"].job_vertex.operator_factory
    handle.made = lambda: dependency
    spark.drive.take_up(spark.by_name["Map"])
    spark.conclude("Map")
    spark.stage("Map").stage_id = 4711
    spark.end(Recovery(spark, "Write", "Map").launch(1))
    assert story(spark, "Map", 1) == ["FINISHED", "FINISHED"]


def test_remade_twice():
    spark = FakeSpark({"Map": (1, []), "A": (1, ["Map"]), "B": (1, ["Map"])}, slots=1)
    spark.run("Map")
    spark.end(Recovery(spark, "A", "Map").launch(0))
    spark.end(spark.launch("A", 0))
    spark.conclude("A")
    spark.end(Recovery(spark, "B", "Map", 700).launch(0))
    assert story(spark, "Map", 0) == ["FINISHED", "FINISHED", "FINISHED"]
    spark.end(spark.launch("B", 0))
    spark.conclude("B")
    assert spark.scheduler.job_status is JobStatus.FINISHED


def test_the_end_of_the_reader_is_the_end_of_what_was_made_for_it():
    """Spark does not say what became of the remaking task; the reader has had its rows."""
    spark = FakeSpark(CHAIN)
    spark.run("Map")
    task = Recovery(spark, "Write", "Map").launch(0)
    for own in [spark.launch("Write", partition, executor="2") for partition in range(2)]:
        spark.end(own)
    spark.conclude("Write")
    assert spark.scheduler.job_status is JobStatus.FINISHED
    spark.end(task, "KILLED")
    assert spark.active_runs() == []
    assert story(spark, "Map", 0) == ["FINISHED", "FINISHED"]


def test_what_a_failed_reader_did_not_get_is_made_by_the_vertex_itself():
    spark = FakeSpark(CHAIN, restart_strategy=FixedDelayRestartBackoffTimeStrategy(1, 100.0))
    spark.run("Map")
    recovery = Recovery(spark, "Write", "Map")
    task = recovery.launch(0)
    failed = spark.launch("Write", 1)
    spark.end(failed, "FAILED", "java.lang.ArithmeticException: / by zero")
    spark.conclude("Write", RuntimeError("aborted"))
    assert spark.state("Map")[0] == "RUNNING"
    spark.end(task, "KILLED")
    assert spark.state("Map") == ["SCHEDULED", "FINISHED"]
    assert spark.running() == ["Map"]
    spark.run_missing("Map", [0])
    spark.pass_time(100)
    spark.run("Write")
    assert spark.scheduler.job_status is JobStatus.FINISHED
    assert story(spark, "Map", 0) == ["FINISHED", "FAILED", "FINISHED"]
    assert spark.scheduler.request_job().number_of_restarts == 1


def test_what_another_reader_makes_too_is_not_asked_for_again():
    vertices = {"Map": (1, []), "A": (1, ["Map"]), "B": (1, ["Map"])}
    spark = FakeSpark(vertices, restart_strategy=FixedDelayRestartBackoffTimeStrategy(1, 100.0))
    spark.run("Map")
    first = Recovery(spark, "A", "Map").launch(0)
    spark.end(spark.launch("A", 0), "FAILED")
    spark.conclude("A", RuntimeError("aborted"))
    recovery = Recovery(spark, "B", "Map", 700)
    second = recovery.launch(0)
    spark.end(first, "KILLED")
    spark.end(second, "KILLED")  # Spark will launch it again, as B has not failed
    assert spark.state("Map") == ["RUNNING"]
    spark.end(recovery.launch(0))
    assert story(spark, "Map", 0) == ["FINISHED", "FINISHED"]
    assert [stage.handle.name for stage in spark.stages].count("Map") == 1


def test_another_reader_makes_one_output_while_the_vertex_itself_makes_another():
    vertices = {"Map": (2, []), "A": (1, ["Map"]), "B": (1, ["Map"])}
    spark = FakeSpark(vertices, restart_strategy=FixedDelayRestartBackoffTimeStrategy(1, 100.0))
    spark.run("Map")
    first = Recovery(spark, "A", "Map").launch(0)
    recovery = Recovery(spark, "B", "Map", 700)
    spark.end(spark.launch("A", 0), "FAILED")
    spark.conclude("A", RuntimeError("aborted"))
    spark.end(first, "KILLED")
    assert spark.running() == ["B", "Map"]
    spark.job_started("Map")
    own, others = spark.launch("Map", 0), recovery.launch(1)
    assert spark.state("Map") == ["RUNNING", "RUNNING"]
    spark.end(others)
    spark.end(own)
    spark.conclude("Map")
    assert (story(spark, "Map", 0), story(spark, "Map", 1)) == (
        ["FINISHED", "FAILED", "FINISHED"],
        ["FINISHED", "FINISHED"],
    )


def test_a_restarted_stage_makes_lost_outputs_of_finished_subtasks_too():
    spark = FakeSpark(
        {"Map": (2, []), "Write": (1, ["Map"])}, restart_strategy=FixedDelayRestartBackoffTimeStrategy(1, 1.0)
    )
    spark.job_started("Map")
    spark.end(spark.launch("Map", 0, executor="1"))
    spark.end(spark.launch("Map", 1, executor="2"), "FAILED")
    spark.conclude("Map", RuntimeError("aborted"))
    spark.pass_time(1)
    assert spark.state("Map") == ["FINISHED", "SCHEDULED"]
    spark.job_started("Map")
    # The executor of the first one has been lost meanwhile.
    for task in [spark.launch("Map", partition, executor="2") for partition in range(2)]:
        spark.end(task)
    spark.conclude("Map")
    assert spark.state("Map") == ["FINISHED", "FINISHED"]
    assert story(spark, "Map", 0) == ["FINISHED", "FINISHED"]
    spark.run("Write")
    assert spark.scheduler.job_status is JobStatus.FINISHED


def test_cancelling_ends_what_is_being_made_once_more():
    spark = FakeSpark(CHAIN)
    spark.run("Map")
    task = Recovery(spark, "Write", "Map").launch(0)
    spark.main_thread.execute(spark.scheduler.cancel)
    spark.settle()
    assert spark.state("Map") == ["CANCELING", "FINISHED"]
    assert spark.stage("Write").is_cancelled
    spark.end(task, "KILLED")
    spark.say(JobEnded(spark.stage("Write").job_id, False))
    spark.conclude("Write", RuntimeError("cancelled"))
    assert spark.scheduler.job_status is JobStatus.CANCELED
    assert spark.active_runs() == []


def test_cancelling_while_spark_has_not_launched_it_again():
    spark = FakeSpark(CHAIN)
    spark.job_started("Map")
    spark.lose(spark.launch("Map", 0, executor="1"))
    spark.main_thread.execute(spark.scheduler.cancel)
    spark.settle()
    assert spark.stage("Map").is_cancelled
    spark.conclude("Map", RuntimeError("cancelled"))
    assert spark.scheduler.job_status is JobStatus.CANCELED
    assert story(spark, "Map", 0) == ["FAILED", "CANCELED"]


def test_executors_lost_again_and_again_fail_the_job_with_sparks_last_word():
    spark = FakeSpark(CHAIN)
    spark.job_started("Map")
    for executor in ("1", "2", "3", "4"):
        spark.lose(spark.launch("Map", 0, executor=executor))
    spark.conclude("Map", RuntimeError("Job aborted due to stage failure: Task 0 failed 4 times"))
    assert spark.scheduler.job_status is JobStatus.FAILED
    assert story(spark, "Map", 0) == ["FAILED"] * 5
    assert "Command exited with code 137" in str(vertex(spark, "Map", 0).current_execution.error)
