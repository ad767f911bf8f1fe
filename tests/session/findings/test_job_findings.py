"""Findings of jobs that run: what operators measure, and the line that a fault is at."""

from __future__ import annotations

import gzip
import json

import pytest
from pyspark.sql import Window
from pyspark.sql import functions as F

import flinkmagic
from flinkmagic.amounts import duration
from flinkmagic.deployment.stages import stage_runner
from flinkmagic.errors.actions import OTHER_CODE
from flinkmagic.planning.stage_metrics import StageMetrics
from flinkmagic.session.findings import find as findings


@pytest.fixture(autouse=True)
def short_stages_are_measured(monkeypatch):
    monkeypatch.setattr(stage_runner, "MEASURED_FROM_S", 0.0)


@pytest.fixture
def all_told(monkeypatch):
    """Findings that cost next to nothing are told, too: no test waits for time to be lost."""
    monkeypatch.setattr(findings, "NOTABLE_S", 0.0)
    monkeypatch.setattr(findings, "NOTABLE_SHARE", 0.0)


def operators(job):
    """The operators of a job by their kinds."""
    return {one.kind: one for vertex in job._facts().vertices for one in vertex.operators}


def by_rule(job):
    return {one.rule: one for one in job.findings()}


def test_operators_tell_what_spark_measures_of_them(spark, tmp_path):
    spark.range(0, 1000, 1, 4).selectExpr("id", "id % 10 AS k").write.parquet(str(tmp_path / "rows"))
    names = spark.createDataFrame([(key, str(key)) for key in range(10)], "k long, name string")
    with flinkmagic.capture(spark, name="measured") as program:
        rows = spark.read.parquet(str(tmp_path / "rows"))
        rows.join(F.broadcast(names), "k").groupBy("name").count().write.json(str(tmp_path / "out"))
    job = flinkmagic.compile(program, parallelism=2).run()
    found = operators(job)
    scan = found["FileSourceScanExec"].metrics
    assert (scan["numFiles"], scan["numOutputRows"], scan["format"]) == (4, 1000, "parquet")
    assert scan["paths"] == [f"file:{tmp_path}/rows"]
    assert (scan["splittable"], scan["partitions"]) == (True, "")
    join = found["BroadcastHashJoinExec"]
    assert join.metrics["numOutputRows"] == 1000
    assert (join.code[:9], join.line > 0) == ("rows.join", True)
    sent, mapped, written = job._facts().vertices
    assert (sent.kind, mapped.kind, written.kind) == ("broadcast", "shuffle", "write")
    assert sent.above.metrics["numOutputRows"] == 10
    assert mapped.above.metrics["dataSize"] > 0
    assert mapped.above.line == join.line  # the line whose groupBy asked for the shuffle
    assert written.above.metrics["numOutputRows"] == 10
    job.release()
    assert operators(job)["BroadcastHashJoinExec"].metrics["numOutputRows"] == 1000


def test_operators_of_stages_that_are_over_soon_are_not_asked(spark, monkeypatch):
    monkeypatch.setattr(stage_runner, "MEASURED_FROM_S", 60.0)
    job = flinkmagic.compile({"n": spark.range(0, 100, 1, 2).groupBy().count()}, "short").run()
    assert [one.metrics for one in operators(job).values() if one.metrics] == []
    assert job.findings() == ()


def test_measures_that_cannot_be_read_fail_no_job(spark, monkeypatch, caplog):
    monkeypatch.setattr(StageMetrics, "of", lambda deflated: json.loads("no JSON"))
    job = flinkmagic.compile({"n": spark.range(0, 100, 1, 2).groupBy().count()}, "unread").run()
    assert job.result("n").collect() == [(100,)]
    assert [one.metrics for one in operators(job).values() if one.metrics] == []
    assert "could not be read, so findings do without them" in caplog.text


@pytest.mark.long
def test_shared_rows_and_python_functions_are_measured_where_they_are_computed(spark, tmp_path):
    twice = F.udf(lambda number: 2 * number, "long")
    with flinkmagic.capture(spark, name="shared") as program:
        doubled = spark.range(0, 100, 1, 2).withColumn("d", twice("id"))
        doubled.where("d % 4 = 0").write.parquet(str(tmp_path / "a"))
        doubled.where("d % 4 = 2").write.parquet(str(tmp_path / "b"))
    job = flinkmagic.compile(program).run()
    (functions,) = [one for kind, one in operators(job).items() if "EvalPython" in kind]
    assert functions.metrics["pythonNumRowsReceived"] == 100
    assert [vertex.kind for vertex in job._facts().vertices] == ["boundary", "write", "write"]


