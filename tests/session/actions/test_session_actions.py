"""Actions through the machine: what they return, and that Spark ran each stage once."""

from __future__ import annotations

import contextlib
import io

import pyarrow
import pytest
from py4j import java_gateway
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException

from flinkmagic.deployment.watching import call_work
from flinkmagic.errors.actions import FIRST_USE
from flinkmagic.options import JobOptions
from flinkmagic.session import SessionActions
from flinkmagic.session.actions import session_actions
from flinkmagic.session.actions.kept_frames import KeptFrames
from tests.session.actions.conftest import Session

TWO_SHUFFLES = """
numbers = spark.range(0, 1000, 1, 4).withColumn("k", F.col("id") % 7)
totals = numbers.groupBy("k").agg(F.sum("id").alias("total"), F.max("id").alias("last")).orderBy("k")
"""
"""Four tasks, then some that merge, then the sorted rows."""

RICH = """
rich = spark.createDataFrame(
    [(2, "b", [1, None], {"x": 1.5}, (1, "u"), None), (1, "a", [], {}, (2, "v"), b"\\x00\\xff")],
    "n int not null, s string, l array<int>, m map<string,double>, r struct<i:int,t:string>, raw binary",
).repartition(3).orderBy("n")
rich = rich.withColumn("day", F.expr("DATE '2024-02-29'")).withColumn("at", F.expr("TIMESTAMP '2024-03-31 02:30:00.5'"))
rich = rich.withColumn("money", F.col("n").cast("decimal(12,2)")).withColumn("wait", F.expr("interval 3 hours"))
"""

ACTIONS = (
    "totals.collect()",
    "totals.count()",
    "totals.first()",
    "totals.head()",
    "totals.head(1)",
    "totals.head(3)",
    "totals.take(4)",
    "totals.take(num=100)",
    "totals.tail(2)",
    "totals.isEmpty()",
    "totals.where('k > 99').isEmpty()",
    "totals.where('k > 99').first()",
    "totals.where('k > 99').collect()",
    "totals.where('k > 99').count()",
    "list(totals.toLocalIterator())",
    "list(totals.toLocalIterator(prefetchPartitions=True))",
    "totals.limit(3).collect()",
    "totals.limit(3).count()",
    "totals.select('k', 'k').collect()",
    "totals.approxQuantile(['k', 'last'], [0.0, 0.5], 0.0)",
)


@pytest.mark.matrix(4)
@pytest.mark.parametrize("action", ACTIONS)
def test_an_action_returns_what_plain_pyspark_returns(session, action) -> None:
    session.plain(TWO_SHUFFLES + "None")
    expected, answer = session.plain(action), session.cell(action)
    assert type(answer) is type(expected)
    if isinstance(expected, float):  # Spark adds up in the order in which tasks end
        assert answer == pytest.approx(expected, rel=1e-12)
    else:
        assert (answer, repr(answer)) == (expected, repr(expected))
    assert session.report.is_driven, session.report.reason
    assert session.report.method in action
    assert str(session.report.location) == "cell 3, line 1"


@pytest.mark.parametrize("action", ["totals.corr('k', 'total')", "totals.cov('total', 'last')"])
def test_statistics_are_those_of_plain_spark(session, action) -> None:
    session.plain(TWO_SHUFFLES + "None")
    # Spark adds up what its tasks found in the order in which they end.
    assert session.cell(action) == pytest.approx(session.plain(action), rel=1e-12)
    assert session.report.is_driven


def test_an_answer_stays_if_what_it_has_read_cannot_be_noted(session, monkeypatch, capsys) -> None:
    monkeypatch.setattr(KeptFrames, "note", lambda *_: 1 / 0)
    session.plain(TWO_SHUFFLES + "None")
    assert session.cell("totals.count()") == 7
    assert session.report.is_driven
    assert capsys.readouterr().err == (
        "cell 3, line 1: count() is done, but later actions may compute again what it has read, because flinkmagic "
        "failed (ZeroDivisionError: division by zero). Please report this as a bug.\n"
    )


