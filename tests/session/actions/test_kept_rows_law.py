"""Keeping rows for later actions evaluates nothing that plain Spark does not evaluate for the action itself."""

from __future__ import annotations

import pytest
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import Window

from flinkmagic.planning.boundaries import Boundaries
from flinkmagic.session import release_retained, retained
from flinkmagic.session.actions import kept_frames
from flinkmagic.session.actions.keeping_budget import KeepingBudget

ROWS = """
df = spark.read.parquet(path).repartition(2)
"""
FRAMES = {
    "division": "d = df.withColumn('rate', F.expr('v / k'))",
    "whole division": "d = df.withColumn('rate', F.expr('v div k'))",
    "remainder": "d = df.withColumn('rate', F.expr('v % k'))",
    "cast": "d = df.withColumn('rate', F.expr('CAST(s AS INT)'))",
    "date": "d = df.withColumn('rate', F.expr('month(to_date(day))'))",
    "array": "d = df.withColumn('rate', F.expr('array(1, 2, 3)[k - 1]'))",
    "map": "d = df.withColumn('rate', F.expr('IF(k = 0, raise_error(\\'bad\\'), k)'))",
    "overflow": "d = df.withColumn('rate', F.expr('IF(k = 0, 9223372036854775807L, v) + 1'))",
    "python": "d = df.withColumn('rate', F.udf(lambda v, k: v / k, 'double')('v', 'k'))",
    "aggregate": "d = df.groupBy('k').agg(F.sum('v').alias('v')).withColumn('rate', F.expr('v / k'))",
    "join": "d = df.join(spark.range(1, 9).toDF('k'), 'k', 'left').withColumn('rate', F.expr('v / k'))",
    "filter": "d = df.where('v / k > 0').withColumn('rate', F.col('v'))",
}
IN_SHORT = {"python", "join"}
"""A function, and a null that a join adds; the others run with the long tests."""
QUERIES = [
    "d.where('k > 0').agg(F.sum('rate')).collect()",
    "d.where('k > 0').groupBy('k').agg(F.max('rate').alias('m')).orderBy('k').collect()",
    "d.groupBy('k').count().orderBy('k').collect()",
    "d.select(F.when(F.col('k') > 0, F.col('rate')).alias('r')).agg(F.count('r')).collect()",
    "d.where('k >= 0').agg(F.sum('v')).collect()",
]


@pytest.fixture
def rows(session, tmp_path):
    session.namespace |= {"path": str(tmp_path / "rows"), "Window": Window}
    session.plain(
        "spark.range(0, 12, 1, 2).selectExpr('CAST(id % 4 AS LONG) AS k', 'id AS v', "
        "\"IF(id % 4 = 0, 'n/a', CAST(id AS STRING)) AS s\", "
        "\"IF(id % 4 = 0, 'n/a', '2024-03-05') AS day\").write.parquet(path)"
    )
    session.plain(ROWS + "None")
    yield
    for graph in {one.graph for one in retained(session.spark)}:
        release_retained(session.spark, graph)


def outcome(run, line):
    try:
        return list(map(tuple, run(line)))
    except (PySparkException, Py4JJavaError) as error:
        return type(error), error.getCondition() if isinstance(error, PySparkException) else ""


@pytest.fixture(
    params=[True, pytest.param(False, marks=[pytest.mark.long, pytest.mark.exhaustive])], ids=["ansi", "legacy"]
)
def ansi(spark, request):
    spark.conf.set("spark.sql.ansi.enabled", request.param)
    yield
    spark.conf.unset("spark.sql.ansi.enabled")


@pytest.mark.parametrize(
    "frame",
    [pytest.param(made, id=kind, marks=[] if kind in IN_SHORT else pytest.mark.long) for kind, made in FRAMES.items()],
)
def test_actions_end_as_in_plain_spark(session, rows, ansi, frame) -> None:
    session.plain(frame + "\nNone")
    plain = {line: outcome(session.plain, line) for line in QUERIES}
    outcome(session.cell, frame + "\nd.collect()")
    for line in [*QUERIES, *reversed(QUERIES)]:
        assert outcome(session.cell, line) == plain[line], line
        assert "could not be kept" not in session.report.note  # nothing was tried that could fail only for that


