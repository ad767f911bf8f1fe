"""Four writes over one expensive DataFrame: plain, through the whole machine, and as an expert writes it by hand.

The shared upstream is a scan, regular expressions, a Python function, a join and an aggregate. `plain` is the cell as
it stands, with the session's default settings. `ours` is the very same cell, captured and run as one graph. `expert`
knows what is shared and persists it by hand, with as many shuffle partitions as suit the cores.

Figures: `plain_s`, `ours_s`, `expert_s` (medians), `ratio_plain` and `ratio_expert` (medians of the paired ratios of
`ours`), `rows` (of the scan), `equal` (whether all three wrote the same rows), `load` (of the machine, at the end).
"""

from __future__ import annotations

import argparse
import os
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import flinkmagic
from flinkmagic.scheduling.job_status import JobStatus

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

USERS = 40_000
SINKS = ("by_country", "slowest", "failures", "scores")


def lay_out(spark: SparkSession, folder: Path, rows: int) -> None:
    """Write the log lines and the users; the lines in as many files as there are cores, twice over."""
    from pyspark.sql import functions as F

    user = F.pmod(F.hash("id"), F.lit(USERS))
    line = F.format_string(
        "GET /item/%d?user=%d HTTP/1.1 status=%d took=%dms",
        F.pmod(F.hash(F.col("id") * 3), F.lit(5000)),
        user,
        F.element_at(F.array(*map(F.lit, (200, 200, 200, 304, 404, 500))), F.pmod(F.hash("id"), F.lit(6)) + 1),
        F.pmod(F.hash(F.col("id") * 7), F.lit(900)) + 3,
    )
    lines = spark.range(0, rows, 1, 2 * (os.cpu_count() or 1)).select("id", user.alias("user"), line.alias("line"))
    lines.write.parquet(str(folder / "lines"))
    users = spark.range(0, USERS, 1, 1).selectExpr(
        "CAST(id AS INT) AS user", "CONCAT('country ', id % 60) AS country", "CONCAT('plan ', id % 4) AS plan"
    )
    users.write.parquet(str(folder / "users"))


def upstream(spark: SparkSession, data: Path) -> DataFrame:
    """What the four writes share: for each user and status the number, time and score of requests."""
    from pyspark.sql import functions as F

    @F.udf("double")
    def score(status, took):  # type: ignore[no-untyped-def]  # PySpark warns of hints that it has no use for
        return (1.0 if status < 400 else -5.0) * (1000 - took) / 1000

    lines = spark.read.parquet(str(data / "lines"))
    users = spark.read.parquet(str(data / "users"))
    parsed = lines.select(
        "user",
        F.regexp_extract("line", r"status=(\d+)", 1).cast("int").alias("status"),
        F.regexp_extract("line", r"took=(\d+)ms$", 1).cast("int").alias("took"),
    )
    scored = parsed.withColumn("score", score("status", "took")).join(users, "user")
    return scored.groupBy("user", "country", "plan", "status").agg(
        F.count("*").alias("requests"), F.avg("took").alias("took"), F.sum("score").alias("score")
    )


def write_all(shared: DataFrame, out: Path) -> None:
    """The four writes."""
    from pyspark.sql import functions as F

    by_country = shared.groupBy("country").agg(F.sum("requests").alias("requests"), F.avg("score").alias("score"))
    by_country.write.mode("overwrite").parquet(str(out / "by_country"))
    slowest = shared.where("status = 200").orderBy(F.desc("took"), "user").limit(1000)
    slowest.write.mode("overwrite").json(str(out / "slowest"))
    failures = shared.where("status >= 400").groupBy("plan", "status").agg(F.sum("requests").alias("requests"))
    failures.write.mode("overwrite").csv(str(out / "failures"))
    scores = shared.groupBy("user").agg(F.round(F.sum("score"), 6).alias("score")).where("score > 0")
    scores.write.mode("overwrite").parquet(str(out / "scores"))


def plain(spark: SparkSession, data: Path, out: Path) -> None:
    write_all(upstream(spark, data), out)


def expert(spark: SparkSession, data: Path, out: Path) -> None:
    spark.conf.set("spark.sql.shuffle.partitions", str(2 * spark.sparkContext.defaultParallelism))
    try:
        shared = upstream(spark, data).persist()
        write_all(shared, out)
        shared.unpersist(blocking=True)
    finally:
        spark.conf.unset("spark.sql.shuffle.partitions")


def ours(spark: SparkSession, data: Path, out: Path) -> None:
    with flinkmagic.capture(spark) as program:
        write_all(upstream(spark, data), out)
    graph = flinkmagic.compile(program, name="sharing", retain="none")
    job = graph.run()
    if job.status is not JobStatus.FINISHED:
        raise RuntimeError(f"the job ended {job.status}: {job.exceptions()}")
    job.release()


def same_rows(spark: SparkSession, folders: list[Path]) -> bool:
    """Whether all folders hold the same rows."""
    readers: dict[str, Callable[[str], DataFrame]] = {
        "by_country": lambda path: spark.read.parquet(path).selectExpr("country", "requests", "round(score, 6)"),
        "slowest": lambda path: spark.read.json(path).selectExpr("user", "round(took, 6)", "requests"),
        "failures": spark.read.csv,
        "scores": spark.read.parquet,
    }
    return all(
        len({tuple(sorted(readers[sink](str(folder / sink)).collect())) for folder in folders}) == 1 for sink in SINKS
    )


def main(arguments: list[str]) -> dict[str, float | int | bool]:
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks sharing")
    parser.add_argument("--rows", type=int, default=3_000_000, help="rows of the scan (%(default)s)")
    parser.add_argument("--pairs", type=int, default=5, help="counted rounds (%(default)s)")
    parser.add_argument("--warmup", type=int, default=1, help="rounds before them (%(default)s)")
    options = parser.parse_args(arguments)
    spark = flinkmagic.local_session(
        "sharing-benchmark", config={"spark.ui.enabled": "false", "spark.ui.showConsoleProgress": "false"}
    )
    runs = [("plain", plain), ("ours", ours), ("expert", expert)]
    times: dict[str, list[float]] = {name: [] for name, _ in runs}
    with tempfile.TemporaryDirectory() as folder:
        data = Path(folder)
        lay_out(spark, data, options.rows)
        for number in range(options.warmup + options.pairs):
            # Who goes first changes, so that nobody always finds the others' warm files.
            for name, run in (*runs[number % 3 :], *runs[: number % 3]):
                start = time.perf_counter()
                run(spark, data, data / name)
                if number >= options.warmup:
                    times[name].append(time.perf_counter() - start)
        equal = same_rows(spark, [data / name for name, _ in runs])
    spark.stop()
    ratios = {
        other: statistics.median(a / b for a, b in zip(times["ours"], times[other], strict=True))
        for other in ("plain", "expert")
    }
    return {
        **{f"{name}_s": round(statistics.median(seconds), 3) for name, seconds in times.items()},
        "ratio_plain": round(ratios["plain"], 3),
        "ratio_expert": round(ratios["expert"], 3),
        "pairs": options.pairs,
        "rows": options.rows,
        "equal": equal,
        "load": round(os.getloadavg()[0], 1),
    }
