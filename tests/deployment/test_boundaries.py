"""Boundaries as Spark runs them: one stage under our scheduler, before all that reads its rows."""

from __future__ import annotations

import time

import pytest
from pyspark.sql import functions as F

import flinkmagic
from flinkmagic.capturing.capture import capture
from flinkmagic.planning.stage_handles import BoundaryStageHandle
from flinkmagic.scheduling.failover.restart_strategy import FixedDelayRestartBackoffTimeStrategy
from flinkmagic.scheduling.job_status import JobStatus


@pytest.fixture
def marks(tmp_path):
    folder = tmp_path / "marks"
    folder.mkdir()
    return folder


def passing(marks, fails):
    """A function that leaves a mark for each pass over a partition; the first `fails` over the first one fail."""
    folder = str(marks)

    def mark(batches):
        import uuid
        from pathlib import Path

        from pyspark import TaskContext

        partition = TaskContext.get().partitionId()
        done = len(list(Path(folder).glob(f"{partition}-*")))
        Path(folder, f"{partition}-{uuid.uuid4().hex}").touch()
        if partition == 0 and done < fails:
            raise OSError("the disk is full")
        yield from batches

    return mark


def program_over(spark, numbers, marks, out, fails=0):
    """One write that has nothing to do with the others, and two over one DataFrame that a Python function makes."""
    with capture(spark) as program:
        spark.range(0, 10, 1, 2).write.json(f"{out}/alone")
        marked = spark.read.parquet(numbers).mapInArrow(passing(marks, fails), "id long, k long, m long")
        marked.groupBy("k").agg(F.sum("id").alias("total")).write.json(f"{out}/totals")
        marked.where("m < 10").write.json(f"{out}/few")
    return program


@pytest.mark.matrix(3)
@pytest.mark.parametrize("share", ["auto", "always", "never"])
def test_the_rows_are_the_same_whatever_is_shared(spark, numbers, marks, tmp_path, share):
    out = str(tmp_path / "out")
    graph = flinkmagic.compile(program_over(spark, numbers, marks, out), name="shares", share=share)
    job = graph.run()
    assert job.status is JobStatus.FINISHED, job.exceptions()
    check_rows(spark, out)
    passes = len(list(marks.iterdir()))
    computed_by = {"auto": 1, "always": 1, "never": 2}[share]
    assert passes == computed_by * spark.read.parquet(numbers).rdd.getNumPartitions()
    job.release()


def boundary_of(deployment):
    (vertex,) = [
        vertex
        for vertex in deployment.execution_graph.job_vertices
        if isinstance(vertex.job_vertex.operator_factory, BoundaryStageHandle)
    ]
    return vertex


def check_rows(spark, out):
    totals = {row.k: row.total for row in spark.read.json(f"{out}/totals").collect()}
    assert totals == {k: sum(range(k, 2000, 7)) for k in range(7)}
    assert sorted(row.id for row in spark.read.json(f"{out}/few").collect()) == [
        number for number in range(2000) if number % 100 < 10
    ]
    assert spark.read.json(f"{out}/alone").count() == 10


def test_a_boundary_s_stage_runs_once_and_before_its_readers(spark, deploy, spark_work, numbers, marks, tmp_path):
    program = program_over(spark, numbers, marks, tmp_path)
    before = spark_work.jobs()
    deployment = deploy(program)
    assert deployment.wait(60) is JobStatus.FINISHED, [str(e.root.error) for e in deployment.exceptions()]
    # All that Spark ran is a task of a vertex: kept rows are not computed beside it.
    done = spark_work.tasks_by_stage(before)
    assert sum(done.values()) == deployment.execution_graph.n_vertices
    check_rows(spark, tmp_path)
    boundary = boundary_of(deployment)
    assert len(list(marks.iterdir())) == boundary.parallelism
    readers = {connection.consumer.id for result in boundary.produced_results for connection in result.consumers}
    assert len(readers) == 2
    tasks = deployment.tasks()
    kept = [task for task in tasks if task.vertex_id == boundary.id]
    assert [(task.role, task.state.name) for task in kept] == [("task", "FINISHED")] * boundary.parallelism
    assert min(t.start_ms for t in tasks if t.vertex_id in readers) >= max(task.end_ms for task in kept)


def test_a_restarted_boundary_computes_only_what_is_missing(spark, deploy, numbers, marks, tmp_path):
    deployment = deploy(
        program_over(spark, numbers, marks, tmp_path, fails=1),
        restart_strategy=FixedDelayRestartBackoffTimeStrategy(2, 20.0),
    )
    assert deployment.wait(60) is JobStatus.FINISHED, [str(e.root.error) for e in deployment.exceptions()]
    check_rows(spark, tmp_path)
    parallelism = boundary_of(deployment).parallelism
    passes = [len(list(marks.glob(f"{partition}-*"))) for partition in range(parallelism)]
    assert passes[0] == 2
    [first, *_] = deployment.exceptions()
    assert "the disk is full" in str(first.root.error)


def test_a_failed_boundary_ends_its_readers_and_no_others(spark, deploy, numbers, marks, tmp_path):
    deployment = deploy(program_over(spark, numbers, marks, tmp_path, fails=100))
    assert deployment.wait(60) is JobStatus.FAILED
    assert [sink.name for sink in deployment.finished_sinks()] == ["alone"]
    assert "the disk is full" in str(deployment.exceptions()[0].root.error)
    assert deployment.kept_boundaries() == []
    assert not (tmp_path / "few").exists() or not (tmp_path / "few" / "_SUCCESS").exists()


def test_a_cancelled_boundary_ends_and_keeps_nothing(spark, deploy, spark_work, eventually, tmp_path):
    @F.udf("long")
    def slow(value):
        time.sleep(30)
        return value

    with capture(spark) as program:
        halted = spark.range(0, 8, 1, 2).select(slow("id").alias("id"))
        halted.where("id < 3").write.json(f"{tmp_path}/few")
        halted.agg(F.sum("id")).write.json(f"{tmp_path}/sum")
    deployment = deploy(program)
    eventually(lambda: any(task.vertex_id == boundary_of(deployment).id for task in deployment.tasks()), 30)
    deployment.cancel()
    assert deployment.wait(60) is JobStatus.CANCELED
    eventually(lambda: spark_work.running_tasks() == 0)
    assert deployment.kept_boundaries() == []
    persistent = spark.sparkContext._jsc.sc().getPersistentRDDs().toString()
    assert "In-memory table halted (" not in persistent
