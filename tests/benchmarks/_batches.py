"""Batches of `foreachBatch` with two sinks, through the machine and in plain PySpark that persists by hand."""

from __future__ import annotations

import os
import statistics
import tempfile
import time
from pathlib import Path
from typing import Any

KEYS = 1000


def measure(spark: Any, pairs: int, rows: int) -> dict[str, Any]:
    """Figures of batches.

    `foreach_batch_ms` is what ours adds to a small batch, `foreach_batch_ratio` its time by that of plain PySpark with
    `rows` rows a batch: medians of pairs, of which each begins with the other's turn.
    """
    small = _pairs(spark, pairs, 100)
    large = _pairs(spark, max(5, pairs // 3), rows)
    added = [ours - plain for ours, plain in small]
    return {
        "foreach_batch_ms": round(1000 * statistics.median(added), 1),
        "foreach_batch_ratio": round(statistics.median(ours / plain for ours, plain in large), 3),
        "small_batch_ms": round(1000 * statistics.median(ours for ours, _ in small), 1),
        "small_batch_plain_ms": round(1000 * statistics.median(plain for _, plain in small), 1),
        "large_batch_ms": round(1000 * statistics.median(ours for ours, _ in large), 1),
        "large_batch_plain_ms": round(1000 * statistics.median(plain for _, plain in large), 1),
    }


def _pairs(spark: Any, pairs: int, rows: int) -> list[tuple[float, float]]:
    """Return the seconds of a batch, ours and plain, pair by pair; the first ones warm the JVM up."""
    from flinkmagic.session import capture, compile

    warming = 8
    seconds: dict[str, list[float]] = {"ours": [], "plain": []}
    with tempfile.TemporaryDirectory() as root:
        data = _data(spark, Path(root), rows)
        with capture(spark, name="ours", mode="streaming") as program:
            ours = _stream(spark, Path(root), "ours").foreachBatch(_Writer(Path(root), "ours", seconds)).start()
        job = compile(program, mode="streaming", parallelism=_PARTITIONS).run(wait=False)
        plain = _stream(spark, Path(root), "plain").foreachBatch(_Writer(Path(root), "plain", seconds)).start()
        queries = [("ours", ours), ("plain", plain)]
        try:
            for number in range(warming + pairs):
                for name, query in queries if number % 2 else reversed(queries):
                    os.link(data, Path(root) / f"{name}-in" / f"{number}.parquet")
                    query.processAllAvailable()
            reports = job.batches()
        finally:
            plain.stop()
            job.cancel()
            job.wait()
        _check(spark, Path(root), [(each.status, each.reason) for each in reports])
    # The time of the function's batch is that of all it writes; a deferred write is none of the function's own time.
    return list(zip([each.seconds for each in reports][warming:], seconds["plain"][warming:], strict=True))


_PARTITIONS = 2


class _Writer:
    """The function: an aggregate that two sinks need; in plain PySpark persisted for them by hand."""

    def __init__(self, root: Path, name: str, seconds: dict[str, list[float]]) -> None:
        self._root, self._name, self._seconds = root, name, seconds[name]

    def __call__(self, batch: Any, batch_id: int) -> None:
        from pyspark.sql import functions as F

        began = time.monotonic()
        totals = batch.groupBy("key").agg(F.count("*").alias("n"), F.sum("value").alias("total"))
        if self._name == "plain":
            totals = totals.persist()
        totals.write.mode("append").parquet(str(self._root / self._name / "totals"))
        totals.where("total % 2 = 0").write.mode("append").json(str(self._root / self._name / "even"))
        if self._name == "plain":
            totals.unpersist()
        self._seconds.append(time.monotonic() - began)


def _data(spark: Any, root: Path, rows: int) -> Path:
    """Write a batch's rows: one file, so that a batch has all of them."""
    frame = spark.range(0, rows, 1, 1).selectExpr(f"id % {min(KEYS, rows)} AS key", "id AS value")
    frame.write.parquet(str(root / "data"))
    [path] = (root / "data").glob("*.parquet")
    return path


def _stream(spark: Any, root: Path, name: str) -> Any:
    folder = root / f"{name}-in"
    folder.mkdir()
    reader = spark.readStream.schema("key long, value long").option("maxFilesPerTrigger", 1)
    return reader.parquet(str(folder)).writeStream.option("checkpointLocation", str(root / f"{name}-checkpoint"))


def _check(spark: Any, root: Path, outcomes: list[tuple[str, str]]) -> None:
    """Raise unless both have written the same rows, ours through the machine."""
    if set(outcomes) != {("FINISHED", "")}:
        raise AssertionError(f"not all batches went through the machine: {outcomes}")
    ours, plain = (spark.read.parquet(str(root / name / "totals")) for name in ("ours", "plain"))
    if ours.exceptAll(plain).count() or plain.exceptAll(ours).count():
        raise AssertionError("the rows differ")
