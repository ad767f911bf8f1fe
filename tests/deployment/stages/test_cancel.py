"""Cancelling ends this job's Spark work and nothing else of the session's."""

from __future__ import annotations

import threading
import time
from pathlib import Path
from types import SimpleNamespace

import pytest
from fake_spark import map_handle
from pyspark.sql import functions as F

from flinkmagic.capturing.capture import capture
from flinkmagic.deployment.java_classes import CLASSES
from flinkmagic.deployment.stages.python_workers import PythonWorkerWatch
from flinkmagic.deployment.stages.stage_place import StagePlace
from flinkmagic.deployment.stages.stage_runner import StageRun
from flinkmagic.errors.usage import JobRunningError
from flinkmagic.graph.execution_state import ExecutionState
from flinkmagic.planning.stage_handles import WriteStageHandle
from flinkmagic.scheduling.job_status import JobStatus


def sleepy(frame):
    """The frame, each partition of which takes a while in a Python worker."""

    def wait(batches):
        time.sleep(60)
        yield from batches

    return frame.mapInArrow(wait, frame.schema)


def waiting(frame, go):
    """The frame, each partition of which waits in a Python worker until a file exists."""

    def wait(batches, go=str(go)):
        while not Path(go).exists():
            time.sleep(0.01)
        yield from batches

    return frame.mapInArrow(wait, frame.schema)


def running(deployment):
    return [task for task in deployment.tasks() if task.end_ms is None]


def test_cancel_ends_all_tasks_of_the_job(spark, deploy, spark_work, eventually):
    deployment = deploy({"rows": sleepy(spark.range(0, 8, 1, 4)).groupBy("id").count()})
    eventually(lambda: len(running(deployment)) == 2, 60)
    assert deployment.status is JobStatus.RUNNING
    deployment.cancel()
    assert deployment.wait(30) is JobStatus.CANCELED
    assert running(deployment) == []
    eventually(lambda: spark_work.running_tasks() == 0)
    assert {task.state for task in deployment.tasks()} == {ExecutionState.CANCELED}
    graph = deployment.execution_graph
    assert {graph.state_of(index) for index in range(graph.n_vertices)} == {ExecutionState.CANCELED}
    assert len(deployment.tasks()) == 2  # the other two were never launched
    assert deployment.exceptions() == ()


def test_another_job_of_the_session_goes_on(spark, deploy, eventually, tmp_path):
    mine, started, go = [], tmp_path / "started", tmp_path / "go"

    def wait(batches):
        started.touch()
        while not go.exists():
            time.sleep(0.01)
        yield from batches

    def other():
        mine.append(spark.range(0, 2, 1, 1).mapInArrow(wait, "id long").count())

    deployment = deploy({"rows": sleepy(spark.range(0, 2, 1, 1))})
    eventually(lambda: len(running(deployment)) == 1, 60)
    thread = threading.Thread(target=other)
    thread.start()
    eventually(started.exists, 60)
    deployment.cancel()
    assert deployment.wait(30) is JobStatus.CANCELED
    go.touch()
    thread.join(60)
    assert mine == [2]


def test_a_cancelled_write_is_no_success(spark, deploy, tmp_path, eventually):
    with capture(spark) as program:
        sleepy(spark.range(0, 4, 1, 2)).write.parquet(str(tmp_path / "out"))
    deployment = deploy(program)
    eventually(lambda: len(running(deployment)) == 2, 60)
    deployment.cancel()
    assert deployment.wait(30) is JobStatus.CANCELED
    assert not (tmp_path / "out" / "_SUCCESS").exists()
    assert deployment.finished_sinks() == []


def test_cancel_before_spark_was_asked(spark, deploy):
    deployment = deploy({"rows": spark.range(0, 100, 1, 4).groupBy("id").count()})
    deployment.cancel()
    assert deployment.wait(30) is JobStatus.CANCELED
    graph = deployment.execution_graph
    assert all(graph.state_of(index).is_terminal for index in range(graph.n_vertices))


