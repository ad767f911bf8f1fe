"""Pipelined exchanges against blocking ones: two shuffles of many rows, and two Python functions around one.

Both run through the whole machine, with as many partitions, interleaved. Figures: `ratio` (two shuffles) and
`python_ratio` (the functions), each the median of the paired ratios, pipelined to blocking; `first_row_share` and
`blocking_first_row_share`, which part of the producer's rows is made when the consumer's function sees its first row.
"""

from __future__ import annotations

import argparse
import gc
import statistics
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

from pyspark.sql import functions as F

import flinkmagic
from flinkmagic.scheduling.job_status import JobStatus

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

SLOTS = 6
EXCHANGES = ("blocking", "pipelined")


def two_shuffles(spark: SparkSession, rows: int) -> DataFrame:
    numbers = spark.range(0, rows, 1, 2).selectExpr("id", "id % 1000003 AS k")
    return numbers.groupBy("k").agg(F.sum("id").alias("s")).groupBy((F.col("s") % 1009).alias("m")).count()


def python_functions(spark: SparkSession, rows: int, marks: Path) -> DataFrame:
    folder = str(marks)

    def produce(batches):
        import time
        from pathlib import Path

        from pyspark import TaskContext

        task = TaskContext.get().partitionId()
        for number, batch in enumerate(batches):
            Path(folder, f"produced-{task}-{number}").write_text(f"{time.time()} {batch.num_rows}")
            yield batch

    def consume(batches):
        import time
        from pathlib import Path

        from pyspark import TaskContext

        for number, batch in enumerate(batches):
            if number == 0:
                Path(folder, f"consumed-{TaskContext.get().partitionId()}").write_text(str(time.time()))
            yield batch

    numbers = spark.range(0, rows, 1, 2).mapInArrow(produce, "id long")
    return numbers.repartition(2).mapInArrow(consume, "id long")


def seconds(frame: DataFrame, exchange: str) -> float:
    gc.collect()
    start = time.perf_counter()
    graph = flinkmagic.compile({"rows": frame}, "pipelined", parallelism=2, exchange=exchange, retain="none")
    job = graph.run()
    taken = time.perf_counter() - start
    if job.status is not JobStatus.FINISHED:
        raise RuntimeError(f"the job ended {job.status}: {job.exceptions()}")
    job.release()
    return taken


def first_row_share(marks: Path, rows: int) -> float:
    first = min(float(path.read_text()) for path in marks.glob("consumed-*"))
    made = [path.read_text().split() for path in marks.glob("produced-*")]
    return sum(int(count) for at, count in made if float(at) < first) / rows


def main(arguments: list[str]) -> dict[str, float | int]:
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks pipelined")
    parser.add_argument("--rows", type=int, default=20_000_000, help="of the two shuffles (%(default)s)")
    parser.add_argument("--python-rows", type=int, default=5_000_000, help="of the functions (%(default)s)")
    parser.add_argument("--rounds", type=int, default=5, help="pairs (%(default)s)")
    options = parser.parse_args(arguments)
    # Both sides of two shuffles need slots simultaneously, whatever the number of cores.
    spark = flinkmagic.local_session(
        "pipelined-benchmark",
        f"local[{SLOTS}]",
        {"spark.ui.enabled": "false", "spark.ui.showConsoleProgress": "false", "spark.driver.memory": "4g"},
    )
    ratios: dict[str, list[float]] = {"shuffles": [], "python": []}
    shares: dict[str, list[float]] = {exchange: [] for exchange in EXCHANGES}
    for number in range(options.rounds + 1):
        order = EXCHANGES if number % 2 else EXCHANGES[::-1]
        shuffles, functions = {}, {}
        for exchange in order:
            shuffles[exchange] = seconds(two_shuffles(spark, options.rows), exchange)
            with tempfile.TemporaryDirectory() as folder:
                functions[exchange] = seconds(python_functions(spark, options.python_rows, Path(folder)), exchange)
                share = first_row_share(Path(folder), options.python_rows)
            if number:
                shares[exchange].append(share)
        print(f"round {number}: shuffles {shuffles}, functions {functions}", flush=True)
        if number:  # the first is a warm-up
            ratios["shuffles"].append(shuffles["pipelined"] / shuffles["blocking"])
            ratios["python"].append(functions["pipelined"] / functions["blocking"])
    spark.stop()
    return {
        "ratio": round(statistics.median(ratios["shuffles"]), 3),
        "python_ratio": round(statistics.median(ratios["python"]), 3),
        "first_row_share": round(statistics.median(shares["pipelined"]), 4),
        "blocking_first_row_share": round(statistics.median(shares["blocking"]), 4),
        "rounds": options.rounds,
        "rows": options.rows,
        "python_rows": options.python_rows,
    }
