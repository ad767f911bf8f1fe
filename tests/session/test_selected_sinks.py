"""A run of some sinks of a graph, and a run in full."""

from __future__ import annotations

import json

import pytest
from pyspark.sql import functions as F

import flinkmagic
from flinkmagic.errors.capturing import AwaitedMetricsError
from flinkmagic.errors.deployment import ResultLeftOutError
from flinkmagic.errors.usage import AmbiguousSinkError, InvalidValueError, UnknownNameError
from flinkmagic.scheduling.job_status import JobStatus
from flinkmagic.session import retained as retained_of
from flinkmagic.session.selected_sinks import sink_words

EXPECTED = {last: sum(range(last, 1000, 10)) for last in range(10)}


def three_sinks(spark, out, name="three", **options):
    """Two sinks over one aggregate, and one that shares nothing with them."""
    with flinkmagic.capture(spark, name=name) as program:
        numbers = spark.range(0, 1000, 1, 2).withColumn("last", F.col("id") % 10)
        totals = numbers.groupBy("last").agg(F.sum("id").alias("total"))
        totals.write.json(str(out / "totals"))
        totals.where("total > 49700").write.parquet(str(out / "high"))
        spark.range(7).write.json(str(out / "apart"))
    return flinkmagic.compile(program, parallelism=2, **options)


def rows(folder):
    return [json.loads(line) for part in folder.glob("part-*.json") for line in part.read_text().splitlines()]


def test_only_the_named_sinks_and_their_ancestors_run(spark, tmp_path) -> None:
    graph = three_sinks(spark, tmp_path)
    job = graph.run(only=["totals"])
    assert job.status is JobStatus.FINISHED
    assert {row["last"]: row["total"] for row in rows(tmp_path / "totals")} == EXPECTED
    assert not (tmp_path / "high").exists()
    assert not (tmp_path / "apart").exists()
    assert [vertex.name for vertex in job.execution_graph.job_vertices if "apart" in vertex.name] == []
    assert [write.name for write in job.finished_writes()] == ["totals"]
    assert [sink.name for sink in job.left_out()] == ["high", "apart"]
    report = "\n".join(job.report())
    assert "1 of 3 sinks: totals" in report
    assert "✓ totals: json" in report
    assert "- not run: high: parquet" in report
    marked = [node.name for node in graph.view("job").nodes if "not run" in node.badges]
    assert len(marked) == len(graph.job_graph.vertices) - len(job.execution_graph.job_vertices)
    assert all("json totals" not in name for name in marked)
    assert "The last run left out high, apart. Run it: %flinkrun three" in graph._repr_mimebundle_()["text/html"]

    rest = graph.run(only=["high", "apart"])
    assert rest.status is JobStatus.FINISHED
    assert len(rest.reused()) > 0  # what it shares with the sink that has run
    assert sorted(row["id"] for row in rows(tmp_path / "apart")) == list(range(7))
    assert spark.read.parquet(str(tmp_path / "high")).count() == sum(total > 49700 for total in EXPECTED.values())
    (left_out,) = [node for node in graph.view("job").nodes if "not run" in node.badges]
    assert "json totals" in left_out.name


def test_a_write_that_a_sink_must_follow_runs_first_unless_it_is_written(spark, tmp_path) -> None:
    target = str(tmp_path / "both")
    with flinkmagic.capture(spark, name="ordered") as program:
        spark.range(3).write.mode("overwrite").json(target)
        spark.range(3, 5).write.mode("append").json(target)
        spark.range(9).write.json(str(tmp_path / "other"))
    graph = flinkmagic.compile(program)
    job = graph.run(only=["both#2"])
    assert sorted(row["id"] for row in rows(tmp_path / "both")) == [0, 1, 2, 3, 4]
    first, second, other = (sink.name for sink in graph.sinks)
    assert f"{first} runs too: {second} must follow it" in "\n".join(job.report())
    assert [sink.name for sink in job.left_out()] == [other]
    again = graph.run(only=["both#2"])
    assert [sink.name for sink in again.left_out()] == [first, other]
    assert sorted(row["id"] for row in rows(tmp_path / "both")) == [0, 1, 2, 3, 3, 4, 4]


