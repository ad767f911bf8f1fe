"""Plans that compute the same have one key, in whatever cell they were defined; any other plan has another or none."""

from __future__ import annotations

import os
import textwrap

import pytest
from pyspark.sql import functions as F

from flinkmagic.reuse.result_keys import NoKey, ResultKey, ResultKeys, settings_digest


@pytest.fixture
def numbers(spark, tmp_path):
    path = str(tmp_path / "numbers")
    spark.range(0, 100, 1, 2).selectExpr("id", "id % 7 AS k", "id % 5 AS m").write.parquet(path)
    return path


@pytest.fixture
def key(spark):
    """The key of a DataFrame's rows, as its own plan is now."""

    def make(frame, keys=None):
        spark.conf.set("spark.sql.adaptive.enabled", "false")
        try:
            plan = (
                frame._jdf.sparkSession()
                .sessionState()
                .executePlan(
                    frame._jdf.queryExecution().analyzed(),
                    spark._jvm.org.apache.spark.sql.execution.CommandExecutionMode.SKIP(),
                )
                .executedPlan()
            )
        finally:
            spark.conf.unset("spark.sql.adaptive.enabled")
        return (keys or ResultKeys(spark.sparkContext)).of(plan)

    return make


def cell(source, **names):
    """What a cell binds to `f`."""
    namespace = {"__name__": "__main__", "F": F, **names}
    exec(compile(textwrap.dedent(source), "cell", "exec", dont_inherit=True), namespace)
    return namespace["f"]


SHAPES = {
    "aggregate": lambda df: df.groupBy("k").agg(F.sum("m").alias("s"), F.countDistinct("id").alias("n")),
    "join": lambda df: df.join(df.selectExpr("k AS j", "m AS n").distinct(), F.col("k") == F.col("j")).orderBy("id"),
    "window": lambda df: df.selectExpr("k", "rank() OVER (PARTITION BY k ORDER BY id) AS r").where("r < 3"),
    "functions": lambda df: df.selectExpr("date_add(DATE'2020-01-01', int(id))", "regexp_replace(string(k), '1', 'x')",
                                          "to_json(named_struct('a', id))", "array(k, m)", "decimal(id) / 3"),
    "sets": lambda df: df.select("k").union(df.select("m")).repartition(3).orderBy(F.desc("k")).limit(4),
    "rollup": lambda df: df.rollup("k", "m").count(),
    "subquery": lambda df: df.where(F.expr("k IN (SELECT max(id) FROM range(5))")),
    "generate": lambda df: df.select(F.explode(F.sequence(F.lit(1), "k")).alias("e")).groupBy("e").count(),
    "pivot": lambda df: df.groupBy("k").pivot("m", [0, 1]).sum("id"),
    "range": lambda df: df.sparkSession.range(5).groupBy("id").count(),
    "lambda": lambda df: df.select(F.transform(F.array("k", "m"), lambda x: x + 1).alias("t")).distinct(),
    "semi joins": lambda df: df.where("EXISTS (SELECT 1 FROM range(5) r WHERE r.id = k)").groupBy("m").max("id"),
    "scalar": lambda df: df.where("id > (SELECT avg(id) FROM range(9))").groupBy("m").agg(F.avg("id")),
    "self join": lambda df: df.groupBy("k").count().alias("a").join(df.groupBy("k").count().alias("b"), "k"),
    "columns of frames": lambda df: df.groupBy(df.k).agg(F.max(df["m"])).withColumn("j", F.col("k")),
    "values": lambda df: df.sparkSession.sql("SELECT * FROM VALUES (1, 'a'), (2, 'b') AS t(x, y)").distinct(),
}  # fmt: skip


@pytest.mark.matrix(4)
@pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES)
def test_a_query_that_is_defined_again_has_the_same_key(spark, numbers, key, shape):
    first, second = key(shape(spark.read.parquet(numbers))), key(shape(spark.read.parquet(numbers)))
    assert isinstance(first, ResultKey), first
    assert first.digest == second.digest
    assert first.portable


