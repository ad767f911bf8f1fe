"""The real sizes of a run's exchanges."""

from __future__ import annotations

import pytest
from pyspark.sql import functions as F

import flinkmagic


def test_a_skewed_key_is_seen_in_the_sizes_of_its_exchange(spark):
    rows = spark.range(0, 20000, 1, 2)
    one_key = F.when(F.col("id") % 50 == 0, F.col("id")).otherwise(F.lit(7))
    padded = rows.select(one_key.alias("k"), F.sha2(F.col("id").cast("string"), 256).alias("v"))
    job = flinkmagic.compile({"rows": padded.repartition(4, "k")}, "skewed", parallelism=4).run()
    (found,) = job.edges()
    mapped, reduced = job.execution_graph.job_vertices
    assert (found.vertex_id, found.consumers) == (mapped.id, (reduced.name,))
    assert len(found.bytes_by_partition) == 4
    # One partition has 98 of 100 rows, and the rows are as long as each other.
    assert found.bytes_by_partition[found.widest] > 0.9 * found.total
    taken = [task.rows_in for task in job.tasks() if task.vertex_id == reduced.id and task.subtask == found.widest]
    assert taken[0] > 19000


@pytest.mark.parametrize("status", ["before", "after"])
def test_a_run_without_an_exchange_has_no_edges(spark, status):
    graph = flinkmagic.compile({"rows": spark.range(4)}, f"plain_{status}")
    job = graph.run(wait=status == "after")
    job.wait()
    assert job.edges() == []