@pytest.mark.long
def test_rich_types_come_back_as_they_are(session) -> None:
    session.plain(RICH + "None")
    for action in ("rich.collect()", "rich.first()", "rich.take(5)", "rich.tail(1)", "list(rich.toLocalIterator())"):
        assert repr(session.cell(action)) == repr(session.plain(action)), action
        assert session.report.is_driven
    for arrow in ("true", "false"):
        session.spark.conf.set("spark.sql.execution.arrow.pyspark.enabled", arrow)
        try:
            plain = session.plain("rich.drop('wait').toPandas()")
            driven = session.cell("rich.drop('wait').toPandas()")
        finally:
            session.spark.conf.unset("spark.sql.execution.arrow.pyspark.enabled")
        assert list(driven.dtypes) == list(plain.dtypes)
        assert repr(driven.to_dict()) == repr(plain.to_dict())
        assert session.report.is_driven
    table = session.cell("rich.toArrow()")
    assert isinstance(table, pyarrow.Table)
    assert table.equals(session.plain("rich.toArrow()"), check_metadata=True)
    assert session.report.is_driven


@pytest.mark.matrix(3)
@pytest.mark.parametrize(
    "call",
    ["show()", "show(1)", "show(2, truncate=3)", "show(2, False)", "show(7)", "show(n=3, vertical=True)", "show(0)"],
)
def test_show_prints_the_same_text(session, call) -> None:
    session.plain(RICH + TWO_SHUFFLES + "None")
    for frame in ("rich", "totals", "totals.select('k', 'k')", "totals.where('k > 9')"):
        printed = []
        for run in (session.plain, session.cell):
            with contextlib.redirect_stdout(io.StringIO()) as out:
                assert run(f"{frame}.{call}") is None
            printed.append(out.getvalue())
        assert printed[0] == printed[1]
        assert session.report.is_driven, session.report.reason


def test_eager_evaluation_shows_the_same(session) -> None:
    session.plain(TWO_SHUFFLES + "None")
    session.spark.conf.set("spark.sql.repl.eagerEval.enabled", "true")
    session.spark.conf.set("spark.sql.repl.eagerEval.maxNumRows", "3")
    try:
        lines = "again = totals.where('true')\n[repr(again), again._repr_html_(), repr(again)]"
        expected = session.plain(lines)
        assert session.cell(lines) == expected
        assert [report.is_driven for report in session.actions.reports] == [True, True]
        assert "only showing top 3 rows" in expected[0]
    finally:
        session.spark.conf.unset("spark.sql.repl.eagerEval.enabled")
        session.spark.conf.unset("spark.sql.repl.eagerEval.maxNumRows")
    session.actions.reports.clear()
    assert session.cell("repr(totals)") == "DataFrame[k: bigint, total: bigint, last: bigint]"
    assert not session.actions.reports


@pytest.mark.parametrize("action", ["totals.collect()", "totals.toPandas()", "totals.toArrow()", "totals.tail(9)"])
def test_each_stage_runs_once(session, action) -> None:
    session.plain(TWO_SHUFFLES + "None")
    session.cell(action)
    tasks = session.ran.tasks()
    # Reading, sampling for the sort, aggregating, sorting: the rows are few, so each later stage is one task.
    assert len(tasks) == session.report.stages + 1
    assert tasks[-1] == 4
    (job,) = session.report.graph.jobs
    assert sum(tasks) == sum(task.role != "helper" for task in job.tasks()) + 2
    assert session.report.stages == 3


def test_an_unsorted_take_reads_only_the_partitions_that_it_needs(session) -> None:
    session.plain('wide = spark.range(0, 1000, 1, 20).repartitionByRange(20, "id")\nNone')
    rows = session.cell("wide.take(2)")
    assert [row["id"] for row in rows] == [0, 1]
    assert session.report.is_driven
    tasks = session.ran.tasks()
    assert tasks[0] == 1  # the last stage
    assert session.cell("wide.limit(2).count()") == 2