def test_all_queries_have_keys_of_their_own(spark, numbers, key):
    keys = {key(shape(spark.read.parquet(numbers))).digest for shape in SHAPES.values()}
    assert len(keys) == len(SHAPES)


def test_what_depends_on_the_order_of_rows_has_a_key_in_this_process(spark, numbers, key):
    def made(*keys):
        return spark.read.parquet(numbers).withColumn("k", F.col("id") % 3).dropDuplicates(list(keys))

    found = key(made("k"))
    assert isinstance(found, ResultKey), found
    assert not found.portable
    assert key(made("k")) == found
    assert key(made("k", "id")).digest != found.digest
    chosen = key(spark.read.parquet(numbers).groupBy().agg(F.collect_list("id"), F.last("id")))
    assert isinstance(chosen, ResultKey), chosen
    chance = key(spark.read.parquet(numbers).withColumn("r", F.rand()).groupBy().agg(F.first("r")))
    assert isinstance(chance, NoKey), chance


@pytest.mark.parametrize(
    "column",
    ["rand()", "rand(1)", "uuid()", "monotonically_increasing_id()", "spark_partition_id()", "input_file_name()",
     "shuffle(array(id))", "base64(aes_encrypt(string(k), '0123456789abcdef'))"],
)  # fmt: skip
def test_nondeterministic_expressions_have_no_key(spark, numbers, key, column):
    found = key(spark.read.parquet(numbers).selectExpr("k", f"{column} AS c"))
    assert isinstance(found, NoKey)
    assert "nondeterministic" in found.reason


def test_text_that_is_no_utf8_counts_by_its_bytes(spark, numbers, key):
    one, other = (spark.read.parquet(numbers).selectExpr(f"CAST(X'{byte}' AS string) AS t") for byte in ("FF", "FE"))
    assert isinstance(key(one), ResultKey)
    assert key(one).digest != key(other).digest


def test_the_time_counts_by_its_value(spark, numbers, key):
    def frame():
        return spark.read.parquet(numbers).select("k", F.current_timestamp().alias("t"))

    assert key(frame()) != key(frame())


def test_a_sample_without_a_seed_is_another_one_each_time(spark, numbers, key):
    df = spark.read.parquet(numbers)
    assert key(df.sample(0.5)) != key(df.sample(0.5))


# -- files ------------------------------------------------------------------------------------------------


def test_an_appended_file_makes_another_key(spark, numbers, key):
    old = spark.read.parquet(numbers).groupBy("k").count()
    before = key(old)
    spark.range(3).selectExpr("id", "id AS k", "id AS m").write.mode("append").parquet(numbers)
    assert key(old) == before  # it listed its files before
    assert key(spark.read.parquet(numbers).groupBy("k").count()).digest != before.digest


def test_a_touched_file_makes_another_key_and_is_noticed(spark, numbers, key):
    keys = ResultKeys(spark.sparkContext)
    before = key(spark.read.parquet(numbers), keys)
    assert keys.changed_file(before.files) == ""
    file = next(os.path.join(numbers, name) for name in os.listdir(numbers) if name.endswith(".parquet"))
    os.utime(file, (1, 1))
    assert keys.changed_file(before.files) == f"file:{file}"
    assert key(spark.read.parquet(numbers)).digest != before.digest


def test_a_file_that_was_changed_between_its_listing_and_its_key_is_noticed(spark, numbers, key):
    keys, listed = ResultKeys(spark.sparkContext), spark.read.parquet(numbers)
    file = next(os.path.join(numbers, name) for name in os.listdir(numbers) if name.endswith(".parquet"))
    os.utime(file, (1, 1))  # what is noted with the key is as it is now
    assert keys.changed_file(key(listed, keys).files) == f"file:{file}"


