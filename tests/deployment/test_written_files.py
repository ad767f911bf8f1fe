"""How many files writes of shared rows make, and in which order their rows are: as many, and as, plain Spark's."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import functions as F

import flinkmagic
from flinkmagic.capturing.capture import capture
from flinkmagic.planning.stage_handles import BoundaryStageHandle
from flinkmagic.scheduling.job_status import JobStatus


def totals(rows):
    return rows.groupBy("m").agg(F.sum("id").alias("id"))


SHARED = {
    "aggregate": totals,
    "join": lambda rows: rows.join(rows.groupBy("m").agg(F.max("id").alias("most")), "m"),
    "sort": lambda rows: rows.orderBy(F.desc("id")),
    "distinct": lambda rows: rows.select("m").distinct(),
    "by column": lambda rows: rows.repartition("m"),
    "sorted within partitions": lambda rows: rows.repartition("m").sortWithinPartitions("id"),
    "repartition(3)": lambda rows: rows.repartition(3),
    "coalesce(2)": lambda rows: rows.repartition(4).coalesce(2),
}


@pytest.fixture(params=["true", "false"], ids=["adaptive", "not adaptive"])
def adaptive(spark, request):
    """Whether Spark's adaptive execution merges small partitions; no join is a broadcast."""
    settings = {
        "spark.sql.adaptive.enabled": request.param,
        "spark.sql.shuffle.partitions": "4",
        "spark.sql.autoBroadcastJoinThreshold": "-1",
    }
    before = {key: spark.conf.get(key, None) for key in settings}
    for key, value in settings.items():
        spark.conf.set(key, value)
    yield request.param == "true"
    for key, value in before.items():
        spark.conf.unset(key) if value is None else spark.conf.set(key, value)


def run(spark, write):
    with capture(spark) as program:
        write()
    job = flinkmagic.compile(program, name="files").run()
    assert job.status is JobStatus.FINISHED, job.exceptions()
    return job


def files(folder):
    return sorted(Path(folder).glob("part-*.json"))


def lines(folder):
    """The rows of a write in the order of its files."""
    return [line for file in files(folder) for line in file.read_text().splitlines()]


@pytest.mark.long
def test_sinks_that_share_rows_make_as_many_files_as_plain_sparks(spark, numbers, adaptive, tmp_path):
    def write(folder):
        rows = spark.read.parquet(numbers)
        for name, made in SHARED.items():
            shared = made(rows)
            shared.write.json(f"{folder}/{name}/all")
            shared.where("m < 50").write.json(f"{folder}/{name}/few")

    plain, ours = tmp_path / "plain", tmp_path / "ours"
    write(plain)
    job = run(spark, lambda: write(ours))
    handles = [vertex.job_vertex.operator_factory for vertex in job.execution_graph.job_vertices]
    assert sum(isinstance(handle, BoundaryStageHandle) for handle in handles) == len(SHARED)
    places = [f"{name}/{part}" for name in SHARED for part in ("all", "few")]
    assert {place: len(files(ours / place)) for place in places} == {
        place: len(files(plain / place)) for place in places
    }
    for place in places:
        assert sorted(lines(ours / place)) == sorted(lines(plain / place))
    ordered = ["sort/all", "sort/few"] + (["sorted within partitions/all"] if adaptive else [])
    for place in ordered:
        assert lines(ours / place) == lines(plain / place)
    assert len(files(ours / "sort/all")) == (1 if adaptive else 4)


@pytest.mark.long
def test_what_is_computed_over_shared_rows_that_are_read_together_is_right(spark, numbers, adaptive, tmp_path):
    """They are joined, aggregated and sorted as they lie: no shuffle is between them and the write."""

    def write(folder):
        rows = spark.read.parquet(numbers)
        by_key = rows.repartition("m").sortWithinPartitions("m", "id")
        counted = totals(rows.where("id % 3 = 0"))
        by_key.join(counted.withColumnRenamed("id", "total"), "m").write.json(f"{folder}/joined")
        by_key.groupBy("m").agg(F.count("*").alias("n")).write.json(f"{folder}/aggregated")
        by_key.select("k").write.json(f"{folder}/in an order of what is not written")
        by_key.write.partitionBy("m").json(f"{folder}/by folder")
        counted.write.json(f"{folder}/counted")

    plain, ours = tmp_path / "plain", tmp_path / "ours"
    write(plain)
    run(spark, lambda: write(ours))
    for name in ("joined", "aggregated", "in an order of what is not written", "counted"):
        assert sorted(lines(ours / name)) == sorted(lines(plain / name))
        assert len(files(ours / name)) == len(files(plain / name)) == (1 if adaptive else 4)
    if adaptive:
        hidden = "in an order of what is not written"
        assert lines(ours / hidden) == lines(plain / hidden)
    folders = [sorted(str(file.parent.name) for file in out.glob("by folder/*/part-*")) for out in (ours, plain)]
    assert folders[0] == folders[1]
    assert len(folders[0]) == 100


def test_the_graph_tells_with_how_many_tasks_shared_rows_were_written(spark, numbers, adaptive, tmp_path):
    def write():
        shared = totals(spark.read.parquet(numbers))
        shared.write.json(str(tmp_path / "all"))
        shared.where("m < 50").write.json(str(tmp_path / "few"))

    job = run(spark, write)
    launched = {}
    for task in job.tasks():
        launched.setdefault(task.vertex_id, []).append(task.role)
    names = {vertex.id: vertex.name for vertex in job.execution_graph.job_vertices}
    sinks = {names[vertex]: roles for vertex, roles in launched.items() if "Sink" in names[vertex]}
    assert list(sinks.values()) == [["task"] * (1 if adaptive else 4)] * 2
    told = "  small partitions read together: 2 stages, 6 tasks fewer"
    assert (told in job.report()) is adaptive


@pytest.mark.matrix(2)
@pytest.mark.parametrize(("parallelism_first", "expected"), [("true", 2), ("false", 1)])
def test_shared_rows_are_read_together_as_spark_reads_many_small_partitions(
    spark, numbers, adaptive, parallelism_first, expected, tmp_path
):
    """With parallelism first: a share of all bytes for each slot. Otherwise: as many as the user advises, 64 MiB."""
    conf = {
        "spark.sql.adaptive.coalescePartitions.minPartitionSize": "4k",
        "spark.sql.adaptive.coalescePartitions.parallelismFirst": parallelism_first,
    }

    def write(folder):
        shared = spark.read.parquet(numbers).repartition("id")
        shared.write.json(f"{folder}/all")
        shared.where("m < 50").write.json(f"{folder}/few")

    for key, value in conf.items():
        spark.conf.set(key, value)
    try:
        run(spark, lambda: write(tmp_path / "ours"))
        if adaptive:
            spark.conf.set("spark.sql.shuffle.partitions", "50")
        write(tmp_path / "plain")
    finally:
        for key in conf:
            spark.conf.unset(key)
    found = [len(files(tmp_path / who / part)) for who in ("ours", "plain") for part in ("all", "few")]
    assert found == [expected if adaptive else 4] * 4
