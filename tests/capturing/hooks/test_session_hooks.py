"""Caches, accumulators, broadcast variables, files of the context, streams: lines that pending writes depend on."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from flinkmagic.errors.capturing import PendingWriteError


@pytest.fixture
def cached(cell: Any, numbers: Any) -> Iterator[Any]:
    """A cell with a DataFrame `kept` whose rows are cached, and whose source has changed since."""
    source = numbers("x", 3)

    def begin() -> None:
        cell.spark.catalog.clearCache()
        numbers("x", 3)
        cell.plain("""\
            kept = spark.read.parquet(at("x")).selectExpr("id + 1 AS id").cache()
            other = spark.range(7).cache()
            n = [kept.count(), other.count()]
            kept.createOrReplaceTempView("kept_rows")
            """)
        # The files change where Spark is not told of it.
        part = next((cell.folder / "x").glob("*.parquet"))
        other = next((cell.folder / "twice").glob("*.parquet"))
        part.write_bytes(other.read_bytes())
        (part.parent / f".{part.name}.crc").unlink(missing_ok=True)

    cell.spark.range(6).coalesce(1).write.parquet(cell.at("twice"))
    cell.begin = begin
    assert source
    yield cell
    cell.spark.catalog.clearCache()
    cell.spark.catalog.dropTempView("kept_rows")


LETTING_GO = {
    "unpersist": "kept.unpersist()",
    "uncacheTable": 'spark.catalog.uncacheTable("kept_rows")',
    "clearCache": "spark.catalog.clearCache()",
    "dropTempView": 'spark.catalog.dropTempView("kept_rows")',
    "another view": 'spark.range(1).createOrReplaceTempView("kept_rows")',
}


@pytest.mark.matrix(3)
@pytest.mark.parametrize("line", LETTING_GO.values(), ids=LETTING_GO.keys())
def test_cached_rows_that_a_pending_write_takes(cached: Any, line: str) -> None:
    source = f"""\
        kept.where("id > 0").write.mode("overwrite").parquet(at("out"))
        other.unpersist()
        {line}
        """
    cached.begin()
    with pytest.raises(PendingWriteError, match=r"line 3: .* may read or change .*/out"):
        cached.capture(source)
    assert "out" not in cached.made()
    cached.begin()
    program = cached.capture(source, deploying=True)
    assert [(one.cause, one.location.line) for one in program.eager.settlements] == [("cache", 3)]
    assert cached.rows("out") == [1, 2, 3]


@pytest.mark.long
def test_cached_rows_of_an_rdd(cell: Any) -> None:
    source = """\
        rdd = spark.sparkContext.parallelize([1, 2]).map(lambda n: (n,)).cache()
        other = spark.sparkContext.parallelize([1, 2]).cache()
        rdd.toDF("n long").write.parquet(at("out"))
        other.unpersist()
        rdd.unpersist()
        """
    with pytest.raises(PendingWriteError, match=r"line 5: .* may read or change"):
        cell.capture(source)
    assert [one.cause for one in cell.capture(source, deploying=True).eager.settlements] == ["cache"]


@pytest.mark.parametrize("line", ["n = seen.value", "n = int(str(seen))", "seen.value = 0; n = 7"])
def test_accumulators_that_a_pending_write_adds_to(cell: Any, line: str) -> None:
    source = f"""\
        seen = spark.sparkContext.accumulator(0)
        def count(n):
            seen.add(1)
            return n
        spark.range(7).select(F.udf(count, "long")("id")).write.parquet(at("out"))
        {line}
        total = seen.value
        """
    with pytest.raises(PendingWriteError, match=r"line 6: .* may read or change"):
        cell.capture(source)
    program = cell.capture(source, deploying=True)
    assert [(one.cause, one.location.line) for one in program.eager.settlements] == [("accumulator", 6)]
    assert (cell.namespace["n"], cell.namespace["total"]) == (7, 0 if "= 0" in line else 7)
    pure = 'spark.range(2).write.parquet(at("pure"))\nn = spark.sparkContext.accumulator(3).value'
    assert cell.capture(pure).eager.settlements == ()


@pytest.mark.parametrize("line", ["of_the_write.destroy()", "of_the_write.unpersist()"])
def test_broadcast_variables_of_a_pending_write(cell: Any, line: str) -> None:
    source = f"""\
        of_the_write, other = (spark.sparkContext.broadcast([n]) for n in (5, 6))
        plus = F.udf(lambda n: n + of_the_write.value[0], "long")
        spark.range(2).select(plus("id").alias("n")).write.parquet(at("out"))
        other.destroy()
        {line}
        """
    with pytest.raises(PendingWriteError, match=r"line 5: .* may read or change"):
        cell.capture(source)
    assert [one.cause for one in cell.capture(source, deploying=True).eager.settlements] == ["broadcast"]
    assert cell.rows("out") == [5, 6]


def test_files_that_are_shipped(cell: Any, numbers: Any) -> None:
    numbers("there", 2)
    source = """\
        spark.range(5).coalesce(1).write.mode("overwrite").parquet(at("out"))
        spark.sparkContext.addFile(at("PLACE"), recursive=True)
        """
    with pytest.raises(PendingWriteError, match=r"line 2: .* reads .*/out"):
        cell.capture(source.replace("PLACE", "out"))
    assert cell.capture(source.replace("PLACE", "there")).eager.settlements == ()
    program = cell.capture(source.replace("PLACE", "out"), deploying=True)
    assert [one.cause for one in program.eager.settlements] == ["file"]


def test_the_catalog_looks_at_tables(cell: Any) -> None:
    cell.plain("spark.sql('create table of_the_catalog (id bigint, k int) using parquet partitioned by (k)')")
    source = """\
        spark.range(3).selectExpr("id", "cast(id as int) k").write.mode("append").insertInto("of_the_catalog")
        n = len(spark.catalog.listPartitions("of_the_catalog"))
        """
    try:
        if hasattr(cell.spark.catalog, "listPartitions"):  # of Spark 4
            with pytest.raises(PendingWriteError, match="line 2"):
                cell.capture(source)
            cell.capture(source, deploying=True)
            assert cell.namespace["n"] == 3
    finally:
        cell.plain("spark.sql('drop table of_the_catalog')")


@pytest.mark.long
def test_streams_settle_when_they_start_and_when_they_are_waited_for(cell: Any, numbers: Any) -> None:
    numbers("x", 3)
    source = """\
        stream = spark.readStream.schema("id long").parquet(at("x"))
        spark.range(5).write.mode("append").parquet(at("out"))
        query = stream.writeStream.format("memory").queryName("streamed").start()
        spark.range(5).write.mode("append").parquet(at("x"))
        query.processAllAvailable()
        spark.range(5).write.mode("append").parquet(at("out"))
        query.stop()
        n = spark.table("streamed").count()
        """
    with pytest.raises(PendingWriteError, match=r"line 3: .* may read or change"):
        cell.capture(source)
    program = cell.capture(source, deploying=True)
    assert [(one.cause, one.location.line) for one in program.eager.settlements] == [("stream", 3), ("stream", 5)]
    assert (cell.namespace["n"], len(program.writes)) == (8, 1)
