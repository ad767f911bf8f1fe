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
    `rows` rows a batch, `foreach_batch_totals_ratio` the same where both sinks write few rows, so that little but
    starting jobs takes time: medians of pairs, of which each begins with the other's turn.
    """
    small = _pairs(spark, _Cleaned, pairs, 100)
    large = _pairs(spark, _Cleaned, max(5, pairs // 2), rows)
    totals = _pairs(spark, _Totals, max(5, pairs // 2), rows)
    return {
        "foreach_batch_ms": round(1000 * statistics.median(ours - plain for ours, plain in small), 1),
        "foreach_batch_ratio": round(statistics.median(ours / plain for ours, plain in large), 3),
        "foreach_batch_totals_ratio": round(statistics.median(ours / plain for ours, plain in totals), 3),
        "small_batch_ms": round(1000 * statistics.median(ours for ours, _ in small), 1),
        "small_batch_plain_ms": round(1000 * statistics.median(plain for _, plain in small), 1),
        "large_batch_ms": round(1000 * statistics.median(ours for ours, _ in large), 1),
        "large_batch_plain_ms": round(1000 * statistics.median(plain for _, plain in large), 1),
    }


def _pairs(spark: Any, function: type[_Function], pairs: int, rows: int) -> list[tuple[float, float]]:
    """Return the seconds of a batch, ours and plain, pair by pair; the first ones warm the JVM up."""
    from flinkmagic.session import capture, compile

    warming = 8
    seconds: dict[str, list[float]] = {"ours": [], "plain": []}
    with tempfile.TemporaryDirectory() as root:
        data = _data(spark, Path(root), rows)
        with capture(spark, name="ours", mode="streaming") as program:
            ours = _stream(spark, Path(root), "ours").foreachBatch(function(Path(root), "ours", seconds)).start()
        job = compile(program, mode="streaming", parallelism=_PARTITIONS).run(wait=False)
        plain = _stream(spark, Path(root), "plain").foreachBatch(function(Path(root), "plain", seconds)).start()
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
_NAMES = ("ours", "plain")


class _Function:
    """A function for batches: what two sinks need is persisted in plain PySpark, by hand, as Spark's guide has it."""

    def __init__(self, root: Path, name: str, seconds: dict[str, list[float]]) -> None:
        self._folder, self._is_plain, self._seconds = root / name, name == "plain", seconds[name]

    def __call__(self, batch: Any, batch_id: int) -> None:
        began = time.monotonic()
        shared = self.shared(batch)
        if self._is_plain:
            shared = shared.persist()
        self.write(shared, str(self._folder / "rows"), str(self._folder / "other"))
        if self._is_plain:
            shared.unpersist()
        self._seconds.append(time.monotonic() - began)

    def shared(self, batch: Any) -> Any:
        """Return what both sinks need."""
        raise NotImplementedError

    def write(self, shared: Any, rows: str, other: str) -> None:
        """Write twice."""
        raise NotImplementedError


class _Cleaned(_Function):
    """Rows are cleaned, and written together with their totals."""

    def shared(self, batch: Any) -> Any:
        from pyspark.sql import functions as F

        return batch.where("value % 10 != 0").withColumn("word", F.upper(F.concat(F.lit("key "), "key")))

    def write(self, shared: Any, rows: str, other: str) -> None:
        from pyspark.sql import functions as F

        shared.write.mode("append").parquet(rows)
        totals = shared.groupBy("word").agg(F.count("*").alias("n"), F.sum("value").alias("total"))
        totals.write.mode("append").json(other)


class _Totals(_Function):
    """Totals are written, and some of them once more."""

    def shared(self, batch: Any) -> Any:
        from pyspark.sql import functions as F

        return batch.groupBy("key").agg(F.count("*").alias("n"), F.sum("value").alias("total"))

    def write(self, shared: Any, rows: str, other: str) -> None:
        shared.write.mode("append").parquet(rows)
        shared.where("total % 2 = 0").write.mode("append").json(other)


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
    for folder, file_format in (("rows", "parquet"), ("other", "json")):
        ours, plain = (_digest(spark.read.format(file_format).load(str(root / name / folder))) for name in _NAMES)
        if ours != plain:
            raise AssertionError(f"{folder} differ: {ours}, {plain}")


def _digest(frame: Any) -> tuple[Any, ...]:
    """Return how many rows there are, and a sum over them that does not depend on their order."""
    from pyspark.sql import functions as F

    return tuple(frame.agg(F.count("*"), F.sum(F.xxhash64(*frame.columns).cast("decimal(38,0)"))).first())
