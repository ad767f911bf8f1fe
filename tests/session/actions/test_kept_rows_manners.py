"""What users count on and nobody names: rows that are kept for later actions change nothing but the time these take."""

from __future__ import annotations

import contextlib
import io
import re
from concurrent.futures import ThreadPoolExecutor

import pytest
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException

from flinkmagic.session import release_retained, retained


@pytest.fixture
def late(session, tmp_path):
    """A DataFrame of whose rows two actions have been called, so that later ones read kept rows."""
    session.namespace["path"] = str(tmp_path / "numbers")
    session.plain("spark.range(0, 100, 1, 2).write.parquet(path)")
    session.plain("late = spark.read.parquet(path).groupBy(F.expr('id % 10 AS k')).agg(F.max('id').alias('top'))\nNone")
    before = [told(session, line) for line in TOLD]
    for number in (2, 3):
        session.cell(f"late.groupBy(F.expr('top % {number}')).count().collect()")
    assert "boundary" in {one.kind for one in retained(session.spark)}
    yield before
    for graph in {one.graph for one in retained(session.spark)}:
        release_retained(session.spark, graph)


TOLD = [
    "late.explain()",
    "late.explain('extended')",
    "print(late.inputFiles(), late.storageLevel, late.is_cached)",
]


def told(session, line):
    """What a line prints, without the numbers that differ each time."""
    with contextlib.redirect_stdout(io.StringIO()) as out:
        session.namespace["answer"] = session.plain(line)
    return re.sub(r"#\d+L?|plan_id=\d+|\[id=#?\d+\]", "#", out.getvalue())


def test_plans_and_files_are_told_as_before(session, late) -> None:
    assert [told(session, line) for line in TOLD] == late
    assert "parquet" in late[0]
    assert "numbers" in late[2]


ACTIONS = {
    "late.collect()": "collect",
    "late.count()": "count",
    "late.take(3)": "collect",
    "late.first()": "collect",
    "late.toPandas()": "collect",
    "late.where('k > 3').show()": "head",
    "late.tail(2)": "tail",
}


def test_a_listener_sees_the_sources_of_what_is_kept(session, late, query_listener) -> None:
    bus = session.spark.sparkContext._jsc.sc().listenerBus()
    for action, name in ACTIONS.items():
        session.cell(action)
        assert session.report.reused > 0, action
        bus.waitUntilEmpty()
        heard = []
        while (each := query_listener.next()) is not None:
            query = query_listener.next()
            if query.sparkSession().equals(session.spark._jsparkSession):
                heard.append((each, query.analyzed().collectLeaves().toString(), query.optimizedPlan().toString()))
        assert name in heard[0][0], action
        for plan in heard[0][1:]:
            assert "parquet" in plan, action  # the files, and no rows of ours
            assert "InMemoryRelation" not in plan, action


def test_rows_without_an_order_are_the_frames(session, late, capsys) -> None:
    rows = {(k, 90 + k) for k in range(10)}
    shown = session.cell("late.limit(4).collect()")
    assert len({tuple(row) for row in shown} & rows) == 4
    assert tuple(session.cell("late.first()")) in rows
    assert len({tuple(row) for row in session.cell("late.take(3)")} & rows) == 3
    session.cell("late.show(2)")
    assert len(re.findall(r"\|\s*(\d)\|\s*9\1\|", capsys.readouterr().out)) == 2


@pytest.mark.long
def test_actions_of_several_threads_at_once(session, late) -> None:
    plain = sorted(map(tuple, session.plain("late.collect()")))
    session.namespace["pool"] = pool = ThreadPoolExecutor(4)
    with pool:
        answers = session.cell(
            """
            made = [pool.submit(late.where(f"k != {number % 3}").collect) for number in range(6)]
            own = late.collect()
            [own, *(one.result() for one in made)]
            """
        )
    assert sorted(map(tuple, answers[0])) == plain
    for number, answer in enumerate(answers[1:]):
        assert sorted(map(tuple, answer)) == [row for row in plain if row[0] != number % 3]


@pytest.mark.long
def test_spark_lists_one_query_for_each_action(session, late) -> None:
    store = session.spark._jsparkSession.sharedState().statusStore()
    bus = session.spark.sparkContext._jsc.sc().listenerBus()
    for action in ("late.count()", "late.collect()", "late.first()"):
        bus.waitUntilEmpty()
        before = store.executionsCount()
        session.cell(action)
        assert session.report.reused > 0
        bus.waitUntilEmpty()
        assert store.executionsCount() == before + 1


NAMED = {
    "late.count()": "count",
    "late.isEmpty()": "isEmpty",
    "late.collect()": "collectToPython",
    "late.first()": "collectToPython",
    "late.tail(2)": "tailToPython",
    "late.toPandas()": None,
    "late.toArrow()": None,
    "list(late.toLocalIterator())": None,
    "late.where('assert_true(top < 95) IS NULL').groupBy('k').count().collect()": "collectToPython failed",
    "late.where('assert_true(top < 95) IS NULL').groupBy('k').count().count()": "count failed",
}


@pytest.mark.long
@pytest.mark.parametrize("line", NAMED)
def test_listeners_know_an_action_by_the_name_that_plain_spark_gives(session, late, query_listener, line) -> None:
    bus, names = session.spark.sparkContext._jsc.sc().listenerBus(), []
    bus.waitUntilEmpty()
    while query_listener.next() is not None:  # of what ran before
        query_listener.next()
    for run in (session.plain, session.cell):
        with contextlib.suppress(PySparkException, Py4JJavaError):
            run(line)
        bus.waitUntilEmpty()
        heard = []
        while (each := query_listener.next()) is not None:
            query_listener.next()
            heard.append(each)
        names.append(heard)
    assert names[0] == names[1]
    assert NAMED[line] in (None, *names[0])


SUMMED = [
    "stepped.agg(F.sum('step'), F.stddev('step'), F.corr('step', 'x')).collect()",
    "stepped.groupBy(F.expr('id % 2 AS odd')).agg(F.sum('step'), F.avg('step')).orderBy('odd').collect()",
]


def test_sums_of_kept_rows_round_as_those_of_partitions_that_spark_merges(session, tmp_path) -> None:
    """A sum of doubles depends on which rows are added up first."""
    settings = {"spark.sql.adaptive.enabled": "true", "spark.sql.shuffle.partitions": "4"}
    before = {key: session.spark.conf.get(key, None) for key in settings}
    session.namespace["path"] = str(tmp_path / "numbers")
    session.plain("""
        from pyspark.sql import Window
        spark.range(0, 6000, 1, 2).selectExpr("id", "id % 6 AS k", "hash(id) % 10007 / 97.3D AS x").write.parquet(path)
        before = F.lag("x").over(Window.partitionBy("k").orderBy("id"))
        stepped = spark.read.parquet(path).withColumn("step", F.col("x") / (before + 1000.7))
        None
    """)
    for key, value in settings.items():
        session.spark.conf.set(key, value)
    try:
        summed = [session.plain(line) for line in SUMMED]
        session.cell("stepped.agg(F.max('step'), F.max('x')).collect()")
        session.cell("stepped.agg(F.min('step'), F.min('x')).collect()")
        for line, expected in zip(SUMMED, summed, strict=True):
            assert session.cell(line) == expected
            assert session.report.reused > 0
    finally:
        for key, value in before.items():
            session.spark.conf.unset(key) if value is None else session.spark.conf.set(key, value)
        for graph in {one.graph for one in retained(session.spark)}:
            release_retained(session.spark, graph)