def test_foreach_runs_the_function_once_for_each_row(session) -> None:
    session.plain(TWO_SHUFFLES + "seen = spark.sparkContext.accumulator(0)\nNone")
    session.cell("totals.foreach(lambda row: seen.add(row['k'] + 1))")
    assert session.namespace["seen"].value == sum(range(1, 8))
    assert session.report.is_driven
    session.cell("totals.foreachPartition(lambda rows: seen.add(sum(100 for _ in rows)))")
    assert session.namespace["seen"].value == sum(range(1, 8)) + 700
    assert session.report.is_driven


@pytest.mark.long
def test_what_is_one_stage_runs_as_plain_spark_runs_it(session) -> None:
    session.plain('small = spark.range(10).where("id > 3").selectExpr("id * 2 AS twice")\nNone')
    assert [row["twice"] for row in session.cell("small.take(2)")] == [8, 10]
    assert (session.report.is_driven, session.report.reason) == (False, "it is one stage")
    assert session.cell("spark.sql('SHOW TABLES').where(\"tableName = 'none'\").collect()") == []
    assert not session.report.is_driven
    session.plain("kept = small.groupBy('twice').count().cache()\nkept.count()")
    assert len(session.cell("kept.collect()")) == 6
    assert session.report.reason == "it is one stage"
    session.plain("kept.unpersist()")


def test_a_python_function_runs_once_for_each_row(session) -> None:
    session.plain(
        """
        calls = spark.sparkContext.accumulator(0)
        count = F.udf(lambda value: calls.add(1) or value % 3, "long")
        grouped = spark.range(0, 100, 1, 4).withColumn("k", count("id")).groupBy("k").count().orderBy("k")
        None
        """
    )
    assert [tuple(row) for row in session.cell("grouped.collect()")] == [(0, 34), (1, 33), (2, 33)]
    assert session.namespace["calls"].value == 100
    assert session.cell("grouped.count()") == 3
    assert session.namespace["calls"].value == 200


@pytest.mark.long
def test_a_failing_stage_raises_what_plain_spark_raises(session) -> None:
    session.plain(
        """
        fails = F.udf(lambda value: 1 // (value - value), "long")
        below = spark.range(0, 10, 1, 2).withColumn("k", fails("id")).groupBy("k").count()
        above = spark.range(0, 10, 1, 2).groupBy(F.expr("id % 10 AS id")).count().withColumn("k", fails("id"))
        None
        """
    )
    for frame in ("below", "above"):
        for action in ("collect()", "count()", "show()", "toPandas()"):
            if (frame, action) == ("above", "count()"):  # the function is pruned
                continue
            with pytest.raises(PySparkException) as plain:
                session.plain(f"{frame}.{action}")
            with pytest.raises(PySparkException) as driven:
                session.cell(f"{frame}.{action}")
            assert type(driven.value) is type(plain.value)
            assert "ZeroDivisionError" in str(driven.value)
            assert "cell 3, line 1" in driven.value.__notes__[-1]
            assert session.report.is_driven
            files = [entry.path for entry in driven.traceback]
            assert not [file for file in files if "/flinkmagic/session/" in str(file)]


def test_pyspark_looks_for_its_class_of_an_error_as_often_as_for_a_plain_line(session, tmp_path, monkeypatch) -> None:
    (tmp_path / "broken.parquet").write_text("no parquet")
    session.namespace["broken"] = session.spark.read.schema("id long").parquet(str(tmp_path)).groupBy("id").count()
    looked: list[str] = []
    is_instance_of = java_gateway.is_instance_of

    def noted(gateway, error, name):
        looked.append(name)
        return is_instance_of(gateway, error, name)

    monkeypatch.setattr(java_gateway, "is_instance_of", noted)
    names = []
    for run in (session.plain, session.cell):
        with pytest.raises(Py4JJavaError):
            run("broken.collect()")
        names.append(looked[:])
        looked.clear()
    assert "org.apache.spark.SparkRuntimeException" in names[0]
    assert names[0] == names[1]


