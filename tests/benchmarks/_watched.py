"""A streaming query under the scheduler with a live view, and the same query of plain PySpark."""

from __future__ import annotations

import os
import statistics
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

POLL_S = 0.25
"""How often the live view asks for a snapshot while somebody looks."""
ROWS, WARMING = 1000, 8


def measure(spark: Any, pairs: int) -> dict[str, Any]:
    """Figures of batches that are watched.

    `overhead_ms` is what watching adds to a batch of a stateful query, from a file's arrival until Spark says that all
    is processed: the median of the pairs' differences, of which each pair begins with the other's turn.
    """
    with tempfile.TemporaryDirectory() as root:
        seconds = _pairs(spark, Path(root), pairs)
    return {
        "overhead_ms": round(1000 * statistics.median(watched - plain for watched, plain in seconds), 1),
        "watched_batch_ms": round(1000 * statistics.median(watched for watched, _ in seconds), 1),
        "plain_batch_ms": round(1000 * statistics.median(plain for _, plain in seconds), 1),
    }


def _pairs(spark: Any, root: Path, pairs: int) -> list[tuple[float, float]]:
    from flinkmagic.session import capture, compile

    spark.range(0, ROWS, 1, 1).selectExpr("id % 7 AS key", "id AS value").write.parquet(str(root / "data"))
    [data] = (root / "data").glob("*.parquet")
    with capture(spark, name="watched", mode="streaming") as program:
        watched = _started(spark, root, "watched")
    job = compile(program, mode="streaming", parallelism=2).run(wait=False)
    plain = _started(spark, root, "plain")
    queries, seconds = {"watched": watched, "plain": plain}, []
    over = threading.Event()
    view = threading.Thread(target=_look, args=(job, over))
    view.start()
    try:
        for number in range(WARMING + pairs):
            took = {}
            for name in queries if number % 2 else reversed(queries):
                began = time.monotonic()
                os.link(data, root / f"{name}-in" / f"{number}.parquet")
                queries[name].processAllAvailable()
                took[name] = time.monotonic() - began
            seconds.append((took["watched"], took["plain"]))
        rows = [sorted(map(tuple, spark.table(f"{name}_counts").collect())) for name in queries]
        if rows[0] != rows[1] or len(rows[0]) != 7:
            raise AssertionError(f"the rows differ: {rows}")
    finally:
        over.set()
        view.join()
        plain.stop()
        job.cancel()
        job.wait()
    return seconds[WARMING:]


def _started(spark: Any, root: Path, name: str) -> Any:
    (root / f"{name}-in").mkdir()
    reader = spark.readStream.schema("key long, value long").option("maxFilesPerTrigger", 1)
    counts = reader.parquet(str(root / f"{name}-in")).groupBy("key").count()
    return counts.writeStream.format("memory").queryName(f"{name}_counts").outputMode("complete").start()


def _look(job: Any, over: threading.Event) -> None:
    while not over.wait(POLL_S):
        job.snapshot()