def test_cancel_during_the_sampling_of_a_sort(spark, deploy, eventually, spark_work):
    deployment = deploy({"rows": sleepy(spark.range(0, 8, 1, 2)).orderBy(F.desc("id"))})
    eventually(lambda: len(running(deployment)) == 2, 60)
    assert {task.role for task in running(deployment)} == {"helper"}
    deployment.cancel()
    assert deployment.wait(30) is JobStatus.CANCELED
    eventually(lambda: spark_work.running_tasks() == 0)
    assert running(deployment) == []


def test_cancel_of_a_broadcast(spark, deploy, eventually, spark_work):
    small = sleepy(spark.range(0, 4, 1, 2).selectExpr("id AS k"))
    frame = spark.range(0, 8, 1, 2).selectExpr("id", "id AS k").join(F.broadcast(small), "k")
    deployment = deploy({"rows": frame})
    eventually(lambda: len(running(deployment)) == 2, 60)
    deployment.cancel()
    assert deployment.wait(30) is JobStatus.CANCELED
    eventually(lambda: spark_work.running_tasks() == 0)


def test_cancel_after_the_end_changes_nothing(spark, deploy):
    deployment = deploy({"rows": spark.range(3)})
    assert deployment.wait(60) is JobStatus.FINISHED
    deployment.cancel()
    assert deployment.wait(1) is JobStatus.FINISHED


def test_only_a_job_that_is_over_is_released(spark, deploy, eventually):
    deployment = deploy({"rows": sleepy(spark.range(0, 2, 1, 1))})
    eventually(lambda: running(deployment), 60)
    with pytest.raises(JobRunningError, match="is running"):
        deployment.release()


def test_python_workers_of_tasks_that_were_not_cancelled_are_left_alone(spark, deploy, eventually, tmp_path):
    deployment = deploy({"rows": waiting(spark.range(0, 4, 1, 2), tmp_path / "go")})
    eventually(lambda: len(running(deployment)) == 2, 60)
    sc = spark.sparkContext
    (tag,) = [stage.tag for stage in deployment._drive._stages.values()]
    mine = CLASSES.new_instance(sc._gateway, "PythonWorkers", tag, False)
    others = CLASSES.new_instance(sc._gateway, "PythonWorkers", f"{tag}0", False)
    eventually(lambda: mine.end() == 2)
    assert others.end() == 0
    assert CLASSES.new_instance(sc._gateway, "PythonWorkers", tag[:-3], True).end() == 2
    assert CLASSES.new_instance(sc._gateway, "PythonWorkers", f"x{tag}", True).end() == 0
    (tmp_path / "go").touch()
    assert deployment.wait(60) is JobStatus.FINISHED
    assert mine.end() == 0


def test_cancel_ends_tasks_that_are_busy_in_the_jvm(spark, deploy, spark_work, eventually):
    deployment = deploy({"rows": spark.range(0, 10**14, 1, 4).selectExpr("sum(hash(id) % 7) AS s")})
    eventually(lambda: len(running(deployment)) == 2, 60)
    deployment.cancel()
    assert deployment.wait(30) is JobStatus.CANCELED
    eventually(lambda: spark_work.running_tasks() == 0)
    assert {task.state for task in deployment.tasks()} == {ExecutionState.CANCELED}


def test_cancel_while_a_broadcast_is_built_of_what_the_jvm_is_busy_with(spark, deploy, spark_work, eventually):
    small = spark.range(0, 10**14, 1, 2).where("hash(id) = 1").selectExpr("id AS k").limit(5)
    frame = spark.range(0, 8, 1, 2).selectExpr("id", "id AS k").join(F.broadcast(small), "k")
    deployment = deploy({"rows": frame})
    eventually(lambda: len(running(deployment)) == 2, 60)
    deployment.cancel()
    assert deployment.wait(30) is JobStatus.CANCELED
    eventually(lambda: spark_work.running_tasks() == 0)


def test_another_job_of_ours_goes_on(spark, deploy, tmp_path, eventually):
    with capture(spark) as program:
        waiting(spark.range(0, 2, 1, 1), tmp_path / "go").write.parquet(str(tmp_path / "out"))
    mine, other = deploy({"rows": sleepy(spark.range(0, 2, 1, 1))}), deploy(program)
    eventually(lambda: len(running(mine)) == len(running(other)) == 1, 60)
    mine.cancel()
    assert mine.wait(30) is JobStatus.CANCELED
    (tmp_path / "go").touch()
    assert other.wait(60) is JobStatus.FINISHED
    assert [task.state for task in other.tasks()] == [ExecutionState.FINISHED]
    assert spark.read.parquet(str(tmp_path / "out")).count() == 2