def test_refused_arguments_are_refused_by_pyspark(session) -> None:
    session.plain(TWO_SHUFFLES + "None")
    for action in (
        "totals.take('two')",
        "totals.take()",
        "totals.show(True)",
        "totals.take(-1)",
        "totals.show(9, vertical=3)",
    ):
        with pytest.raises(Exception) as plain:  # noqa: PT011 - any that PySpark has
            session.plain(action)
        with pytest.raises(type(plain.value)) as driven:
            session.cell(action)
        assert str(driven.value).splitlines()[0] == str(plain.value).splitlines()[0]


def test_a_failure_of_ours_before_a_stage_ran_is_told_in_one_line(session, monkeypatch, capsys) -> None:
    from flinkmagic.session.actions import session_actions

    def broken(*_):
        raise KeyError("no such operator")

    session.plain(TWO_SHUFFLES + "None")
    monkeypatch.setattr(session_actions, "ActionGraph", broken)
    assert session.cell("totals.count()") == 7
    told = capsys.readouterr().err.splitlines()
    assert len(told) == 1
    assert told[0].startswith("cell 3, line 1: count() ran as plain Spark, because flinkmagic failed (KeyError")
    assert not session.report.is_driven


def test_an_action_that_fails_plainly_after_a_failure_of_ours_is_over(session, monkeypatch) -> None:
    from flinkmagic.session.actions import session_actions

    def broken(*_):
        raise KeyError("no such operator")

    session.plain(TWO_SHUFFLES + "None")
    monkeypatch.setattr(session_actions, "ActionGraph", broken)
    with pytest.raises(PySparkException, match="on purpose"):
        session.cell("totals.select(F.raise_error(F.lit('on purpose'))).collect()")
    assert (session.report.text, session.report.status) == ("collect()", "FAILED")


def test_a_failure_of_ours_after_a_stage_ran_fails_the_action_and_releases_its_plan(session, monkeypatch) -> None:
    from flinkmagic.errors.actions import ActionFailedError
    from flinkmagic.session.actions import session_actions

    def broken(*_):
        raise KeyError("no such plan")

    released = []
    release = session_actions.ActionGraph.release
    session.plain(TWO_SHUFFLES + "None")
    monkeypatch.setattr(session_actions.ActionGraph, "release", lambda graph: released.append(graph) or release(graph))
    monkeypatch.setattr(session_actions, "FinishedQuery", broken)
    with pytest.raises(ActionFailedError, match=r"cell 3, line 1: totals\.count\(\)|cell 3, line 1: count\(\)"):
        session.cell("totals.count()")
    assert len(released) == 1
    assert session.report.is_driven


def test_observed_and_streaming_frames_are_left_to_spark(session) -> None:
    session.plain(
        """
        from pyspark.sql import Observation
        seen = Observation("seen")
        watched = spark.range(0, 9, 1, 2).observe(seen, F.count(F.lit(1)).alias("n")).groupBy().sum("id")
        None
        """
    )
    assert session.cell("watched.collect()")[0][0] == 36
    assert session.namespace["seen"].get == {"n": 9}
    assert "observed" in session.report.reason
    with pytest.raises(PySparkException, match="writeStream"):
        session.cell("spark.readStream.format('rate').load().groupBy('value').count().collect()")


