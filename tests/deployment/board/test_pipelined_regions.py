"""The vertices of a pipelined region: one Spark job, whose stages start, fail and restart together."""

from __future__ import annotations

import pytest
from fake_spark import FakeSpark

from flinkmagic.deployment.board.drive import LONGEST_SILENCE_MS
from flinkmagic.deployment.watching.task_events import ExecutorAdded, TaskEnded
from flinkmagic.graph.execution_state import ExecutionState
from flinkmagic.scheduling.failover.restart_strategy import FixedDelayRestartBackoffTimeStrategy
from flinkmagic.scheduling.job_status import JobStatus

REGION = {"Source": (2, []), "Write": (2, ["=Source"])}
BESIDE = {"A": (2, []), "WA": (1, ["A"]), **REGION}
MEMBERS = [(name, partition) for name in ("Source", "Write") for partition in range(2)]


def restarting(**options):
    return FakeSpark(REGION, restart_strategy=FixedDelayRestartBackoffTimeStrategy(1, 10.0), **options)


def launched(spark):
    spark.region_started("Write")
    return {member: spark.launch_in_region(*member) for member in MEMBERS}


def states(spark):
    return {name: spark.state(name) for name in ("Source", "Write")}


def all_in(state):
    return {"Source": [state] * 2, "Write": [state] * 2}


def prior(spark):
    return {
        name: [
            [each.state for each in spark.graph.execution_vertex(index).prior_executions]
            for index in spark.by_name[name].vertices
        ]
        for name in ("Source", "Write")
    }


def test_one_job_of_spark_s_runs_all_vertices_and_each_has_the_tasks_of_its_own_stage():
    spark = FakeSpark(REGION)
    assert spark.running() == ["Write"]
    tasks = launched(spark)
    assert states(spark) == all_in("RUNNING")
    spark.end(tasks["Source", 0])
    assert states(spark) == {"Source": ["FINISHED", "RUNNING"], "Write": ["RUNNING"] * 2}
    for member in MEMBERS[1:]:
        spark.end(tasks[member])
    spark.conclude("Write")
    assert states(spark) == all_in("FINISHED")
    assert spark.scheduler.job_status is JobStatus.FINISHED
    assert len({record.vertex_id for record in spark.drive.state.log.records()}) == 2


def test_no_execution_is_deployed_before_every_task_has_its_slot():
    spark = FakeSpark(REGION)
    spark.region_started("Write")
    for member in MEMBERS[:3]:
        spark.launch_in_region(*member)
        assert states(spark) == all_in("SCHEDULED")
    spark.launch_in_region(*MEMBERS[3])
    assert states(spark) == all_in("RUNNING")


def test_a_region_goes_when_all_its_slots_are_free_and_says_what_it_waits_for():
    spark = FakeSpark(BESIDE, session_slots=4)
    assert spark.running() == ["A"]
    waits = "the region of Sink: Write (2 vertices) waits for 4 slots, which it needs simultaneously; 2 of 4 are free"
    assert spark.drive.waiting_for == waits
    spark.job_started("A")
    first, second = spark.launch("A", 0), spark.launch("A", 1)
    spark.end(first)
    assert spark.running() == ["A"]
    spark.end(second)
    spark.conclude("A")
    assert spark.running() == ["Write", "WA"]
    assert spark.drive.waiting_for == ""


def test_a_region_for_which_the_session_is_too_small_holds_up_no_other_vertex_and_goes_when_executors_come():
    spark = FakeSpark({"A": (1, []), "WA": (1, ["A"]), **REGION}, session_slots=3)
    spark.run("A")
    spark.run("WA")
    assert spark.running() == []
    assert "waits for 4 slots, which it needs simultaneously; 3 of 3 are free" in spark.drive.waiting_for
    assert spark.scheduler.job_status is JobStatus.RUNNING
    spark.say(ExecutorAdded("2", 1))
    assert spark.running() == ["Write"]


def test_a_limit_of_slots_counts_for_a_region_too():
    assert FakeSpark(REGION, slots=3, session_slots=8).running() == []
    assert FakeSpark(REGION, slots=4, session_slots=8).running() == ["Write"]