def test_a_sink_is_named_by_what_it_is(spark, tmp_path) -> None:
    with flinkmagic.capture(spark, name="named") as program:
        spark.range(3).write.json(str(tmp_path / "a" / "same"))
        spark.range(4).write.json(str(tmp_path / "b" / "same"))
        spark.range(5).write.saveAsTable("named_table")
    graph = flinkmagic.compile(program)
    assert graph.sink_names() == ["same#1", "same#2", "named_table"]
    with pytest.raises(AmbiguousSinkError) as refused:
        graph.run(only=["same"])
    lines = str(refused.value).splitlines()
    assert lines[0] == "'same' fits 2 sinks of named. Name one of them, such as same#1:"
    assert [line.split(":")[0].strip() for line in lines[1:]] == ["same#1", "same#2"]
    assert all("test_selected_sinks.py, line" in line for line in lines[1:])
    with pytest.raises(UnknownNameError, match=r"There are: same#1, same#2, named_table. Did you mean named_table\?"):
        graph.run(only=["named_tabel"])
    with pytest.raises(InvalidValueError, match="one or more names of sinks"):
        graph.run(only=[])
    with pytest.raises(UnknownNameError):
        graph.run(only=["same#3"])
    assert graph.jobs == []
    assert graph.run(only=["b/same", "default.named_table"]).status is JobStatus.FINISHED
    assert not (tmp_path / "a").exists()
    assert len(rows(tmp_path / "b" / "same")) == 4
    assert spark.table("named_table").count() == 5
    spark.sql("DROP TABLE named_table")


def test_results_that_did_not_run_keep_their_definition(spark) -> None:
    names = {}
    with flinkmagic.capture(spark, name="kept", namespace=names) as program:
        names["odd"] = spark.range(10).where("id % 2 = 1").groupBy().count()
        names["even"] = spark.range(10).where("id % 2 = 0").groupBy().count()
    defined = dict(names)
    graph = flinkmagic.compile(program, parallelism=2)
    assert sink_words(graph.sinks) == ["odd", "even"]
    job = graph.run(only=["odd"])
    assert names["odd"] is not defined["odd"]
    assert names["odd"].is_cached
    assert names["even"] is defined["even"]
    assert job.result("odd").collect() == [(5,)]
    with pytest.raises(ResultLeftOutError, match="Run it: %flinkrun kept --only even"):
        job.result("even")
    graph.run(only=["even"])
    assert names["odd"] is defined["odd"]
    assert names["even"].collect() == [(5,)]
    assert names["even"].is_cached


def test_metrics_of_a_write_that_did_not_run_are_not_waited_for(spark, tmp_path) -> None:
    from pyspark.sql import Observation

    seen = Observation("seen")
    with flinkmagic.capture(spark, name="observing") as program:
        spark.range(3).observe(seen, F.count("*").alias("rows")).write.json(str(tmp_path / "observed"))
        spark.range(4).write.json(str(tmp_path / "plain"))
    graph = flinkmagic.compile(program)
    graph.run(only=["plain"])
    with pytest.raises(AwaitedMetricsError):
        seen.get  # noqa: B018
    graph.run(only=["observed"])
    assert seen.get == {"rows": 3}


def test_a_run_in_full_takes_nothing_up_and_leaves_what_others_retain(spark, tmp_path) -> None:
    other = three_sinks(spark, tmp_path / "other", name="other")
    other.run()
    graph = three_sinks(spark, tmp_path / "own", name="full")
    graph.run()
    retained = {one.key for one in retained_of(spark) if one.graph == "other"}
    with flinkmagic.capture(spark, name="full") as program:
        numbers = spark.range(0, 1000, 1, 2).withColumn("last", F.col("id") % 10)
        numbers.groupBy("last").agg(F.sum("id").alias("total")).write.json(str(tmp_path / "again"))
    again = flinkmagic.compile(program, parallelism=2)
    full = again.run(full=True)
    assert full.status is JobStatus.FINISHED
    assert (full.reused(), full.snapshot().note) == ([], "")
    assert {task.vertex_id for task in full.tasks()} == set(again.job_graph.vertices)
    assert {row["last"]: row["total"] for row in rows(tmp_path / "again")} == EXPECTED
    assert retained
    assert {one.key for one in retained_of(spark) if one.graph == "other"} == retained
