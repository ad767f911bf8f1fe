"""Cached DataFrames are persistent results: filled by a stage of their own, or read from the job that filled them."""

from __future__ import annotations

import pytest
from pyspark.sql import functions as F

from flinkmagic.graph.result_partition_type import ResultPartitionType
from flinkmagic.options import JobOptions
from flinkmagic.planning import plan
from flinkmagic.planning.run_origin import RunOrigin


@pytest.fixture
def settings(spark):
    """Set configuration for the length of a test."""
    changed = []

    def change(**values):
        for key, value in values.items():
            name = "spark.sql." + key.replace("_", ".")
            changed.append((name, spark.conf.get(name)))
            spark.conf.set(name, value)

    yield change
    for name, value in reversed(changed):
        spark.conf.set(name, value)


def names(compiled, job):
    return [vertex.name for vertex in compiled(job).vertices_in_topological_order()]


CACHED = ResultPartitionType.BLOCKING_PERSISTENT


def persistent(graph):
    """Return by the name of each persistent result's vertex how many vertices read it."""
    results = [(vertex.name, one) for vertex in graph.vertices.values() for one in vertex.produced]
    return {name: len(one.consumers) for name, one in results if one.result_type is CACHED}


def test_an_empty_cache_is_filled_by_a_stage_of_its_own(tables, settings, status, runner, compiled):
    settings(adaptive_enabled="false", shuffle_partitions="4")
    cached = tables.flights.groupBy("hour").agg(F.max("delay").alias("worst")).cache()
    try:
        cached._jdf.queryExecution().executedPlan()
        jobs_before = status.jobs()
        job = plan({"rows": cached.where("worst > 70"), "sum": cached.agg(F.sum("worst"))}, JobOptions(parallelism=3))
        assert status.jobs() == jobs_before
        assert names(compiled, job) == [
            "Source: parquet flights -> ColumnarToRow -> HashAggregate",
            "HashAggregate",
            "InMemoryTableScan -> Filter -> Sink: rows",
            "InMemoryTableScan -> HashAggregate",
            "HashAggregate -> Sink: sum",
        ]
        assert persistent(compiled(job)) == {"HashAggregate": 2}
        assert [(stage.sinks, stage.why) for stage in job.shared] == [(("rows", "sum"), "it is cached")]
        assert job.boundaries == ()
        with status.watch() as ran:
            rows = runner.run(job)
        assert sorted(ran.stages.values()) == [1, 2, 4, 4, 4]

        filled = plan({"rows": cached.where("worst > 70")}, JobOptions(parallelism=3))
        [name] = names(compiled, filled)
        assert name.endswith(" -> InMemoryTableScan -> Filter -> Sink: rows")
        assert name.startswith("CacheRead: rows (hour, worst) -> ")
        with status.watch() as ran:
            assert sorted(runner.run(filled)["rows"]) == sorted(rows["rows"])
        assert list(ran.stages.values()) == [4]
    finally:
        cached.unpersist(blocking=True)


def test_a_job_reads_the_result_that_an_earlier_one_has_filled(tables, settings, compiled, runner):
    settings(adaptive_enabled="false", shuffle_partitions="4")
    cached = tables.flights.groupBy("hour").count().cache()
    other = tables.flights.groupBy("carrier").count().cache()
    try:
        jobs = [plan({"rows": df.where("count > 1")}, JobOptions(parallelism=3)) for df in (cached, other)]
        filled, different = ([one.id for v in compiled(job).vertices.values() for one in v.produced] for job in jobs)
        runner.run(jobs[0])
        nodes = (
            plan({"rows": cached.where("count > 2")}, JobOptions(parallelism=3)).environment.get_stream_graph().nodes
        )
        [read] = [node.consumed_dataset_id for node in nodes.values() if node.consumed_dataset_id]
        assert read in filled
        assert read not in different
    finally:
        cached.unpersist(blocking=True)
        other.unpersist(blocking=True)