RATED = "d = df.select('k', F.expr('v / k').alias('rate'), F.upper('s').alias('u'))"
GUARDS = {
    "beside the same one unguarded": (
        "d = df.selectExpr('k', 'CASE WHEN k > 0 THEN v / k END AS a', 'v / k AS b')",
        "d.groupBy('k').agg(F.max('a')).orderBy('k').collect()",
    ),
    "beside another function of that name": (
        "a, b = F.udf(lambda k: k, 'long')('k'), F.udf(lambda k: 1 // k, 'long')('k')\n"
        "d = df.select(a.alias('a'), b.alias('b'))",
        "d.agg(F.sum('a')).collect()",
    ),
    "a broadcast join": (RATED, "d.join(F.broadcast(good), 'k').agg(F.sum('rate')).collect()"),
    "a semi-join": (RATED, "d.join(F.broadcast(good), 'k', 'left_semi').agg(F.sum('rate'), F.count('u')).collect()"),
    "a join over a group's result": (
        "d = df.groupBy('k').agg(F.max('v').alias('v')).withColumn('rate', F.expr('v / k'))",
        "d.join(F.broadcast(good), 'k').agg(F.sum('rate')).collect()",
    ),
    "an empty array": (
        "d = df.selectExpr('v / k AS rate', 'IF(k > 0, array(1, 2), array()) AS xs')",
        "d.select('rate', F.explode('xs')).groupBy('col').agg(F.sum('rate')).orderBy('col').collect()",
    ),
    "a sample": (RATED, "d.sample(0.0001, 1).agg(F.sum('rate')).collect()"),
    "a condition in a projection that is not merged": (
        RATED,
        "d.select(F.expr('IF(k > 0, rate, 0) AS r'), F.concat('u', 'u').alias('w')).groupBy('w').agg(F.max('r'))"
        ".orderBy('w').collect()",
    ),
    "the second of two inputs": (
        RATED,
        "d.select(F.expr('IF(k > 0, 1, NULL) + rate').alias('r')).groupBy('r').count().orderBy('r').collect()",
    ),
    "the second of two conditions": (
        RATED,
        "d.where('k > 0 AND rate IS NOT NULL').groupBy('k').count().sort('k').collect()",
    ),
    "a function over an empty array": (
        RATED,
        "d.select(F.expr('transform(IF(k > 0, array(1), array()), x -> rate)').alias('r')).groupBy('r').count()"
        ".orderBy('r').collect()",
    ),
    "a window": (
        "w = F.row_number().over(Window.partitionBy('k').orderBy('v'))\nd = df.selectExpr('k', 'v', 'v / k AS rate')",
        "d.withColumn('n', w).where('n = 1 AND k > 0').agg(F.sum('rate')).collect()",
    ),
    "a branch of a union": (
        "a, b = df.where('k > 0').selectExpr('k', 'v / k', '0D'), df.selectExpr('k', '0D', 'v / k')\n"
        "d = a.union(b).toDF('k', 'one', 'other')",
        "d.groupBy('k').agg(F.sum('one')).orderBy('k').collect()",
    ),
    "a range that overflows": (
        "d = df.selectExpr('v', 'count(*) OVER (ORDER BY IF(k = 0, 9223372036854775807, k) RANGE 1 PRECEDING) AS n',"
        " 'count(*) OVER (ORDER BY IF(k = 0, 9223372036854775807, k) RANGE BETWEEN 1 PRECEDING AND 1 FOLLOWING) AS m')",
        "d.agg(F.sum('v')).collect()",
    ),
    "a pattern whose match overflows the stack": (
        "d = df.selectExpr('v', \"rpad('', 100000, s) RLIKE '(n|/|a|1)*'\")",
        "d.agg(F.sum('v')).collect()",
    ),
}
"""What keeps a column from being evaluated for all rows of a DataFrame, though its expression stands in the plan."""
ALSO_IN_SHORT = {
    "a broadcast join",
    "beside the same one unguarded",
    "the second of two inputs",
    "the second of two conditions",
}


