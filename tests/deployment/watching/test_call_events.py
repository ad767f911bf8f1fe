"""What Spark reports of single calls is kept apart, and forgotten once it is taken."""

from __future__ import annotations

import json
import threading

import pytest

from flinkmagic.deployment.watching import call_work
from flinkmagic.deployment.watching.call_work import CallWork
from flinkmagic.errors.deployment import DriverClassesRefusedError
from flinkmagic.graph.execution_state import ExecutionState


@pytest.fixture(autouse=True)
def short_calls_are_recorded(monkeypatch):
    monkeypatch.setattr(call_work, "RECORDED_S", 0.0)


def worked(spark, call) -> CallWork:
    work = CallWork(spark.sparkContext)
    with work.entered():
        call()
    return work


def kinds(lines) -> list[str]:
    return [json.loads(line)["Event"].rpartition(".SparkListener")[2].removeprefix("SparkListener") for line in lines]


def test_a_call_has_its_tasks_and_its_events_as_a_log_has_them(spark) -> None:
    events = worked(spark, spark.range(0, 100, 1, 3).collect).events
    assert events is not None
    assert [(task.subtask, task.state, task.rows_in) for task in sorted(events.tasks, key=lambda one: one.subtask)] == [
        (0, ExecutionState.FINISHED, 33),
        (1, ExecutionState.FINISHED, 33),
        (2, ExecutionState.FINISHED, 34),
    ]
    assert events.last_stages == {events.tasks[0].stage}
    assert events.began_ms <= min(task.start_ms for task in events.tasks) + 1
    assert events.slots == spark.sparkContext.defaultParallelism
    assert kinds(events.lines) == [
        "SQLExecutionStart", "JobStart", "StageSubmitted", "StageCompleted", "JobEnd", "SQLExecutionEnd"
    ]  # fmt: skip


def test_only_the_last_stages_of_jobs_are_the_last(spark) -> None:
    events = worked(spark, spark.range(0, 100, 1, 3).groupBy("id").count().collect).events
    assert events is not None
    stages = {task.stage for task in events.tasks}
    assert max(stages) in events.last_stages
    assert "SQLAdaptiveExecutionUpdate" in kinds(events.lines)


def test_calls_of_several_threads_are_kept_apart(spark) -> None:
    works: dict[int, CallWork] = {}

    def call(parts: int) -> None:
        works[parts] = worked(spark, spark.range(0, 100, 1, parts).collect)

    threads = [threading.Thread(target=call, args=(parts,)) for parts in (2, 3, 5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert {parts: len(work.events.tasks) for parts, work in works.items() if work.events} == {2: 2, 3: 3, 5: 5}


def test_a_call_that_fails_has_its_failed_tasks(spark) -> None:
    from py4j.protocol import Py4JJavaError
    from pyspark.errors import PySparkException

    def fail() -> None:
        with pytest.raises((PySparkException, Py4JJavaError)):
            spark.range(0, 10, 1, 2).selectExpr("raise_error('no')").collect()

    events = worked(spark, fail).events
    assert events is not None
    assert {task.state for task in events.tasks} <= {ExecutionState.FAILED, ExecutionState.CANCELED}
    assert any("no" in task.error for task in events.tasks)


def test_nothing_is_asked_of_a_short_call_and_nothing_known_of_one_without_tasks(spark, monkeypatch) -> None:
    assert worked(spark, lambda: spark.createDataFrame([(1,)], "a int").schema).events is None
    monkeypatch.setattr(call_work, "RECORDED_S", 60.0)
    assert worked(spark, spark.range(3).collect).events is None


def test_a_call_stands_if_spark_cannot_be_listened_to(spark, monkeypatch, caplog) -> None:
    def refuse(*_):
        raise DriverClassesRefusedError("CallEvents", "no")

    monkeypatch.setattr(call_work, "listen", refuse)
    before = spark.sparkContext.getLocalProperty("spark.job.tags")
    worked(spark, spark.range(3).collect)
    assert "findings do without it" in caplog.text
    assert spark.sparkContext.getLocalProperty("spark.job.tags") == before
