"""A job of six stages that fails in its last; mended and run again it computes that stage alone.

Each pair is a full run of the mended cell with nothing retained, then a run that fails and the mended cell under the
same name, all from the cell's text to the end of the job.

Figures: `full_s`, `mended_s` (medians), `ratio_full` (median of the paired ratios, mended to full), `worst` (the
largest of them), `stages_full`, `stages_mended` (Spark stages that ran).
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
from flinkmagic.session import release_retained, retained

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from flinkmagic.session import Job


def lay_out(spark: SparkSession, data: str, rows: int) -> None:
    """Orders with a text that is dear to parse."""
    spark.range(0, rows, 1, 8).selectExpr(
        "id",
        "id % 997 AS customer",
        "concat('item-', id % 1009, ';price=', id % 83, '.', id % 10, ';note=', repeat('x', 40)) AS text",
    ).write.mode("overwrite").parquet(data)


def cell(spark: SparkSession, data: str, out: str, *, mended: bool) -> None:
    """Parse in Python, aggregate, join, rank, aggregate; then a function that fails before it is mended."""
    from pyspark.sql import Window
    from pyspark.sql import functions as F

    def price(text: str) -> float:
        return float(text.split("price=")[1].split(";")[0])

    def check(amount: float) -> float:
        if not mended:
            raise ValueError(f"{amount} is too much")
        return amount

    orders = spark.read.parquet(data).withColumn("price", F.udf(price, "double")("text"))
    items = orders.withColumn("item", F.regexp_extract("text", r"item-(\d+)", 1).cast("long"))
    by_item = items.groupBy("item", "customer").agg(F.sum("price").alias("price"), F.count("*").alias("n"))
    best = by_item.groupBy("item").agg(F.max("price").alias("best"))
    joined = by_item.join(best.hint("merge"), "item")
    first = Window.partitionBy("customer").orderBy(F.desc("price"), "item")
    ranked = joined.withColumn("r", F.row_number().over(first))
    totals = ranked.where("r <= 20").groupBy("r").agg(F.sum("best").alias("amount"))
    totals.withColumn("amount", F.udf(check, "double")("amount")).write.mode("overwrite").parquet(out)


def run(spark: SparkSession, data: str, out: str, name: str, *, mended: bool) -> tuple[float, Job]:
    started = time.perf_counter()
    with flinkmagic.capture(spark, name=name) as program:
        cell(spark, data, out, mended=mended)
    job = flinkmagic.compile(program, parallelism=4).run()
    seconds = time.perf_counter() - started
    wanted = JobStatus.FINISHED if mended else JobStatus.FAILED
    if job.status is not wanted:
        raise RuntimeError(f"the job ended {job.status}, not {wanted}: {job.exceptions()}")
    return seconds, job


def forget(spark: SparkSession) -> None:
    for graph in {one.graph for one in retained(spark)}:
        release_retained(spark, graph)


def stages(job: Job) -> int:
    return len({task.stage for task in job.tasks() if task.role == "task"})


def main(arguments: list[str]) -> dict[str, float | int]:
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks resume")
    parser.add_argument("--pairs", type=int, default=3, help="counted pairs (%(default)s)")
    parser.add_argument("--warmup", type=int, default=1, help="pairs before them (%(default)s)")
    parser.add_argument("--rows", type=int, default=10_000_000, help="rows that are read (%(default)s)")
    options = parser.parse_args(arguments)

    from flinkmagic.local_spark import local_session

    full, mended, counts = [], [], (0, 0)
    with tempfile.TemporaryDirectory() as folder:
        data, out = str(Path(folder) / "orders"), str(Path(folder) / "totals")
        spark = local_session(config={"spark.ui.enabled": "false", "spark.ui.showConsoleProgress": "false"})
        spark.sparkContext.setLogLevel("OFF")
        try:
            lay_out(spark, data, options.rows)
            for pair in range(options.warmup + options.pairs):
                forget(spark)
                full_s, full_job = run(spark, data, out, "resume", mended=True)
                rows = sorted(spark.read.parquet(out).collect())
                forget(spark)
                run(spark, data, out, "resume", mended=False)
                mended_s, mended_job = run(spark, data, out, "resume", mended=True)
                if sorted(spark.read.parquet(out).collect()) != rows:
                    raise RuntimeError("the mended run wrote other rows than the full one")
                counts = stages(full_job), stages(mended_job)
                print(f"pair {pair}: full {full_s:.2f} s, mended {mended_s:.2f} s, ratio {mended_s / full_s:.3f}")
                if pair >= options.warmup:
                    full.append(full_s)
                    mended.append(mended_s)
        finally:
            spark.stop()
    ratios = [one / other for one, other in zip(mended, full, strict=True)]
    return {
        "pairs": options.pairs,
        "full_s": round(statistics.median(full), 3),
        "mended_s": round(statistics.median(mended), 3),
        "ratio_full": round(statistics.median(ratios), 3),
        "worst": round(max(ratios), 3),
        "stages_full": counts[0],
        "stages_mended": counts[1],
    }
