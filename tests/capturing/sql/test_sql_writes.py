"""Statements in SQL that write the rows of a query: deferred like any write, refused where Spark refuses them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from flinkmagic.errors.capturing import HandledWriteError, OverwritesInputError, PendingWriteError, ThreadWriteError

DRIVER = "org.apache.derby.iapi.jdbc.AutoloadedDriver"


@pytest.mark.long
def test_what_is_known_of_a_statement_that_writes(cell: Any, table: Any) -> None:
    table("there", 4)
    table("other", 2)
    program = cell.capture("""\
        spark.range(7, 9).selectExpr("id", "0L AS k").createOrReplaceTempView("few")
        answer = spark.sql("INSERT INTO there SELECT * FROM few")
        spark.sql("insert overwrite there partition (k = 5) select id from range(2)")
        spark.sql("WITH a AS (SELECT * FROM few) INSERT INTO there BY NAME SELECT k, id FROM a")
        spark.sql("create table made using orc partitioned by (k) as select * from few")
        spark.sql(f"insert overwrite directory '{at('out')}' using csv options (header true) select * from few")
        spark.sql("from few insert into there select id, k insert into other select id + 1, k")
        spark.sql("insert into {target} select * from {rows} where id > :least and id < :most".replace(
            "{target}", "there"), args={"least": 0, "most": 2}, rows=spark.range(4).selectExpr("id", "1L AS k"))
        spark.sql("insert into there values (element_at(?, 1), ?)", args=[F.array(F.lit(40), F.lit(41)), 1])
        spark.sql("execute immediate 'insert into ' || 'there values (41, 1)'")
        spark.sql("insert into identifier('th' || 'ere') values (42, 1)")
        """)
    assert [(w.name, w.kind, w.facts.format, w.facts.mode, w.location.line) for w in program.writes] == [
        ("there", "InsertIntoHadoopFsRelationCommand", "parquet", "append", 2),
        ("there_2", "InsertIntoHadoopFsRelationCommand", "parquet", "overwrite", 3),
        ("there_3", "InsertIntoHadoopFsRelationCommand", "parquet", "append", 4),
        ("made", "CreateDataSourceTableAsSelectCommand", "orc", "errorifexists", 5),
        ("out", "InsertIntoHadoopFsRelationCommand", "csv", "overwrite", 6),
        ("there_4", "InsertIntoHadoopFsRelationCommand", "parquet", "append", 7),
        ("other", "InsertIntoHadoopFsRelationCommand", "parquet", "append", 7),
        ("there_5", "InsertIntoHadoopFsRelationCommand", "parquet", "append", 8),
        ("there_6", "InsertIntoHadoopFsRelationCommand", "parquet", "append", 10),
        ("there_7", "InsertIntoHadoopFsRelationCommand", "parquet", "append", 11),
        ("there_8", "InsertIntoHadoopFsRelationCommand", "parquet", "append", 12),
    ]
    assert [w.after for w in program.writes] == [
        (), (0,), (0, 1), (), (), (0, 1, 2), (), (0, 1, 2, 5), (0, 1, 2, 5, 7), (0, 1, 2, 5, 7, 8),
        (0, 1, 2, 5, 7, 8, 9),
    ]  # fmt: skip
    assert program.writes[0].text == 'sql("INSERT INTO there SELECT * FROM few")'
    assert program.writes[4].facts.options == {"header": "true"}
    assert program.eager.statements == ()
    answer = cell.namespace["answer"]
    assert (answer.collect(), answer.columns, answer.count(), answer.sparkSession) == ([], [], 0, cell.spark)
    calls = {call.output: call for call in program.lineage.calls}
    assert [calls[w.frame].method for w in program.writes] == ["sql"] * 11
    view = next(call for call in program.lineage.calls if call.method == "selectExpr")
    assert view.output in calls[program.writes[0].frame].inputs
    assert cell.ids("there") == [0, 1, 2, 3]
    assert cell.made() == set()
    cell.run_pending(program)
    cell.spark.catalog.refreshTable("there")
    assert cell.ids("there") == [0, 0, 1, 1, 1, 2, 3, 7, 7, 7, 8, 8, 8, 40, 41, 42]
    assert cell.ids("other") == [0, 1, 8, 9]
    assert cell.ids("made") == [7, 8]
    assert sorted(row[0] for row in cell.spark.read.csv(cell.at("out"), header=True).collect()) == ["7", "8"]


REFUSED = [
    "insert into there select 1",
    "insert into nowhere select 1",
    "insert into there select nothing, 1 from range(3)",
    "insert into there replace where k = 1 select 1L, 1L",
    "insert overwrite there select * from there",
    "insert overwrite there partition (k = 1) select id from there where k = 0",
    "insert into there partition (nope = 1) select 1",
    "insert into there by name select 1 as a, 2 as b",
    "insert into wrong sql",
    "create table there using parquet as select 1 id",
    "create table nowhere.made using parquet as select 1 id",
    "create or replace table there using parquet as select 1 id",
    "create table made using csv as select struct(1) s",
    "create table made using nope as select 1 id",
    "insert overwrite directory '{at}/out' using text select 1 id",
    "insert overwrite directory using parquet select 1 id",
    "insert into there values (:one, 1)",
    "execute immediate 'insert into there select 1'",
]


@pytest.mark.matrix(5)
@pytest.mark.parametrize("text", REFUSED)
def test_what_spark_refuses_is_refused_by_spark_at_that_line(cell: Any, table: Any, numbers: Any, text: str) -> None:
    table("there", 4)
    numbers("in", 3)
    line = f"spark.sql({text.replace('{at}', str(cell.folder))!r})"
    with pytest.raises(Exception) as plain:  # noqa: PT011 - the plain error is what is compared with
        cell.plain(line)
    with pytest.raises(type(plain.value)) as captured:
        cell.capture(f"x = 1\n{line}")
    assert _gist(captured.value) == _gist(plain.value)
    assert any(entry.path == "/tmp/ipykernel_1/4242.py" and entry.lineno == 1 for entry in captured.traceback)
    assert (cell.ids("there"), cell.rows("in")) == ([0, 1, 2, 3], [0, 1, 2])
    assert not cell.spark.catalog.tableExists("made")


def _gist(error: Any) -> str:
    """An error's first line, without the Java method that was called and the place in the text."""
    text = next(line for line in str(error).splitlines() if "An error occurred while calling" not in line)
    return text.split("; line ")[0]


