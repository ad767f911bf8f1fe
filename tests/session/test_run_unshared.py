"""What fails only because it is computed once for several sinks fails none of them."""

from __future__ import annotations

import errno

import pytest
from pyspark.sql import functions as F

from flinkmagic.scheduling.job_status import JobStatus
from flinkmagic.session import capture, compile


@pytest.fixture
def files_that_differ(spark, tmp_path):
    """Files of which one has texts where the others have numbers: Spark raises where that column is read."""
    rows = spark.range(0, 6, 1, 1).selectExpr("id % 3 AS k", "id AS v")
    rows.write.parquet(str(tmp_path / "rows"))
    rows.withColumn("v", F.col("v").cast("string")).write.mode("append").parquet(str(tmp_path / "rows"))
    return spark.read.schema("k LONG, v LONG").parquet(str(tmp_path / "rows")).repartition(2, "k")


def written(spark, folder):
    return sorted(map(tuple, spark.read.json(str(folder)).select("k", "n").collect()))


def write_two(rows, tmp_path):
    rows.groupBy("k").agg(F.count("*").alias("n")).write.mode("append").json(f"{tmp_path}/all")
    rows.where("k > 0").groupBy("k").agg(F.count("*").alias("n")).write.mode("append").json(f"{tmp_path}/some")


def test_a_column_that_no_sink_reads_fails_none(spark, files_that_differ, tmp_path) -> None:
    with capture(spark, name="apart") as program:
        write_two(files_that_differ, tmp_path)
    graph = compile(program)
    assert [stage.sinks for stage in graph.shared if stage.why != "equal exchanges"] != []
    job = graph.run()
    assert job.status is JobStatus.FINISHED, job.exceptions()
    assert written(spark, tmp_path / "all") == [(0, 4), (1, 4), (2, 4)]
    assert written(spark, tmp_path / "some") == [(1, 4), (2, 4)]
    assert [each.status for each in graph.jobs] == [JobStatus.FAILED, JobStatus.FINISHED]
    assert graph.shared == ()
    assert "a DataFrame could not be computed once for several sinks" in graph.summary()
    assert graph.run().status is JobStatus.FINISHED  # nothing is tried again
    assert len(graph.jobs) == 3


def out_of_room(marker, value):
    """Raise once what Python raises on a full disk."""
    import os

    try:
        os.close(os.open(marker, os.O_CREAT | os.O_EXCL))
    except FileExistsError:
        return value
    raise OSError(errno.ENOSPC, "No space left on device")


@pytest.mark.long
def test_a_full_disk_fails_no_sink(spark, tmp_path) -> None:
    marker = str(tmp_path / "marker")
    rows = spark.range(0, 6, 1, 1).select(F.udf(lambda k: out_of_room(marker, k % 3), "long")("id").alias("k"))
    with capture(spark, name="room") as program:
        write_two(rows, tmp_path)
    graph = compile(program)
    assert [stage.sinks for stage in graph.shared if stage.why != "equal exchanges"] != []
    assert graph.run().status is JobStatus.FINISHED
    assert written(spark, tmp_path / "all") == [(0, 2), (1, 2), (2, 2)]
    assert written(spark, tmp_path / "some") == [(1, 2), (2, 2)]


def test_what_plain_spark_computes_too_is_not_tried_again(spark, tmp_path) -> None:
    rows = spark.range(0, 6, 1, 1).select(F.udf(lambda k: 1 // k, "long")("id").alias("k"))
    with capture(spark, name="raises") as program:
        write_two(rows, tmp_path)
    graph = compile(program)
    assert [stage.sinks for stage in graph.shared if stage.why != "equal exchanges"] != []
    job = graph.run()
    assert job.status is JobStatus.FAILED
    assert "ZeroDivisionError" in str(job.exceptions()[-1].root.error)
    assert graph.jobs == [job]


@pytest.mark.long
def test_a_batch_is_written_in_which_only_sharing_fails(spark, files_that_differ, tmp_path) -> None:
    (tmp_path / "in").mkdir()
    spark.range(3).write.mode("append").parquet(str(tmp_path / "in"))

    def both(batch, batch_id) -> None:
        write_two(files_that_differ.join(batch.distinct().withColumnRenamed("id", "k"), "k", "left_semi"), tmp_path)

    with capture(spark, name="batches", mode="streaming") as program:
        stream = spark.readStream.schema("id LONG").parquet(str(tmp_path / "in"))
        stream.writeStream.foreachBatch(both).trigger(availableNow=True).start()
    job = compile(program, mode="streaming").run(wait=False)
    job.wait(120)
    assert job.status is JobStatus.FINISHED, [str(entry.root.error)[:3000] for entry in job.exceptions()]
    assert written(spark, tmp_path / "all") == [(0, 4), (1, 4), (2, 4)]
    assert written(spark, tmp_path / "some") == [(1, 4), (2, 4)]
    assert [report.reason for report in job.batches()] == [""]