def test_a_listing_has_the_files_of_all_folders_below_a_path(spark, numbers, tmp_path):
    os.makedirs(tmp_path / "numbers" / "k=1" / "m=2")
    (tmp_path / "numbers" / "k=1" / "m=2" / "part").write_text("rows")
    os.utime(tmp_path / "numbers" / "k=1" / "m=2" / "part", (5, 5))
    keys = ResultKeys(spark.sparkContext)
    assert f"file:{numbers}/k=1/m=2/part|4|5000" in keys.listing(numbers)
    folders = os.walk(numbers)
    files = [os.path.join(folder, name) for folder, _, names in folders for name in names if not name.endswith(".crc")]
    assert [line.split("|")[0] for line in keys.listing(numbers)] == sorted(f"file:{file}" for file in files)
    assert keys.listing(str(tmp_path / "nothing")) is None


def test_a_removed_file_is_noticed(spark, numbers, key):
    keys = ResultKeys(spark.sparkContext)
    before = key(spark.read.parquet(numbers), keys)
    file = next(os.path.join(numbers, name) for name in os.listdir(numbers) if name.endswith(".parquet"))
    os.remove(file)
    assert keys.changed_file(before.files) == f"file:{file}"


def test_a_table_counts_by_its_files(spark, numbers, key):
    spark.sql("DROP TABLE IF EXISTS fm_keys")
    spark.read.parquet(numbers).write.partitionBy("k").saveAsTable("fm_keys")
    try:
        before = key(spark.table("fm_keys").where("k = 1"))
        assert isinstance(before, ResultKey)
        assert key(spark.table("fm_keys").where("k = 1")) == before
        spark.range(1).selectExpr("id", "id AS m", "1L AS k").write.insertInto("fm_keys")
        assert key(spark.table("fm_keys").where("k = 1")).digest != before.digest
    finally:
        spark.sql("DROP TABLE fm_keys")


# -- other sources ----------------------------------------------------------------------------------------


LOCAL = {
    "rows": lambda spark: [spark.createDataFrame([(1, "a"), (2, name)], "id int, name string") for name in "bbc"],
    "names": lambda spark: [spark.createDataFrame([(1, "a")], ["id", name]) for name in ("n", "n", "m")],
    "types": lambda spark: [
        spark.createDataFrame([(1, "a")], f"id {name}, n string") for name in ("int", "int", "long")
    ],
    "partitions": lambda spark: [
        spark.sparkContext.parallelize([(1,), (2,), (3,)], number).toDF("id int") for number in (2, 2, 3)
    ],
    "functions": lambda spark: [
        spark.sparkContext.parallelize([1, 2]).map(lambda n, m=number: (n + m,)).toDF("id int") for number in (2, 2, 3)
    ],
}


@pytest.mark.parametrize("made", LOCAL.values(), ids=LOCAL)
def test_rows_of_the_driver_count_by_what_they_are(spark, key, made):
    first, again, other = map(key, made(spark))
    assert isinstance(first, ResultKey)
    assert not first.portable
    assert first == again
    assert first.digest != other.digest


def _local(spark, last, names="g long, n string", many=5000):
    """A DataFrame over rows that the JVM holds, as pandas frames and VALUES become."""
    import pyarrow

    rows = pyarrow.table({"g": [*range(many), last], "n": [*map(str, range(many)), "end"]})
    return spark.createDataFrame(rows.to_pandas(), names)


@pytest.mark.parametrize("arrow", ["true", "false"])
def test_many_rows_of_a_pandas_frame_count_by_what_they_are(spark, key, arrow):
    spark.conf.set("spark.sql.execution.arrow.pyspark.enabled", arrow)
    try:
        frame = _local(spark, 1)
        assert key(frame) == key(frame) == key(_local(spark, 1))
        assert isinstance(key(frame), ResultKey)
        assert key(frame).digest != key(_local(spark, 2)).digest
        assert key(frame).digest != key(_local(spark, 1, many=4999)).digest
        assert key(frame).digest != key(_local(spark, 1, "g long, m string")).digest
    finally:
        spark.conf.unset("spark.sql.execution.arrow.pyspark.enabled")