def test_what_is_there_is_left_alone(cell: Any, table: Any) -> None:
    table("there", 2)
    program = cell.capture("""\
        spark.sql("create table if not exists there using parquet as select 7L id")
        spark.sql("create table if not exists made using parquet as select 8L id")
        spark.sql("create table if not exists made using parquet as select 9L id")
        """)
    assert [(write.name, write.facts.mode) for write in program.writes] == [("made", "ignore")]
    assert [(skipped.path, skipped.location.line) for skipped in program.eager.skipped] == [
        ("spark_catalog.default.there", 1),
        ("spark_catalog.default.made", 3),
    ]
    cell.run_pending(program)
    assert (cell.ids("made"), cell.ids("there")) == ([8], [0, 1])


def test_a_statement_waits_for_the_table_that_it_needs(cell: Any, table: Any) -> None:
    source = """\
        spark.sql("create table made using parquet as select id from range(3)")
        spark.sql("insert into made select id + 10 from range(2)")
        spark.sql("create table copy using parquet as select * from made")
        """
    with pytest.raises(PendingWriteError, match=r"line 2: .* reads spark_catalog.default.made, .* line 1"):
        cell.capture(source)
    assert not cell.spark.catalog.tableExists("made")
    program = cell.capture(source, deploying=True)
    assert [write.name for write in program.eager.writes] == ["made", "made_2"]
    assert [write.name for write in program.writes] == ["copy"]
    cell.run_pending(program)
    assert cell.ids("copy") == [0, 1, 2, 10, 11]


