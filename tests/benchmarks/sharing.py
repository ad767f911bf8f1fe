"""Four writes over one expensive DataFrame: plain, through the whole machine, and as an expert writes it by hand.

The shared upstream is a scan, regular expressions, a Python function, a join and an aggregate. `plain` is the cell as
it stands, with the session's default settings. `ours` is the very same cell, captured and run as one graph. `expert`
knows what is shared and persists it by hand, with as many shuffle partitions as suit the cores.

The same run takes a third more or less time from minute to minute on a machine with neighbours, and a run pays for what
the one before it left to be cleaned. So a pair is four runs: expert, ours, ours, expert. A steady drift cancels in it,
and of both ways one run comes after its own kind and one after the other (the pair before ends with an expert's). An
uncounted one goes first after `plain`, which takes more than twice the time and runs before every third pair.

Figures: `plain_s`, `ours_s`, `expert_s` (medians), `ratio_plain` and `ratio_expert` (medians of the paired ratios of
`ours`), `lowest` and `highest` of the latter, `pairs` of it, `rows` (of the scan), `equal` (whether all three wrote the
same rows), `load` (of the machine, at the end).
"""

from __future__ import annotations

import argparse
import math
import os
import statistics
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import flinkmagic
from flinkmagic.scheduling.job_status import JobStatus

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

USERS = 40_000
BETWEEN_PLAIN = 3
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
    """Whether all folders hold the same rows; sums in another order differ in their last bits."""
    readers: dict[str, Callable[[str], DataFrame]] = {
        "by_country": spark.read.parquet,
        "slowest": spark.read.json,
        "failures": spark.read.csv,
        "scores": spark.read.parquet,
    }
    rows = [[sorted(readers[sink](str(folder / sink)).collect()) for sink in SINKS] for folder in folders]
    return all(
        len(one) == len(first) and all(map(same_row, one, first))
        for found in rows[1:]
        for one, first in zip(found, rows[0], strict=True)
    )


def same_row(one: Sequence[Any], other: Sequence[Any]) -> bool:
    """Whether two rows hold the same values, numbers but for rounding."""
    return all(
        math.isclose(a, b, rel_tol=1e-9, abs_tol=1e-9) if isinstance(a, float) else a == b
        for a, b in zip(one, other, strict=True)
    )


class Stopwatch:
    """Times the three ways, over data that is laid out, and remembers the times that count."""

    def __init__(self, spark: SparkSession, data: Path, times: dict[str, list[float]]) -> None:
        self._spark, self._data, self._times = spark, data, times

    def __call__(self, run: Callable[[SparkSession, Path, Path], None], *, counts: bool = False) -> float:
        """How long a run takes, in seconds."""
        start = time.perf_counter()
        run(self._spark, self._data, self._data / run.__name__)
        seconds = time.perf_counter() - start
        if counts:
            self._times[run.__name__].append(seconds)
        return seconds


def main(arguments: list[str]) -> dict[str, float | int | bool]:
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks sharing")
    parser.add_argument("--rows", type=int, default=3_000_000, help="rows of the scan (%(default)s)")
    parser.add_argument("--pairs", type=int, default=9, help="counted pairs of ours and the expert's (%(default)s)")
    parser.add_argument("--warmup", type=int, default=2, help="rounds of all three before them (%(default)s)")
    options = parser.parse_args(arguments)
    spark = flinkmagic.local_session(
        "sharing-benchmark", config={"spark.ui.enabled": "false", "spark.ui.showConsoleProgress": "false"}
    )
    times: dict[str, list[float]] = {run.__name__: [] for run in (plain, ours, expert)}
    ratios: dict[str, list[float]] = {"plain": [], "expert": []}
    with tempfile.TemporaryDirectory() as folder:
        lay_out(spark, Path(folder), options.rows)
        timed = Stopwatch(spark, Path(folder), times)
        for run in (plain, ours, expert) * options.warmup:
            timed(run)
        for number in range(options.pairs):
            plain_s = 0.0
            if number % BETWEEN_PLAIN == 0:
                plain_s = timed(plain, counts=True)
                timed(expert)
            expert_s, ours_s, again_s, after_s = (timed(run, counts=True) for run in (expert, ours, ours, expert))
            ratios["expert"].append((ours_s + again_s) / (expert_s + after_s))
            if plain_s:
                ratios["plain"].append((ours_s + again_s) / (2 * plain_s))
        equal = same_rows(spark, [Path(folder) / run.__name__ for run in (plain, ours, expert)])
    spark.stop()
    return {
        **{f"{name}_s": round(statistics.median(seconds), 3) for name, seconds in times.items()},
        **{f"ratio_{name}": round(statistics.median(pairs), 3) for name, pairs in ratios.items()},
        "lowest": round(min(ratios["expert"]), 3),
        "highest": round(max(ratios["expert"]), 3),
        "pairs": options.pairs,
        "rows": options.rows,
        "equal": equal,
        "load": round(os.getloadavg()[0], 1),
    }
