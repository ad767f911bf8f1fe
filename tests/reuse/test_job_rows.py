"""The rows that a deployment keeps."""

from __future__ import annotations

import flinkmagic
from flinkmagic.planning.plan_reader import NAME_OF_RUN
from flinkmagic.reuse.job_rows import JobRows
from tests.status_store import StatusStore


def test_stored_partitions_are_those_of_the_handles_own_rows(spark):
    other = spark.range(0, 10, 1, 2).cache()
    assert other.count() == 10
    job = flinkmagic.compile({"rows": spark.range(0, 30, 1, 3)}, "stored", retain="none").run()
    [vertex] = job.execution_graph.job_vertices
    kept, handle = job._deployment._kept, vertex.job_vertex.operator_factory
    assert kept.stored_partitions(handle) == 3
    assert JobRows(spark).stored_partitions(handle) == 0
    kept.forget(handle)
    assert kept.stored_partitions(handle) == 0
    other.unpersist()


def test_rows_of_results_are_told_from_those_that_the_user_keeps(spark):
    job = flinkmagic.compile({"rows": spark.range(0, 30, 1, 3)}, "named", retain="none").run()
    [vertex] = job.execution_graph.job_vertices
    assert job._deployment._kept.stored_partitions(vertex.job_vertex.operator_factory) == 3
    names = [rdd.name() or "" for rdd in spark.sparkContext._jsc.getPersistentRDDs().values()]
    assert [name for name in names if name.startswith("result (") and NAME_OF_RUN.search(name)]
    job.release()


def test_few_rows_are_copied_to_the_driver_without_a_job(spark):
    rows = spark.range(0, 30, 1, 3).selectExpr("id", "array(id, NULL) AS list", "concat('v', id) AS text")
    job = flinkmagic.compile({"rows": rows}, "copied", retain="none").run()
    status = StatusStore(spark)
    before = status.jobs()
    copy = job.local_result("rows", 30, 2**16)
    assert not status.since(before)
    assert copy.collect() == rows.collect()
    assert copy.select(rows["text"]).first() == ("v0",)
    assert job.local_result("rows", 29, 2**16) is None
    assert job.local_result("rows", 30, 2**8) is None
    [vertex] = job.execution_graph.job_vertices
    job._deployment._kept.of(vertex.job_vertex.operator_factory).rows.builder.cachedColumnBuffers().unpersist(True)
    assert job.local_result("rows", 30, 2**16) is None
    assert copy.count() == 30
    job.release()


def test_rows_that_are_many_bytes_once_they_are_unpacked_are_not_copied(spark):
    rows = spark.range(0, 100, 1, 1).selectExpr("repeat('x', 2000) AS text")
    job = flinkmagic.compile({"rows": rows}, "packed", retain="none").run()
    assert job.local_result("rows", 100, 2**14) is None
    assert job.local_result("rows", 100, 2**15).collect() == rows.collect()
    job.release()


def test_filters_of_results_lose_no_row_whose_value_is_not_a_number(spark):
    rows = spark.range(0, 30, 1, 1).selectExpr("id", "IF(id = 3, double('NaN'), id / 10D) AS x")
    job = flinkmagic.compile({"rows": rows}, "filtered", retain="none").run()
    result = job.result("rows")
    assert result.where("x > 5").select("id").collect() == [(3,)]
    assert result.where("x = 'NaN'").count() == 1
    # Where a batch's bounds hold for all values, it is still left out.
    for text, reads in (("id > 50", False), ("x > 50", True)):
        scan = result.where(text)._jdf.queryExecution().executedPlan().collectLeaves().head()
        assert (len(scan.executeCollectPublic()) > 0) is reads
    job.release()
