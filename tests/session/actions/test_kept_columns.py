"""Columns of text files that actions have parsed are read by later ones, and give the rows that the files give."""

from __future__ import annotations

import os

import pytest

from flinkmagic.planning.java_classes import CLASSES
from flinkmagic.reuse import source_columns
from flinkmagic.reuse.source_columns import SourceColumns
from flinkmagic.session import release_retained, retained
from flinkmagic.session.actions import text_reads
from flinkmagic.session.actions.keeping_budget import KeepingBudget

LINES = "".join(
    f"{id},{id % 7},name {id % 13},{id / 4},2024-03-{1 + id % 28:02d},user={id % 5};page=/p{id % 3}\n"
    for id in range(300)
)
HEAD = "id,k,name,x,day,line\n"
SCHEMA = "id INT, k INT, name STRING, x DOUBLE, day DATE, line STRING"
READ = f"df = spark.read.csv(path, header=True, schema='{SCHEMA}')\nNone"


@pytest.fixture
def file(session, tmp_path, monkeypatch):
    """A file that is large enough, in a session that may stake what it likes."""
    monkeypatch.setattr(source_columns, "LEAST_BYTES", 0)
    monkeypatch.setattr(text_reads, "LEAST_SECONDS", 0.0)
    monkeypatch.setattr(KeepingBudget, "room", lambda _self, expected: 1000.0)
    monkeypatch.setattr(KeepingBudget, "stake", lambda _self, what, seconds: None)
    path = tmp_path / "rows.csv"
    path.write_text(HEAD + LINES)
    session.namespace["path"] = str(path)
    session.plain(READ)
    yield path
    for graph in {one.graph for one in retained(session.spark)}:
        release_retained(session.spark, graph)


def kept(session):
    return [one for one in retained(session.spark) if one.kind == "columns"]


def computed(session):
    return [one for one in kept(session) if not one.key.endswith("by slices")]


def rows(answer):
    return list(map(tuple, answer))


def same(session, line):
    """Run a line both ways, and return what the report of ours says beside."""
    assert rows(session.cell(line)) == rows(session.plain(line)), line
    return session.report.note


def test_the_second_action_keeps_what_it_reads_and_later_ones_read_that(session, file) -> None:
    grouped = "df.groupBy('k').agg(F.sum('x').alias('x')).orderBy('k').collect()"
    assert same(session, grouped) == ""
    assert kept(session) == []
    keeps = "keeps a part of rows.csv as columns for later actions"
    assert same(session, "df.groupBy('k').agg(F.max('x')).orderBy('k').collect()") == keeps
    (one,) = kept(session)
    assert one.what == "columns of rows.csv"
    assert one.bytes > 0
    reads = "reads kept columns of rows.csv"
    assert same(session, "df.where('k > 2').groupBy('k').agg(F.avg('x')).orderBy('k').collect()") == reads
    assert session.cell("df.count()") == 300  # of no column
    assert session.report.note == reads
    assert same(session, "df.groupBy('name').agg(F.sum('k')).orderBy('name').collect()") == reads
    computed = "df.groupBy(F.regexp_replace('name', 'name ', '').alias('n')).agg({}('k')).sort('n').collect()"
    assert same(session, computed.format("F.min")) == reads
    same(session, computed.format("F.avg"))
    assert len(kept(session)) == 2  # and what was computed


@pytest.mark.long
def test_what_queries_read_together_is_kept_together(session, file) -> None:
    user, page = (f"F.regexp_extract('line', '{word}=([^;]*)', 1).alias('{word}')" for word in ("user", "page"))
    line = "df.groupBy({}).agg(F.{}('x').alias('x')).orderBy('x').collect()"
    for columns in (user, page):
        session.cell(line.format(columns, "min"))
        assert "keeps the columns" in same(session, line.format(columns, "max"))
    assert len(computed(session)) == 2
    for columns in (user, page):
        assert same(session, line.format(columns, "sum")) == "reads kept columns of rows.csv"
    assert "keeps the columns" in same(session, line.format(f"{user}, {page}", "max"))  # in place of both
    assert len(computed(session)) == 1
    for columns in (user, page):
        assert same(session, line.format(columns, "avg")) == "reads kept columns of rows.csv"