def test_kept_rows_of_a_cancelled_job_are_let_go_of(spark, deploy, eventually):
    spark.catalog.clearCache()  # of what other tests have cached
    cache = spark._jsparkSession.sharedState().cacheManager()
    persistent = set(spark.sparkContext._jsc.getPersistentRDDs())
    assert cache.isEmpty()
    deployment = deploy({"done": spark.range(5), "rows": sleepy(spark.range(0, 2, 1, 1))})
    eventually(lambda: [sink.name for sink in deployment.finished_sinks()] == ["done"], 60)
    deployment.result("done")
    assert not cache.isEmpty()
    deployment.cancel()
    assert deployment.wait(30) is JobStatus.CANCELED
    assert cache.isEmpty()
    # What nobody refers to any more goes at any time.
    assert set(spark.sparkContext._jsc.getPersistentRDDs()) <= persistent


def test_sinks_that_were_written_before_the_cancellation_stay(spark, deploy, tmp_path, eventually):
    with capture(spark) as program:
        spark.range(0, 4, 1, 1).write.parquet(str(tmp_path / "done"))
        sleepy(spark.range(0, 4, 1, 1)).write.parquet(str(tmp_path / "half"))
    deployment = deploy(program)
    eventually(lambda: [sink.name for sink in deployment.finished_sinks()] == ["done"], 60)
    deployment.cancel()
    assert deployment.wait(30) is JobStatus.CANCELED
    assert (tmp_path / "done" / "_SUCCESS").exists()
    assert not (tmp_path / "half" / "_SUCCESS").exists()
    # Spark's committer takes back what an aborted write has begun.
    assert not list((tmp_path / "half").glob("part-*"))
    assert [sink.name for sink in deployment.finished_sinks()] == ["done"]


def test_a_write_that_is_committed_while_it_is_cancelled_is_told_as_written(spark, deploy, tmp_path, monkeypatch):
    """Who is told that it was not would append the same rows once more."""
    is_committed, may_end = threading.Event(), threading.Event()
    run = WriteStageHandle.run

    def held_after_the_commit(self, *arguments):
        run(self, *arguments)
        is_committed.set()
        may_end.wait(60)

    monkeypatch.setattr(WriteStageHandle, "run", held_after_the_commit)
    with capture(spark) as program:
        spark.range(0, 4, 1, 1).write.parquet(str(tmp_path / "out"))
    deployment = deploy(program)
    assert is_committed.wait(60)
    deployment.cancel()
    deployment.wait(0.5)
    assert not deployment.termination_future.done()
    may_end.set()
    assert deployment.wait(30) is JobStatus.CANCELED
    assert deployment.execution_graph.state_of(0) is ExecutionState.CANCELED
    assert (tmp_path / "out" / "_SUCCESS").exists()
    assert [sink.name for sink in deployment.finished_sinks()] == ["out"]


def test_no_stage_fails_because_executors_cannot_be_asked_to_end_python_workers(spark):
    # It looks like a cluster, and nothing of it works.
    watch = PythonWorkerWatch()
    jsc = SimpleNamespace(sc=lambda: SimpleNamespace(isLocal=lambda: False))
    watch.start(SimpleNamespace(_jsc=jsc), lambda *_: pytest.fail("there is nothing to ask"))
    watch.start(spark.sparkContext, lambda *_: pytest.fail("a local session has no executors to ask"))


def test_a_stage_whose_session_is_stopped_meanwhile_has_an_outcome():
    """Spark cancels its job; there is nothing left that could end Python workers."""

    def run(*_):
        raise RuntimeError("Job 3 cancelled because SparkContext was shut down")

    outcomes = []
    runner = SimpleNamespace(run=run, sc=SimpleNamespace(_jsc=None))
    place = StagePlace("run", "0123abcd", "shuffle", ())
    stage = StageRun(runner, map_handle("Map", 1), "tag", "Map", place, None, lambda _, one: outcomes.append(one))
    stage.start()
    assert stage.join(30)
    (outcome,) = outcomes
    assert "SparkContext was shut down" in str(outcome.error)
