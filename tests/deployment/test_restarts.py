"""Restarted stages of every kind: what has failed is made again, what is finished stays."""

from __future__ import annotations

import pytest
from pyspark.sql import functions as F

from flinkmagic.capturing.capture import capture
from flinkmagic.graph.execution_state import ExecutionState
from flinkmagic.planning.stage_handles import BroadcastStageHandle, SubqueryStageHandle
from flinkmagic.scheduling.failover.restart_strategy import FixedDelayRestartBackoffTimeStrategy
from flinkmagic.scheduling.job_status import JobStatus


def failing_at_first(frame, folder, times, partition=0):
    """The frame; the first `times` passes over one of its partitions fail."""
    marks = str(folder)

    def fail(batches):
        from pathlib import Path

        from pyspark import TaskContext

        if TaskContext.get().partitionId() == partition:
            done = len(list(Path(marks).iterdir()))
            if done < times:
                Path(marks, str(done)).touch()
                raise OSError("the disk is full")
        yield from batches

    return frame.mapInArrow(fail, frame.schema)


@pytest.fixture
def marks(tmp_path):
    folder = tmp_path / "marks"
    folder.mkdir()
    return folder


def restarts(attempts):
    return FixedDelayRestartBackoffTimeStrategy(attempts, 20.0)


def vertex_of(deployment, kind):
    (vertex,) = [
        vertex
        for vertex in deployment.execution_graph.job_vertices
        if isinstance(vertex.job_vertex.operator_factory, kind)
    ]
    return vertex


def attempts(deployment, vertex):
    graph = deployment.execution_graph
    return [[prior.state.name for prior in graph.execution_vertex(index).prior_executions] for index in vertex.vertices]


def test_a_failed_broadcast_is_built_again(spark, deploy, marks):
    small = failing_at_first(spark.range(0, 4, 1, 1).selectExpr("id AS k", "id * 10 AS v"), marks, 2)
    frame = spark.range(0, 8, 1, 2).selectExpr("id", "id % 4 AS k").join(F.broadcast(small), "k")
    deployment = deploy({"rows": frame}, restart_strategy=restarts(2))
    assert deployment.wait(60) is JobStatus.FINISHED, [str(e.root.error) for e in deployment.exceptions()]
    assert sorted((row.id, row.v) for row in deployment.result("rows").collect()) == [
        (number, number % 4 * 10) for number in range(8)
    ]
    broadcast = vertex_of(deployment, BroadcastStageHandle)
    assert attempts(deployment, broadcast) == [["FAILED", "FAILED"]]
    own = [task for task in deployment.tasks() if task.vertex_id == broadcast.id]
    assert [task.state for task in own] == [ExecutionState.FAILED, ExecutionState.FAILED, ExecutionState.FINISHED]
    assert "the disk is full" in str(deployment.exceptions()[0].root.error)


def test_a_broadcast_that_two_sinks_share_is_built_again_for_both(spark, deploy, marks, tmp_path):
    small = failing_at_first(spark.range(0, 4, 1, 1).selectExpr("id AS k", "id * 10 AS v"), marks, 1)
    big = spark.range(0, 8, 1, 2).selectExpr("id", "id % 4 AS k").join(F.broadcast(small), "k")
    with capture(spark) as program:
        big.where("v > 0").write.parquet(str(tmp_path / "a"))
        big.groupBy("k").agg(F.sum("v").alias("s")).write.parquet(str(tmp_path / "b"))
    deployment = deploy(program, restart_strategy=restarts(1))
    assert deployment.wait(60) is JobStatus.FINISHED, [str(e.root.error) for e in deployment.exceptions()]
    assert spark.read.parquet(str(tmp_path / "a")).count() == 6
    sums = spark.read.parquet(str(tmp_path / "b")).collect()
    assert sorted((row.k, row.s) for row in sums) == [(0, 0), (1, 20), (2, 40), (3, 60)]
    assert len(list(marks.iterdir())) == 1


def test_a_failed_subquery_is_run_again(spark, deploy, marks):
    least = failing_at_first(spark.range(0, 4, 1, 1), marks, 1)
    least.createOrReplaceTempView("least_of_restarts")
    frame = spark.sql("SELECT id FROM range(0, 10, 1, 2) WHERE id > (SELECT max(id) FROM least_of_restarts)")
    try:
        deployment = deploy({"rows": frame}, restart_strategy=restarts(1))
        assert deployment.wait(60) is JobStatus.FINISHED, [str(e.root.error) for e in deployment.exceptions()]
    finally:
        spark.catalog.dropTempView("least_of_restarts")
    assert sorted(row.id for row in deployment.result("rows").collect()) == list(range(4, 10))
    assert len(list(marks.iterdir())) == 1


@pytest.mark.long
def test_the_last_stage_of_a_subquery_is_run_again(spark, deploy, marks):
    """The subquery's own stage fails, not a shuffle below it."""
    one = failing_at_first(spark.range(5, 6, 1, 1), marks, 2)
    one.createOrReplaceTempView("one_of_restarts")
    frame = spark.sql("SELECT id FROM range(0, 10, 1, 2) WHERE id > (SELECT id FROM one_of_restarts)")
    try:
        deployment = deploy({"rows": frame}, restart_strategy=restarts(2))
        assert deployment.wait(60) is JobStatus.FINISHED, [str(e.root.error) for e in deployment.exceptions()]
    finally:
        spark.catalog.dropTempView("one_of_restarts")
    assert sorted(row.id for row in deployment.result("rows").collect()) == [6, 7, 8, 9]
    assert attempts(deployment, vertex_of(deployment, SubqueryStageHandle)) == [["FAILED", "FAILED"]]


@pytest.mark.long
def test_a_sampling_that_failed_is_repeated(spark, deploy, marks):
    frame = failing_at_first(spark.range(0, 100, 1, 2), marks, 1).orderBy(F.desc("id"))
    deployment = deploy({"rows": frame}, restart_strategy=restarts(1))
    assert deployment.wait(60) is JobStatus.FINISHED, [str(e.root.error) for e in deployment.exceptions()]
    assert [row.id for row in deployment.result("rows").collect()] == list(range(99, -1, -1))
    sampling = [task for task in deployment.tasks() if task.role == "helper"]
    assert ExecutionState.FAILED in {task.state for task in sampling}
    assert ExecutionState.FINISHED in {task.state for task in sampling}
    (entry,) = deployment.exceptions()
    assert entry.root.error.cause == "OSError: the disk is full"


def test_a_consumer_that_fails_reads_the_broadcast_that_is_there(spark, deploy, marks):
    small = spark.range(0, 4, 1, 1).selectExpr("id AS k", "id * 10 AS v")
    joined = spark.range(0, 8, 1, 2).selectExpr("id", "id % 4 AS k").join(F.broadcast(small), "k")
    deployment = deploy({"rows": failing_at_first(joined, marks, 1)}, restart_strategy=restarts(1))
    assert deployment.wait(60) is JobStatus.FINISHED, [str(e.root.error) for e in deployment.exceptions()]
    assert deployment.result("rows").count() == 8
    broadcast = vertex_of(deployment, BroadcastStageHandle)
    assert attempts(deployment, broadcast) == [[]]
    assert len([task for task in deployment.tasks() if task.vertex_id == broadcast.id]) == 1