@pytest.mark.long
def test_many_small_files_are_told_at_the_lines_that_read_and_write_them(spark, tmp_path, all_told):
    spark.range(0, 400, 1, 1).selectExpr("id", "id % 100 AS k").write.partitionBy("k").parquet(str(tmp_path / "many"))
    with flinkmagic.capture(spark, name="files") as program:
        rows = spark.read.parquet(str(tmp_path / "many"))
        rows.write.partitionBy("k").json(str(tmp_path / "out"))
    job = flinkmagic.compile(program).run()
    found = by_rule(job)
    read, written = found["small-files-read"], found["small-files-written"]
    assert "100 files of" in read.what
    assert (read.code, read.operator) == ('rows = spark.read.parquet(str(tmp_path / "many"))', "Scan parquet")
    assert (written.line, written.code) == (read.line + 1, 'rows.write.partitionBy("k").json(str(tmp_path / "out"))')
    assert "in 100 partitions" in written.what
    assert [line for line in job.report() if written.what in line]


@pytest.mark.long
def test_a_join_that_multiplies_is_told_at_its_line(spark, all_told):
    many = spark.range(0, 20_000, 1, 2).selectExpr("id", "id % 10 AS k")
    repeated = spark.range(0, 1000, 1, 1).selectExpr("id % 10 AS k", "id AS other")
    with flinkmagic.capture(spark, name="multiplied") as program:
        joined = many.join(F.broadcast(repeated), "k")
        counts = joined.groupBy("k").count()  # noqa: F841 - the cell's result
    job = flinkmagic.compile(program).run()
    finding = by_rule(job)["multiplying-join"]
    assert finding.what == "the join makes 2.0 M rows of 20.0 K: keys are repeated on both sides"
    assert finding.code == 'joined = many.join(F.broadcast(repeated), "k")'
    assert finding.cost_s > 0


@pytest.mark.long
def test_a_compressed_file_is_known_not_to_split(spark, tmp_path):
    with gzip.open(tmp_path / "lines.csv.gz", "wt") as file:
        file.write("".join(f"{number}\n" for number in range(1000)))
    lines = spark.read.csv(str(tmp_path / "lines.csv.gz"), schema="number long")
    job = flinkmagic.compile({"n": lines.groupBy("number").count()}, "zipped").run()
    assert operators(job)["FileSourceScanExec"].metrics["splittable"] is False


@pytest.mark.long
def test_what_no_run_can_retain_is_told_from_the_second_run_on(spark, all_told):
    drawn = spark.range(0, 1000, 1, 2).where(F.rand() < 0.5).groupBy((F.col("id") % 3).alias("k")).count()
    graph = flinkmagic.compile({"drawn": drawn}, "random_rows")
    assert "not-kept" not in by_rule(graph.run())
    assert "is computed in every run" in by_rule(graph.run())["not-kept"].what


def test_a_graph_tells_why_it_computes_again_what_it_has_kept(spark, all_told):
    def run(added: int):
        with flinkmagic.capture(spark, name="mended") as program:
            rows = spark.range(0, 1000, 1, 2).select((F.col("id") + added).alias("x")).repartition(3)
            by_x, by_rest = rows.groupBy("x").count(), rows.groupBy((F.col("x") % 3).alias("r")).count()  # noqa: F841
        return flinkmagic.compile(program).run()

    assert "not-kept" not in by_rule(run(1))
    assert "not-kept" not in by_rule(run(1))
    found = by_rule(run(2))["not-kept"]
    assert found.what == f"rows was computed again: {OTHER_CODE}"
    assert run(2).not_used() == {}


