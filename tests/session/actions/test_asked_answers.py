"""Answers that are given again: only where plain Spark could give them, and each time as an object of its own."""

from __future__ import annotations

import importlib
import os
import signal
import sys
import time

import pytest
from py4j.protocol import Py4JJavaError

from flinkmagic.jvm.contexts import kept_for_context
from flinkmagic.options import JobOptions
from flinkmagic.reuse import retained_answers
from flinkmagic.reuse.result_keys import ResultKeys
from flinkmagic.session import SessionActions, release_retained, retained
from flinkmagic.session.actions import asked_answers

NUMBERS = "df = spark.read.parquet(path)\n"
GROUPS = (
    NUMBERS + "df = df.groupBy(F.expr('id % 3 AS k')).agg(F.expr('sum(id) AS total'), F.max('name').alias('name'))\n"
)


@pytest.fixture
def files(answering, tmp_path):
    answering.namespace["path"] = str(tmp_path / "numbers")
    answering.plain("spark.range(0, 20, 1, 2).selectExpr('id', 'string(id) AS name').write.parquet(path)")
    return tmp_path / "numbers"


def is_answered(session):
    return session.report.kept_at > 0


ACTIONS = (
    "df.count()",
    "df.collect()",
    "df.take(2)",
    "df.head()",
    "df.head(2)",
    "df.first()",
    "df.tail(1)",
    "df.isEmpty()",
    "df.toArrow()",
    "df.toPandas().to_dict()",
    "df.corr('k', 'total')",
    "df.cov('k', 'total')",
    "df.approxQuantile('total', [0.5], 0.0)",
    "df.describe('total').collect()",
)


def test_what_was_answered_is_answered_again_by_a_chain_that_is_typed_again(answering, files) -> None:
    actions = [one for one in ACTIONS if "toArrow" not in one or hasattr(answering.spark.range(1), "toArrow")]
    for action in actions:
        first = answering.cell(GROUPS + action)
        assert not is_answered(answering), action
        answering.plain(GROUPS + "None")
        again = answering.cell(action)
        assert is_answered(answering), action
        assert answering.ran.tasks() == []
        assert answering.report.saved_seconds > 0
        assert (again, type(again)) == (first, type(first))
    assert answering.cell("df.count()") == answering.plain("df.count()") == 3
    assert sorted(answering.cell("df.collect()")) == sorted(answering.plain("df.collect()"))


def test_no_answer_is_given_again_once_a_broadcast_variable_of_its_function_is_destroyed(answering) -> None:
    answering.plain(
        """
        added = spark.sparkContext.broadcast(5)
        df = spark.range(9).select(F.udf(lambda number: number + added.value, "long")("id").alias("n")).distinct()
        None
        """
    )
    assert [answering.cell("df.count()") for _ in range(2)] == [9, 9]
    assert is_answered(answering)
    answering.plain("added.destroy()")
    with pytest.raises(Py4JJavaError, match="destroyed"):
        answering.cell("df.count()")


def test_one_stage_is_not_read_again_either(answering, files) -> None:
    assert answering.cell(NUMBERS + "df.where('id > 17').collect()") == [(18, "18"), (19, "19")]
    assert answering.report.is_one_stage
    assert answering.cell(NUMBERS + "df.where('id > 17').collect()") == [(18, "18"), (19, "19")]
    assert is_answered(answering)


@pytest.mark.long
def test_what_is_shown_is_printed_again(answering, files, capsys) -> None:
    for arguments in ("", "2", "3, False", "2, 1, True", "n=1, truncate=False"):
        answering.plain(GROUPS + f"df.orderBy('k').show({arguments})")
        plain = capsys.readouterr().out
        for _ in range(2):
            assert answering.cell(GROUPS + f"df.orderBy('k').show({arguments})") is None
            assert capsys.readouterr().out == plain
        assert is_answered(answering)


