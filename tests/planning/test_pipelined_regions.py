"""Which exchanges are pipelined, what ends a region, and what is said of it."""

from __future__ import annotations

import pytest
from pyspark.sql import Window
from pyspark.sql import functions as F

from flinkmagic.graph.exchange_mode import GlobalStreamExchangeMode
from flinkmagic.graph.execution_graph import ExecutionGraph
from flinkmagic.options import JobOptions
from flinkmagic.planning import plan
from flinkmagic.planning.stage_handles import PipelinedStageHandle, ResultStageHandle, ShuffleMapStageHandle


def pipelined(frames, **options):
    return plan(frames, JobOptions(parallelism=2, exchange="pipelined", **options))


@pytest.fixture
def rows(spark):
    return spark.range(0, 40, 1, 2).select("id", (F.col("id") % 5).alias("k"))


def handles(compiled, job):
    return [vertex.operator_factory for vertex in compiled(job).vertices_in_topological_order()]


def test_flink_s_mode_makes_flink_s_regions(rows, compiled):
    job = pipelined({"r": rows.groupBy("k").agg(F.sum("id").alias("s")).groupBy("s").count()})
    graph = compiled(job)
    assert job.environment.get_stream_graph().global_exchange_mode is GlobalStreamExchangeMode.ALL_EDGES_PIPELINED
    types = [edge.result_type.name for vertex in graph.vertices.values() for edge in vertex.inputs]
    assert types == ["PIPELINED_BOUNDED"] * 2
    execution = ExecutionGraph(graph)
    assert execution.pipelined_regions.region_of.tolist() == [0] * 6
    assert job.warnings == ()


def test_the_last_stage_of_a_region_runs_the_others(rows, compiled):
    job = pipelined({"r": rows.repartition(2, "id").groupBy("k").count()})
    first, second, last = handles(compiled, job)
    assert isinstance(first, PipelinedStageHandle)
    assert isinstance(second, PipelinedStageHandle)
    assert isinstance(last, ResultStageHandle)
    assert set(last.upstream) == {first, second}


def test_blocking_is_the_default(rows, compiled):
    first, last = handles(compiled, plan({"r": rows.groupBy("k").count()}, JobOptions(parallelism=2)))
    assert isinstance(first, ShuffleMapStageHandle)
    assert last.upstream == ()


def test_two_sinks_are_two_regions(rows, compiled):
    job = pipelined({"a": rows.groupBy("k").count(), "b": rows.repartition(2)})
    assert ExecutionGraph(compiled(job)).pipelined_regions.count == 2


def test_no_partition_count_is_given_both_sides_find_slots(rows):
    job = plan({"r": rows.groupBy("k").count()}, JobOptions(slots=6, exchange="pipelined"))
    assert job.parallelism == 3


def shared(rows):
    once = rows.repartition(2, "id")
    return once.union(once)


BLOCKED = {
    "two consumers": (shared, "r: its exchanges are blocking, as Exchange is read 2 times"),
    "range": (
        lambda rows: rows.repartition(2, "id").orderBy("k"),
        "r: its exchanges are blocking, as Spark samples the rows of Exchange before it writes them",
    ),
    "hidden shuffle": (
        lambda rows: rows.groupBy("k").count().orderBy("count").limit(3),
        "r: its exchanges are blocking, as TakeOrderedAndProject makes a shuffle by itself",
    ),
    "limit": (
        lambda rows: rows.repartition(2, "id").limit(3),
        "r: its exchanges are blocking, as CollectLimit makes a shuffle by itself",
    ),
    "rdd": (
        lambda rows: rows.sparkSession.createDataFrame(
            rows.rdd.map(lambda row: (row.k, row.id)).reduceByKey(max, 2), "k long, id long"
        ).groupBy("id").count(),
        "r: its exchanges are blocking, as Scan ExistingRDD may read a shuffle of its own",
    ),
}  # fmt: skip


@pytest.mark.matrix(5)
@pytest.mark.parametrize("case", BLOCKED)
def test_what_spark_refuses_keeps_all_exchanges_of_its_spark_job_blocking_and_is_told(rows, compiled, runner, case):
    make, why = BLOCKED[case]
    frame = make(rows)
    job = pipelined({"r": frame})
    assert why in job.warnings
    assert not any(isinstance(handle, PipelinedStageHandle) for handle in handles(compiled, job))
    assert len(runner.run(job)["r"]) == frame.count()


PIPELINED = {
    "window": lambda rows: rows.withColumn("n", F.row_number().over(Window.partitionBy("k").orderBy("id"))),
    "merge join": lambda rows: rows.hint("merge").join(rows.withColumnRenamed("id", "other"), "k"),
    "rdd without shuffle": lambda rows: rows.sparkSession.createDataFrame(
        rows.rdd.map(tuple), "id long, k long"
    ).groupBy("k").count(),
    "total": lambda rows: rows.agg(F.sum("id")),
    "local values": lambda rows: rows.sparkSession.createDataFrame([(1, 2)], "a int, b int").groupBy("a").count(),
}  # fmt: skip


@pytest.mark.parametrize("case", PIPELINED)
def test_all_other_exchanges_are_pipelined(rows, compiled, case):
    job = pipelined({"r": PIPELINED[case](rows)})
    assert job.warnings == ()
    assert not any(isinstance(handle, ShuffleMapStageHandle) for handle in handles(compiled, job))


def test_a_broadcast_is_a_region_of_its_own(rows, compiled):
    small = rows.groupBy("k").agg(F.max("id").alias("top"))
    job = pipelined({"r": rows.repartition(2, "id").join(F.broadcast(small), "k")})
    assert sum(isinstance(handle, PipelinedStageHandle) for handle in handles(compiled, job)) == 2
    assert ExecutionGraph(compiled(job)).pipelined_regions.count == 2


def test_the_dependency_lets_rows_through_unsorted_and_is_made_again_for_another_run(spark, rows, compiled):
    first, last = handles(compiled, pipelined({"r": rows.repartition(2)}))
    dependency = first.make()
    assert dependency.getClass().getSimpleName() == "PipelinedShuffleDependency"
    assert "sort" not in dependency.rdd().toDebugString().lower()
    number = first.shuffle_id
    last.made.forget()
    first.made.renew()
    assert first.shuffle_id is None
    assert first.make().shuffleId() != number
