"""Where the driver's JVM compiles nothing for us, a job runs all the same."""

from __future__ import annotations

from weakref import WeakKeyDictionary

import pytest
from pyspark.sql import functions as F

from flinkmagic.capturing.capture import capture
from flinkmagic.deployment import java_classes
from flinkmagic.graph.execution_state import ExecutionState
from flinkmagic.scheduling.job_status import JobStatus


@pytest.fixture(autouse=True)
def refusing_jvm(monkeypatch):
    def refuse(sc, name, filled):
        raise TypeError("'JavaPackage' object is not callable")

    monkeypatch.setattr(java_classes, "_compile", refuse)
    monkeypatch.setattr(java_classes, "_COMPILED", WeakKeyDictionary())


def test_writes_and_results_are_those_of_a_plain_run(spark, deploy, numbers, tmp_path):
    by_k = spark.read.parquet(numbers).groupBy("k").agg(F.sum("m").alias("total")).orderBy("k")
    with capture(spark) as program:
        by_k.write.parquet(str(tmp_path / "out"))
    deployment = deploy(program)
    assert deployment.wait(100) is JobStatus.FINISHED
    assert sorted(spark.read.parquet(str(tmp_path / "out")).collect()) == by_k.collect()
    result = deploy({"rows": by_k})
    assert result.wait(100) is JobStatus.FINISHED
    assert result.result("rows").collect() == by_k.collect()


def test_states_and_records_follow_the_tasks(spark, deploy, numbers):
    deployment = deploy({"rows": spark.read.parquet(numbers).groupBy("k").count()})
    assert deployment.wait(100) is JobStatus.FINISHED
    graph, tasks = deployment.execution_graph, deployment.tasks()
    assert len(tasks) == graph.n_vertices
    assert {(task.role, task.state, task.executor) for task in tasks} == {("task", ExecutionState.FINISHED, "driver")}
    assert {graph.execution_vertex(i).current_execution.resource_id for i in range(graph.n_vertices)} == {"driver"}
    mapped = graph.job_vertices[0]
    assert sum(task.rows_in for task in tasks if task.vertex_id == mapped.id) == 2000


def test_a_failure_names_what_was_raised(spark, deploy):
    def fail(batches):
        raise KeyError("no such city")

    deployment = deploy({"rows": spark.range(0, 8, 1, 2).mapInArrow(fail, "id long").groupBy("id").count()})
    assert deployment.wait(100) is JobStatus.FAILED
    assert deployment.exceptions()[0].root.error.cause == "KeyError: 'no such city'"


def test_cancel_ends_the_tasks(spark, deploy, eventually):
    def wait(batches):
        import time

        time.sleep(60)
        yield from batches

    deployment = deploy({"rows": spark.range(0, 8, 1, 2).mapInArrow(wait, "id long")})
    eventually(lambda: len([task for task in deployment.tasks() if task.end_ms is None]) == 2, 60)
    deployment.cancel()
    assert deployment.wait(30) is JobStatus.CANCELED
    assert {task.state for task in deployment.tasks()} == {ExecutionState.CANCELED}