def test_frames_are_equal_and_separate(answering, files) -> None:
    made = (
        NUMBERS + "df = df.selectExpr('id', 'name', 'timestamp_seconds(id) AS at', 'array(id) AS a', 'id / 2 AS h')\n"
    )
    plain = answering.plain(made + "df.toPandas()")
    frames = [answering.cell(made + "df.toPandas()") for _ in range(3)]
    assert is_answered(answering)
    frames[1].loc[0, "id"] = 77
    frames[1]["a"][1][0] = 78
    last = answering.cell(made + "df.toPandas()")
    for frame in (frames[0], frames[2], last):
        assert list(frame.dtypes) == list(plain.dtypes)
        assert frame.astype(str).equals(plain.astype(str))
    lists = [answering.cell(GROUPS + "df.collect()") for _ in range(2)]
    lists[0].clear()
    assert len(answering.cell(GROUPS + "df.collect()")) == len(lists[1]) == 3


def test_a_view_is_read_by_several_texts(answering, files) -> None:
    view = NUMBERS + "df.createOrReplaceTempView('asked')\n"
    text = "spark.sql('WITH t AS (SELECT id % 3 AS k FROM asked) SELECT k, count(*) AS n FROM t GROUP BY k').collect()"
    answers = [sorted(answering.cell(view + text)) for _ in range(2)]
    assert answers == [[(0, 7), (1, 7), (2, 6)]] * 2
    assert is_answered(answering)
    other = text.replace("id % 3", "id % 2")
    assert sorted(answering.cell(view + other)) == [(0, 10), (1, 10)]
    assert not is_answered(answering)


@pytest.mark.matrix(3)
@pytest.mark.parametrize(
    "made",
    [
        "df = spark.createDataFrame([(1, 'a'), (2, 'b')], ['n', 's'])",
        "df = spark.createDataFrame([(1, 'a')], 'n int, s string')",
        "df = spark.read.csv(csv, header=True, inferSchema=True)",
        "df = spark.read.json(json)",
        "df = spark.read.parquet(path).withColumn('v', F.udf(lambda id: id * factor, 'long')('id'))",
        "df = spark.read.parquet(path).groupBy('name').agg(F.collect_list('id'), F.first('id'))",
        "df = spark.read.parquet(path).sample(False, 0.5, 7).withColumn('r', F.rand(3))",
        "df = spark.read.parquet(path).selectExpr('id', 'rank() OVER (ORDER BY name) AS r')",
        "df = spark.read.parquet(path).groupBy('name').pivot('id', [1, 2]).count()",
        "df = spark.sparkContext.parallelize([1, 2]).map(lambda n: (n * factor,)).toDF(['n'])",
    ],
)
def test_common_queries_have_keys(answering, files, tmp_path, made) -> None:
    answering.namespace |= {"csv": str(tmp_path / "csv"), "json": str(tmp_path / "json"), "factor": 2}
    if "csv" in made:
        answering.plain("spark.read.parquet(path).write.option('header', True).csv(csv)")
    if "json" in made:
        answering.plain("spark.read.parquet(path).write.json(json)")
    first = answering.cell(made + "\ndf.collect()")
    assert answering.cell(made + "\ndf.collect()") == first
    assert is_answered(answering)


# -- what changes ----------------------------------------------------------------------------------------


def _append(session, files):
    session.plain(
        "spark.range(100, 103, 1, 1).selectExpr('id', 'string(id) AS name').write.mode('append').parquet(path)"
    )


def _rewrite_with_the_same_size(session, files):
    file = next(files.glob("part-*.parquet"))
    held = file.stat()
    file.write_bytes(file.read_bytes())
    os.utime(file, ns=(held.st_atime_ns, held.st_mtime_ns + 2_000_000_000))


def _in_another_table(session, files):
    session.plain(
        "spark.range(3).selectExpr('id', 'string(id) AS name').write.mode('overwrite').saveAsTable('asked_t')"
    )


def _name(name, value):
    return lambda session, files: session.namespace.update({name: value})


def _conf(name, value):
    return lambda session, files: session.spark.conf.set(name, value)


