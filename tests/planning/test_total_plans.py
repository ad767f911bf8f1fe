"""Which plans may be computed for all rows and columns without anybody noticing."""

from __future__ import annotations

import pytest
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
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
    # small whole numbers, decimals with room
    "year(t) * 100 + month(t)",
    "(a % 10) * 3 + 1",
    "CAST(a % 100 AS INT)",
    "CAST(CAST(a % 100 AS INT) AS LONG) * 1000000",
    "length(s) * 2L",
    "a div 7",
    "a > 3 AND CAST(a > 3 AS INT) = 1",
    "m * (1 - m)",
    "-m",
    "abs(m)",
    "m / 3",
    "round(m, 1)",
    "ceil(m)",
    # times
    "date_trunc('MONTH', t)",
    "date_format(t, 'yyyy-MM-dd HH:mm')",
    "unix_timestamp(t)",
    "date_add(t, 7)",
    "datediff(t, DATE'2024-01-01')",
    "months_between(t, TIMESTAMP'2024-01-01')",
    # texts
    "concat_ws('-', s, s)",
    "lpad(s, 8, '0')",
    "regexp_extract(s, '([0-9]+)x', 1)",
    "get_json_object(s, '$.x')",
    "from_json(s, 'x INT, y ARRAY<STRING>')",
    # structures
    "array_distinct(array(s, s))",
    "exists(array(s), x -> x = 'a')",
    "transform(array(s), x -> upper(x))",
    "element_at(map('x', 1), s)",
    "struct(s, a).s",
    "a & 255",
    "s IN (SELECT CAST(id AS STRING) FROM range(3))",
    "a > (SELECT max(id) FROM range(3))",
    "lag(a) OVER (PARTITION BY s ORDER BY a)",
    "count(*) OVER (ORDER BY a ROWS BETWEEN 3 PRECEDING AND CURRENT ROW)",
]
PARTIAL = [
    "a / a",
    "b / b",
    "a % a",
    "a + a",
    "-a",
    "CAST(s AS INT)",
    "CAST(b AS INT)",
    "ceil(b)",
    "floor(b)",
    "to_date(s)",
    "to_timestamp(s, 'yyyy')",
    "array(1, 2)[a]",
    "map(s, 1, s, 2)",
    "s RLIKE s",
    "regexp_replace(s, '[', 'x')",
    "raise_error(s)",
    "assert_true(a > 1)",
    "from_json(s, 'x INT', map('mode', 'FAILFAST'))",
    "round(a, -1)",
    "reduce(array(a), 0L, (x, y) -> x + y)",
    "a * 2",
    "CAST(a AS INT)",
    "CAST(length(s) AS INT) * 2",
    "w * w",
    "w / 3",
    "-w",
    "m / m",
    "a div -1",
    "a div 0",
    "s LIKE '1/2' ESCAPE '/'",
    "s RLIKE '(a|b)*c'",
    "regexp_replace(s, 'a', r'\\')",
    "regexp_replace(s, '(a)', '$2')",
    "regexp_extract(s, '([0-9]+)x', 2)",
    "date_format(t, 'yyyy-MM-dd QQQQQQ')",
    "date_format(t, s)",
    "unix_timestamp(s)",
    "levenshtein(s, s)",
    "repeat(s, 1000000)",
    "lpad(s, 1000000, s)",
    "transform(array(a), x -> x + 1)",
    "a > (SELECT id FROM range(3))",
    "from_json(s, 'x DATE')",
    "count(*) OVER (ORDER BY a RANGE BETWEEN 3 PRECEDING AND CURRENT ROW)",
]


