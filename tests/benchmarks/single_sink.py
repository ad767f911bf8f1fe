"""One query, one sink: a query of three shuffles, and TPC-H's 22, each as plain PySpark and through the whole machine.

Plain PySpark runs twice: with Spark's own defaults, and with as many shuffle partitions as ours takes. Time is from the
line that writes to the end of the write; ours includes capturing, compiling and scheduling, and takes up nothing that
earlier runs have computed.

Figures: `geomean_default` and `geomean_same_partitions` (geometric means over the queries of the medians of paired
ratios, ours to plain), `worst` (the largest of the medians against the defaults) and `worst_query`, and
`worst_same_partitions` (the largest against as many partitions).
"""

from __future__ import annotations

import argparse
import gc
import itertools
import statistics
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import flinkmagic
from flinkmagic.scheduling.job_status import JobStatus
from tests import tpch

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ORDERS = tuple(itertools.permutations(("default", "same", "ours")))
"""A run is faster after one of its own kind, so each comes as often after, and before, each of the others."""

THREE_SHUFFLES = """
SELECT o_orderpriority, c_mktsegment, count(*) AS orders, sum(revenue) AS revenue
FROM (SELECT l_orderkey, sum(l_extendedprice * (1 - l_discount)) AS revenue FROM lineitem GROUP BY l_orderkey)
JOIN orders ON l_orderkey = o_orderkey JOIN customer ON o_custkey = c_custkey
GROUP BY o_orderpriority, c_mktsegment
"""


def plain(spark: SparkSession, query: str, out: Path, partitions: int | None) -> None:
    if partitions is not None:
        spark.conf.set("spark.sql.shuffle.partitions", str(partitions))
    try:
        spark.sql(query).write.mode("overwrite").parquet(str(out))
    finally:
        spark.conf.unset("spark.sql.shuffle.partitions")


def ours(spark: SparkSession, query: str, out: Path) -> None:
    with flinkmagic.capture(spark) as program:
        spark.sql(query).write.mode("overwrite").parquet(str(out))
    graph = flinkmagic.compile(program, name="one", retain="none")
    job = graph.run()
    if job.status is not JobStatus.FINISHED:
        raise RuntimeError(f"the job ended {job.status}: {job.exceptions()}")
    job.release()


def measure(
    spark: SparkSession, queries: dict[str, str], out: Path, rounds: int, warmup: int
) -> dict[str, tuple[float, float]]:
    """The medians of the paired ratios of each query: against the defaults, and against as many partitions.

    A round has all queries, so that none is measured while the JVM is still compiling what the first of them ran.
    """
    times: dict[str, dict[str, list[float]]] = {query: {"default": [], "same": [], "ours": []} for query in queries}
    for number in range(warmup + rounds):
        for name, query in queries.items():
            _run_each(spark, query, out, ORDERS[number % len(ORDERS)], times[name])
        print(f"round {number + 1} is over", flush=True)
    ratios = {}
    for name, found in times.items():
        default, same = ratios[name] = _paired(found, "default", warmup), _paired(found, "same", warmup)
        seconds = statistics.median(found["ours"][warmup:])
        print(f"{name}: {default:.3f} of the defaults, {same:.3f} of as many partitions, {seconds:.2f} s", flush=True)
    return ratios


def _run_each(spark: SparkSession, query: str, out: Path, order: Sequence[str], times: dict[str, list[float]]) -> None:
    # What ours takes by default.
    partitions = 2 * spark.sparkContext.defaultParallelism
    runs: dict[str, Callable[[], object]] = {
        "default": lambda: plain(spark, query, out, None),
        "same": lambda: plain(spark, query, out, partitions),
        "ours": lambda: ours(spark, query, out),
    }
    for name in order:
        # PySpark's objects are freed by full collections only, and the plans behind them hold broadcasts.
        gc.collect()
        start = time.perf_counter()
        runs[name]()
        times[name].append(time.perf_counter() - start)


def _paired(times: dict[str, list[float]], other: str, warmup: int) -> float:
    return statistics.median(a / b for a, b in zip(times["ours"][warmup:], times[other][warmup:], strict=True))


def main(arguments: list[str]) -> dict[str, float | int | str]:
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks single-sink")
    parser.add_argument("--scale", type=float, default=1.0, help="of TPC-H's data (%(default)s)")
    parser.add_argument("--rounds", type=int, default=len(ORDERS), help="of a query (%(default)s)")
    parser.add_argument("--warmup", type=int, default=1, help="rounds before them (%(default)s)")
    parser.add_argument("--queries", nargs="*", help="only these, such as q01 three-shuffles")
    options = parser.parse_args(arguments)
    spark = flinkmagic.local_session(
        "single-sink-benchmark",
        config={
            "spark.ui.enabled": "false",
            "spark.ui.showConsoleProgress": "false",
            # In the default of 1 GiB q21 runs, plain, at the edge of its heap.
            "spark.driver.memory": "4g",
            # Of its default, 100 generated classes, each query would find its own thrown out again; and what plain
            # Spark generates serves two runs of a round, what is generated for ours one.
            "spark.sql.codegen.cache.maxEntries": "2000",
        },
    )
    queries = {"three-shuffles": THREE_SHUFFLES, **tpch.QUERIES}
    if options.queries:
        queries = {name: queries[name] for name in options.queries}
    with tempfile.TemporaryDirectory() as folder:
        tpch.generate(Path(folder), options.scale)
        tpch.register(spark, Path(folder))
        ratios = measure(spark, queries, Path(folder) / "out", options.rounds, options.warmup)
    spark.stop()
    worst = max(ratios, key=lambda name: ratios[name][0])
    return {
        "geomean_default": round(statistics.geometric_mean(first for first, _ in ratios.values()), 3),
        "geomean_same_partitions": round(statistics.geometric_mean(second for _, second in ratios.values()), 3),
        "worst": round(ratios[worst][0], 3),
        "worst_query": worst,
        "worst_same_partitions": round(max(second for _, second in ratios.values()), 3),
        "queries": len(ratios),
        "rounds": options.rounds,
        "scale": options.scale,
    }
