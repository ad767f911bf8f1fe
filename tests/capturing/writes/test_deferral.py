"""Writes to tables and sources: what is deferred, in which order, and what is refused before anything is deleted."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from py4j.protocol import Py4JError

from flinkmagic.errors.capturing import OverwritesInputError, PendingWriteError

DRIVER = "org.apache.derby.iapi.jdbc.AutoloadedDriver"


def test_what_is_known_of_a_write_to_a_table(cell: Any, table: Any) -> None:
    table("there", 4)
    program = cell.capture("""\
        df = spark.range(4).selectExpr("id", "id % 2 AS k")
        df.write.bucketBy(2, "id").partitionBy("k").option("compression", "zstd").saveAsTable("made", format="orc")
        df.write.insertInto("there")
        df.write.insertInto("there", overwrite=True)
        df.write.mode("append").saveAsTable("default.there", partitionBy="k")
        df.writeTo("created").using("parquet").create()
        """)
    assert [(w.name, w.facts.format, w.facts.mode, w.facts.label, w.facts.defines) for w in program.writes] == [
        ("made", "orc", "errorifexists", "spark_catalog.default.made", True),
        ("there", "parquet", "append", "spark_catalog.default.there", False),
        ("there_2", "parquet", "overwrite", "spark_catalog.default.there", False),
        ("there_3", "parquet", "append", "spark_catalog.default.there", False),
        ("created", "parquet", "errorifexists", "spark_catalog.default.created", True),
    ]
    assert [w.facts.partition_by for w in program.writes] == [("k",), ("k",), ("k",), ("k",), ()]
    assert program.writes[0].facts.options == {"compression": "zstd"}
    assert [w.after for w in program.writes] == [(), (), (1,), (1, 2), ()]
    assert [w.text for w in program.writes[:2]] == [
        'write.bucketBy(2, "id").partitionBy("k").option("compression", "zstd").saveAsTable("made", format="orc")',
        'write.insertInto("there")',
    ]
    assert {w.facts.target.table for w in program.writes} == {
        "spark_catalog.default.made",
        "spark_catalog.default.there",
        "spark_catalog.default.created",
    }
    assert cell.ids("there") == [0, 1, 2, 3]
    assert not cell.spark.catalog.tableExists("made")


REFUSED = {
    "table exists": 'df.write.saveAsTable("there")',
    "table exists for create": 'df.writeTo("there").using("parquet").create()',
    "no such database": 'df.write.saveAsTable("nowhere.made")',
    "no such partition column": 'df.write.partitionBy("nope").saveAsTable("made")',
    "no such bucket column": 'df.write.bucketBy(2, "nope").saveAsTable("made")',
    "sorted without buckets": 'df.write.sortBy("id").saveAsTable("made")',
    "nothing but partition columns": 'df.write.partitionBy("id", "k").saveAsTable("made")',
    "unknown format": 'df.write.format("nope").saveAsTable("made")',
    "other columns to append": 'df.select("id").write.mode("append").saveAsTable("there")',
    "other format to append": 'df.write.format("json").mode("append").partitionBy("k").saveAsTable("there")',
    "other partitions to append": 'df.write.mode("append").partitionBy("id").saveAsTable("there")',
    "insert of other columns": 'df.select("id").write.insertInto("there")',
    "insert with partitions": 'df.write.partitionBy("k").insertInto("there")',
    "insert with buckets": 'df.write.bucketBy(2, "k").insertInto("there")',
    "insert into nothing": 'df.write.insertInto("nope")',
    "append to nothing": 'df.writeTo("nope").append()',
    "append by version 2": 'df.writeTo("there").append()',
    "overwrite by version 2": 'df.writeTo("there").overwritePartitions()',
    "replace by version 2": 'df.writeTo("there").using("parquet").createOrReplace()',
    "no such catalog": 'df.writeTo("nope.there.made").create()',
    "csv of structs": 'df.select(F.struct("id").alias("s")).write.format("csv").saveAsTable("made")',
    "jdbc with partitions": 'df.write.partitionBy("k").jdbc("jdbc:derby:memory:a", "t")',
    "jdbc without a driver": 'df.write.jdbc("jdbc:nope:a", "t")',
    "jdbc table exists": f'df.write.jdbc(url, "APP.TAKEN", properties={{"driver": "{DRIVER}"}})',
    "own table inserted over": 'spark.table("there").write.mode("overwrite").insertInto("there")',
}


@pytest.mark.matrix(5)
@pytest.mark.parametrize("line", REFUSED.values(), ids=REFUSED.keys())
def test_what_spark_refuses_is_refused_by_spark_at_that_line(cell: Any, table: Any, line: str) -> None:
    table("there", 4)
    cell.namespace["url"] = f"jdbc:derby:{cell.at('db')};create=true"
    cell.plain("df = spark.range(3).selectExpr('id', 'id % 2 AS k')")
    if "TAKEN" in line:
        cell.plain(line)
    with pytest.raises(Exception) as plain:  # noqa: PT011 - the plain error is what is compared with
        cell.plain(line)
    with pytest.raises(type(plain.value)) as captured:
        cell.capture(f"x = 1\n{line}")
    assert _gist(captured.value) == _gist(plain.value)
    assert any(entry.path == "/tmp/ipykernel_1/4242.py" and entry.lineno == 1 for entry in captured.traceback)
    assert cell.ids("there") == [0, 1, 2, 3]
    assert not cell.spark.catalog.tableExists("made")


def _gist(error: Any) -> Any:
    if isinstance(error, Py4JError) and not hasattr(error, "getCondition"):
        return [line for line in str(error).splitlines() if "An error occurred while calling" not in line][:1]
    condition = getattr(error, "getCondition", None) or getattr(error, "getErrorClass", None)
    return (condition() if condition else None), str(error).splitlines()[0]


OWN_INPUT = {
    "own table by saveAsTable": 'spark.table("there").write.mode("overwrite").saveAsTable("there")',
    "own table, otherwise": 'spark.sql("select * from there").write.mode("overwrite").saveAsTable("Default.There")',
    "own table by its folder": 'spark.table("there").write.mode("overwrite").parquet(folder)',
    "a partition of the own table": 'spark.table("there").where("k = 0").write.mode("overwrite").json(folder + "/k=0")',
    "own folder by a table": 'spark.read.parquet(folder).write.mode("overwrite").saveAsTable("there")',
    "own folder by a table that is new": 'spark.read.parquet(at("in")).write.saveAsTable("made", path=at("in"))',
    "two tables in a cycle": """\
        spark.table("there").write.mode("overwrite").saveAsTable("other")
        spark.table("other").write.mode("overwrite").saveAsTable("there")
        """,
    "a table and a folder in a cycle": """\
        one, other = spark.table("there"), spark.read.parquet(at("in"))
        other.selectExpr("id", "0L AS k").write.mode("overwrite").insertInto("there")
        one.write.mode("overwrite").parquet(at("in"))
        """,
}


@pytest.mark.matrix(4)
@pytest.mark.parametrize("lines", OWN_INPUT.values(), ids=OWN_INPUT.keys())
def test_a_job_that_overwrites_what_it_reads_is_refused_and_rows_stay(
    cell: Any, table: Any, numbers: Any, lines: str
) -> None:
    table("there", 4)
    table("other", 6)
    numbers("in", 3)
    location = cell.spark.sql("DESCRIBE EXTENDED there").where("col_name = 'Location'").first()["data_type"]
    cell.namespace["folder"] = location.removeprefix("file:")
    with pytest.raises((OverwritesInputError, PendingWriteError)):
        cell.capture(lines)
    assert cell.ids("there") == [0, 1, 2, 3]
    assert cell.ids("other") == [0, 1, 2, 3, 4, 5]
    assert cell.rows("in") == [0, 1, 2]
    assert not cell.spark.catalog.tableExists("made")


def test_replacing_partitions_of_the_own_table_stays_allowed(cell: Any, table: Any) -> None:
    table("there", 4)
    program = cell.capture("""\
        spark.conf.set("spark.sql.sources.partitionOverwriteMode", "dynamic")
        spark.table("there").where("k = 1").selectExpr("id + 10", "k").write.insertInto("there", overwrite=True)
        """)
    (write,) = program.writes
    assert (write.facts.mode, write.facts.dynamic) == ("overwrite", True)
    cell.run_pending(program)
    cell.spark.conf.unset("spark.sql.sources.partitionOverwriteMode")
    assert cell.ids("there") == [0, 2, 11, 13]


def test_overwriting_a_database_table_that_is_read_is_refused(cell: Any) -> None:
    cell.namespace["db"] = {"url": f"jdbc:derby:{cell.at('db')};create=true", "properties": {"driver": DRIVER}}
    cell.plain('spark.range(3).write.jdbc(table="APP.T", **db)')
    for line in (
        'spark.read.jdbc(table="APP.T", **db).write.jdbc(table="app.t", mode="overwrite", **db)',
        'spark.read.jdbc(table="(select * from APP.T) q", **db).write.jdbc(table="T", mode="overwrite", **db)',
    ):
        with pytest.raises(OverwritesInputError, match=r"cell 3, line 1: the write overwrites .* of jdbc:derby:"):
            cell.capture(line)
    cell.plain('n = spark.read.jdbc(table="APP.T", **db).count()')
    assert cell.namespace["n"] == 3


@pytest.fixture
def database(cell: Any) -> Iterator[str]:
    """A catalog of tables of version 2, and the name of one of them, which has the rows 0, 1 and 2."""
    url = f"jdbc:derby:{cell.at('db')};create=true"
    settings = {
        "spark.sql.catalog.own": "org.apache.spark.sql.execution.datasources.v2.jdbc.JDBCTableCatalog",
        "spark.sql.catalog.own.url": url,
        "spark.sql.catalog.own.driver": DRIVER,
    }
    for key, value in settings.items():
        cell.spark.conf.set(key, value)
    cell.spark.range(3).write.jdbc(url, "APP.T", properties={"driver": DRIVER})
    yield "own.APP.T"
    for key in settings:
        cell.spark.conf.unset(key)


OWN_VERSION_2 = [
    "spark.table(t).writeTo(t).overwrite(F.lit(True))",
    'spark.table(t).where("id = 1").writeTo(t).replace()',
    'spark.sql(f"SELECT * FROM {t}").writeTo(t).createOrReplace()',
    "spark.table(t).write.insertInto(t, overwrite=True)",
    'spark.table(t).write.mode("overwrite").saveAsTable(t)',
]


@pytest.mark.parametrize("line", OWN_VERSION_2)
def test_overwriting_a_table_of_version_2_that_is_read_is_refused(cell: Any, database: str, line: str) -> None:
    cell.namespace["t"] = database
    with pytest.raises(OverwritesInputError, match=r"(?i)line 1: the write overwrites own\.app\.t"):
        cell.capture(line)
    assert _rows_of(cell, database) == [0, 1, 2]


def test_a_cycle_of_tables_of_version_2_is_refused(cell: Any, database: str) -> None:
    cell.namespace["t"] = database
    cell.plain('spark.range(5, 7).writeTo("own.APP.OTHER").create()')
    with pytest.raises((OverwritesInputError, PendingWriteError)):
        cell.capture("""\
            one, other = spark.table(t), spark.table("own.APP.OTHER")
            one.writeTo("own.APP.OTHER").overwrite(F.lit(True))
            other.writeTo(t).overwrite(F.lit(True))
            """)
    assert _rows_of(cell, database) == [0, 1, 2]
    assert _rows_of(cell, "own.APP.OTHER") == [5, 6]


def _rows_of(cell: Any, table: str) -> list[int]:
    return sorted(row[0] for row in cell.spark.table(table).collect())


READS = [
    'spark.table("made").count()',
    'spark.sql("select * from made")',
    'spark.read.table("made")',
    'spark.catalog.tableExists("made")',
    'spark.catalog.getTable("made")',
    "spark.catalog.listTables()",
    'spark.sql("show tables")',
    'spark.sql("describe made")',
    'spark.range(1).write.insertInto("made")',
    'spark.sql("insert into made values (1)")',
    'spark.sql("drop table made")',
]


@pytest.mark.matrix(4)
@pytest.mark.parametrize("line", READS)
def test_a_line_that_needs_a_table_which_is_not_made_yet_is_refused_or_gets_it(
    cell: Any, table: Any, line: str
) -> None:
    pending = 'spark.range(3).write.saveAsTable("made")\n'
    with pytest.raises(PendingWriteError, match=r"cell 3, line 2: .*spark_catalog.default.made.* cell 3, line 1"):
        cell.capture(pending + line)
    assert not cell.spark.catalog.tableExists("made")
    program = cell.capture(pending + line, deploying=True)
    assert [write.name for write in program.eager.writes] == ["made"]


def test_modes_see_what_pending_writes_will_have_made(cell: Any, table: Any) -> None:
    table("there", 2)
    program = cell.capture("""\
        df = spark.range(3)
        df.write.mode("ignore").saveAsTable("there")
        df.write.mode("ignore").saveAsTable("made")
        df.write.mode("ignore").saveAsTable("made")
        """)
    assert [(write.name, write.facts.mode) for write in program.writes] == [("made", "ignore")]
    assert [(skipped.path, skipped.location.line) for skipped in program.eager.skipped] == [
        ("spark_catalog.default.there", 2),
        ("spark_catalog.default.made", 4),
    ]
    with pytest.raises(Exception, match="TABLE_OR_VIEW_ALREADY_EXISTS") as refused:
        cell.capture("""\
            spark.range(3).write.saveAsTable("twice")
            spark.range(3).write.saveAsTable("twice")
            """)
    assert any(entry.lineno == 1 for entry in refused.traceback)  # the second line, counted from 0
    cell.run_pending(program)
    assert cell.ids("made") == [0, 1, 2]
    assert cell.ids("there") == [0, 1]


def test_a_table_that_moves_is_written_immediately(cell: Any, table: Any) -> None:
    table("there", 2)
    program = cell.capture('spark.range(5).write.mode("overwrite").saveAsTable("there", path=at("elsewhere"))')
    assert program.writes == ()
    assert cell.ids("there") == [0, 1, 2, 3, 4]
    assert cell.made() == {"elsewhere"}


def test_a_writer_of_tables_can_be_used_again(cell: Any, table: Any) -> None:
    program = cell.capture("""\
        writer = spark.range(2).writeTo("first").using("parquet")
        writer.create()
        """)
    assert [write.name for write in program.writes] == ["first"]
    cell.plain("writer.create()")
    assert cell.ids("first") == [0, 1]