def _nothing(session, files):
    pass


UDF = NUMBERS + "def changed(id):\n    return id * factor\ndf = df.select(F.udf(changed, 'long')('id').alias('v'))\n"
CHANGES = {
    "appended": (NUMBERS, NUMBERS, _append),
    "rewritten": (NUMBERS, NUMBERS, _rewrite_with_the_same_size),
    "function": (UDF, UDF.replace("id * factor", "id + factor"), _nothing),
    "closure": (UDF, UDF, _name("factor", 5)),
    "setting": (
        NUMBERS + "df = df.select(F.expr('try_cast(name AS int)').alias('n'))\n",
        NUMBERS + "df = df.select(F.expr('try_cast(name AS int)').alias('n'))\n",
        _conf("spark.sql.ansi.enabled", "false"),
    ),
    "zone": (
        NUMBERS + "df = df.selectExpr('hour(timestamp_seconds(id * 3600)) AS h')\n",
        NUMBERS + "df = df.selectExpr('hour(timestamp_seconds(id * 3600)) AS h')\n",
        _conf("spark.sql.session.timeZone", "Asia/Tokyo"),
    ),
    "schema": (NUMBERS, NUMBERS.replace("read.", "read.schema('id long, name string, more int')."), _nothing),
    "option": (
        "df = spark.read.option('nullValue', '').csv(csv)\n",
        "df = spark.read.option('nullValue', '7').csv(csv)\n",
        _nothing,
    ),
    "order": (NUMBERS + "df = df.select('id', 'name')\n", NUMBERS + "df = df.select('name', 'id')\n", _nothing),
    "name": (NUMBERS + "df = df.select('id')\n", NUMBERS + "df = df.selectExpr('id AS n')\n", _nothing),
    "literal": (NUMBERS + "df = df.where('id > 3')\n", NUMBERS + "df = df.where('id > 4')\n", _nothing),
    "view": (
        NUMBERS + "df.createOrReplaceTempView('asked')\ndf = spark.sql('SELECT id FROM asked')\n",
        NUMBERS + "df.where('id > 9').createOrReplaceTempView('asked')\ndf = spark.sql('SELECT id FROM asked')\n",
        _nothing,
    ),
    "table": ("df = spark.table('asked_t')\n", "df = spark.table('asked_t')\n", _in_another_table),
    "local rows": (
        "df = spark.createDataFrame([(1, 'a')], ['n', 's'])\n",
        "df = spark.createDataFrame([(1, 'b')], ['n', 's'])\n",
        _nothing,
    ),
    "types": (
        "df = spark.createDataFrame([(1, 'a')], 'n int, s string')\n",
        "df = spark.createDataFrame([(1, 'a')], 'n long, s string')\n",
        _nothing,
    ),
    "definition in the query": (
        NUMBERS + "df.createOrReplaceTempView('asked')\n"
        "df = spark.sql('WITH a AS (SELECT id FROM asked WHERE id < 5) SELECT * FROM a')\n",
        NUMBERS + "df.createOrReplaceTempView('asked')\n"
        "df = spark.sql('WITH a AS (SELECT id FROM asked WHERE id < 6) SELECT * FROM a')\n",
        _nothing,
    ),
}  # fmt: skip


@pytest.mark.matrix(4)
@pytest.mark.parametrize("change", CHANGES)
def test_what_has_changed_is_computed(spark, answering, files, tmp_path, change) -> None:
    before, after, happens = CHANGES[change]
    answering.namespace |= {"factor": 2, "csv": str(tmp_path / "csv")}
    if "csv" in before:
        answering.plain("spark.read.parquet(path).write.csv(csv)")
    if "asked_t" in before:
        answering.plain("spark.read.parquet(path).write.mode('overwrite').saveAsTable('asked_t')")
    try:
        was = [answering.cell(before + "(df.collect(), df.schema)") for _ in range(2)][1]
        assert is_answered(answering)
        happens(answering, files)
        now = answering.cell(after + "(df.collect(), df.schema)")
        assert not is_answered(answering)
        assert now == answering.plain(after + "(df.collect(), df.schema)")
        assert (now != was) == (change not in ("rewritten", "setting"))
    finally:
        spark.conf.unset("spark.sql.ansi.enabled")
        spark.conf.unset("spark.sql.session.timeZone")
        spark.sql("DROP TABLE IF EXISTS asked_t")
        spark.catalog.dropTempView("asked")


