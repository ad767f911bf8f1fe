"""Deferred writes: Spark's own command with every setting, and Spark's own refusals at the write's own line."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

FORMATS = {
    "parquet": 'df.write.parquet(at("out"))',
    "orc": 'df.write.orc(at("out"))',
    "json": 'df.write.json(at("out"), dateFormat="yyyy")',
    "csv": 'df.write.csv(at("out"), sep=";", header=True)',
    "text": 'df.select(F.col("name")).write.text(at("out"), lineSep="|")',
}


@pytest.mark.parametrize(("file_format", "line"), FORMATS.items())
def test_each_format_is_deferred_and_written_as_plain_spark_writes_it(cell: Any, file_format: str, line: str) -> None:
    cell.plain("df = spark.range(4).select('id', F.concat(F.lit('n'), 'id').alias('name')).coalesce(1)")
    program = cell.capture(line)
    (write,) = program.writes
    assert cell.made() == set()
    assert (write.facts.format, write.facts.mode, write.name) == (file_format, "errorifexists", "out")
    assert write.facts.label == f"file:{cell.at('out')}"
    assert write.text == line.split(".", 1)[1] if file_format != "text" else write.text.startswith("write.text(")
    cell.run_pending(program)
    cell.plain(line.replace('"out"', '"plain"'))
    assert _data(cell.folder / "out") == _data(cell.folder / "plain")


def _data(folder: Path) -> list[bytes]:
    assert (folder / "_SUCCESS").exists()
    return [path.read_bytes() for path in sorted(folder.glob("part-*"))]


def test_settings_are_the_users(cell: Any) -> None:
    program = cell.capture("""\
        df = spark.range(6).select('id', (F.col('id') % 2).alias('k'))
        df.write.format("csv").option("header", True).partitionBy("k").mode("append").save(at("a"))
        df.write.save(at("b"), format="json", mode="overwrite", partitionBy=["k"], compression="gzip")
        df.write.option("path", at("c")).save()
        """)
    assert [(w.facts.format, w.facts.mode, w.facts.options, w.facts.partition_by) for w in program.writes] == [
        ("csv", "append", {"header": "true"}, ("k",)),
        ("json", "overwrite", {"compression": "gzip"}, ("k",)),
        ("parquet", "errorifexists", {}, ()),
    ]
    assert [w.location.line for w in program.writes] == [2, 3, 4]
    cell.run_pending(program)
    assert {path.name for path in (cell.folder / "a").iterdir() if path.is_dir()} == {"k=0", "k=1"}
    assert len(list((cell.folder / "b" / "k=1").glob("*.json.gz"))) > 0
    assert cell.rows("c") == [0, 1, 2, 3, 4, 5]


def test_the_command_holds_a_query_with_common_table_expressions(cell: Any) -> None:
    program = cell.capture("""\
        spark.sql("with a as (select * from range(3)) select x.id from a x join a y on x.id = y.id") \\
            .write.parquet(at("out"))
        """)
    cell.run_pending(program)
    assert cell.rows("out") == [0, 1, 2]


def test_sinks_have_names_of_their_own(cell: Any) -> None:
    program = cell.capture("""\
        for day in (1, 2):
            spark.range(day).write.parquet(at(f"{day}/daily.parquet"))
        """)
    assert [write.name for write in program.writes] == ["daily", "daily_2"]


def test_a_writer_can_be_used_again(cell: Any) -> None:
    program = cell.capture("""\
        writer = spark.range(2).write.mode("overwrite")
        writer.parquet(at("a"))
        writer.json(at("b"))
        """)
    assert [(w.name, w.facts.format, w.facts.mode) for w in program.writes] == [
        ("a", "parquet", "overwrite"),
        ("b", "json", "overwrite"),
    ]
    cell.plain('writer.csv(at("c"))')
    assert cell.made() == {"c"}


REFUSED = {
    "path exists": 'df.write.parquet(at("there"))',
    "path is a file": 'df.write.csv(at("file"))',
    "unknown mode": 'df.write.mode("foo").csv(at("out"))',
    "bucketed": 'df.write.bucketBy(2, "id").parquet(at("out"))',
    "sorted without buckets": 'df.write.sortBy("id").parquet(at("out"))',
    "no such partition column": 'df.write.partitionBy("nope").csv(at("out"))',
    "nothing but partition columns": 'df.write.partitionBy("id").csv(at("out"))',
    "no path": 'df.write.format("csv").save()',
    "two paths": 'df.write.option("path", at("a")).csv(at("out"))',
    "unknown format": 'df.write.format("nope").save(at("out"))',
    "hive": 'df.write.format("hive").save(at("out"))',
    "text of two columns": 'df.select("id", F.lit("a")).write.text(at("out"))',
    "text of numbers": 'df.write.text(at("out"))',
    "csv of structs": 'df.select(F.struct("id").alias("s")).write.csv(at("out"))',
    "unknown codec": 'df.write.option("compression", "foo").csv(at("out"))',
    "unknown codec of parquet": 'df.write.parquet(at("out"), compression="foo")',
    "long separator": 'df.write.csv(at("out"), quote="ab")',
    "equal names": 'df.select("id", "id").write.parquet(at("out"))',
    "equal names but for case": 'df.selectExpr("id", "id AS ID").write.json(at("out"))',
    "equal names in a table": 'df.select("id", "id").write.saveAsTable("of_equal_names")',
    "unknown column": 'df.select("nope").write.csv(at("out"))',
    "partitionBy of two kinds": 'df.write.partitionBy(1).csv(at("out"))',
}


@pytest.mark.matrix(4)
@pytest.mark.parametrize("line", REFUSED.values(), ids=REFUSED.keys())
def test_what_spark_refuses_is_refused_by_spark_at_that_line(cell: Any, numbers: Any, line: str) -> None:
    numbers("there", 3)
    (cell.folder / "file").write_text("")
    before = cell.files()
    cell.plain("df = spark.range(3)")
    with pytest.raises(Exception) as plain:  # noqa: PT011 - the plain error is what is compared with
        cell.plain(line)
    with pytest.raises(type(plain.value)) as captured:
        cell.capture(f"x = 1\n{line}")
    assert _gist(captured.value) == _gist(plain.value)
    assert any(entry.path == "/tmp/ipykernel_1/4242.py" and entry.lineno == 1 for entry in captured.traceback)
    assert not any(f"flinkmagic{os.sep}capturing{os.sep}" in str(entry.path) for entry in captured.traceback)
    assert cell.files() == before


def _gist(error: BaseException) -> Any:
    condition = getattr(error, "getCondition", None) or getattr(error, "getErrorClass", None)
    message = next(line for line in str(error).splitlines() if "An error occurred while calling" not in line)
    return (condition() if condition else None), message


def test_mode_ignore_skips_what_exists(cell: Any, numbers: Any) -> None:
    numbers("there", 3)
    program = cell.capture("""\
        df = spark.range(9)
        df.write.mode("ignore").parquet(at("there"))
        df.write.mode("ignore").parquet(at("new"))
        df.write.mode("ignore").parquet(at("new"))
        """)
    assert [(write.name, write.facts.mode) for write in program.writes] == [("new", "ignore")]
    assert [(skipped.path, skipped.location.line) for skipped in program.eager.skipped] == [
        (f"file:{cell.at('there')}", 2),
        (f"file:{cell.at('new')}", 4),
    ]
    cell.run_pending(program)
    assert cell.rows("there") == [0, 1, 2]
    assert cell.rows("new") == list(range(9))


def test_the_session_is_that_of_the_writes_own_line(cell: Any) -> None:
    cell.plain("spark.sql('create database if not exists elsewhere')")
    try:
        program = cell.capture("""\
            df = spark.range(3)
            df.write.parquet(at("a"))
            df.write.parquet(at("b"))
            spark.conf.set("spark.sql.session.timeZone", "Asia/Tokyo")
            spark.conf.set("spark.sql.files.maxRecordsPerFile", "7")
            spark.sql("use elsewhere")
            df.write.parquet(at("c"))
            spark.conf.unset("spark.sql.files.maxRecordsPerFile")
            """)
        first, second, third = (write.session for write in program.writes)
        assert first is second
        assert first.conf.get("spark.sql.session.timeZone") != "Asia/Tokyo"
        assert (first.catalog, first.database, third.database) == ("spark_catalog", "default", "elsewhere")
        assert third.conf["spark.sql.session.timeZone"] == "Asia/Tokyo"
        clone = cell.spark._jsparkSession.cloneSession()
        third.apply_to(clone.sessionState().conf())
        assert clone.conf().get("spark.sql.files.maxRecordsPerFile") == "7"
        first.apply_to(clone.sessionState().conf())
        assert clone.conf().get("spark.sql.session.timeZone") != "Asia/Tokyo"
        assert clone.sessionState().conf().getAllConfs().contains("spark.sql.files.maxRecordsPerFile") is False
    finally:
        cell.plain("spark.sql('use default'); spark.sql('drop database elsewhere')")
        cell.spark.conf.unset("spark.sql.session.timeZone")


def test_a_view_is_what_it_was_on_the_writes_own_line(cell: Any) -> None:
    program = cell.capture("""\
        spark.range(3).createOrReplaceTempView("changing")
        spark.table("changing").write.parquet(at("out"))
        spark.range(5).createOrReplaceTempView("changing")
        """)
    cell.run_pending(program)
    assert cell.rows("out") == [0, 1, 2]
