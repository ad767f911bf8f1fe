"""A cell that writes one folder for each day of a year: how long capture and compilation take.

Each day is a filter, an aggregation and a write of its own, as a loop over days in a notebook makes them.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from pathlib import Path
from typing import Any

import psutil


def main(arguments: list[str]) -> dict[str, Any]:
    """Figures: `seconds` from the first line of the cell to its graphs, its two parts, and `cpu_seconds`.

    The last one is CPU time of this process and of the driver's JVM, which other work on the machine hardly changes.
    """
    import flinkmagic

    parser = argparse.ArgumentParser(prog="many-sinks", description=__doc__)
    parser.add_argument("--sinks", type=int, default=365)
    options = parser.parse_args(arguments)
    spark = flinkmagic.local_session("many-sinks", "local[2]", {"spark.ui.enabled": "false"})
    spark.sparkContext.setLogLevel("ERROR")
    try:
        with tempfile.TemporaryDirectory() as folder:
            return _measure(spark, Path(folder), options.sinks)
    finally:
        spark.stop()


def _measure(spark: Any, folder: Path, sinks: int) -> dict[str, Any]:
    from pyspark.sql import functions as F

    import flinkmagic

    days = spark.range(5000).selectExpr("id", f"id % {sinks} AS day", "id % 13 AS line", "id * 2 AS delay")
    days.write.parquet(str(folder / "flights"))
    flights = spark.read.parquet(str(folder / "flights"))

    def cell(first: int, last: int) -> Any:
        with flinkmagic.capture(spark) as program:
            for day in range(first, last):
                by_line = flights.where(F.col("day") == day).groupBy("line").agg(F.avg("delay").alias("delay"))
                by_line.write.mode("overwrite").parquet(str(folder / "out" / str(day)))
        return program

    flinkmagic.compile(cell(0, 2), name="warm")  # a notebook's JVM has planned something before, too
    cpu, started = _cpu_seconds(), time.perf_counter()
    program = cell(0, sinks)
    captured = time.perf_counter()
    told: list[tuple[int, int]] = []
    graph = flinkmagic.compile(program, name="days", on_progress=lambda done, of: told.append((done, of)))
    compiled = time.perf_counter()
    assert told == [(done, sinks) for done in range(1, sinks + 1)]
    return {
        "sinks": len(graph.sinks),
        "seconds": round(compiled - started, 2),
        "capture_seconds": round(captured - started, 2),
        "compile_seconds": round(compiled - captured, 2),
        "cpu_seconds": round(_cpu_seconds() - cpu, 2),
        "ms_per_sink": round((compiled - started) / sinks * 1000, 1),
    }


def _cpu_seconds() -> float:
    this = psutil.Process()
    times = [each.cpu_times() for each in (this, *this.children(recursive=True))]
    return sum(each.user + each.system for each in times)