def test_a_module_that_was_edited_is_another_one(answering, files, tmp_path, monkeypatch) -> None:
    module = tmp_path / "fm_asked_helper.py"
    module.write_text("def changed(value):\n    return value * 2\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    definition = (
        NUMBERS + "import fm_asked_helper\ndf = df.select(F.udf(lambda n: fm_asked_helper.changed(n), 'long')('id'))\n"
    )
    answering.spark.sparkContext.addPyFile(str(module))
    for _ in range(2):
        answering.cell(definition + "df.collect()")
    assert is_answered(answering)
    module.write_text("def changed(value):\n    return value * 31\n")
    importlib.reload(sys.modules["fm_asked_helper"])
    answering.cell(definition + "df.collect()")
    assert not is_answered(answering)
    del sys.modules["fm_asked_helper"]


def test_a_table_of_the_same_name_in_another_database_is_another_one(spark, answering) -> None:
    spark.sql("CREATE DATABASE IF NOT EXISTS asked_other")
    try:
        for place, rows in (("default", 3), ("asked_other", 4)):
            spark.range(rows).write.mode("overwrite").saveAsTable(f"{place}.asked_t")
        assert [answering.cell("spark.table('asked_t').count()") for _ in range(2)] == [3, 3]
        assert is_answered(answering)
        spark.catalog.setCurrentDatabase("asked_other")
        assert answering.cell("spark.table('asked_t').count()") == 4
    finally:
        spark.catalog.setCurrentDatabase("default")
        spark.sql("DROP TABLE IF EXISTS asked_t")
        spark.sql("DROP DATABASE IF EXISTS asked_other CASCADE")


def test_a_frame_that_has_listed_its_files_answers_what_it_would_read(answering, files) -> None:
    answering.plain(NUMBERS + "None")
    assert [answering.cell("df.count()") for _ in range(2)] == [20, 20]
    _append(answering, files)
    assert answering.cell("df.count()") == answering.plain("df.count()") == 20
    assert answering.cell(NUMBERS + "df.count()") == 23


def test_moments_of_python_s_local_time_follow_it(answering, files, monkeypatch) -> None:
    made = NUMBERS + "df = df.where('id = 3').selectExpr('timestamp_seconds(id * 86400) AS at')\n"
    try:
        for _ in range(2):
            answering.cell(made + "df.first()")
        assert is_answered(answering)
        monkeypatch.setenv("TZ", "Asia/Tokyo")
        time.tzset()
        assert answering.cell(made + "df.first()") == answering.plain(made + "df.first()")
        assert not is_answered(answering)
    finally:
        monkeypatch.undo()
        time.tzset()


# -- what is always computed -----------------------------------------------------------------------------


@pytest.mark.matrix(4)
@pytest.mark.parametrize(
    "made",
    [
        NUMBERS + "df = df.select(F.current_timestamp())",
        NUMBERS + "df = df.select(F.current_date(), F.unix_timestamp())",
        NUMBERS + "df = df.where(\"timestamp'2020-01-01' < cast('now' AS timestamp)\")",
        NUMBERS + "df = df.select(F.to_date(F.lit('today')))",
        NUMBERS + "df = df.select(F.expr(\"cast(concat('to', 'day') AS date)\"))",
        NUMBERS + "df = df.select(F.expr('uuid()'))",
        NUMBERS + "df = df.select(F.rand())",
        NUMBERS + "df = df.select(F.udf(lambda id: id, 'long').asNondeterministic()('id'))",
        NUMBERS + "import random\ndf = df.select(F.udf(lambda id: random.random(), 'double')('id'))",
        NUMBERS + "df = df.select(F.udf(lambda id: counted.add(1), 'string')('id'))",
        NUMBERS + "df = df.observe('asked', F.count('*'))",
        "df = spark.sql('SHOW DATABASES')",
        "df = spark.sparkContext.textFile(lines).map(lambda line: (line,)).toDF(['line'])",
    ],
)
def test_what_may_be_another_answer_is_computed(answering, files, tmp_path, made) -> None:
    (tmp_path / "lines.txt").write_text("1\n2\n")
    answering.namespace |= {
        "lines": str(tmp_path / "lines.txt"),
        "counted": answering.spark.sparkContext.accumulator(0),
    }
    for _ in range(3):
        answering.cell(made + "\ndf.collect()")
        assert answering.report.kept_at == 0


