"""Handles over a real session: objects that are made once, and again after a failure."""

from __future__ import annotations

import os

import pytest
from pyspark.sql import functions as F

from flinkmagic.capturing.capture import capture
from flinkmagic.options import JobOptions
from flinkmagic.planning import plan
from flinkmagic.planning.stage_handles import (
    BoundaryStageHandle,
    BroadcastStageHandle,
    Once,
    ResultStageHandle,
    ShuffleMapStageHandle,
    SubqueryStageHandle,
    WriteStageHandle,
)
from flinkmagic.reuse.map_outputs import MapOutputs


def handle_of(compiled, job, kind):
    return next(v.operator_factory for v in compiled(job).vertices.values() if isinstance(v.operator_factory, kind))


def test_once_makes_its_object_once_and_forgets_a_failed_attempt():
    attempts = []

    def make():
        attempts.append(1)
        if len(attempts) == 1:
            raise ValueError("not yet")
        return object()

    once = Once(make)
    with pytest.raises(ValueError, match="not yet"):
        once()
    assert once() is once()
    assert len(attempts) == 2


@pytest.fixture
def needs_file(tmp_path):
    """A column that fails while a file is missing."""
    path = str(tmp_path / "mended")

    @F.udf("int")
    def checked(number):
        if not os.path.exists(path):
            raise RuntimeError("the file is missing")
        return number

    return checked, path


@pytest.mark.matrix(2)
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("kind", [BroadcastStageHandle, SubqueryStageHandle])
def test_a_failed_broadcast_or_subquery_runs_after_it_is_renewed(
    kind, spark, tables, needs_file, compiled, runner, status
):
    checked, path = needs_file
    few = tables.carriers.where("rank = 4").withColumn("checked", checked("rank"))
    if kind is BroadcastStageHandle:
        late = tables.flights.join(F.broadcast(few), "carrier")
    else:
        few.createOrReplaceTempView("handles_few")
        tables.flights.createOrReplaceTempView("handles_flights")
        late = spark.sql("SELECT * FROM handles_flights WHERE hour > (SELECT checked FROM handles_few)")
    job = plan({"rows": late, "counts": late.groupBy("hour").count()}, JobOptions(parallelism=2))
    with pytest.raises(Exception, match="the file is missing"):
        runner.run(job)
    with open(path, "w"):
        pass
    with pytest.raises(Exception, match="the file is missing"):
        runner.run(job)

    handle_of(compiled, job, kind).renew()
    with status.watch() as ran:
        rows = runner.run(job)
    expected = late.count()
    assert len(rows["rows"]) == sum(row["count"] for row in rows["counts"]) == expected > 0
    assert len(ran.stages) == len(compiled(job).vertices)


def test_a_renewed_write_reads_the_rows_that_are_kept_by_then(spark, tables, compiled, runner, tmp_path):
    with capture(spark) as program:
        shared = tables.flights.groupBy("hour").count()
        shared.write.json(str(tmp_path / "all"))
        shared.where("hour > 3").write.json(str(tmp_path / "late"))
    job = plan(program)

    def tell_sizes(vertex):
        handle = vertex.operator_factory
        if isinstance(handle, ShuffleMapStageHandle):
            handle.written(MapOutputs(spark.sparkContext).statistics(handle.make()))

    runner.run(job, tell_sizes)
    builder = handle_of(compiled, job, BoundaryStageHandle).make().cacheBuilder()
    write = handle_of(compiled, job, WriteStageHandle)
    assert write.adaptation.tasks == 1

    def reads(rows):
        query = write.make().children().head().children().head()
        return f"[{rows.id()}]" in query.execute().toDebugString()

    before = builder.cachedColumnBuffers()
    assert reads(before)
    builder.clearCache(False)
    again = builder.cachedColumnBuffers()
    assert again.id() != before.id()
    write.renew()
    assert reads(again)
    assert not reads(before)


def test_a_range_exchange_says_that_it_samples(tables, compiled):
    ranged = handle_of(compiled, plan(tables.flights.orderBy("id"), JobOptions(parallelism=3)), ShuffleMapStageHandle)
    assert (ranged.starts_jobs_early, ranged.output_partitions) == (True, 3)
    counted = handle_of(
        compiled, plan(tables.flights.groupBy("hour").count(), JobOptions(parallelism=3)), ShuffleMapStageHandle
    )
    assert not counted.starts_jobs_early


def test_a_stage_says_whether_its_tasks_may_wait_for_python_workers(spark, tables, compiled):
    same = F.udf(lambda hour: hour, "int")
    counts = tables.flights.select(same("hour").alias("hour")).groupBy("hour").count()
    job = plan(counts, JobOptions(parallelism=3))
    assert handle_of(compiled, job, ShuffleMapStageHandle).calls_python
    assert not handle_of(compiled, job, ResultStageHandle).calls_python
    of_rdd = spark.createDataFrame(spark.sparkContext.parallelize([(1,), (2,)], 2), "id int")
    assert handle_of(compiled, plan(of_rdd, JobOptions(parallelism=2)), ResultStageHandle).calls_python


@pytest.mark.parametrize("joined", ["JOIN few USING (id)", "CROSS JOIN few"])
def test_rows_of_the_driver_reach_it_without_a_task(spark, compiled, status, runner, joined):
    few = "few AS (SELECT * FROM VALUES (1L, 5L), (2L, 6L), (7L, 7L) AS few(id, top))"
    frame = spark.sql(f"WITH {few} SELECT t.id FROM range(0, 10, 1, 3) AS t {joined}")
    job = plan({"rows": frame}, JobOptions())
    handles = [vertex.operator_factory for vertex in compiled(job).vertices.values()]
    assert sorted((handle.kind, handle.tasks) for handle in handles) == [("broadcast", 0), ("result", 3)]
    with status.watch() as ran:
        rows = runner.run(job)["rows"]
    assert sorted(ran.stages.values()) == [3]
    assert sorted(rows) == sorted(frame.collect())
    assert rows