def test_an_adaptive_cache_is_one_vertex_that_runs_its_own_stages(tables, settings, status, runner, compiled):
    settings(shuffle_partitions="4", adaptive_enabled="true")
    cached = tables.flights.groupBy("hour").agg(F.max("delay").alias("worst")).cache()
    try:
        jobs_before = status.jobs()
        job = plan(
            {"rows": cached.where("worst > 70"), "all": cached.selectExpr("hour + 1")}, JobOptions(parallelism=3)
        )
        assert status.jobs() == jobs_before
        fill, *readers = compiled(job).vertices_in_topological_order()
        assert fill.name == "Source: AdaptiveSparkPlan"
        assert [vertex.name for vertex in readers] == [
            "InMemoryTableScan -> Filter -> Sink: rows",
            "InMemoryTableScan -> Project -> Sink: all",
        ]
        handles = [vertex.operator_factory for vertex in (fill, *readers)]
        assert [(one.tasks, one.exact, one.starts_jobs_early) for one in handles] == [
            (4, False, True),
            (4, False, False),
            (4, False, False),
        ]
        [warning] = job.warnings
        assert "is cached, and its plan is adaptive: Spark plans the stages that fill the cache" in warning
        rows = runner.run(job)["rows"]
        assert len(rows) == tables.flights.groupBy("hour").agg(F.max("delay")).where("`max(delay)` > 70").count()
        filled = plan({"rows": cached.where("worst > 70")}, JobOptions(parallelism=3))
        assert filled.warnings == ()
        [vertex] = compiled(filled).vertices.values()
        assert vertex.operator_factory.exact
    finally:
        cached.unpersist(blocking=True)


def test_an_action_fills_what_it_reads(tables, settings, compiled):
    settings(adaptive_enabled="false")
    cached = tables.flights.select("hour", "delay").cache()
    try:
        job = plan({"rows": cached.limit(1)}, JobOptions(parallelism=3), RunOrigin(collects=True))
        assert persistent(compiled(job)) == {}
        assert "ColumnarToRow -> InMemoryTableScan" in names(compiled, job)[0]
    finally:
        cached.unpersist(blocking=True)


def test_a_cache_filled_in_part_is_filled(tables, settings, compiled, runner):
    settings(adaptive_enabled="false")  # an adaptive plan of 3.5 fills the whole cache
    cached = tables.flights.select("hour", "delay").cache()
    try:
        cached.head(1)
        job = plan({"counts": cached.groupBy("hour").count()}, JobOptions(parallelism=3))
        assert names(compiled, job)[:2] == [
            "Source: parquet flights -> ColumnarToRow",
            "InMemoryTableScan -> HashAggregate",
        ]
        assert sum(row["count"] for row in runner.run(job)["counts"]) == 4000
    finally:
        cached.unpersist(blocking=True)


def test_what_is_cached_over_a_cache_reads_it(tables, settings, compiled, runner):
    settings(adaptive_enabled="false", shuffle_partitions="4")
    inner = tables.flights.groupBy("hour").count().cache()
    outer = inner.where("count > 150").cache()
    try:
        job = plan({"few": outer.limit(3), "all": inner.agg(F.sum("count"))}, JobOptions(parallelism=3))
        assert persistent(compiled(job)) == {"HashAggregate": 2, "InMemoryTableScan -> Filter": 1}
        rows = runner.run(job)
        assert rows["all"] == [(4000,)]
        assert len(rows["few"]) == 3
    finally:
        outer.unpersist(blocking=True)
        inner.unpersist(blocking=True)


def test_checkpointed_rows_are_read_from_their_persistent_result(tables, compiled, runner):
    kept = tables.flights.groupBy("hour").count().localCheckpoint()
    lazy = tables.flights.groupBy("hour").count().localCheckpoint(eager=False)
    graph = compiled(
        job := plan({"kept": kept.where("count > 1"), "lazy": lazy.where("count > 1")}, JobOptions(parallelism=3))
    )
    read, source = graph.vertices_in_topological_order()
    assert read.name.startswith("CacheRead: rows (hour, count) -> ")
    assert source.name.startswith("Source: ")
    rows = runner.run(job)
    assert len(rows["kept"]) == len(rows["lazy"]) == 24
    again = compiled(plan({"lazy": lazy.where("count > 1")}, JobOptions(parallelism=3)))
    assert [vertex.name.partition(":")[0] for vertex in again.vertices.values()] == ["CacheRead"]
