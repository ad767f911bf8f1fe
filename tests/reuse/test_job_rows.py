"""The rows that a deployment keeps."""

from __future__ import annotations

import flinkmagic
from flinkmagic.planning.plan_reader import NAME_OF_RUN
from flinkmagic.reuse.job_rows import JobRows


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
