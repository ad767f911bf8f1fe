"""Which plans may be computed for all rows and columns without anybody noticing."""

from __future__ import annotations

import pytest
from pyspark.sql import functions as F

from flinkmagic.planning.java_classes import CLASSES

TOTAL = [
    "a + 1.5D",
    "b * b",
    "upper(s)",
    "substring(s, 1, 3)",
    "s || 'x' = 'ax'",
    "s LIKE 'a%'",
    "s RLIKE '[0-9]+'",
    "regexp_replace(s, '[0-9]+', 'x')",
    "CAST(a AS STRING)",
    "CAST(a AS DOUBLE)",
    "CAST(t AS DATE)",
    "try_divide(a, a)",
    "try_cast(s AS INT)",
    "a % 10",
    "b / 2",
    "year(t)",
    "CASE WHEN a > 1 THEN 'x' ELSE s END",
    "coalesce(s, 'none')",
    "round(b, 2)",
    "sha2(s, 256)",
]
PARTIAL = [
    "a / a",
    "b / b",
    "a % a",
    "a + a",
    "-a",
    "CAST(s AS INT)",
    "CAST(b AS INT)",
    "to_date(s)",
    "to_timestamp(s, 'yyyy')",
    "array(1, 2)[a]",
    "element_at(map('x', 1), s)",
    "map(s, 1, s, 2)",
    "s RLIKE s",
    "regexp_replace(s, '[', 'x')",
    "raise_error(s)",
    "assert_true(a > 1)",
    "from_json(s, 'x INT', map('mode', 'FAILFAST'))",
    "round(a, -1)",
    "reduce(array(a), 0L, (x, y) -> x + y)",
]


@pytest.fixture
def frame(spark):
    return spark.range(10).selectExpr(
        "id AS a", "CAST(id AS DOUBLE) AS b", "CAST(id AS STRING) AS s", "if(id > 3, TIMESTAMP'2024-01-01', NULL) AS t"
    )


def is_total(frame):
    totality = CLASSES.shared_instance(frame.sparkSession.sparkContext._gateway, "TotalPlans")
    return totality.isTotal(frame._jdf.queryExecution().optimizedPlan())


@pytest.fixture
def ansi(spark, request):
    spark.conf.set("spark.sql.ansi.enabled", request.param)
    yield request.param
    spark.conf.unset("spark.sql.ansi.enabled")


@pytest.mark.parametrize("ansi", [True], indirect=True)
@pytest.mark.parametrize("text", TOTAL)
def test_total_expressions(frame, ansi, text) -> None:
    assert is_total(frame.selectExpr(text))


@pytest.mark.parametrize("ansi", [True], indirect=True)
@pytest.mark.parametrize("text", PARTIAL)
def test_partial_expressions(frame, ansi, text) -> None:
    assert not is_total(frame.selectExpr(text))


@pytest.mark.parametrize("ansi", [False], indirect=True)
@pytest.mark.parametrize("text", ["a / a", "a % a", "a + a", "-a", "CAST(s AS INT)", "array(1, 2)[a]", "round(a, -1)"])
def test_what_only_ansi_refuses(frame, ansi, text) -> None:
    assert is_total(frame.selectExpr(text))


@pytest.mark.parametrize("ansi", [True], indirect=True)
def test_aggregates_and_operators(frame, ansi) -> None:
    grouped = frame.groupBy("s")
    assert is_total(grouped.agg(F.count("*"), F.max("a"), F.avg("b"), F.avg("a"), F.sum("b"), F.stddev("b")))
    assert not is_total(grouped.agg(F.sum("a")))
    assert not is_total(grouped.agg(F.collect_list("a")))  # of any size
    assert is_total(frame.join(frame.groupBy("a").count(), "a").orderBy("a").limit(3))
    assert not is_total(frame.select(F.udf(lambda each: each, "long")("a")))
    assert not is_total(frame.mapInPandas(lambda parts: parts, frame.schema))
    assert not is_total(frame.where("a / a > 0"))


def test_rows_of_text_files_depend_on_the_columns_unless_permissive(spark, tmp_path) -> None:
    (tmp_path / "rows.csv").write_text("1,x\n2,y\n")
    read = spark.read.schema("a INT, s STRING")
    assert is_total(read.csv(str(tmp_path)))
    assert not is_total(read.option("MODE", "dropMalformed").csv(str(tmp_path)))
    assert not is_total(read.option("mode", "FAILFAST").csv(str(tmp_path)))
