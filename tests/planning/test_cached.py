"""Cached DataFrames: filled ones are sources; of others the plan behind the cache is part of the job."""

from __future__ import annotations

import pytest
from pyspark.sql import functions as F

from flinkmagic.planning import plan


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


def test_the_plan_behind_an_empty_cache_is_in_the_graph(tables, settings, status, runner, compiled):
    settings(adaptive_enabled="false", shuffle_partitions="4")
    cached = tables.flights.groupBy("hour").agg(F.max("delay").alias("worst")).cache()
    try:
        cached._jdf.queryExecution().executedPlan()
        jobs_before = status.jobs()
        job = plan({"rows": cached.where("worst > 70"), "sum": cached.agg(F.sum("worst"))}, parallelism=3)
        assert status.jobs() == jobs_before
        assert names(compiled, job) == [
            "Source: parquet flights -> ColumnarToRow -> HashAggregate",
            "HashAggregate -> InMemoryTableScan -> Filter -> Sink: rows",
            "HashAggregate -> InMemoryTableScan -> HashAggregate",
            "HashAggregate -> Sink: sum",
        ]
        with status.watch() as ran:
            rows = runner.run(job)
        assert sorted(ran.stages.values()) == [1, 2, 4, 4]

        filled = plan({"rows": cached.where("worst > 70")}, parallelism=3)
        assert names(compiled, filled) == ["Source: InMemoryTableScan -> Filter -> Sink: rows"]
        assert sorted(runner.run(filled)["rows"]) == sorted(rows["rows"])
    finally:
        cached.unpersist(blocking=True)


def test_an_adaptive_cache_is_a_source_that_runs_its_own_stages(tables, settings, status, runner, compiled):
    settings(shuffle_partitions="4", adaptive_enabled="true")
    cached = tables.flights.groupBy("hour").agg(F.max("delay").alias("worst")).cache()
    try:
        jobs_before = status.jobs()
        job = plan({"rows": cached.where("worst > 70")}, parallelism=3)
        assert status.jobs() == jobs_before
        [vertex] = compiled(job).vertices.values()
        assert vertex.name == "Source: InMemoryTableScan -> Filter -> Sink: rows"
        handle = vertex.operator_factory
        assert (handle.tasks, handle.exact, handle.starts_jobs_early) == (4, False, True)
        [warning] = job.warnings
        assert warning.startswith("A DataFrame is cached, the cache is not filled yet, and its plan is adaptive:")
        assert (
            len(runner.run(job)["rows"])
            == tables.flights.groupBy("hour").agg(F.max("delay")).where("`max(delay)` > 70").count()
        )
        filled = plan({"rows": cached.where("worst > 70")}, parallelism=3)
        assert filled.warnings == ()
        [vertex] = compiled(filled).vertices.values()
        assert vertex.operator_factory.exact
    finally:
        cached.unpersist(blocking=True)


def test_a_cache_filled_in_part_keeps_its_plan(tables, settings, compiled, runner):
    settings(adaptive_enabled="false")  # an adaptive plan of 3.5 fills the whole cache
    cached = tables.flights.select("hour", "delay").cache()
    try:
        cached.head(1)
        job = plan({"counts": cached.groupBy("hour").count()}, parallelism=3)
        assert names(compiled, job)[0] == (
            "Source: parquet flights -> ColumnarToRow -> InMemoryTableScan -> HashAggregate"
        )
        assert sum(row["count"] for row in runner.run(job)["counts"]) == 4000
    finally:
        cached.unpersist(blocking=True)
