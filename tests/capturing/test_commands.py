"""Lines that run at once while writes are pending: which may go on, and which touch what is pending."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from flinkmagic.errors import PendingWriteError

PENDING = """\
source = spark.table("source_numbers")
source.write.mode("append").parquet(at("out"))
"""


@pytest.fixture(scope="module")
def tables(spark: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """Three tables: one that the pending write reads, one in the folder that it writes, one elsewhere."""
    folder = tmp_path_factory.mktemp("tables")
    for name, place in (("source", "in"), ("target", "out"), ("free", "free")):
        spark.range(3).write.mode("overwrite").parquet(str(folder / place))
        spark.sql(f"create table {name}_numbers using parquet location '{folder / place}'")
    spark.sql("create view source_view as select * from source_numbers")
    spark.range(2).createOrReplaceTempView("free_view")
    yield folder
    spark.sql("drop view source_view")
    for name in ("source", "target", "free"):
        spark.sql(f"drop table if exists {name}_numbers")


@pytest.fixture
def cell_at(cell: Any, tables: Any) -> Any:
    """A cell whose paths lie with the tables."""
    cell.folder = tables
    return cell


REFUSED = {
    "select * from target_numbers": "reads",
    "with a as (select * from target_numbers) select * from a": "reads",
    "select * from range(3) where id in (select id from target_numbers)": "reads",
    "insert into free_numbers select * from target_numbers": "reads",
    "insert into target_numbers values (1)": "changes",
    "insert into source_numbers select * from free_view": "changes",
    "insert overwrite source_numbers select * from free_view": "changes",
    "with a as (select 1 id) insert into target_numbers select * from a": "changes",
    "from free_view insert into target_numbers select id insert into free_numbers select id": "changes",
    "insert overwrite directory '{at}/out' using parquet select 1 id": "changes",
    "create table made using parquet location '{at}/out/deeper' as select 1 id": "changes",
    "create table made (id long) using parquet location '{at}/in'": "changes",
    "drop table source_numbers": "changes",
    "drop table target_numbers": "changes",
    "truncate table source_numbers": "changes",
    "refresh table source_numbers": "changes",
    "cache table target_numbers": "reads",
    "explain select * from target_numbers": "reads",
    "alter table source_numbers set location '{at}/free'": "may read or change",
    "drop database default cascade": "may read or change",
    "insert into target_numbers select * from {{frame}}": "changes",
}


@pytest.mark.parametrize(("text", "touches"), REFUSED.items(), ids=REFUSED.keys())
def test_sql_that_touches_what_is_pending_is_refused(cell_at: Any, text: str, touches: str) -> None:
    text = text.replace("{at}", str(cell_at.folder)).replace("{{", "{").replace("}}", "}")
    before = cell_at.files()
    frames = ", frame=spark.range(1)" if "{frame}" in text else ""
    with pytest.raises(PendingWriteError, match=rf"cell 3, line 3: .*{touches} .*/out, .* cell 3, line 2"):
        cell_at.capture(f"{PENDING}spark.sql({text!r}{frames})")
    assert cell_at.files() == before


ALLOWED = [
    "select * from free_numbers",
    "select * from free_view where id in (select id from source_view)",
    "show tables",
    "describe table target_numbers",
    "set spark.sql.session.timeZone",
    "use default",
    "create or replace temporary view passing as select * from free_numbers",
    "create database if not exists default",
    "create table made_free using parquet as select * from free_view",
    "insert into made_free select * from source_numbers",
    "insert into made_free select id from {frame} where id > :least",
    "drop table made_free",
]


def test_sql_that_touches_nothing_pending_runs_at_once(cell_at: Any) -> None:
    lines = [f"spark.sql({text!r}{_arguments(text)})" for text in ALLOWED]
    lines.insert(-1, "n = spark.table('made_free').count()")
    program = cell_at.capture(PENDING + "\n".join(lines))
    assert len(program.writes) == 1
    assert cell_at.namespace["n"] == 2 + 3 + 2
    assert not cell_at.spark.catalog.tableExists("made_free")


def _arguments(text: str) -> str:
    return ", args={'least': 0}, frame=spark.range(3)" if "{frame}" in text else ""


CALLS = {
    'spark.range(1).mergeInto("source_numbers", F.lit(True)).whenNotMatched().insertAll().merge()': (
        "may read or change"
    ),
    'spark.range(1).rdd.saveAsTextFile(at("out/text"))': "changes",
    'spark.catalog.refreshTable("source_numbers")': "changes",
    'spark.catalog.createTable("made", at("out"), source="parquet")': "changes",
    "spark.catalog.listTables()": None,
    'spark.catalog.cacheTable("free_numbers"); spark.catalog.uncacheTable("free_numbers")': None,
    'spark.range(2).write.format("avro_of_mine").save(at("out"))': "avro_of_mine",
}


@pytest.mark.parametrize(("line", "touches"), CALLS.items(), ids=CALLS.keys())
def test_calls_that_run_at_once(cell_at: Any, line: str, touches: str | None) -> None:
    before = cell_at.files()
    if touches == "avro_of_mine":
        with pytest.raises(Exception, match=touches):
            cell_at.capture(PENDING + line)
    elif touches is not None:
        with pytest.raises(
            PendingWriteError, match=rf"cell 3, line 3: .*{touches} .*/out, .* cell 3, line 2"
        ):
            cell_at.capture(PENDING + line)
    else:
        assert len(cell_at.capture(PENDING + line).writes) == 1
    assert cell_at.files() == before


def test_a_command_runs_when_the_pending_write_has_run(cell: Any) -> None:
    cell.plain("spark.range(3).write.saveAsTable('filled_numbers')")
    try:
        program = cell.capture(
            """\
            spark.table("filled_numbers").write.parquet(at("copy"))
            spark.sql("insert overwrite filled_numbers select id from range(9)")
            n = spark.table("filled_numbers").count()
            """,
            deploying=True,
        )
        assert [write.name for write in program.deployed] == ["copy"]
        assert cell.rows("copy") == [0, 1, 2]
        assert cell.namespace["n"] == 9
    finally:
        cell.plain("spark.sql('drop table filled_numbers')")