def test_many_rows_that_the_optimizer_makes_count_by_what_they_are(spark, key):
    values = ", ".join(f"({number}, array('{number}'))" for number in range(100))
    one, again, other = (spark.sql(f"SELECT n * {by} AS m, a FROM VALUES {values} AS t(n, a)") for by in (2, 2, 3))
    assert "LocalTableScan" in one._jdf.queryExecution().executedPlan().toString()
    assert key(one) == key(again)
    assert key(one).digest != key(other).digest


@pytest.mark.parametrize("arrow", ["true", pytest.param("false", marks=pytest.mark.long)])
def test_too_many_rows_of_the_driver_count_by_the_object(spark, key, arrow):
    import pandas

    spark.conf.set("spark.sql.execution.arrow.pyspark.enabled", arrow)
    try:
        rows = [(f"{number:0>100}", number) for number in range(200_000)]
        one, other = (spark.createDataFrame(pandas.DataFrame(rows, columns=["s", "n"])) for _ in range(2))
        assert key(one) == key(one)
        assert key(one) != key(other)
        assert not key(one).portable
    finally:
        spark.conf.unset("spark.sql.execution.arrow.pyspark.enabled")


def test_chance_in_an_rdd_has_no_key(spark, key):
    import random

    frame = spark.sparkContext.parallelize([(1,), (2,)]).map(lambda row: (random.randint(0, row[0]),)).toDF("id int")
    assert "random" in key(frame).reason


RDDS = {
    "map": lambda rdd: rdd.map(lambda row: (row[0] + 1, 1)),
    "filter": lambda rdd: rdd.filter(lambda row: row[0] > 1),
    "flatMap": lambda rdd: rdd.flatMap(lambda row: [row, row]),
    "mapPartitions": lambda rdd: rdd.mapPartitions(lambda rows: rows),
    "mapValues": lambda rdd: rdd.mapValues(lambda value: value * 2),
    "reduceByKey": lambda rdd: rdd.reduceByKey(lambda a, b: a + b),
    "groupByKey": lambda rdd: rdd.groupByKey().mapValues(len),
    "aggregateByKey": lambda rdd: rdd.aggregateByKey(0, lambda a, b: a + b, lambda a, b: a + b),
    "sortBy": lambda rdd: rdd.sortBy(lambda row: row[1]),
    "join": lambda rdd: rdd.join(rdd).mapValues(lambda pair: pair[0]),
    "distinct": lambda rdd: rdd.distinct(),
    "zipWithIndex": lambda rdd: rdd.zipWithIndex().map(lambda pair: (pair[1], 1)),
}


@pytest.mark.parametrize("made", RDDS.values(), ids=RDDS)
def test_pyspark_s_own_wrappers_make_no_function_impure(spark, key, made):
    frame = made(spark.sparkContext.parallelize([(1, 2), (1, 3), (2, 4)], 2)).toDF("a long, b long")
    assert isinstance(key(frame), ResultKey), key(frame)


def test_a_process_that_rows_are_piped_through_has_no_key(spark, key):
    frame = spark.sparkContext.parallelize(["a"]).pipe("cat").map(lambda line: (line,)).toDF("line string")
    assert "Popen" in key(frame).reason


def test_rdds_that_read_files_have_no_key(spark, tmp_path, key):
    (tmp_path / "a.txt").write_text("a\n")
    frame = spark.sparkContext.textFile(str(tmp_path / "a.txt")).map(lambda line: (line,)).toDF("line string")
    assert "HadoopRDD" in key(frame).reason


def test_an_rdd_that_is_persisted_again_has_another_key(spark, tmp_path, key):
    (tmp_path / "a.txt").write_text("a\n")
    lines = spark.sparkContext.textFile(str(tmp_path / "a.txt")).map(lambda line: (line,)).persist()
    frame = lines.toDF("line string")
    try:
        first = key(frame)
        assert isinstance(first, ResultKey)
        assert key(frame).digest == first.digest
        lines.unpersist(blocking=True)
        assert isinstance(key(frame), NoKey)
        lines.persist()
        assert key(frame).digest != first.digest
    finally:
        lines.unpersist()