@pytest.fixture
def frame(spark):
    return spark.range(10).selectExpr(
        "id AS a",
        "CAST(id AS DOUBLE) AS b",
        "CAST(id AS STRING) AS s",
        "if(id > 3, TIMESTAMP'2024-01-01', NULL) AS t",
        "CAST(CAST(id % 9 AS TINYINT) AS DECIMAL(9, 2)) AS m",
        "CAST(CAST(id % 9 AS TINYINT) AS DECIMAL(38, 2)) AS w",
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


@pytest.mark.parametrize("ansi", [False], indirect=True)
@pytest.mark.parametrize("text", ["element_at(array(a, a), CAST(a AS INT))", "CAST(concat(s, 'x') AS INTERVAL DAY)"])
def test_what_raises_in_any_mode(frame, ansi, text) -> None:
    with pytest.raises((PySparkException, Py4JJavaError)):
        frame.selectExpr(text).collect()
    assert not is_total(frame.selectExpr(text))


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


def test_sources_that_compute_what_they_give(spark, tmp_path) -> None:
    frame = spark.range(0, 4, 1, 1).selectExpr("10 / id AS x", "id")
    rows = spark.range(4).localCheckpoint()
    assert is_total(rows)
    assert not is_total(spark.createDataFrame([(1,)], "x INT"))
    cached = frame.where("id > 0").cache()
    try:
        assert not is_total(cached.groupBy("id").count())  # whoever reads it first computes all of it
        cached.count()
        assert is_total(cached.groupBy("id").count())
    finally:
        cached.unpersist()
    rows.selectExpr("string(id)").write.text(str(tmp_path / "rows"))
    assert is_total(spark.read.text(str(tmp_path / "rows")))
    assert not is_total(spark.read.format("binaryFile").load(str(tmp_path / "rows")))


EXTREMES = {
    "i8": "-128Y, 127Y, 0Y, NULL",
    "i32": "-2147483648, 2147483647, 0, -1, 7, NULL",
    "i64": "-9223372036854775808, 9223372036854775807, 0L, -1L, NULL",
    "f": "double('NaN'), double('inf'), double('-inf'), -0D, 0D, 1.7976931348623157E308D, 4.9E-324D, NULL",
    "g": "float('NaN'), float('inf'), float('-inf'), 0F, 3.4E38F, NULL",
    "m": "9999999.99BD, -9999999.99BD, 0.00BD, NULL",
    "n": "CAST(repeat('9', 34) AS DECIMAL(34, 0)), CAST(concat('-', repeat('9', 34)) AS DECIMAL(34, 0)), NULL",
    "w": "CAST(repeat('9', 38) AS DECIMAL(38, 0)), CAST(concat('-', repeat('9', 38)) AS DECIMAL(38, 0)), NULL",
    "s": "'', 'a', '2024-01-01', CAST(X'FF' AS STRING), '%', '[', '$1', '{\"x\": \"y\"}', '{', "
    " repeat('a(', 2000), NULL",
    "x": "X'', X'FF00', NULL",
    "y": "true, false, NULL",
    "d": "DATE'2024-02-29', DATE'0001-01-01', DATE'9999-12-31', date_from_unix_date(106751990), NULL",
    "t": "timestamp_micros(9190000000000000000), timestamp_micros(-9190000000000000000), "
    " TIMESTAMP'2024-02-29 12:34:56', NULL",
    "ss": "CAST(array() AS ARRAY<STRING>), array('a', NULL), array('b', 'a', 'a'), NULL",
    "ff": "array(double('NaN'), 0D, -0D, NULL), array(1D), NULL",
    "p": "map('a', 1, 'b', NULL), CAST(map() AS MAP<STRING, INT>), NULL",
    "r": "named_struct('x', 1, 'y', 'a'), named_struct('x', NULL, 'y', NULL), NULL",
}
"""The values of each column, one of them in each row, as chance combines them."""

GENERATORS = ("explode", "inline", "json_tuple", "posexplode", "stack")
TAKERS = {
    "i8 i32 i64": "abs({0} % 7); {0} % 3; pmod({0}, 5); {0} div 3; {0} / 2; {0} & 1; {0} | i8; ~{0};"
    " bit_count({0}); CAST({0} AS"
    " DOUBLE); CAST({0} AS STRING); CAST({0} AS DECIMAL(20, 0)); {0} = f; {0} < m; {0} IN (1, 2); shiftleft(CAST({0}"
    " AS BIGINT), 70); hash({0}); xxhash64({0}); hex({0}); sqrt({0}); ln({0}); pow({0}, {0}); CAST({0} AS BOOLEAN);"
    " if(y, {0}, 0); greatest({0}, 1); nullif({0}, 0)",
    "i8 i32": "CAST({0} AS BIGINT) * 1000; CAST({0} AS BIGINT) + i32; CAST({0} AS BIGINT) - i32",
    "i32": "date_from_unix_date({0}); date_add(d, {0}); date_sub(d, {0}); substring(s, {0}, {0}); substring(x,"
    " {0}, {0});"
    " substring_index(s, 'a', {0}); locate('a', s, {0}); shiftright(i64, {0}); sha2(s, {0}); array_position(ss, 'a')",
    "i64": "CAST({0} % 100 AS INT); CAST({0} % 100 AS TINYINT); ({0} % 10) * 3 + 1; timestamp_micros({0});"
    " from_unixtime({0}, 'yyyy-MM-dd')",
    "f g": "{0} + {0}; {0} * {0}; {0} / 3; -{0}; abs({0}); round({0}, 2); bround({0}, 1); {0} % 2;"
    " exp({0}); expm1({0}); ln({0}); log10({0}); log2({0}); log1p({0}); log({0}, {0}); sin({0}); tan({0}); atan2({0},"
    " f); hypot({0}, f); cbrt({0}); sqrt({0}); rint({0}); signum({0}); degrees({0}); radians({0}); {0} = {0};"
    " isnan({0}); nanvl({0}, 1); CAST({0} AS STRING); CAST({0} AS BOOLEAN); pow({0}, {0}); cosh({0}); atan({0})",
    "m": "{0} + {0}; {0} - {0}; {0} * {0}; {0} * (1 - {0}); -{0}; abs({0}); {0} / 3; {0} / 0.01BD; {0} % 7;"
    " round({0}, 1);"
    " bround({0}, 0); ceil({0}); floor({0}); CAST({0} AS DOUBLE); CAST({0} AS DECIMAL(12, 3)); {0} = i32",
    "n": "{0} + {0}; -{0}; abs({0}); {0} % 7",
    "w": "ceil({0}); floor({0}); CAST({0} AS DOUBLE); CAST({0} AS STRING); {0} = f",
    "s": "upper({0}); lower({0}); initcap({0}); length({0}); bit_length({0}); octet_length({0}); ascii({0}); trim({0});"
    " ltrim({0}); rtrim('a', {0}); reverse({0}); {0} || s; concat_ws({0}, ss, s); replace({0}, s, s); instr({0}, s);"
    " translate({0}, s, s); substring({0}, 2, 3); startswith({0}, s); endswith({0}, s); contains({0}, s); {0} LIKE"
    " 'a%_'; {0} RLIKE '^[a-z]+|x'; regexp_replace({0}, 'a', 'b'); regexp_extract({0}, '(a)(b)?', 2); split({0}, 'a');"
    " regexp_extract_all({0}, '(a)', 1); md5({0}); sha1({0}); sha2({0}, 256); crc32({0}); hex({0}); soundex({0});"
    " get_json_object({0}, '$.x'); from_json({0}, 'x INT, y ARRAY<STRING>, z MAP<STRING, DOUBLE>'); {0} IN ('a', '');"
    " CAST({0} AS BINARY); element_at(p, {0}); p[{0}]; lpad({0}, 8, '0'); rpad({0}, 8, s); try_cast({0} AS INT);"
    " trunc(d, {0}); date_trunc({0}, t); json_tuple({0}, 'x')",
    "x": "hex({0}); md5({0}); length({0}); CAST({0} AS STRING); {0} = X'00'; {0} || x",
    "y": "CAST({0} AS INT); CAST({0} AS DOUBLE); NOT {0}; {0} AND y; coalesce({0}, true)",
    "d": "year({0}); month({0}); day({0}); dayofweek({0}); weekday({0}); dayofyear({0}); weekofyear({0}); quarter({0});"
    " last_day({0}); trunc({0}, 'MONTH'); datediff({0}, d); date_add({0}, 3); months_between({0}, d); unix_date({0});"
    " CAST({0} AS TIMESTAMP); CAST({0} AS STRING); year({0}) * 100 + month({0}); unix_timestamp({0}); date_format({0},"
    " 'EEE MMM dd yyyy')",
    "t": "year({0}); hour({0}); minute({0}); second({0}); CAST({0} AS DATE); CAST({0} AS STRING); CAST({0} AS BIGINT);"
    " CAST({0} AS DOUBLE); date_trunc('YEAR', {0}); unix_timestamp({0}); unix_micros({0}); unix_millis({0});"
    " date_format({0}, 'yyyy-MM-dd HH:mm:ss'); months_between({0}, t); extract(SECOND FROM {0}); {0} > d; dayname({0})",
    "ss ff": "size({0}); sort_array({0}); sort_array({0}, false); array_distinct({0}); array_union({0}, {0});"
    " array_intersect({0}, {0}); array_except({0}, {0}); arrays_overlap({0}, {0}); array_max({0}); array_min({0});"
    " arrays_zip({0}, ss); filter({0}, v -> v IS NULL); transform({0}, v -> v = v); zip_with({0}, {0}, (a, b)"
    " -> a = b);"
    " {0} = {0}; {0} < {0}; reverse({0}); {0} || {0}; explode({0}); posexplode({0}); explode_outer({0})",
    "ss": "array_contains({0}, s); array_position({0}, s); array_remove({0}, s); exists({0}, v -> v = s);"
    " forall({0}, v -> v > s); concat_ws(s, {0}); transform({0}, v -> upper(v) || s)",
    "ff": "array_contains({0}, f); array_position({0}, f); array_remove({0}, f); exists({0}, v -> v = f)",
    "p": "map_keys({0}); map_values({0}); map_entries({0}); size({0}); {0}['a']; map_filter({0}, (k, v) -> v > 0);"
    " transform_values({0}, (k, v) -> v = 1); map_contains_key({0}, 'a'); explode({0}); element_at({0}, 'a')",
    "r": "{0}.x; {0} = {0}; struct({0}, s); array({0}); inline(array({0})); stack(2, {0}, {0})",
}
"""By columns, what is total on each of them."""

OF_ALL = (
    "count({0}); count(DISTINCT {0}); max({0}); min({0}); first({0}); last({0}); max_by({0}, s); min_by({0}, {0});"
    " approx_count_distinct({0}); any_value({0}); count_if({0} IS NULL)"
)
OF_NUMBERS = (
    "avg({0}); stddev({0}); var_pop({0}); corr({0}, f); covar_samp({0}, f); skewness({0}); kurtosis({0});"
    " percentile_approx({0}, 0.5)"
)
OVER_ALL = (
    "lag({0}) OVER o; lead({0}, 2, NULL) OVER o; nth_value({0}, 2) OVER o; rank() OVER o; ntile(3) OVER o;"
    " percent_rank() OVER o; cume_dist() OVER o; max({0}) OVER (PARTITION BY s ORDER BY {0} ROWS 2 PRECEDING)"
)


def texts(takers, columns):
    return [one.format(column) for column in columns for one in takers.split("; ")]


def in_groups_of(number, values):
    return [values[at : at + number] for at in range(0, len(values), number)]


@pytest.fixture(scope="module")
def extremes(spark):
    """600 rows of extreme values, as a table."""
    chosen = [
        f"array({values})[CAST(pmod(xxhash64(id, '{column}'), size(array({values}))) AS INT)] AS {column}"
        for column, values in EXTREMES.items()
    ]
    rows = spark.range(0, 600, 1, 2).selectExpr(*chosen).cache()
    rows.count()
    rows.createOrReplaceTempView("extremes")
    yield rows
    rows.unpersist()
    spark.catalog.dropTempView("extremes")


@pytest.mark.long
@pytest.mark.parametrize("ansi", [True], indirect=True)
@pytest.mark.parametrize("compiled", [True, False], ids=["compiled", "interpreted"])
@pytest.mark.parametrize("columns", TAKERS)
def test_total_expressions_have_values_for_all_inputs(spark, extremes, ansi, columns, compiled) -> None:
    expressions = texts(TAKERS[columns], columns.split())
    assert [text for text in expressions if not is_total(extremes.selectExpr(f"{text}"))] == []
    spark.conf.set("spark.sql.codegen.wholeStage", compiled)
    spark.conf.set("spark.sql.codegen.factoryMode", "FALLBACK" if compiled else "NO_CODEGEN")
    try:
        generators = [text for text in expressions if text.startswith(GENERATORS)]
        others = [text for text in expressions if text not in generators]
        for some in [*in_groups_of(20, others), *([one] for one in generators)]:
            extremes.selectExpr(*some).write.format("noop").mode("overwrite").save()
    finally:
        spark.conf.unset("spark.sql.codegen.wholeStage")
        spark.conf.unset("spark.sql.codegen.factoryMode")


@pytest.mark.long
@pytest.mark.parametrize("ansi", [True], indirect=True)
def test_total_aggregates_and_windows_have_values_for_all_inputs(spark, extremes, ansi) -> None:
    ordered = [column for column in EXTREMES if column != "p"]
    aggregates = texts(OF_ALL, ordered) + texts(OF_NUMBERS, ["i8", "i32", "i64", "f", "g"])
    aggregates += texts("sum({0}); max({0})", ["f", "g"]) + texts(
        "bit_and({0}); bit_or({0}); bit_xor({0})", ["i8", "i64"]
    )
    for some in in_groups_of(20, aggregates):
        grouped = spark.sql(f"SELECT {', '.join(some)} FROM extremes GROUP BY y")
        assert is_total(grouped), some
        grouped.write.format("noop").mode("overwrite").save()
    for some in in_groups_of(20, texts(OVER_ALL, ordered)):
        windows = spark.sql(f"SELECT {', '.join(some)} FROM extremes WINDOW o AS (PARTITION BY y ORDER BY s)")
        assert is_total(windows), some
        windows.write.format("noop").mode("overwrite").save()
