"""Splits and side outputs of a captured cell, run as a job: rows that are others each time are in one part each."""

from __future__ import annotations

import random

import pytest
from pyspark.sql import functions as F

import flinkmagic
from flinkmagic.scheduling.job_status import JobStatus


@pytest.fixture
def chance(spark):
    """Rows that are others each time, and sorted by what is different."""
    drawn = F.udf(lambda: random.SystemRandom().random(), "double").asNondeterministic()
    return lambda: spark.range(0, 2000, 1, 4).select(drawn().alias("r"), "id")


def read(spark, *paths):
    return sorted(row["id"] for path in paths for row in spark.read.parquet(str(path)).collect())


@pytest.mark.long
def test_random_splits_are_disjoint_and_complete_where_plain_sparks_are_not(spark, chance, tmp_path):
    def parts(folder):
        for number, part in enumerate(chance().randomSplit([0.3, 0.3, 0.4], 7)):
            part.write.parquet(str(tmp_path / folder / str(number)))

    paths = {folder: [tmp_path / folder / str(number) for number in range(3)] for folder in ("plain", "ours")}
    parts("plain")
    assert read(spark, *paths["plain"]) != list(range(2000)), "plain Spark loses rows, and has others twice"
    with flinkmagic.capture(spark) as program:
        parts("ours")
    graph = flinkmagic.compile(program, name="parts", parallelism=2)
    job = graph.run()
    assert job.status is JobStatus.FINISHED
    assert read(spark, *paths["ours"]) == list(range(2000))
    assert all(read(spark, path) for path in paths["ours"])


def test_a_split_and_a_side_output_are_one_pass(spark):
    passes = spark.sparkContext.accumulator(0)

    def draw():
        passes.add(1)
        return random.SystemRandom().random()

    drawn = F.udf(draw, "double").asNondeterministic()
    with flinkmagic.capture(spark) as program:
        rows = spark.range(0, 600, 1, 4).withColumn("r", drawn())
        parts = flinkmagic.split(rows, {"low": "r < 0.5", "high": "r >= 0.5"})
        low, high = parts.select("low"), parts.select("high")
        main, late = flinkmagic.side_output(rows, flinkmagic.OutputTag("late"), "r > 0.8")
    del low, high, main, late
    graph = flinkmagic.compile(program, name="ways", parallelism=2)
    assert "rows is shared by 4 sinks (low, high, main, late) and computed once" in graph.summary()
    job = graph.run()
    assert job.status is JobStatus.FINISHED
    assert passes.value == 600
    counts = {name: job.result(name).count() for name in ("low", "high", "main", "late")}
    assert counts["low"] + counts["high"] == counts["main"] + counts["late"] == 600
    assert 0 < counts["late"] < counts["high"]