def test_a_source_of_version_2_has_no_key(spark, numbers, key):
    spark.conf.set("spark.sql.sources.useV1SourceList", "")
    try:
        assert isinstance(key(spark.read.parquet(numbers)), NoKey)
    finally:
        spark.conf.unset("spark.sql.sources.useV1SourceList")


@pytest.mark.long
def test_a_cache_counts_by_the_object(spark, numbers, key):
    frame = spark.read.parquet(numbers).groupBy("k").count().cache()
    try:
        before = key(frame.where("count > 1"))
        assert isinstance(before, ResultKey)
        frame.count()
        assert key(frame.where("count > 1")).digest == before.digest
    finally:
        frame.unpersist()
    assert key(frame.where("count > 1")).digest != before.digest


# -- Python functions -------------------------------------------------------------------------------------

UDFS = {
    "udf": "@F.udf('long')\ndef g(x):\n    return x + limit\nf = lambda df: df.select(g('k'))\n",
    "arrow": "@F.udf('long', useArrow=True)\ndef g(x):\n    return x + limit\nf = lambda df: df.select(g('k'))\n",
    "pandas": "import pandas as pd\ndef g(x: pd.Series) -> pd.Series:\n    return x + limit\n"
    "u = F.pandas_udf(g, 'long')\nf = lambda df: df.select(u('k'))\n",
    "pandas aggregate": "import pandas as pd\ndef g(x: pd.Series) -> float:\n    return x.mean() + limit\n"
    "u = F.pandas_udf(g, 'double')\nf = lambda df: df.groupBy('k').agg(u('m'))\n",
    "mapInPandas": "def g(frames):\n    for frame in frames:\n        yield frame + limit\n"
    "f = lambda df: df.mapInPandas(g, 'id long, k long, m long')\n",
    "applyInPandas": "def g(frame):\n    return frame + limit\n"
    "f = lambda df: df.groupBy('k').applyInPandas(g, 'id long, k long, m long')\n",
}


@pytest.mark.parametrize("source", UDFS.values(), ids=UDFS)
def test_a_function_counts_by_what_it_does(spark, numbers, key, source):
    df = spark.read.parquet(numbers)
    first = key(cell(source, limit=1)(df))
    assert isinstance(first, ResultKey), first
    assert key(cell("\n\n" + source, limit=1)(df)).digest == first.digest
    assert key(cell(source, limit=2)(df)).digest != first.digest
    assert key(cell(source.replace("+ limit", "- limit"), limit=1)(df)).digest != first.digest


def test_the_names_of_columns_count_where_a_function_sees_them(spark, numbers, key):
    df = spark.read.parquet(numbers)
    mapped = cell("def g(frames):\n    yield from frames\nf = lambda df: df.mapInPandas(g, 'x long')\n")
    assert key(mapped(df.selectExpr("id AS a"))).digest != key(mapped(df.selectExpr("id AS b"))).digest


def test_names_that_look_like_spark_s_own_numbers_count(spark, numbers, key):
    df = spark.read.parquet(numbers)

    def renamed(name):
        return df.selectExpr(f"id AS `{name}`", "k")

    names = ["item#1", "item#2", "item", "item#", "f(item#1)", "f(item#2)", "item#1L", *(f"x#{n}" for n in range(30))]
    assert len({key(renamed(name)).digest for name in names}) == len(names)
    mapped = cell("def g(frames):\n    yield from frames\nf = lambda df: df.mapInPandas(g, 'x long')\n")
    assert key(mapped(renamed("item#1"))).digest != key(mapped(renamed("item#2"))).digest
    assert key(mapped(renamed("item#1"))).digest == key(mapped(renamed("item#1"))).digest


def test_an_accumulator_has_no_key(spark, numbers, key):
    counted = spark.sparkContext.accumulator(0)
    source = UDFS["udf"].replace("return x + limit", "counted.add(1); return x")
    assert "accumulator" in key(cell(source, counted=counted)(spark.read.parquet(numbers))).reason