@pytest.mark.long
def test_rows_are_kept_that_are_made_of_kept_columns(session, file) -> None:
    session.plain(
        "d = df.select('k', F.regexp_extract('line', 'user=([^;]*)', 1).alias('user')).select('k', "
        "F.udf(lambda text: text * 2)('user').alias('twice'))\nNone"
    )
    line = "d.groupBy('twice').agg(F.{}('k').alias('k')).orderBy('twice').collect()"
    grouped = "df.groupBy(F.regexp_extract('line', 'user=([^;]*)', 1)).agg(F.{}('k')).orderBy('{}(k)').collect()"
    same(session, grouped.format("sum", "sum"))
    assert "keeps the columns" in same(session, grouped.format("avg", "avg"))
    same(session, line.format("min"))
    assert same(session, line.format("max")) == "reads kept columns of rows.csv; kept a DataFrame for later lines"
    assert same(session, line.format("sum")) == ""
    assert session.report.reused > 0
    for one in kept(session):
        release_retained(session.spark, one.name)
    assert same(session, line.format("avg")) == ""  # its rows are the same, without kept columns
    assert session.report.reused > 0


def test_filters_of_kept_columns_lose_no_row_whose_value_is_not_a_number(session, file) -> None:
    file.write_text(HEAD + LINES.replace(",0.5,", ",NaN,").replace("user=3", "user=NaN"))
    session.plain(READ)
    session.plain(
        "d = df.withColumn('user', F.expr(\"try_cast(regexp_extract(line, '=([^;]*)', 1) AS DOUBLE)\"))\nNone"
    )
    line = "d.groupBy('user').agg(F.{}('x').alias('x')).orderBy('user').collect()"
    session.cell(line.format("min"))
    session.cell(line.format("max"))
    assert computed(session)
    filtered = "d.where(\"{}\").agg(F.sum('x'), F.count('*')).collect()"
    for condition in ("user > 3", "user = 'NaN'", "x >= 75", "x = double('NaN')"):
        plain = session.plain(filtered.format(condition))
        assert repr(session.cell(filtered.format(condition))) == repr(plain)
        assert plain[0][1] > 0
        assert session.report.note == "reads kept columns of rows.csv"


def test_another_reader_of_the_same_files_reads_them_too(session, file) -> None:
    session.cell("df.agg(F.sum('x')).collect()")
    session.cell("df.agg(F.sum('x'), F.sum('k')).collect()")
    session.plain(READ.replace("df =", "other ="))
    session.plain("other.createOrReplaceTempView('kept_columns_view')\nNone")
    line = "spark.sql('SELECT k, sum(x) FROM kept_columns_view GROUP BY k ORDER BY k').collect()"
    assert same(session, line) == "reads kept columns of rows.csv"
    session.plain("typed = spark.read.csv(path, header=True, schema='id INT, k STRING, name STRING, x DOUBLE')\nNone")
    assert same(session, "typed.agg(F.sum('x')).collect()") == ""


@pytest.mark.long
@pytest.mark.parametrize(
    "line",
    [
        "df.where('x > 3 AND name LIKE \\'name 1%\\'').select('id', 'name').orderBy('id').collect()",
        "df.where('x > 3').select('id').toPandas().itertuples(index=False)",
        "df.alias('a').join(df.alias('b'), F.expr('a.id = b.id + 1')).selectExpr('a.id', 'b.x').orderBy('id').take(9)",
        "df.select('k', 'x').union(df.selectExpr('id', 'x * 2')).groupBy('k').agg(F.sum('x')).orderBy('k').collect()",
        "df.selectExpr('*', 'row_number() OVER (PARTITION BY k ORDER BY id) AS n').where('n < 3').sort('id').collect()",
        "df.where('id IN (SELECT max(id) FROM {df} GROUP BY k)').orderBy('id').collect()",
        "df.groupBy(F.regexp_replace('line', '[0-9]+', '#')).agg(F.count('*')).collect()",
        "df.where(F.col('line').rlike('page=/p1')).agg(F.sum('x'), F.count('line')).collect()",
        "df.select(F.split('line', ';')[0].alias('u'), 'x').groupBy('u').agg(F.sum('x')).orderBy('u').collect()",
        "df.sort(F.desc('x')).limit(7).collect()",
        "df.rollup('k').agg(F.sum('x')).orderBy('k').collect()",
    ],
)  # fmt: skip
def test_rows_are_those_of_the_files(session, file, line) -> None:
    if "{df}" in line:
        session.plain("df.createOrReplaceTempView('kept_columns_rows')\nNone")
        line = line.format(df="kept_columns_rows")
    session.cell("df.agg(F.sum('x'), F.count('name')).collect()")
    notes = [same(session, line) for _ in range(4)]
    assert "keeps " in notes[0], notes