def test_what_depends_on_partitions_is_that_of_plain_spark(session) -> None:
    made = """
        kept = spark.range(0, 20000, 1, 4).groupBy((F.col("id") % 9000).alias("k")).agg(
            F.count("*").alias("n"), F.max(F.expr("repeat(CAST(id AS STRING), 40)")).alias("s"))
        train, test = kept.randomSplit([0.7, 0.3], 7)
        cached = kept.select("k", "n", F.expr("length(s) + PLUS").alias("s")).cache()
        None
    """
    lines = [
        "train.agg(F.count('k'), F.sum('k')).collect()",
        "kept.sample(fraction=0.2, seed=3).agg(F.count('k'), F.sum('k')).collect()",
        "kept.select(F.spark_partition_id().alias('p')).distinct().count()",
        "cached.select(F.spark_partition_id().alias('p')).distinct().count()",
    ]
    session.plain(made.replace("PLUS", "1"))
    plain = [session.plain(line) for line in lines]
    session.cell(made.replace("PLUS", "2"))
    for line in (
        "kept.agg(F.max('s')).collect()",
        "kept.groupBy('s').count().count()",
        "kept.agg(F.sum('n')).collect()",
    ):
        session.cell(line)
    assert [session.cell(line) for line in lines] == plain
    assert "partitions" in session.report.reason


@pytest.mark.parametrize("place", ["F.col('i')", "F.monotonically_increasing_id()"], ids=["index", "natural order"])
def test_numbered_rows_of_pandas_on_spark_are_driven_and_not_left_stored(session, place) -> None:
    session.plain(
        f"""
        numbered = spark.range(0, 40, 1, 4).pandas_api().to_spark(index_col="i")
        counted = numbered.withColumn("place", {place}).groupBy("place").count()
        None
        """
    )
    stored = session.spark.sparkContext._jsc.getPersistentRDDs
    line = "sorted((row['place'] % 5, row['count']) for row in counted.collect())"
    plain, before = session.plain(line), set(stored())
    assert session.cell(line) == plain
    assert session.report.is_driven
    assert set(stored()) <= before  # what nobody refers to any more goes at any time


def test_an_action_is_a_batch_whatever_mode_is_set_for_cells(spark) -> None:
    session = Session(spark, options=JobOptions(retain="session", mode="streaming"))
    assert session.cell("spark.range(40).groupBy(F.expr('id % 41')).count().collect().__len__()") == 40
    assert session.report.is_driven


def test_a_query_that_is_only_defined_is_no_action(session) -> None:
    session.plain(TWO_SHUFFLES + "None")
    lines = "described = totals.describe('k')\nlinked = totals.rdd\ndescribed.where(\"summary = 'max'\").first()['k']"
    assert session.cell(lines) == "6"
    assert [report.method for report in session.actions.reports] == ["first"]
    assert session.report.is_driven


def test_a_background_thread_is_plain(session) -> None:
    session.plain(TWO_SHUFFLES + "import threading\nNone")
    assert session.cell(
        """
            found = []
            thread = threading.Thread(target=lambda: found.append(totals.count()))
            thread.start()
            thread.join()
            found
            """
    ) == [7]
    assert not session.actions.reports


def test_an_action_for_the_first_rows_of_a_source_is_not_planned(session, tmp_path, monkeypatch):
    session.spark.range(9).coalesce(1).write.parquet(str(tmp_path / "rows"))
    session.namespace["rows"] = session.spark.read.parquet(str(tmp_path / "rows"))
    monkeypatch.setattr(session_actions, "ActionGraph", None)
    assert [row.id for row in session.cell("rows.take(2)")] == [0, 1]
    assert session.report.is_one_stage


def test_a_long_job_tells_what_lost_most_of_its_time(session, monkeypatch) -> None:
    monkeypatch.setattr("flinkmagic.deployment.stages.stage_runner.MEASURED_FROM_S", 0.0)
    for threshold in ("NOTABLE_S", "NOTABLE_SHARE"):
        monkeypatch.setattr(f"flinkmagic.session.findings.find.{threshold}", 0.0)
    session.plain("few = spark.range(1000).withColumnRenamed('id', 'x')\nNone")
    query = "spark.range(2000).join(few, F.expr('id % 10 < x')).groupBy().count().collect()"
    assert session.cell(query)[0]["count"] == session.plain(query)[0]["count"]
    graph = session.report.graph
    assert graph.remarks(graph.jobs[-1]) == []
    monkeypatch.setattr("flinkmagic.session.actions.action_graph.LONG_MS", 0.0)
    (told,) = graph.remarks(graph.jobs[-1])
    assert "compares all with all: 2.0 M pairs" in told