STALE = {
    "configparser": "import configparser\n@F.udf('string')\ndef g(x):\n    c = configparser.ConfigParser()\n"
    "    c.read(path)\n    return c['a']['b']\n",
    "ElementTree": "import xml.etree.ElementTree as ET\n@F.udf('string')\ndef g(x):\n"
    "    return ET.parse(path).getroot().text\n",
    "pkgutil": "import pkgutil\n@F.udf('string')\ndef g(x):\n    return pkgutil.get_data('pandas', path).decode()\n",
    "parquet": "import pyarrow.parquet as pq\n@F.udf('string')\ndef g(x):\n"
    "    return str(pq.ParquetFile(path).metadata.num_rows)\n",
    "http": "import http.client\n@F.udf('string')\ndef g(x):\n    c = http.client.HTTPConnection(path)\n"
    "    c.request('GET', '/')\n    return c.getresponse().read().decode()\n",
}


@pytest.mark.parametrize("source", STALE.values(), ids=STALE)
def test_a_function_that_reads_has_no_key_however_it_does_so(spark, numbers, key, source):
    """Neither in the session nor, by a portable key, in another process."""
    found = key(cell(source + "f = lambda df: df.select(g('k'))\n", path="a")(spark.read.parquet(numbers)))
    assert isinstance(found, NoKey)
    assert "a Python function is not known to be pure: it uses" in found.reason


def test_the_type_of_a_function_counts(spark, numbers, key):
    df = spark.read.parquet(numbers)
    assert key(cell(UDFS["udf"].replace("long", "int"), limit=1)(df)) != key(cell(UDFS["udf"], limit=1)(df))


def test_a_nondeterministic_function_has_no_key(spark, numbers, key):
    source = UDFS["udf"] + "g = g.asNondeterministic()\n"
    assert isinstance(key(cell(source, limit=1)(spark.read.parquet(numbers))), NoKey)


def test_a_function_that_draws_lots_has_no_key(spark, numbers, key):
    source = UDFS["udf"].replace("x + limit", "x + random.randint(0, 3)")
    found = key(cell("import random\n" + source)(spark.read.parquet(numbers)))
    assert "'random'" in found.reason or "random" in found.reason


def test_a_broadcast_variable_counts_by_the_object(spark, numbers, key):
    df = spark.read.parquet(numbers)
    source = UDFS["udf"].replace("limit", "limit.value")
    one, other = spark.sparkContext.broadcast(1), spark.sparkContext.broadcast(1)
    first = key(cell(source, limit=one)(df))
    assert isinstance(first, ResultKey)
    assert not first.portable
    assert key(cell(source, limit=one)(df)) == first
    assert key(cell(source, limit=other)(df)).digest != first.digest


# -- configuration ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "setting",
    ["spark.sql.ansi.enabled", "spark.sql.session.timeZone", "spark.sql.caseSensitive",
     "spark.sql.shuffle.partitions", "spark.sql.files.maxPartitionBytes", "parquet.filter.columnindex.enabled",
     "spark.sql.something.new"],
)  # fmt: skip
def test_settings_count(setting):
    assert settings_digest({setting: "a"}, "4") != settings_digest({setting: "b"}, "4")


@pytest.mark.parametrize("setting", ["spark.app.id", "spark.sql.adaptive.enabled", "spark.sql.ui.explainMode"])
def test_settings_that_do_not_affect_rows_do_not(setting):
    assert settings_digest({setting: "a"}, "4") == settings_digest({setting: "b"}, "4")


def test_hadoop_settings_count(spark, numbers, key):
    df = spark.read.parquet(numbers).groupBy("k").count()
    before = key(df)
    hadoop = spark.sparkContext._jsc.hadoopConfiguration()
    hadoop.set("parquet.something.new", "1")
    try:
        assert key(df).digest != before.digest
    finally:
        hadoop.unset("parquet.something.new")
    assert key(df).digest == before.digest