@pytest.mark.parametrize("culprit", MEMBERS)
def test_a_failed_task_restarts_the_whole_region_once_all_its_tasks_have_ended(culprit):
    spark = restarting()
    tasks = launched(spark)
    finished = next(member for member in MEMBERS if member != culprit)
    spark.end(tasks[finished])
    spark.end(tasks[culprit], "FAILED")
    rest = [member for member in MEMBERS if member not in (culprit, finished)]
    spark.end(tasks[rest[0]], "KILLED")
    spark.conclude("Write", error=RuntimeError("stage failed"))
    assert spark.scheduler.job_status is JobStatus.RUNNING
    spark.end(tasks[rest[1]], "KILLED")
    assert [entry.root.task_name for entry in spark.job_master.request_job().exception_history] == [
        spark.by_name[culprit[0]].task_name(culprit[1])
    ]
    spark.pass_time(20)
    assert states(spark) == all_in("SCHEDULED")
    assert {len(each) for of_vertex in prior(spark).values() for each in of_vertex} == {1}
    tasks = launched(spark)
    for member in MEMBERS:
        spark.end(tasks[member])
    spark.conclude("Write")
    assert spark.scheduler.job_status is JobStatus.FINISHED


def test_a_task_that_is_lost_with_its_executor_is_a_failure_of_the_region():
    """Of any other stage Spark would run it again by itself."""
    spark = restarting()
    tasks = launched(spark)
    for member in MEMBERS:
        end = TaskEnded(
            tasks[member], spark.clock.now_ms(), "FAILED", None, "ExecutorLostFailure", "executor 1 is lost"
        )
        spark.say(end)
    assert states(spark) == all_in("RUNNING")
    spark.conclude("Write", error=RuntimeError("executor 1 is lost"))
    spark.pass_time(20)
    assert states(spark) == all_in("SCHEDULED")
    assert spark.running() == ["Write"]


def test_without_restarts_the_job_fails_with_what_failed_first():
    spark = FakeSpark(REGION)
    tasks = launched(spark)
    spark.end(tasks["Source", 1], "FAILED", "ValueError: first")
    spark.end(tasks["Write", 0], "FAILED", "IOException: nothing to read")
    spark.conclude("Write", error=RuntimeError("stage failed"))
    for member in (("Source", 0), ("Write", 1)):
        spark.end(tasks[member], "KILLED")
    assert spark.scheduler.job_status is JobStatus.FAILED
    assert states(spark) == {"Source": ["CANCELED", "FAILED"], "Write": ["CANCELED"] * 2}
    (entry,) = [each for each in spark.job_master.request_job().exception_history if not each.root.is_global]
    assert "first" in str(entry.root.error)


@pytest.mark.parametrize("n_launched", [0, 1, 3])
def test_a_failure_before_all_tasks_were_launched_fails_the_region(n_launched):
    spark = FakeSpark(REGION)
    spark.region_started("Write")
    tasks = [spark.launch_in_region(*member) for member in MEMBERS[:n_launched]]
    for task in tasks:
        spark.end(task, "FAILED")
    spark.conclude("Write", error=RuntimeError("stage failed"))
    assert spark.scheduler.job_status is JobStatus.FAILED
    assert spark.overs == 1


def test_ends_that_spark_never_tells_of_end_all_vertices():
    spark = restarting()
    tasks = launched(spark)
    spark.end(tasks["Source", 1], "FAILED")
    spark.conclude("Write", error=RuntimeError("stage failed"))
    assert spark.running() == []
    spark.pass_time(LONGEST_SILENCE_MS + 20)
    assert spark.running() == ["Write"]
    assert states(spark) == all_in("SCHEDULED")


def test_cancelling_ends_the_one_job():
    spark = FakeSpark(REGION)
    tasks = launched(spark)
    spark.main_thread.execute(spark.scheduler.cancel)
    spark.settle()
    assert spark.stage("Write").is_cancelled
    assert states(spark) == all_in("CANCELING")
    for member in MEMBERS:
        assert not spark.stage("Write").has_no_tasks
        spark.end(tasks[member], "KILLED")
    spark.conclude("Write", error=RuntimeError("cancelled"))
    assert spark.stage("Write").has_no_tasks
    assert spark.scheduler.job_status is JobStatus.CANCELED


def test_a_region_that_waits_is_cancelled():
    spark = FakeSpark(REGION, session_slots=3)
    spark.main_thread.execute(spark.scheduler.cancel)
    spark.settle()
    assert spark.scheduler.job_status is JobStatus.CANCELED
    assert spark.stages == []
    assert ExecutionState.RUNNING.name not in str(states(spark))
