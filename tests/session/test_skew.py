"""What a run's report says of uneven partitions, spills and slow tasks."""

from __future__ import annotations

import pytest
from pyspark.sql import functions as F

import flinkmagic
from flinkmagic.deployment import TaskRecord
from flinkmagic.graph.execution_state import ExecutionState
from flinkmagic.session import skew
from flinkmagic.session.skew import EdgeBytes, uneven_notes


def edge(*sizes, vertex="Map"):
    return EdgeBytes(vertex.lower(), vertex, ("Reduce",), sizes)


def task(subtask, took_ms, *, vertex="Map", spilled=0, state=ExecutionState.FINISHED, role="task"):
    return TaskRecord(
        vertex.lower(), vertex, subtask, 0, state, "1_0", "1", 1000.0, 1000.0 + took_ms,
        disk_spilled_bytes=spilled, role=role,
    )  # fmt: skip


def slow(vertex="Reduce", took_ms=3000.0):
    """The tasks of a vertex that its slowest task kept from being over."""
    return [task(0, 100, vertex=vertex), task(1, 100, vertex=vertex), task(2, took_ms, vertex=vertex)]


def test_the_widest_skew_is_named_with_its_vertex_and_partition_where_it_cost_time():
    even, uneven = edge(100, 100, 110), edge(10 * 1024, 10 * 1024, 50 * 1024, 1024, vertex="Join")
    line = "widest skew: partition 3 of 4 of Join has 50.0 KiB, 5.0 times the median of 10.0 KiB"
    assert uneven_notes([even, uneven], slow())[:1] == [line]
    assert not [note for note in uneven_notes([even], slow()) if "skew" in note]
    # Its readers were not slow, but others; or not for long; or for long, in a job that took far longer.
    assert line not in uneven_notes([even, uneven], slow("Other"))
    assert uneven_notes([even, uneven], slow(took_ms=1090.0)) == []
    assert uneven_notes([even, uneven], [*slow(), task(0, 60_000, vertex="Long")]) == []
    assert uneven_notes([edge(7)], slow())[1:] == []
    assert not [note for note in uneven_notes([edge(0, 0, 0)], slow()) if "skew" in note]


def test_a_median_of_nothing_is_said_so():
    assert uneven_notes([edge(0, 0, 2048)], slow())[0] == (
        "widest skew: partition 3 of 3 of Map has 2.0 KiB, and more than half of the others are empty"
    )


def test_spills_are_added_up():
    tasks = [task(0, 10, spilled=1024), task(1, 10, spilled=3072), task(0, 10, vertex="Sort", spilled=8192)]
    assert uneven_notes([], tasks) == ["spilled to disk: 12.0 KiB, most of it by Sort (8.0 KiB)"]


def test_the_slowest_task_is_named_against_the_median_of_its_vertex():
    tasks = [task(0, 100), task(1, 100), task(2, 1900), task(0, 5000, vertex="Alone"), task(3, 99, role="helper")]
    assert uneven_notes([], tasks) == ["slowest task: Map, subtask 3, took 1.9 s (median 100 ms)"]
    assert uneven_notes([], [task(0, 100), task(1, 120)]) == []
    assert uneven_notes([], [task(0, 100), task(1, 9000, state=ExecutionState.FAILED), task(2, 100)]) == []


def test_a_skewed_key_is_found_in_a_real_run(spark, monkeypatch):
    rows = spark.range(0, 20000, 1, 2)
    one_key = F.when(F.col("id") % 50 == 0, F.col("id")).otherwise(F.lit(7))
    padded = rows.select(one_key.alias("k"), F.sha2(F.col("id").cast("string"), 256).alias("v"))
    graph = flinkmagic.compile({"rows": padded.repartition(4, "k")}, "skewed", parallelism=4)
    job = graph.run()
    (found,) = job.edges()
    mapped, reduced = job.execution_graph.job_vertices
    assert (found.vertex_id, found.consumers) == (mapped.id, (reduced.name,))
    assert len(found.bytes_by_partition) == 4
    # One partition has 98 of 100 rows, and the rows are as long as each other.
    assert found.bytes_by_partition[found.widest] > 0.9 * found.total
    taken = [task.rows_in for task in job.tasks() if task.vertex_id == reduced.id and task.subtask == found.widest]
    assert taken[0] > 19000
    # It cost no time to speak of; in a job in which it does it is told, here and in the summary.
    assert not [line for line in job.report() if "skew" in line]
    monkeypatch.setattr(skew, "NOTABLE_MS", 0.0)
    monkeypatch.setattr(skew, "NOTABLE", 0.0)
    monkeypatch.setattr(skew, "NOTABLE_SHARE", 0.0)
    (line,) = [line for line in job.report() if "widest skew" in line]
    assert f"partition {found.widest + 1} of 4 of {mapped.name} has" in line
    assert line in graph.summary().splitlines()


def test_spills_are_found_in_a_real_run(spark):
    spark.conf.set("spark.sql.windowExec.buffer.in.memory.threshold", "10")
    spark.conf.set("spark.sql.windowExec.buffer.spill.threshold", "100")
    try:
        from pyspark.sql import Window

        frame = spark.range(0, 5000, 1, 2).withColumn("s", F.sum("id").over(Window.partitionBy(F.col("id") % 2)))
        job = flinkmagic.compile({"rows": frame}, "spilled", parallelism=2).run()
    finally:
        spark.conf.unset("spark.sql.windowExec.buffer.in.memory.threshold")
        spark.conf.unset("spark.sql.windowExec.buffer.spill.threshold")
    spilled = sum(task.disk_spilled_bytes or 0 for task in job.tasks())
    assert spilled > 0
    last = job.execution_graph.job_vertices[-1]
    (line,) = [line for line in job.report() if "spilled to disk" in line]
    assert f"most of it by {last.name}" in line


@pytest.mark.parametrize("status", ["before", "after"])
def test_a_run_without_an_exchange_has_no_edges(spark, status):
    graph = flinkmagic.compile({"rows": spark.range(4)}, f"plain_{status}")
    job = graph.run(wait=status == "after")
    job.wait()
    assert job.edges() == []
    assert not [line for line in job.report() if "skew" in line]