class Silent:
    """An `ActionListener` that tells nobody."""

    def __getattr__(self, name: str):
        return lambda *_: None


def test_the_stage_that_an_action_runs_itself_is_the_last_of_its_job(session, monkeypatch) -> None:
    monkeypatch.setattr(call_work, "RECORDED_S", 0.0)
    session.actions = SessionActions(listener=Silent())
    assert len(session.cell(TWO_SHUFFLES + "totals.collect()")) == 7
    graph = session.report.graph
    (job,) = graph.jobs
    *_, last = facts = job._facts().vertices
    assert (last.id, last.kind) == (graph.last_vertex.id, "result")
    assert last.id not in {vertex.id for vertex in job.execution_graph.job_vertices}
    assert {task.state.name for task in last.attempts} == {"FINISHED"}
    assert last.start_ms >= max(vertex.end_ms for vertex in facts[:-1])
    path = job.critical_path()
    assert path.vertex_ids[-1] == last.id
    assert path.forecast is not None
    assert path.elapsed_s == pytest.approx(job.elapsed_ms / 1000)
    snapshot = job.snapshot(closely=True)
    assert last.id in {task.vertex_id for task in snapshot.tasks}
    assert snapshot.costs[last.id].took_ms == pytest.approx(last.end_ms - last.start_ms)
    sort = next(one for one in last.operators if one.kind == "SortExec")
    assert snapshot.measures[last.id].operators[sort.id]


def test_what_a_line_computes_again_and_keeps_is_told_with_its_reason(session, monkeypatch) -> None:
    for threshold in ("NOTABLE_S", "NOTABLE_SHARE"):
        monkeypatch.setattr(f"flinkmagic.session.findings.find.{threshold}", 0.0)
    session.cell(TWO_SHUFFLES + "numbers.groupBy('k').count().collect()")
    assert "not-kept" not in [one.rule for one in session.report.graph.jobs[-1].findings()]
    session.cell("slow = numbers.repartition(3)\nslow.groupBy('k').count().collect()")
    session.cell("slow.groupBy('k').agg(F.sum('id')).collect()")
    (found,) = [one for one in session.report.graph.jobs[-1].findings() if one.rule == "not-kept"]
    assert found.what.endswith(f"was computed again: {FIRST_USE}")
    assert found.cure.startswith("df = df.cache()  # before its first use")
    session.cell("slow.groupBy('k').agg(F.max('id')).collect()")
    assert "not-kept" not in [one.rule for one in session.report.graph.jobs[-1].findings()]


def test_another_query_of_the_same_action_does_not_count_as_a_run_before(session, monkeypatch) -> None:
    for threshold in ("NOTABLE_S", "NOTABLE_SHARE"):
        monkeypatch.setattr(f"flinkmagic.session.findings.find.{threshold}", 0.0)
    session.cell(TWO_SHUFFLES + "totals.collect()")
    session.cell("spark.range(0, 1000, 1, 2).where(F.rand() < 0.5).groupBy(F.col('id') % 3).count().collect()")
    assert "not-kept" not in [one.rule for one in session.report.graph.jobs[-1].findings()]


@pytest.mark.parametrize("action", ["collect()", "show()", "count()", "take(3)", "isEmpty()", "corr('k', 'total')"])
def test_operators_have_the_lines_of_what_an_action_was_called_on(session, action) -> None:
    session.cell(TWO_SHUFFLES + f"totals.{action}")
    (vertex, *_) = session.report.graph.jobs[-1]._facts().vertices
    known = {one.kind: (one.cell, one.line) for one in vertex.operators}
    assert (known["RangeExec"], known["HashAggregateExec"]) == (("cell 3", 1), ("cell 3", 2))