def test_the_critical_path_ends_with_the_sink(spark):
    def nap(batches):
        import time

        time.sleep(0.5)  # beside which a slow machine's pauses are short
        yield from batches

    napped = spark.range(0, 1000, 1, 2).mapInArrow(nap, "id long")
    rows = napped.groupBy((F.col("id") % 3).alias("k")).count().mapInArrow(nap, "k long, count long")
    job = flinkmagic.compile({"rows": rows}, "short_path").run()
    path = job.critical_path()
    assert path.vertex_ids == tuple(vertex.id for vertex in job.execution_graph.job_vertices)
    assert 0 < path.path_s <= path.elapsed_s
    assert path.least_s <= path.path_s + 1e-9
    assert path.driver_s < path.elapsed_s
    assert path.forecast.slots == 4
    assert 0 < path.forecast.with_slots_s < 1.3 * path.elapsed_s
    assert abs(path.forecast.error) < 0.3
    assert f"; with 4 slots {duration(1000 * path.forecast.with_slots_s)} (simulated; as it was: " in str(path)
    json.dumps([one.to_dict() for one in job.findings()])


def test_a_cache_that_is_dropped_after_one_read_is_told(spark, tmp_path, all_told):
    rows = spark.range(0, 10_000, 1, 2).selectExpr("id", "id % 7 AS k").cache()
    with flinkmagic.capture(spark, name="cached") as program:
        rows.groupBy("k").count().write.parquet(str(tmp_path / "out"))
    job = flinkmagic.compile(program).run()
    held = operators(job)["InMemoryTableScanExec"].metrics
    assert (held["cachePartitions"], held["cachedPartitions"], held["cachedOnDisk"]) == (2, 2, 0)
    assert held["cachedBytes"] > 0
    assert "unread-cache" not in by_rule(job)  # a later cell may read it
    rows.unpersist(blocking=True)
    assert by_rule(job)["unread-cache"].what.startswith("10.0 K rows (")


def test_rows_that_a_run_keeps_are_no_cache_of_the_user_s(spark, tmp_path, all_told):
    with flinkmagic.capture(spark, name="shared_rows") as program:
        twice = spark.range(0, 10_000, 1, 2).withColumn("d", F.udf(lambda number: 2 * number, "long")("id"))
        twice.where("d % 4 = 0").write.parquet(str(tmp_path / "a"))
        twice.where("d % 4 = 2").write.parquet(str(tmp_path / "b"))
    job = flinkmagic.compile(program).run()
    scans = [one for one in operators(job).values() if "In-memory table twice" in f"{one.operator} {one.text}"]
    assert [(one.metrics["numOutputRows"], "cacheId" in one.metrics) for one in scans] == [(10_000, False)]
    assert job._facts().caches == frozenset()


def test_a_cache_that_two_jobs_read_is_none_for_nothing(spark, all_told):
    rows = spark.range(0, 10_000, 1, 2).selectExpr("id", "id % 7 AS k").cache()
    first, second = (flinkmagic.compile({"n": rows.groupBy(key).count()}, "two").run() for key in ("k", "id"))
    rows.unpersist(blocking=True)
    assert not {"unread-cache", "evicted-cache"} & {*by_rule(first), *by_rule(second)}


def test_partitions_that_a_function_asks_for_are_all_read(spark, tmp_path, all_told):
    spark.range(0, 4000, 1, 1).selectExpr("id", "id % 8 AS part").write.partitionBy("part").parquet(
        str(tmp_path / "in")
    )
    is_third = F.udf(lambda number: number == 3 and number > 2, "boolean")
    rows = spark.read.parquet(str(tmp_path / "in"))
    asked = flinkmagic.compile({"n": rows.where(is_third("part")).where("id < 100").groupBy("part").count()}, "asked")
    finding = by_rule(asked.run())["unfiltered-partitions"]
    assert finding.what.startswith("all 8 partitions by part are read, and a filter leaves ")
    pruned = flinkmagic.compile({"n": rows.where("part = 3 AND id < 100").groupBy("part").count()}, "pruned").run()
    assert operators(pruned)["FileSourceScanExec"].metrics["numPartitions"] == 1
    assert "unfiltered-partitions" not in by_rule(pruned)


def test_an_order_that_a_window_undoes_is_told_at_the_line_that_asks_for_it(spark, tmp_path, all_told):
    rows = spark.range(0, 1000, 1, 4).selectExpr("id * 3 % 1000 AS id", "id % 7 AS k")
    newest = Window.partitionBy("k").orderBy(F.desc("id"))
    with flinkmagic.capture(spark, name="ordered") as program:
        ordered = rows.orderBy("id")
        ordered.withColumn("place", F.row_number().over(newest)).write.parquet(str(tmp_path / "out"))
    finding = by_rule(flinkmagic.compile(program, parallelism=2).run())["needless-sort"]
    assert finding.code == 'ordered = rows.orderBy("id")'