def test_an_action_for_its_effects_has_them_each_time(answering, files) -> None:
    counted = answering.namespace["counted"] = answering.spark.sparkContext.accumulator(0)
    for times in (1, 2):
        answering.cell(NUMBERS + "df.foreach(lambda row: counted.add(1))")
        assert counted.value == 20 * times


LISTENER = """
public class Follows implements org.apache.spark.sql.util.QueryExecutionListener {
    public int heard = 0;

    public void onSuccess(String name, org.apache.spark.sql.execution.QueryExecution query, long nanos) {
        heard++;
    }

    public void onFailure(String name, org.apache.spark.sql.execution.QueryExecution query, Exception error) {
    }
}
"""


def test_a_query_listener_hears_of_each_query(spark, answering, files) -> None:
    compiler = spark._jvm.org.codehaus.janino.SimpleCompiler()
    compiler.setParentClassLoader(spark._jvm.org.apache.spark.util.Utils.getContextOrSparkClassLoader())
    compiler.cook(LISTENER)
    listener = compiler.getClassLoader().loadClass("Follows").newInstance()
    for _ in range(2):
        answering.cell(GROUPS + "df.count()")
    assert is_answered(answering)
    manager = spark._jsparkSession.listenerManager()
    manager.register(listener)
    try:
        for _ in range(2):
            answering.cell(GROUPS + "df.count()")
            assert not is_answered(answering)
    finally:
        manager.unregister(listener)
    answering.cell(GROUPS + "df.count()")
    assert is_answered(answering)


def test_what_raises_raises_each_time(answering, files) -> None:
    failing = NUMBERS + "df.select(F.expr('raise_error(name)')).collect()"
    for _ in range(2):
        with pytest.raises(Exception, match=r"USER_RAISED_EXCEPTION|java\.lang\.RuntimeException"):
            answering.cell(failing)


@pytest.mark.long
def test_counting_fills_a_cache(spark, nothing_cached, answering, files) -> None:
    cached = GROUPS + "df = df.cache()\ndf.count()"
    storage = spark.sparkContext._jsc.sc().getRDDStorageInfo
    for _ in range(2):
        assert answering.cell(GROUPS + "df.count()") == 3
    assert is_answered(answering)
    for _ in range(2):
        assert answering.cell(cached) == 3
        assert not is_answered(answering)
        assert sum(info.numCachedPartitions() for info in storage()) > 0
        answering.plain("df.unpersist(blocking=True)")


def test_a_cache_of_the_user_is_read_as_plain_spark_reads_it(nothing_cached, answering, files) -> None:
    answering.cell(NUMBERS + "cached = df.cache()\ncached.count()")
    try:
        _append(answering, files)
        # Spark takes the new DataFrame for the cached one.
        plain = answering.plain(NUMBERS + "df.count()")
        assert [answering.cell(NUMBERS + "df.count()") for _ in range(2)] == [plain, plain]
    finally:
        answering.plain("cached.unpersist(blocking=True)")
    assert answering.cell(NUMBERS + "df.count()") == answering.plain(NUMBERS + "df.count()") == 23
    _append(answering, files)
    assert answering.cell(NUMBERS + "df.count()") == 26