def test_equal_settings_are_equal_however_they_were_set(spark, numbers, key):
    df = spark.read.parquet(numbers).groupBy("k").count()
    before = key(df)
    hadoop = spark.sparkContext._jsc.hadoopConfiguration()
    for name in ("io.file.buffer.size", "fs.trash.interval"):
        hadoop.set(name, hadoop.get(name))
    spark.conf.set("spark.sql.ui.explainMode", "simple")
    try:
        assert key(df) == before
    finally:
        spark.conf.unset("spark.sql.ui.explainMode")


def test_an_entry_that_only_hides_a_later_setting_does_not_count():
    assert settings_digest({"mapreduce.a": ""}, "4") == settings_digest({}, "4")
    assert settings_digest({"mapreduce.a": ""}, "4") != settings_digest({}, "4", {"mapreduce.a": "1"})


def test_the_version_counts():
    assert settings_digest({}, "4.0") != settings_digest({}, "4.1")


def test_the_configuration_is_part_of_a_key(spark, numbers, key):
    df = spark.read.parquet(numbers).groupBy("k").count()
    before = key(df)
    spark.conf.set("spark.sql.ansi.enabled", "false")
    try:
        assert key(df).digest != before.digest
    finally:
        spark.conf.unset("spark.sql.ansi.enabled")


@pytest.mark.matrix(4)
@pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES)
def test_an_analysed_query_says_the_same_when_it_is_defined_again(spark, numbers, shape) -> None:
    def facts(frame):
        return ResultKeys(spark.sparkContext).of_query(frame._jdf.queryExecution().analyzed())

    first, second = facts(shape(spark.read.parquet(numbers))), facts(shape(spark.read.parquet(numbers)))
    assert first.digest
    assert first == second
    assert facts(shape(spark.read.parquet(numbers)).selectExpr("*", "1 AS more")).digest != first.digest
    assert facts(shape(spark.read.parquet(numbers)).selectExpr("*", "now() AS at")).digest == ""
    assert facts(shape(spark.read.parquet(numbers)).selectExpr("*", "rand() AS r")).digest == ""
    listed = [one for files in facts(spark.read.parquet(numbers)).files for one in files.files]
    assert [one.rpartition("/")[0] for one in listed] == [f"file:{numbers}"] * 2


@pytest.mark.parametrize(
    "column",
    ["cast('now' AS timestamp)", "to_date('today')", "cast(concat('to', 'day') AS date)", "to_timestamp(' Now ')",
     "unix_timestamp()", "cast('2020-01-01' AS date) > 'yesterday'"],
)  # fmt: skip
def test_an_analysed_query_that_means_a_moment_has_no_digest(spark, numbers, column) -> None:
    frame = spark.read.parquet(numbers).selectExpr(f"{column} AS c")
    keys = ResultKeys(spark.sparkContext)
    assert keys.of_query(frame._jdf.queryExecution().analyzed()).digest == ""
    found = keys.of_answer(frame._jdf.queryExecution())
    assert isinstance(found, NoKey)
    assert "nondeterministic" in found.reason


def test_what_counts_for_an_answer_does_not_count_for_a_query_that_is_asked_for_next(spark, numbers) -> None:
    execution = spark.read.parquet(numbers).selectExpr("rand(1) AS c")._jdf.queryExecution()
    keys = ResultKeys(spark.sparkContext)
    assert not isinstance(keys.of_answer(execution), NoKey)
    assert keys.of_query(execution.analyzed()).digest == ""


def test_queries_that_define_others_count_by_what_these_are(spark, numbers) -> None:
    def digest(condition):
        spark.read.parquet(numbers).createOrReplaceTempView("fm_numbers")
        frame = spark.sql(
            f"WITH a AS (SELECT k FROM fm_numbers WHERE {condition}), b AS (SELECT k FROM a) "
            "SELECT * FROM a JOIN b USING (k)"
        )
        return ResultKeys(spark.sparkContext).of_query(frame._jdf.queryExecution().analyzed()).digest

    try:
        assert digest("m > 1") == digest("m > 1") != digest("m > 2")
        assert digest("m > 1")
    finally:
        spark.catalog.dropTempView("fm_numbers")