@pytest.mark.long
def test_order_and_safety_are_those_of_other_writes(cell: Any, table: Any, numbers: Any) -> None:
    table("there", 4)
    numbers("in", 3)
    program = cell.capture("""\
        spark.range(9).write.mode("append").parquet(at("out/deeper"))
        spark.sql(f"insert overwrite directory '{at('out')}' using parquet select 1 id")
        spark.range(9).selectExpr("id", "id % 2").write.insertInto("there")
        spark.sql("insert into there select 1, 1")
        """)
    assert [write.after for write in program.writes] == [(), (0,), (), (2,)]
    source = """\
        spark.table("there").write.parquet(at("copy"))
        spark.sql("insert overwrite there select id, k from range(2) lateral view explode(array(0)) t as k")
        """
    with pytest.raises(OverwritesInputError, match=r"line 2: .*there, and the write to .*/copy \(cell 3, line 1\)"):
        cell.capture(source)
    program = cell.capture(source, deploying=True)
    assert [write.name for write in program.eager.writes] == ["copy"]
    cell.run_pending(program)
    assert (cell.ids("there"), cell.rows("copy")) == ([0, 1], [0, 1, 2, 3])
    cases = ("'{at}/in' using parquet select * from parquet.`{at}/in`", "'{at}' using csv select 1 from in_rows")
    for text in cases:
        cell.plain('spark.read.parquet(at("in")).createOrReplaceTempView("in_rows")')
        for deploying in (True, False):
            with pytest.raises(OverwritesInputError, match="line 1: the write overwrites"):
                cell.capture(f"spark.sql({('insert overwrite directory ' + text).format(at=cell.folder)!r})", deploying)
    assert cell.rows("in") == [0, 1, 2]
    program = cell.capture("""\
        spark.range(3).observe("seen", F.count("*").alias("n")).createOrReplaceTempView("seen")
        spark.sql("create table made using parquet as select * from seen")
        """)
    assert [write.name for write in program.writes] == ["made"]


def test_values_are_those_of_the_statements_line(cell: Any, table: Any) -> None:
    table("there", 1)
    cell.plain('spark.sql("declare or replace variable n bigint default 5")')
    try:
        program = cell.capture("""\
            spark.sql("insert into there select n, 0")
            spark.sql("set variable n = 6")
            spark.sql("set who = there")
            spark.sql("insert into ${who} select n, 0")
            """)
    finally:
        cell.plain('spark.sql("drop temporary variable n"); spark.conf.unset("who")')
    cell.run_pending(program)
    assert cell.ids("there") == [0, 5, 6]


@pytest.fixture
def database(cell: Any) -> Iterator[str]:
    """A catalog of tables of version 2, which can delete rows."""
    settings = {
        "spark.sql.catalog.mine": "org.apache.spark.sql.execution.datasources.v2.jdbc.JDBCTableCatalog",
        "spark.sql.catalog.mine.url": f"jdbc:derby:{cell.at('db')};create=true",
        "spark.sql.catalog.mine.driver": DRIVER,
    }
    for key, value in settings.items():
        cell.spark.conf.set(key, value)
    cell.spark.range(3).writeTo("mine.APP.T").create()
    yield "mine.APP.T"
    for key in settings:
        cell.spark.conf.unset(key)


@pytest.mark.long
def test_tables_of_version_2(cell: Any, database: str) -> None:
    program = cell.capture("""\
        spark.sql("insert into mine.APP.T by name select 7L as id")
        spark.sql("insert overwrite mine.APP.T select 8L")
        spark.sql("create table mine.APP.MADE as select id from range(2)")
        spark.sql("create or replace table mine.APP.ANEW as select id from range(3)")
        """)
    assert [(w.name, w.kind, w.facts.format, w.facts.mode, w.facts.defines) for w in program.writes] == [
        ("T", "AppendData", "mine", "append", False),
        ("T_2", "OverwriteByExpression", "mine", "overwrite", False),
        ("MADE", "CreateTableAsSelect", "mine", "errorifexists", True),
        ("ANEW", "ReplaceTableAsSelect", "mine", "overwrite", True),
    ]
    cell.run_pending(program)
    assert [cell.ids(f"mine.APP.{name}") for name in ("T", "MADE", "ANEW")] == [[8], [0, 1], [0, 1, 2]]
    with pytest.raises(OverwritesInputError):
        cell.capture('spark.sql("insert overwrite mine.APP.T select * from mine.APP.T")')


