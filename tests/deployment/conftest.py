"""Runs programs as deployments, and reads what Spark's own status store says of them."""

from __future__ import annotations

import importlib.util
import sys
import threading
import time
from collections import Counter
from pathlib import Path

import pytest

from flinkmagic.deployment import SparkDeployment
from flinkmagic.deployment.stages.stage_threads import IDLE
from flinkmagic.graph.execution_graph import ExecutionGraph
from flinkmagic.graph.job_graph_generator import create_job_graph
from flinkmagic.options import JobOptions
from flinkmagic.planning import plan
from tests.status_store import StatusStore


def _load(name):
    """Let test modules of this folder import `name` from it: the folder is no package."""
    spec = importlib.util.spec_from_file_location(name, Path(__file__).with_name(f"{name}.py"))
    sys.modules[name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(sys.modules[name])


_load("fake_spark")
_load("own_process")


class SparkWork(StatusStore):
    """The Spark jobs and stages of one session."""

    def __init__(self, spark):
        super().__init__(spark)
        self._jvm, self._gateway = spark._jvm, spark.sparkContext._gateway

    def tasks_by_stage(self, before):
        """By stage of the jobs since there were so many: how many tasks succeeded; skipped stages are absent."""
        done = Counter()
        stages = {
            stage
            for job in self.since(before)
            for stage in (job.stageIds().apply(number) for number in range(job.stageIds().size()))
        }
        nothing = self._jvm.java.util.ArrayList()
        quantiles = self._gateway.new_array(self._jvm.double, 0)
        for stage in stages:
            attempts = self.store.stageData(stage, False, nothing, False, quantiles)
            for number in range(attempts.size()):
                done[stage] += attempts.apply(number).numCompleteTasks()
        return {stage: tasks for stage, tasks in done.items() if tasks}

    def running_tasks(self):
        """How many tasks run on the session's executors now."""
        executors = self.store.executorList(True)
        return sum(executors.apply(number).activeTasks() for number in range(executors.size()))


def _once(tasks, stages):
    by_subtask = Counter((task.vertex_id, task.subtask) for task in tasks if task.role == "task")
    assert max(by_subtask.values()) == 1
    assert {task.role for task in tasks} <= {"task", "helper"}
    assert sum(stages.values()) == len(tasks)
    assert stages.keys() == {task.stage for task in tasks}
    stages_of = {}
    for task in tasks:
        if task.role == "task":
            stages_of.setdefault(task.vertex_id, set()).add(task.stage)
    assert {len(of_vertex) for of_vertex in stages_of.values()} == {1}


@pytest.fixture
def ran_once():
    """Checks that every vertex of a job was one stage of Spark's, and that nothing ran twice or beside it.

    To be called with the job's task records and what Spark's status store says of the stages that ran meanwhile.
    """
    return _once


@pytest.fixture
def spark_work(spark):
    return SparkWork(spark)


@pytest.fixture
def deploy(spark):
    """Plan, compile and deploy; what was deployed is cancelled and released after the test."""
    deployments = []

    def start(program, *, parallelism=3, share="auto", **options):
        planned = plan(program, JobOptions(parallelism=parallelism, share=share), name="job")
        graph = ExecutionGraph(create_job_graph(planned.environment.get_stream_graph()))
        deployment = SparkDeployment(planned, graph, spark=spark, **options)
        deployment.start()
        deployments.append(deployment)
        return deployment

    yield start
    for deployment in deployments:
        deployment.cancel()
        deployment.wait(60)
        deployment.release()


@pytest.fixture(scope="session")
def numbers(spark, tmp_path_factory):
    """A table of 2000 rows in four parquet files: id, k (0 to 6), m (0 to 99)."""
    path = str(tmp_path_factory.mktemp("numbers") / "numbers")
    spark.range(0, 2000, 1, 4).selectExpr("id", "id % 7 AS k", "id % 100 AS m").write.parquet(path)
    return path


def is_busy(thread: str) -> bool:
    return thread.startswith("flinkmagic-") and thread != IDLE


@pytest.fixture(autouse=True)
def no_threads_left():
    """A deployment leaves no thread of its own behind but those that wait for the stages of another."""
    before = set(threading.enumerate())
    yield
    deadline = time.monotonic() + 60
    while left := [one.name for one in {*threading.enumerate()} - before if is_busy(one.name)]:
        assert time.monotonic() < deadline, left
        time.sleep(0.01)
