"""Lines that run on their line while writes are pending: which may go on, and which touch what is pending."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from flinkmagic.errors.capturing import PendingWriteError

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
    spark.sql("declare or replace variable which string default 'source_numbers'")
    spark.sql("declare or replace variable unread string default 'free_numbers'")
    yield folder
    spark.sql("drop temporary variable which")
    spark.sql("drop temporary variable unread")
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
    "create table made (id long) using parquet location '{at}/in'": "changes",
    "drop table source_numbers": "changes",
    "drop table target_numbers": "changes",
    "truncate table source_numbers": "changes",
    "refresh table source_numbers": "changes",
    "cache table target_numbers": "reads",
    "explain select * from target_numbers": "reads",
    "alter table source_numbers set location '{at}/free'": "changes",
    "alter table source_numbers add columns (more int)": "changes",
    "alter table free_numbers rename to source_numbers": "changes",
    "drop database default cascade": "changes",
    "analyze table target_numbers compute statistics": "reads",
    "analyze tables in default compute statistics": "reads",
    "describe extended target_numbers": "reads",
    "update target_numbers set id = 1": "changes",
    "delete from source_numbers where id = 1": "changes",
    "delete from free_numbers where id in (select id from target_numbers)": "reads",
    "merge into source_numbers s using free_view f on s.id = f.id when matched then delete": "changes",
    "load data local inpath '{at}/in' into table free_numbers": "changes",
    "refresh '{at}/in'": "changes",
    "drop table identifier('source' || '_numbers')": "changes",
    "select * from identifier('target' || '_numbers')": "reads",
    "execute immediate 'select count(*) from ' || 'target_numbers'": "reads",
    "execute immediate 'drop table ' || which": "changes",
    "execute immediate 'insert into free_numbers select id + ? from target_numbers' using 1": "reads",
    "begin if (select 1) = 1 then drop table target_numbers; end if; end": "changes",
    "begin declare which string; set which = 'select 1'; execute immediate which; end": "may read or change",
    "begin while (select count(*) from target_numbers) > 9 do select 1; end while; end": "reads",
    "call target_numbers()": "may read or change",
    "create temporary function over() returns int return select count(*) from target_numbers": "reads",
    "create temporary view over using parquet options (path '{at}/out')": "reads",
}


@pytest.mark.matrix(4)
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
    "with target_numbers as (select * from free_numbers) select * from target_numbers",
    "select * from {frame} where id > :least",
    "select * from identifier('free' || '_numbers')",
    "analyze table free_numbers compute statistics",
    "analyze table source_numbers compute statistics",
    "comment on table source_numbers is 'read'",
    "comment on database default is 'all'",
    "clear cache",
    "create database if not exists apart",
    "drop database apart",
    "create table alike like source_numbers using parquet",
    "alter table alike add columns (more int)",
    "alter table alike set tblproperties ('a' = 'b')",
    "truncate table alike",
    "drop table alike",
    "create or replace temporary function one_more(x bigint) returns bigint return x + 1",
    "drop temporary function one_more",
    "execute immediate 'select * from free_numbers'",
    "execute immediate 'select count(*) from ' || unread",
    "begin declare n int = 1; while n < 3 do set n = n + 1; end while; select count(*) from free_numbers; end",
    "explain insert into free_numbers select 1",
    "drop view if exists no_view",
    "create or replace temporary view passing as select * from free_numbers",
    "create database if not exists default",
]


@pytest.mark.long
def test_sql_that_touches_nothing_pending_runs_on_its_line(cell_at: Any) -> None:
    lines = [f"spark.sql({text!r}{_arguments(text)})" for text in ALLOWED]
    program = cell_at.capture(PENDING + "\n".join(lines))
    assert len(program.writes) == 1
    # Of all these only one changes rows.
    assert [told.text for told in program.eager.statements] == ["sql('truncate table alike')"]
    assert program.eager.statements[0].location.code == "spark.sql('truncate table alike')"


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
def test_calls_that_run_immediately(cell_at: Any, line: str, touches: str | None) -> None:
    before = cell_at.files()
    if touches == "avro_of_mine":
        with pytest.raises(Exception, match=touches):
            cell_at.capture(PENDING + line)
    elif touches is not None:
        with pytest.raises(PendingWriteError, match=rf"cell 3, line 3: .*{touches} .*/out, .* cell 3, line 2"):
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
            spark.sql("truncate table filled_numbers")
            n = spark.table("filled_numbers").count()
            """,
            deploying=True,
        )
        assert [write.name for write in program.eager.writes] == ["copy"]
        assert cell.rows("copy") == [0, 1, 2]
        assert cell.namespace["n"] == 0
    finally:
        cell.plain("spark.sql('drop table filled_numbers')")
