"""An action that Spark ran by itself, as a job of one line."""

from __future__ import annotations

import pytest
from pyspark.sql import functions as F

from flinkmagic.deployment.watching import call_work
from flinkmagic.deployment.watching.call_work import CallWork
from flinkmagic.display import to_table
from flinkmagic.history.call_run import CallRun
from flinkmagic.session.findings import find as findings


def ran(spark, monkeypatch, call) -> CallRun:
    monkeypatch.setattr(call_work, "RECORDED_S", 0.0)
    work = CallWork(spark.sparkContext)
    with work.entered():
        call()
    assert work.events is not None
    return CallRun(work.events, "collect", "rows.collect()", "cell 3", 2)


def test_it_has_a_graph_whose_operators_are_at_its_line(spark, monkeypatch) -> None:
    rows = spark.range(0, 100, 1, 3).select((F.col("id") * 2).alias("x"))
    run = ran(spark, monkeypatch, rows.collect)
    (vertex,) = run.facts.vertices
    assert [one.operator for one in vertex.operators if one.operator][:2] == ["Range", "Project"]
    assert {(one.cell, one.line, one.code) for one in vertex.operators} == {("cell 3", 2, "rows.collect()")}
    assert (vertex.kind, len(vertex.tasks), vertex.rows_in) == ("result", 3, 100)
    job, stream = run.views()
    assert (job.kind, stream.kind) == ("job", "stream")
    assert "3 finished" in to_table(job, run.snapshot)
    assert run.status == "FINISHED"


def test_it_takes_as_long_as_the_call(spark, monkeypatch) -> None:
    run = ran(spark, monkeypatch, lambda: spark.range(0, 200_000, 1, 2).collect())
    path = run.critical_path()
    assert path is not None
    assert path.elapsed_s == pytest.approx(run.elapsed_ms / 1000)
    # Spark's own execution is over before Python has its rows.
    (execution,) = run.executions
    assert execution.ended_ms is not None
    assert run.ended_ms >= execution.ended_ms


def test_it_tells_what_lost_time_and_what_its_operators_measured(spark, monkeypatch) -> None:
    for threshold in ("NOTABLE_S", "NOTABLE_SHARE"):
        monkeypatch.setattr(findings, threshold, 0.0)
    rows = spark.range(0, 20_000, 1, 2).select(F.udf(lambda x: sum(range(3000 + x)), "long")("id"))
    run = ran(spark, monkeypatch, rows.collect)
    found = {one.rule: one for one in run.findings()}
    assert (found["python-functions"].cell, found["python-functions"].line) == ("cell 3", 2)
    told = run.explained()
    assert told.findings is not None
    assert "python-functions" in [one.rule for one in told.findings.found]
    (measured,) = told.measures.values()
    words = dict(fact for facts in measured.operators.values() for fact in facts)
    assert words["number of output rows"] == "20,000"
    assert "data sent to Python workers" in words


def test_a_cache_that_it_fills_may_be_read_by_later_calls(spark, monkeypatch) -> None:
    for threshold in ("NOTABLE_S", "NOTABLE_SHARE"):
        monkeypatch.setattr(findings, threshold, 0.0)
    rows = spark.range(0, 1000, 1, 2).selectExpr("id * 2 AS x").cache()
    try:
        run = ran(spark, monkeypatch, rows.collect)
        assert "InMemoryTableScan" in [one.operator for vertex in run.facts.vertices for one in vertex.operators]
        assert run.facts.reads_of_dropped_caches == {}
        assert "unread-cache" not in [one.rule for one in run.findings()]
    finally:
        rows.unpersist()