@pytest.mark.parametrize(
    "guard", [pytest.param(one, marks=[] if one in ALSO_IN_SHORT else pytest.mark.long) for one in GUARDS]
)
def test_what_guards_a_column_above_it(session, rows, guard) -> None:
    frame, line = GUARDS[guard]
    session.plain("good = spark.createDataFrame([(1,), (2,), (3,)], 'k long')\n" + frame + "\nNone")
    plain = outcome(session.plain, line)
    for each in ("d.groupBy().count().collect()", line, line, line):
        answer = outcome(session.cell, each)
        assert "could not be kept" not in session.report.note
    assert answer == plain


@pytest.mark.long
def test_a_raising_function_behind_a_limit(session, rows) -> None:
    session.plain(
        "d = spark.range(0, 1000, 1, 10).withColumn('x', F.udf(lambda i: 1 // (500 - i), 'long')('id'))\nNone"
    )
    for _ in range(3):
        assert [row.x for row in session.cell("d.limit(3).collect()")] == [0, 0, 0]
        assert session.cell("d.first().x") == 0
        assert session.cell("next(d.toLocalIterator()).x") == 0


@pytest.mark.long
def test_an_outer_join_that_guards(session, rows) -> None:
    session.plain(
        "good = spark.createDataFrame([(1,), (2,), (3,)], 'k long')\n"
        "d = df.join(good, 'k').withColumn('rate', F.expr('v / k'))\n"
        "every = df.select('k').distinct().join(d, 'k', 'left')\nNone"
    )
    for line in ("every.agg(F.sum('rate')).collect()", "d.agg(F.sum('rate')).collect()") * 2:
        assert outcome(session.cell, line) == outcome(session.plain, line)


def test_what_an_action_computes_anyway_is_kept_and_others_read_it(session, rows) -> None:
    session.cell("d = df.where('k > 0').withColumn('rate', F.udf(lambda v, k: v / k, 'double')('v', 'k'))\nd.count()")
    lines = ["d.groupBy('k').agg(F.sum('rate').alias('r')).orderBy('k').collect()"] * 2
    for line in [*lines, "d.where('k = 3').groupBy('k').agg(F.min('rate')).collect()"]:
        assert outcome(session.cell, line) == outcome(session.plain, line)
    assert session.report.reused > 0


@pytest.mark.parametrize(
    "line",
    [
        "d.where('1 = 0').groupBy('k').agg(F.max('rate')).collect()",
        pytest.param(
            "df.join(d.select('k').distinct(), 'k', 'left').groupBy().count().collect()", marks=pytest.mark.long
        ),
        pytest.param("df.select('k').union(d.select('k').limit(0)).distinct().count()", marks=pytest.mark.long),
        pytest.param(
            "spark.sql('WITH RECURSIVE r AS (SELECT rate, 0 AS n FROM d WHERE k = 3 UNION ALL"
            " SELECT rate, n + 1 FROM r WHERE n < 2) SELECT n, max(rate) FROM r GROUP BY n ORDER BY n').collect()",
            marks=pytest.mark.long,
        ),
    ],
    ids=["a filter", "a join", "a limit", "a recursive query"],
)
def test_kept_rows_that_the_plan_of_an_action_does_not_read(spark, session, rows, line, capsys) -> None:
    if "RECURSIVE" in line and spark.version < "4.1":
        pytest.skip("recursive queries came with Spark 4.1")
    session.cell("d = df.where('k > 0').withColumn('rate', F.udf(lambda v, k: v / k, 'double')('v', 'k'))\nd.count()")
    session.plain("d.createOrReplaceTempView('d')")
    for most in ("sum", "min"):
        session.cell(f"d.groupBy('k').agg(F.{most}('rate')).collect()")
    assert "boundary" in {one.kind for one in retained(session.spark)}
    assert session.cell(line) == session.plain(line)
    assert capsys.readouterr().err == ""