def test_what_cannot_be_put_off_runs_on_its_line_and_is_told(cell: Any, table: Any) -> None:
    table("there", 4)
    source = """\
        spark.range(1).write.parquet(at("out"))
        spark.sql("truncate table there")
        spark.sql("begin insert into there values (5, 0); insert into there values (6, 0); end")
        spark.sql("execute immediate 'insert into there values (?, 0)' using 7")
        spark.sql("begin select 1; end")
        spark.sql("insert into there values (8, 0)")
        n = 1
        """
    program = cell.capture(source)
    assert [(told.location.line, told.text[:14]) for told in program.eager.statements] == [
        (2, 'sql("truncate '),
        (3, 'sql("begin ins'),
        (4, 'sql("execute i'),
    ]
    assert [write.location.line for write in program.writes] == [1, 6]
    assert cell.ids("there") == [5, 6, 7]
    with pytest.raises(PendingWriteError, match=r"line 2: .* changes spark_catalog.default.there"):
        cell.capture("""\
            spark.sql("insert into there values (8, 0)")
            spark.sql("begin insert into there values (9, 0); end")
            """)
    assert cell.ids("there") == [5, 6, 7]
    program = cell.capture(
        """\
        spark.sql("insert into there values (8, 0)")
        spark.sql("begin insert into there select max(id) + 1, 0 from there; end")
        """,
        deploying=True,
    )
    assert ([write.name for write in program.eager.writes], program.writes) == (["there"], ())
    assert cell.ids("there") == [5, 6, 7, 8, 9]


def test_a_script_that_fails_is_told_too(cell: Any, table: Any) -> None:
    table("there", 2)
    program = cell.capture("""\
        script = "begin insert into there values (9, 0); select raise_error('no'); end"
        for text in (script, "merge into there using no"):
            try:
                spark.sql(text).collect()
            except Exception as error:
                failed = type(error).__name__
        """)
    assert cell.namespace["failed"] == "ParseException"
    assert cell.ids("there") == [0, 1, 9]
    assert [told.text for told in program.eager.statements] == ["sql(text)"]


def test_a_handler_hears_of_the_statement_that_it_is_for(cell: Any, table: Any) -> None:
    table("there", 2)
    source = """\
        failed = None
        spark.range(1).write.parquet(at("before"))
        try:
            spark.sql("insert into there select raise_error('no'), 0")
        except Exception as error:
            failed = error
        """
    with pytest.raises(HandledWriteError, match=r"line 4: .*spark_catalog.default.there"):
        cell.capture(source)
    assert cell.made() == set()
    program = cell.capture(source, deploying=True)
    assert "USER_RAISED_EXCEPTION" in str(cell.namespace["failed"])
    assert [write.name for write in program.eager.writes] == ["before"]
    assert cell.ids("there") == [0, 1]


def test_a_thread_of_the_cell_runs_its_statements(cell: Any, table: Any) -> None:
    table("there", 2)
    source = """\
        from concurrent.futures import ThreadPoolExecutor
        with ThreadPoolExecutor(1) as pool:
            pool.submit(spark.sql, "insert into there values (7, 0)").result()
        n = spark.table("there").count()
        """
    with pytest.raises(ThreadWriteError, match="sql is called on a thread"):
        cell.capture(source)
    assert cell.ids("there") == [0, 1]
    program = cell.capture(source, deploying=True)
    assert (cell.namespace["n"], program.writes) == (3, ())
