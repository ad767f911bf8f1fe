"""The partitioner on each edge, for the calls of the user's that decide how rows are spread."""

from __future__ import annotations

import pytest
from pyspark.sql import Window
from pyspark.sql import functions as F

from flinkmagic.options import JobOptions
from flinkmagic.planning import plan

BLOCKING = "BATCH"


def edges(job):
    """Return partitioner, exchange mode and subtasks of both sides, for the edges that do not just pass rows on."""
    return [
        (edge.partitioner.kind.name, edge.exchange_mode.name, edge.source.parallelism, edge.target.parallelism)
        for edge in job.environment.get_stream_graph().edges
        if edge.partitioner.kind.name != "FORWARD"
    ]


CALLS = {
    "repartition(n)": (lambda df: df.repartition(3), [("REBALANCE", BLOCKING, 4, 3)]),
    "repartition(n, cols)": (lambda df: df.repartition(3, "k"), [("HASH", BLOCKING, 4, 3)]),
    "repartition(cols)": (lambda df: df.repartition("k"), [("HASH", BLOCKING, 4, 2)]),
    "repartition(1)": (lambda df: df.repartition(1), [("GLOBAL", BLOCKING, 4, 1)]),
    "repartitionByRange": (lambda df: df.repartitionByRange(3, "id"), [("RANGE", BLOCKING, 4, 3)]),
    "orderBy": (lambda df: df.orderBy("k"), [("RANGE", BLOCKING, 4, 2)]),
    "coalesce": (lambda df: df.coalesce(2), [("RESCALE", "UNDEFINED", 4, 2)]),
    "coalesce(1)": (lambda df: df.coalesce(1), [("RESCALE", "UNDEFINED", 4, 1)]),
    "limit": (lambda df: df.limit(5), [("GLOBAL", BLOCKING, 4, 1)]),
    "a window of one partition": (
        lambda df: df.withColumn("r", F.row_number().over(Window.orderBy("id"))),
        [("GLOBAL", BLOCKING, 4, 1)],
    ),
    "a window by key": (
        lambda df: df.withColumn("r", F.row_number().over(Window.partitionBy("k").orderBy("id"))),
        [("HASH", BLOCKING, 4, 2)],
    ),
    "broadcast": (
        lambda df: df.join(F.broadcast(df.sparkSession.range(0, 5, 1, 3).withColumnRenamed("id", "k")), "k"),
        [("BROADCAST", BLOCKING, 3, 4)],
    ),
    "a total": (lambda df: df.agg(F.sum("id")), [("GLOBAL", BLOCKING, 4, 1)]),
}


@pytest.mark.parametrize("call", CALLS)
def test_the_partitioner_is_that_of_the_call(spark, runner, call):
    make, expected = CALLS[call]
    df = make(spark.range(0, 40, 1, 4).select("id", (F.col("id") % 5).alias("k")))
    job = plan({"result": df}, JobOptions(parallelism=2))
    assert edges(job) == expected
    assert sorted(runner.run(job)["result"]) == sorted(df.collect())
