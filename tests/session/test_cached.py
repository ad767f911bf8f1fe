"""What a captured cell caches: filled once for all of its writes, and then Spark's own cache, as without the magic."""

from __future__ import annotations

import pytest
from pyspark import StorageLevel
from pyspark.sql import functions as F

import flinkmagic
from flinkmagic.scheduling.job_status import JobStatus


@pytest.fixture
def counted(spark):
    """Rows of which each one that is made is counted."""
    made = spark.sparkContext.accumulator(0)

    def one(value):
        made.add(1)
        return value

    counting = F.udf(one, "long")
    return made, lambda: spark.range(0, 400, 1, 4).select(counting("id").alias("id"))


def persistent_rdds(spark):
    """Their ids; how many there are in all depends on garbage collection."""
    return set(spark.sparkContext._jsc.getPersistentRDDs().keySet())


@pytest.mark.matrix(2)
@pytest.mark.parametrize("adaptive", ["true", "false"])
def test_a_cache_is_filled_once_and_stays_sparks_own(spark, counted, tmp_path, adaptive):
    made, rows = counted
    spark.conf.set("spark.sql.adaptive.enabled", adaptive)
    names = {"spark": spark}
    try:
        with flinkmagic.capture(spark, namespace=names) as program:
            names["kept"] = kept = rows().persist(StorageLevel.DISK_ONLY)
            kept.groupBy((kept.id % 2).alias("odd")).count().write.parquet(f"{tmp_path}/odd")
            kept.where("id < 10").write.parquet(f"{tmp_path}/few")
        assert made.value == 0
        graph = flinkmagic.compile(program, name="caches", parallelism=2)
        assert "kept is shared by 2 sinks (odd, few) and computed once: it is cached" in graph.summary()
        results = [one.result_type.name for v in graph.job_graph.vertices.values() for one in v.produced]
        assert results.count("BLOCKING_PERSISTENT") == 1
        job = graph.run()
        assert job.status is JobStatus.FINISHED
        assert made.value == 400
        assert sorted(map(tuple, spark.read.parquet(f"{tmp_path}/odd").collect())) == [(0, 200), (1, 200)]
        assert spark.read.parquet(f"{tmp_path}/few").count() == 10

        job.release()
        assert names["kept"] is kept
        assert (kept.storageLevel.useDisk, kept.storageLevel.useMemory) == (True, False)
        assert kept.count() == 400
        assert made.value == 400, "a later cell reads Spark's cache, also after the job has released its rows"

        with flinkmagic.capture(spark, namespace=names) as program:
            kept.selectExpr("sum(id) AS total").write.parquet(f"{tmp_path}/total")
        second = flinkmagic.compile(program, name="reads", parallelism=2)
        assert "CacheRead: kept" in second.job_graph.vertices_in_topological_order()[0].name
        assert "CacheRead: kept" in second._repr_mimebundle_()["text/plain"]
        assert second.run().status is JobStatus.FINISHED
        assert spark.read.parquet(f"{tmp_path}/total").first() == (sum(range(400)),)
        assert made.value == 400

        cached = spark._jsparkSession.sharedState().cacheManager().lookupCachedData(kept._jdf).get()
        own = cached.cachedRepresentation().cacheBuilder().cachedColumnBuffers().id()
        assert own in persistent_rdds(spark)
        kept.unpersist(blocking=True)
        assert own not in persistent_rdds(spark)
        assert kept.selectExpr("sum(id)").first() == (sum(range(400)),)
        assert made.value == 800
    finally:
        spark.conf.unset("spark.sql.adaptive.enabled")


def test_what_is_read_has_the_users_name(spark, tmp_path):
    names = {
        "ranks": flinkmagic.iterate(spark.range(4), lambda df: df.selectExpr("id + 1 AS id"), max_iterations=2),
        "checked": spark.range(9).localCheckpoint(),
    }
    with flinkmagic.capture(spark, namespace=names) as program:
        names["ranks"].where("id > 3").write.parquet(f"{tmp_path}/ranks")
        names["checked"].where("id > 3").write.parquet(f"{tmp_path}/checked")
    graph = flinkmagic.compile(program, name="reads", parallelism=2)
    read = {node.name for node in graph.stream_graph.nodes.values() if node.consumed_dataset_id}
    assert read == {"CacheRead: ranks", "CacheRead: checked"}
    assert graph.run().status is JobStatus.FINISHED
    assert [spark.read.parquet(f"{tmp_path}/{name}").count() for name in ("ranks", "checked")] == [2, 5]


def test_a_failure_while_a_cache_is_filled_repeats_what_is_missing(spark, tmp_path):
    flag = tmp_path / "failed"

    def one(value):
        if value == 399 and not flag.exists():
            flag.touch()
            raise ValueError("once")
        return value

    failing = F.udf(one, "long")
    with flinkmagic.capture(spark) as program:
        kept = spark.range(0, 400, 1, 4).select(failing("id").alias("id")).cache()
        kept.where("id < 10").write.parquet(f"{tmp_path}/few")
        kept.where("id > 9").write.parquet(f"{tmp_path}/many")
    try:
        job = flinkmagic.compile(program, name="fails", parallelism=2, restart="fixed-delay:2:0ms").run()
        assert job.status is JobStatus.FINISHED
        assert flag.exists()
        assert spark.read.parquet(f"{tmp_path}/few", f"{tmp_path}/many").count() == 400
    finally:
        kept.unpersist()


def test_kept_rows_are_counted_as_rows_and_not_as_the_batches_that_hold_them(spark, tmp_path):
    spark.range(500).write.parquet(str(tmp_path / "few"))
    few = spark.read.parquet(str(tmp_path / "few"))
    kept = spark.range(0, 30_000, 1, 3).select("id", (F.col("id") % 7).alias("k")).cache()
    kept.count()
    both = kept.select("id").union(few)
    for query, rows in ((kept, 30_000), (kept.where("k > 99"), 0), (both, 30_500)):
        grouped = query.groupBy((F.col("id") % 3).alias("third")).count()
        job = flinkmagic.compile({"grouped": grouped}, "counting").run()
        assert job.status is JobStatus.FINISHED
        first = next(iter(job.execution_graph.job_vertices))
        assert sum(task.rows_in for task in job.tasks() if task.vertex_id == first.id) == rows
    kept.unpersist()