@pytest.mark.long
def test_what_reads_a_full_cache_is_answered(nothing_cached, answering, files) -> None:
    made = GROUPS + "df = df.cache()\n"
    answering.cell(made + "df.count()")
    try:
        answers = [answering.cell(made + "df.agg(F.sum('total')).collect()") for _ in range(2)]
        assert answers == [[(190,)]] * 2
        assert is_answered(answering)
    finally:
        answering.plain("df.unpersist(blocking=True)")


def test_a_failed_look_up_is_told_once_and_the_action_runs(answering, files, monkeypatch, capsys) -> None:
    monkeypatch.setattr(asked_answers, "_told", kept_for_context(lambda _: []))
    answering.cell(GROUPS + "df.count()")

    def fails(keys, key):
        raise OSError("the folder\ncannot be listed")

    monkeypatch.setattr(retained_answers.RetainedAnswers, "find", fails)
    for _ in range(2):
        assert answering.cell(GROUPS + "df.count()") == 3
        assert not is_answered(answering)
    assert capsys.readouterr().err == (
        "cell 3, line 3: count() neither uses nor adds to the known answers, because flinkmagic failed (OSError: the "
        "folder). The same may hold for later actions; this is said once. Please report this as a bug.\n"
    )


def test_a_look_up_that_fails_with_its_action_is_not_told(answering, files, monkeypatch, capsys) -> None:
    monkeypatch.setattr(asked_answers, "_told", kept_for_context(lambda _: []))
    monkeypatch.setattr(ResultKeys, "of_answer", lambda *_: 1 / 0)
    with pytest.raises(Exception, match=r"USER_RAISED_EXCEPTION|java\.lang\.RuntimeException"):
        answering.cell(NUMBERS + "df.select(F.expr('raise_error(name)')).collect()")
    assert capsys.readouterr().err == ""


def test_an_alarm_that_rings_while_an_answer_is_kept_is_raised(answering, monkeypatch) -> None:
    def rings(number, frame):
        raise TimeoutError("rang")

    before = signal.signal(signal.SIGALRM, rings)
    monkeypatch.setattr(retained_answers, "packed", lambda answer: signal.raise_signal(signal.SIGALRM))
    try:
        with pytest.raises(TimeoutError, match="rang"):
            answering.cell("spark.range(3).count()")
    finally:
        signal.signal(signal.SIGALRM, before)


# -- what is kept ----------------------------------------------------------------------------------------


def test_a_large_answer_is_computed_again(answering, monkeypatch) -> None:
    monkeypatch.setattr(retained_answers, "LARGEST", 4000)
    for _ in range(2):
        assert len(answering.cell("spark.range(100).collect()")) == 100
        assert not is_answered(answering)
    for _ in range(2):
        assert len(answering.cell("spark.range(10).collect()")) == 10
    assert is_answered(answering)


def test_answers_are_listed_and_released(spark, answering, files) -> None:
    for action in ("df.count()", "df.first()"):
        for _ in range(2):
            answering.cell(GROUPS + action)
    answers = [one for one in retained(spark) if one.kind == "answer"]
    assert [one.what for one in answers] == ["first()", "count()"]
    assert [one.graph for one in answers] == ["answers"] * 2
    assert [one.name for one in release_retained(spark, answers[0].name)] == [answers[0].name]
    answering.cell(GROUPS + "df.count()")
    assert is_answered(answering)
    answering.cell(GROUPS + "df.first()")
    assert not is_answered(answering)
    release_retained(spark, "all")
    assert retained(spark) == []
    answering.cell(GROUPS + "df.count()")
    assert not is_answered(answering)


def test_nothing_is_answered_again_if_nothing_is_to_be_kept(spark, answering, files) -> None:
    answering.actions = SessionActions(JobOptions(retain="none"))
    for _ in range(2):
        assert answering.cell(GROUPS + "df.count()") == 3
        assert not is_answered(answering)
    assert retained(spark) == []