@pytest.mark.long
def test_what_is_computed_of_a_column_and_cannot_raise_is_kept_as_one(session, file) -> None:
    first = "df.groupBy(F.regexp_replace('line', 'page=.*', '').alias('u')).agg(F.sum('x')).orderBy('u').collect()"
    second = (
        "df.groupBy(F.upper(F.regexp_replace('line', 'page=.*', '')).alias('u')).agg(F.max('x')).orderBy('u').collect()"
    )
    session.cell("df.agg(F.sum('x')).collect()")
    same(session, first)
    assert same(session, first.replace("sum", "avg")).endswith(
        "keeps the columns that it reads of rows.csv for later actions"
    )
    assert same(session, second) == "reads kept columns of rows.csv"
    (one,) = computed(session)
    assert "regexp_replace" in one.computed.cachedPlan().toString()


@pytest.mark.long
def test_what_a_view_and_its_reader_compute_alike_is_one_column(session, file) -> None:
    user = "regexp_extract(line, 'user=(.)', 1)"
    session.plain(f"df.where(\"{user} > '1'\").createOrReplaceTempView('kept_columns_users')\nNone")
    line = f'spark.sql("SELECT {user} AS u, sum(x) FROM kept_columns_users GROUP BY 1 ORDER BY 1").collect()'
    for other in ("sum", "max", "min"):
        same(session, line.replace("sum", other))
    assert session.report.note == "reads kept columns of rows.csv"
    (one,) = computed(session)
    assert one.computed.cachedPlan().toString().count("regexp_extract") == 1


def test_what_may_raise_is_not_computed_beside_its_guard(session, file) -> None:
    guarded = "df.where('k > 0').agg(F.sum(F.expr('x / k'))).collect()"
    cast = "df.where(\"name LIKE '%1'\").agg(F.sum(F.expr(\"CAST(replace(name, 'name ', '') AS INT)\"))).collect()"
    for _ in range(3):
        same(session, guarded)
        same(session, cast)


def test_files_that_changed_are_read_again(session, file) -> None:
    line = "df.agg(F.sum('x'), F.count('*')).collect()"
    for other in ("max", "min", "avg"):
        same(session, line.replace("sum", other))
    assert session.report.note == "reads kept columns of rows.csv"
    file.write_text(HEAD + LINES.replace(",6,", ",5,"))
    os.utime(file, ns=(1, 1))
    session.plain(READ)
    assert same(session, line) == ""


@pytest.mark.matrix(2)
@pytest.mark.parametrize(
    "options",
    [
        {"mode": "DROPMALFORMED"},
        {"mode": "FAILFAST"},
        {"columnNameOfCorruptRecord": "line"},
        {"enforceSchema": "false"},
    ],
)
def test_where_rows_depend_on_the_columns_asked_for_nothing_is_kept(session, file, options) -> None:
    session.namespace["options"] = options
    session.plain(f"df = spark.read.options(**options).csv(path, header=True, schema='{SCHEMA}')\nNone")
    for _ in range(3):
        assert same(session, "df.groupBy('k').agg(F.sum('x')).orderBy('k').collect()") == ""
    assert kept(session) == []


@pytest.mark.long
def test_malformed_lines_give_the_same_rows(session, file) -> None:
    file.write_text(HEAD + '1,2\n2,x,name,0.5,not a date,l\n3,3,a,b,c,d,e,f,g\n"4,4,\n' + LINES)
    session.plain(READ)
    for line in (
        "df.groupBy('k').agg(F.sum('x'), F.count('day')).orderBy('k').collect()",
        "df.where('k IS NULL').select('id', 'name', 'day').orderBy('id').collect()",
        "df.where('x IS NULL').agg(F.count('id'), F.count('line')).collect()",
    ):
        for _ in range(3):
            same(session, line)
    assert kept(session)


@pytest.mark.long
def test_malformed_json_gives_the_same_rows_where_a_filter_leaves_a_line_before_its_end(session, file) -> None:
    file.write_text('{"a": 1, "b": 1}\n{"a": 2, "b": \n{"a": "x", "b": 3}\n{"b": 4}\n')
    session.plain("df = spark.read.schema('a INT, b INT').json(path)\nNone")
    for line in (
        "df.where('a IS NULL').groupBy('b').count().orderBy('b').collect()",
        "df.where('a = 1 OR b = 4').groupBy('b').count().orderBy('b').collect()",
        "df.where('b > 0').groupBy('a').agg(F.sum('b')).orderBy('a').collect()",
        "df.groupBy('a').agg(F.sum('b')).orderBy('a').collect()",
    ):
        for _ in range(3):
            same(session, line)
    assert kept(session)


