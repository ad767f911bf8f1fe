"""Helpers that run planned jobs vertex by vertex, and count what Spark really ran."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

from flinkmagic.graph.job_graph import JobGraph, JobVertex
from flinkmagic.graph.job_graph_generator import create_job_graph
from flinkmagic.jvm.java import dataset_of
from flinkmagic.planning import PlannedJob
from flinkmagic.planning.stage_handles import (
    BoundaryStageHandle,
    BroadcastStageHandle,
    ResultStageHandle,
    ShuffleMapStageHandle,
    StageHandle,
    SubqueryStageHandle,
    WriteStageHandle,
)
from tests.status_store import StatusStore

_GROUPS = itertools.count()


@dataclass
class Ran:
    """What Spark's status store says that a piece of work ran."""

    jobs: int = 0
    stages: dict[int, int] = field(default_factory=dict)
    """Tasks that succeeded, by the id of each stage that was not skipped."""


class WatchedStore(StatusStore):
    """Watches one session's Spark jobs."""

    @contextmanager
    def watch(self) -> Iterator[Ran]:
        """What runs in the block, on this thread, is found in the answer afterwards."""
        ran, before = Ran(), self.jobs()
        yield ran
        jobs = self.since(before)
        ran.jobs = len(jobs)
        for job in jobs:
            for stage_id in _items(job.stageIds()):
                stage = self.store.lastStageAttempt(stage_id)
                if stage.status().toString() == "COMPLETE":
                    ran.stages[stage_id] = stage.numCompleteTasks()


def _items(seq: Any) -> list[Any]:
    return [seq.apply(i) for i in range(seq.size())]


@pytest.fixture(scope="session")
def status(spark: SparkSession) -> WatchedStore:
    return WatchedStore(spark)


@pytest.fixture
def compiled() -> Callable[[PlannedJob], JobGraph]:
    """Compile a planned job to its job graph."""
    return lambda job: create_job_graph(job.environment.get_stream_graph())


class Runner:
    """Runs the stages of a planned job one after the other, as their handles say."""

    def __init__(self, spark: SparkSession) -> None:
        self._spark = spark

    def run(self, job: PlannedJob, after_vertex: Callable[[JobVertex], None] | None = None) -> dict[str, list[Any]]:
        """The rows of each result; writes have no entry."""
        graph = create_job_graph(job.environment.get_stream_graph())
        rows: dict[str, list[Any]] = {}
        for vertex in graph.vertices_in_topological_order():
            handle = vertex.operator_factory
            assert isinstance(handle, StageHandle), f"{vertex.name} has no handle"
            if isinstance(handle, ResultStageHandle):
                rows[handle.name] = self._result(handle).collect()
            else:
                self._run(handle)
            if after_vertex is not None:
                after_vertex(vertex)
        return rows

    def _run(self, handle: StageHandle) -> None:
        if isinstance(handle, ShuffleMapStageHandle):
            if handle.tasks:
                self._submit(handle.make())
        elif isinstance(handle, BroadcastStageHandle):
            handle.make().relationFuture().get()
        elif isinstance(handle, BoundaryStageHandle):
            handle.make().cacheBuilder().cachedColumnBuffers().count()
        elif isinstance(handle, SubqueryStageHandle):
            handle.make().executeCollect()
        else:
            assert isinstance(handle, WriteStageHandle)
            handle.make().executeCollect()

    def _submit(self, dependency: Any) -> None:
        action = self._spark.sparkContext._jsc.sc().submitMapStage(dependency)
        duration = self._spark._jvm.scala.concurrent.duration.Duration.create("120 s")
        self._spark._jvm.scala.concurrent.Await.result(action, duration)

    def _result(self, handle: ResultStageHandle) -> DataFrame:
        schema = self._spark._jsparkSession.parseDataType(handle.schema_json)
        rows = handle.make().execute()
        return DataFrame(self._spark._jsparkSession.internalCreateDataFrame(rows, schema, False), self._spark)


@pytest.fixture(scope="session")
def runner(spark: SparkSession) -> Runner:
    return Runner(spark)


@pytest.fixture
def plain(spark: SparkSession, status: WatchedStore) -> Callable[..., tuple[list[Any], Ran]]:
    """Run a DataFrame as plain Spark does, with as many partitions and no adaptive plan."""

    def run(df: DataFrame, parallelism: int) -> tuple[list[Any], Ran]:
        settings = {"spark.sql.adaptive.enabled": "false", "spark.sql.shuffle.partitions": str(parallelism)}
        before = {key: spark.conf.get(key) for key in settings}
        try:
            for key, value in settings.items():
                spark.conf.set(key, value)
            fresh = dataset_of(spark._jvm, spark._jsparkSession, df._jdf.queryExecution().analyzed())
            rdd = fresh.queryExecution().toRdd
            with status.watch() as ran:
                whole = spark._jsparkSession.internalCreateDataFrame(rdd(), fresh.schema(), False)
                rows = DataFrame(whole, spark).collect()
            return rows, ran
        finally:
            for key, value in before.items():
                spark.conf.set(key, value)

    return run


@dataclass(frozen=True)
class Tables:
    """Small real tables on disk."""

    flights: DataFrame
    carriers: DataFrame
    by_month: DataFrame
    """The flights again, in one folder for each month."""
    folder: str


@pytest.fixture(scope="session")
def tables(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Tables:
    folder = str(tmp_path_factory.mktemp("tables"))
    flights = spark.range(0, 4000, 1, 3).selectExpr(
        "id",
        "CAST(id % 12 AS INT) + 1 AS month",
        "CAST(id % 24 AS INT) AS hour",
        "CONCAT('C', id % 7) AS carrier",
        "IF(id % 11 = 0, NULL, CAST(id % 97 AS DOUBLE) - 20) AS delay",
    )
    flights.write.parquet(f"{folder}/flights")
    flights.write.partitionBy("month").parquet(f"{folder}/by_month")
    names = [(f"C{number}", f"Carrier {number}", number) for number in range(9)]
    carriers = spark.createDataFrame(names, "carrier string, name string, rank int").coalesce(1)
    carriers.write.parquet(f"{folder}/carriers")
    read = spark.read.parquet
    return Tables(read(f"{folder}/flights"), read(f"{folder}/carriers"), read(f"{folder}/by_month"), folder)