@pytest.mark.long
@pytest.mark.parametrize(
    "line",
    [
        "d.groupBy(F.dayofmonth('day').alias('x')).agg(F.max('k')).orderBy('x').collect()",
        "d.where('isnotnull(dayofmonth(day))').agg(F.max('k')).collect()",
    ],
)
def test_what_an_action_evaluates_within_another_expression_is_kept(session, rows, line) -> None:
    session.cell(
        "day = F.udf(lambda v: f'2024-03-{1 + v:02d}')('v').cast('date').alias('day')\n"
        "d = spark.read.parquet(path).select('k', day)\nd.count()"
    )
    assert outcome(session.cell, line) == outcome(session.plain, line)
    assert "boundary" in {one.kind for one in retained(session.spark)}
    later = "d.groupBy('day').count().orderBy('day').collect()"
    assert outcome(session.cell, later) == outcome(session.plain, later)
    assert session.report.reused > 0


@pytest.mark.long
def test_a_projection_that_only_renames_is_looked_through(session, rows) -> None:
    session.cell(
        "d = df.withColumn('w', F.expr('v + k')).repartition(2).join(spark.range(8).toDF('v'), 'v')\nd.count()"
    )
    for line in ("d.where('k >= 0').groupBy('w').count().orderBy('w').collect()",) * 3:
        assert outcome(session.cell, line) == outcome(session.plain, line)
        assert session.report.is_driven


def test_columns_that_are_not_worth_it_are_not_kept_with_a_function_beside_them(session, rows) -> None:
    session.cell(
        "d = spark.read.parquet(path).withColumn('rate', F.udf(lambda v, k: v / k, 'double')('v', 'k'))\nd.count()"
    )
    for number in range(4):
        assert session.cell(f"d.groupBy('k').agg(F.max(F.expr('v + {number}'))).count()") == 4
    assert "boundary" not in {one.kind for one in retained(session.spark)}


@pytest.mark.long
def test_a_few_columns_are_kept_when_they_are_asked_for_again(session, rows) -> None:
    session.cell(
        "d = df.where('k > 0').withColumn('rate', F.udf(lambda v, k: v / k, 'double')('v', 'k'))"
        ".withColumn('rest', F.udf(lambda v, k: v % k, 'long')('v', 'k'))\nd.count()"
    )
    rate, rest = (
        f"d.groupBy('k').agg(F.{{}}('{name}').alias('r')).orderBy('k').collect()" for name in ("rate", "rest")
    )
    notes = []
    for line in (rate.format("sum"), rest.format("sum"), rate.format("min"), rest.format("min"), rest.format("max")):
        assert outcome(session.cell, line) == outcome(session.plain, line)
        notes.append(session.report.note)
    kept = "kept a DataFrame for later lines"  # the first time what `d` is made of
    assert notes == [kept, "", kept, kept, ""]
    assert session.report.reused > 0