def test_an_action_that_asks_for_a_few_rows_keeps_nothing(session, file) -> None:
    before = dict(SourceColumns.of(session.spark.sparkContext).reads)
    for _ in range(3):
        session.cell("df.show(2)")
        session.cell("df.where('k = 1').first()")
        session.cell("df.limit(2).collect()")
    assert kept(session) == []
    assert SourceColumns.of(session.spark.sparkContext).reads == before


def test_a_few_groups_are_made_of_all_rows(session, file) -> None:
    for other in ("sum", "avg"):
        session.cell(f"df.groupBy('k').agg(F.{other}('x')).take(2)")
    assert session.report.note == "keeps a part of rows.csv as columns for later actions"
    assert same(session, "df.agg(F.sum('x'), F.max('k')).collect()") == "reads kept columns of rows.csv"


def test_below_a_dataframe_that_is_kept_no_columns_are(session, file) -> None:
    session.plain(
        "month = F.udf(lambda name: name[:3])\n"
        "logs = df.select(F.regexp_replace('line', 'page=.*', '').alias('u'), month('name').alias('m'), 'x')\nNone"
    )
    line = "logs.groupBy('u', 'm').agg(F.{}('x')).orderBy('u', 'm').collect()"
    assert same(session, line.format("sum")) == ""
    assert same(session, line.format("max")) == "kept a DataFrame for later lines"
    assert kept(session) == []
    assert retained(session.spark)
    assert same(session, line.format("min")) == ""


def test_a_query_that_asks_for_files_reads_the_files(session, file) -> None:
    line = "df.groupBy(F.input_file_name().alias('f')).agg(F.sum('x')).collect()"
    for _ in range(3):
        session.cell("df.agg(F.sum('x')).collect()")
    assert same(session, line) == ""
    assert "rows.csv" in session.cell(line)[0][0]
    wide = "df.select(*[(F.col('x') + n).alias(f'x{n}') for n in range(40)], F.input_file_name().alias('f')).distinct()"
    assert {row.f.rpartition("/")[2] for row in session.cell(f"{wide}.collect()")} == {"rows.csv"}


@pytest.mark.long
def test_what_is_released_is_computed_again(session, file) -> None:
    line = "df.groupBy(F.regexp_replace('line', 'page=.*', '').alias('u')).agg(F.sum('x')).orderBy('u').collect()"
    for other in ("sum", "max", "min"):
        same(session, line.replace("sum", other))
    (one,) = computed(session)
    release_retained(session.spark, one.name)
    stored = {info.id() for info in session.spark.sparkContext._jsc.sc().getRDDStorageInfo()}
    assert one.computed.cachedColumnBuffers().id() not in stored
    assert "keeps the columns" in same(session, line.replace("sum", "avg"))


@pytest.fixture
def raising_is_total(session):
    """As if the list of total expressions had a mistake."""
    totality = CLASSES.shared_instance(session.spark.sparkContext._gateway, "TotalExpressions")
    field = totality.getClass().getDeclaredField("TOTAL")
    field.setAccessible(True)
    names = field.get(None)
    added = {"RaiseError", "CreateMap"} - set(names)
    for name in added:
        names.add(name)
    yield
    for name in added:
        names.remove(name)


@pytest.mark.long
def test_columns_that_cannot_be_kept_make_no_action_fail(session, file, raising_is_total) -> None:
    checked = "length(regexp_replace(IF(line RLIKE 'user=1', raise_error('bad'), line), 'page', ''))"
    for line in (
        f"df.where(\"line NOT RLIKE 'user=1'\").groupBy('k').agg(F.sum(F.expr(\"{checked}\"))).orderBy('k').collect()",
        f"df.where(\"line NOT RLIKE 'user=1'\").select('k', F.expr(\"{checked}\")).toPandas().itertuples(index=False)",
    ):
        session.plain(READ)
        SourceColumns.of(session.spark.sparkContext).given_up.clear()
        session.cell("df.agg(F.sum('k')).collect()")
        notes = [same(session, line) for _ in range(3)]
        assert sum("rows.csv could not be kept for later actions (" in note for note in notes) == 1
        assert session.report.status == "FINISHED"
        assert notes[-1] == ""  # it is not tried again
        assert kept(session) == []