@pytest.mark.long
def test_where_the_whole_costs_too_much_the_columns_that_are_asked_for_are_kept(session, rows, monkeypatch) -> None:
    session.cell(
        "d = df.select('k', 'v', *(F.lit(n).alias(f'c{n}') for n in range(40)),"
        " F.udf(lambda v: v + 1, 'long')('v').alias('more'))\nd.count()"
    )
    session.cell("d.groupBy('k').agg(F.max('v')).collect()")
    monkeypatch.setattr(kept_frames, "KEPT_A_SECOND", 1)
    few = 12 * 24 / session.spark.sparkContext.defaultParallelism  # seconds, for `k`, `v` and `more`
    monkeypatch.setattr(KeepingBudget, "room", lambda _self, expected: few)
    monkeypatch.setattr(KeepingBudget, "stake", lambda _self, what, seconds: None)  # it is other tests' budget, too
    found = []
    for value in ("sum('more')", "min('more')", "max('more')", "max('c1')"):
        line = f"d.groupBy('k').agg(F.{value}.alias('r')).orderBy('k').collect()"
        assert outcome(session.cell, line) == outcome(session.plain, line)
        found.append((session.report.note, session.report.reused))
    kept = "kept a DataFrame for later lines"  # when it is asked for again, and without the other columns
    assert found == [("", 2), (kept, 2), ("", 3), ("", 2)]


@pytest.mark.long
def test_what_fails_only_for_being_kept_runs_again_without(session, rows, monkeypatch) -> None:
    session.cell("d = df.withColumn('rate', F.udf(lambda v, k: v / k, 'double')('v', 'k'))\nd.count()")
    line = "d.where('k > 0').groupBy('k').agg(F.sum('rate').alias('r')).orderBy('k').collect()"
    session.cell("d.groupBy('v').count().count()")
    with monkeypatch.context() as patched:
        patched.setattr(Boundaries, "_computed_anyway", lambda *_: [0, 4])  # as if it were proved
        assert outcome(session.cell, line) == outcome(session.plain, line)
        assert " could not be kept for later actions (" in session.report.note
        assert session.report.status == "FINISHED"
        assert outcome(session.cell, line) == outcome(session.plain, line)
        assert session.report.note == ""  # it is not tried again


NAN_FRAMES = {
    "double": "IF(k = 1, double('NaN'), v / 10D)",
    "float": "IF(k = 1, float('NaN'), float(v / 10))",
}
NAN_QUERIES = [
    "d.where('x > 0.5').orderBy('v').collect()",
    "d.where(\"x = 'NaN'\").orderBy('v').collect()",
    "d.where(\"x IN (0.1D, double('NaN'))\").orderBy('v').collect()",
    "d.join(spark.range(5), F.expr('v = id AND x >= 0.1')).orderBy('v').collect()",
    "d.where('x > 0.5 AND v > 3').orderBy('v').collect()",
    "d.where('x = 0D').orderBy('v').collect()",
]


@pytest.mark.parametrize("values", NAN_FRAMES.values(), ids=NAN_FRAMES)
def test_filters_of_kept_rows_lose_none_whose_value_is_not_a_number(session, rows, values) -> None:
    session.plain(f"d = df.groupBy('v').agg(F.max('k').alias('k')).selectExpr('v', \"{values} AS x\")\nNone")
    plain = {line: repr(session.plain(line)) for line in NAN_QUERIES}
    session.cell("d.count()")
    session.cell("d.orderBy('x').collect()")
    reused = 0
    for line in NAN_QUERIES:
        assert repr(session.cell(line)) == plain[line], line
        reused += session.report.reused
    assert reused > 0


def test_filters_of_what_the_user_cached_find_what_spark_finds(session, rows) -> None:
    made = f"d = df.selectExpr('v', \"{NAN_FRAMES['double']} AS x\").cache()"
    session.plain(f"{made}\nd.count()")
    plain = {line: repr(session.plain(line)) for line in NAN_QUERIES}
    session.plain("d.unpersist()")
    session.cell(f"{made}\nd.count()")
    for line in NAN_QUERIES:
        assert repr(session.cell(line)) == plain[line], line
    session.plain("d.unpersist()")


def test_a_frame_without_columns(session, rows) -> None:
    session.plain("d = df.repartition(2).select()\nNone")
    for line in ("d.count()", "d.distinct().count()", "d.agg(F.count('*')).collect()", "d.dropDuplicates().collect()"):
        for _ in range(2):
            assert session.cell(line) == session.plain(line), line
