"""Programs and DataFrames to planned jobs: parallelism, sinks, labels, order, what is refused, what is left alone."""

from __future__ import annotations

import inspect
import os
import sys
import threading

import pytest
from pyspark.sql import functions as F

from flinkmagic.capturing.capture import capture
from flinkmagic.capturing.session_snapshot import read_conf
from flinkmagic.errors.capturing import NoResultError, StreamingFrameError
from flinkmagic.errors.usage import NotAProgramError
from flinkmagic.options import JobOptions
from flinkmagic.planning import plan
from flinkmagic.planning.clones import SessionClones
from flinkmagic.planning.stage_handles import WriteStageHandle


def nodes(job):
    return list(job.environment.get_stream_graph().nodes.values())


def words(job):
    """What the reader of the graph sees of each operator: the user's call, its line's code, Spark's operator."""
    return [(node.metadata.get("call"), node.metadata["operator"]) for node in nodes(job)]


@pytest.fixture
def delays(spark, tables, tmp_path):
    """The program of the project's tutorial, on the small tables."""
    out = str(tmp_path)
    with capture(spark, name="delays") as program:
        flights = spark.read.parquet(f"{tables.folder}/flights")
        carriers = spark.read.parquet(f"{tables.folder}/carriers")
        late = flights.where("delay > 15").join(carriers, "carrier")
        by_hour = late.groupBy("hour").agg(F.avg("delay").alias("delay"))
        by_line = late.groupBy("name").count().orderBy(F.desc("count"))
        by_hour.write.mode("overwrite").parquet(out + "/by_hour")
        by_line.write.mode("overwrite").csv(out + "/by_line")
    return program


def test_a_program_of_two_writes(delays, spark, tmp_path, status, runner, compiled):
    jobs_before = status.jobs()
    job = plan(delays, JobOptions(parallelism=3, slots=2))
    assert status.jobs() == jobs_before
    assert (job.name, job.parallelism, job.slots, job.control_edges) == ("delays", 3, 2, {})
    assert [(sink.name, sink.kind, sink.variable, sink.facts) for sink in job.sinks] == [
        ("by_hour", "write", "by_hour", {"format": "parquet", "mode": "overwrite"}),
        ("by_line", "write", "by_line", {"format": "csv", "mode": "overwrite"}),
    ]
    assert [sink.target for sink in job.sinks] == [f"file:{tmp_path}/by_hour", f"file:{tmp_path}/by_line"]
    assert [sink.location.code for sink in job.sinks] == [
        'by_hour.write.mode("overwrite").parquet(out + "/by_hour")',
        'by_line.write.mode("overwrite").csv(out + "/by_line")',
    ]
    graph = compiled(job)
    assert [vertex.name for vertex in graph.vertices_in_topological_order()] == [
        "Source: parquet carriers -> ColumnarToRow -> Filter",
        "Source: parquet carriers -> ColumnarToRow -> Filter",
        "BroadcastHashJoin [Source: parquet flights -> ColumnarToRow -> Filter] -> Project -> HashAggregate",
        "HashAggregate -> Sink: parquet by_hour",
        "BroadcastHashJoin [Source: parquet flights -> ColumnarToRow -> Filter -> Project] -> Project -> HashAggregate",
        "HashAggregate",
        "Sort -> Sink: csv by_line",
    ]
    assert not os.listdir(tmp_path)
    runner.run(job)
    flights, carriers = delays.variables["flights"], delays.variables["carriers"]
    late = flights.where("delay > 15").join(carriers, "carrier")
    written = spark.read.parquet(f"{tmp_path}/by_hour")
    assert sorted(written.collect()) == sorted(late.groupBy("hour").agg(F.avg("delay").alias("delay")).collect())
    lines = spark.read.csv(f"{tmp_path}/by_line", schema="name string, count long").collect()
    assert sorted(lines) == sorted(late.groupBy("name").count().collect())
    assert os.path.exists(f"{tmp_path}/by_hour/_SUCCESS")


def test_operators_bear_the_calls_that_asked_for_them(delays):
    agg, count = 'groupBy("hour").agg(F.avg("delay").alias("delay"))', 'groupBy("name").count()'
    flights, carriers = 'read.parquet(f"{tables.folder}/flights")', 'read.parquet(f"{tables.folder}/carriers")'
    where, join = 'where("delay > 15")', 'join(carriers, "carrier")'
    job = plan(delays, JobOptions(parallelism=3))
    assert words(job) == [
        (flights, "Scan parquet"),
        (flights, "ColumnarToRow"),
        (where, "Filter"),
        (carriers, "Scan parquet"),
        (carriers, "ColumnarToRow"),
        (carriers, "Filter"),
        (join, "BroadcastHashJoin"),
        (join, "Project"),
        (agg, "HashAggregate"),
        (agg, "HashAggregate"),
        ('write.mode("overwrite").parquet(out + "/by_hour")', "Execute InsertIntoHadoopFsRelationCommand"),
        (flights, "Scan parquet"),
        (flights, "ColumnarToRow"),
        (where, "Filter"),
        (where, "Project"),
        (carriers, "Scan parquet"),
        (carriers, "ColumnarToRow"),
        (carriers, "Filter"),
        (join, "BroadcastHashJoin"),
        (join, "Project"),
        (count, "HashAggregate"),
        (count, "HashAggregate"),
        ('orderBy(F.desc("count"))', "Sort"),
        ('write.mode("overwrite").csv(out + "/by_line")', "Execute InsertIntoHadoopFsRelationCommand"),
    ]
    aggregate = nodes(job)[8]
    code = 'by_hour = late.groupBy("hour").agg(F.avg("delay").alias("delay"))'
    line = delays.lineage.calls[4].location.line
    assert aggregate.description == f"{agg} (test_planner.py, line {line}): HashAggregate"
    assert {key: aggregate.metadata[key] for key in ("cell", "line", "code", "variable", "kind")} == {
        "cell": "test_planner.py",
        "line": line,
        "code": code,
        "variable": "by_hour",
        "kind": "HashAggregateExec",
    }
    assert aggregate.metadata["text"].startswith("HashAggregate(keys=[hour], functions=[partial_avg(delay)]")


def test_every_kind_of_operator_finds_its_call(spark, tables):
    with capture(spark) as program:
        flights = spark.read.parquet(f"{tables.folder}/flights")
        early = flights.where("hour < 6").withColumn("twice", F.col("delay") * 2)
        late = flights.filter(flights.hour > 18).select("*", F.lit(0.0).alias("twice"))
        both = early.union(late).repartition(5).where("twice >= 0")
        hours = both.select("carrier", "hour").distinct().sort("hour", "carrier")
        total = both.coalesce(2).sample(0.5, seed=1).groupBy("carrier").sum("twice").limit(3)
    assert list(program.results) == ["hours", "total"]
    assert program.results == {"hours": hours, "total": total}
    job = plan(program, JobOptions(parallelism=3))
    found = {(operator, call) for call, operator in words(job)}
    assert {operator for operator, _ in found} >= {"Union", "Coalesce", "Sample", "Sort"}
    expected = {
        ("Union", "union(late)"),
        ("Coalesce", "coalesce(2)"),
        ("Sample", "sample(0.5, seed=1)"),
        ("Sort", 'sort("hour", "carrier")'),
        ("Filter", "filter(flights.hour > 18)"),
        ("Filter", 'where("hour < 6")'),
        ("Project", 'withColumn("twice", F.col("delay") * 2)'),
        ("Project", 'select("*", F.lit(0.0).alias("twice"))'),
        ("HashAggregate", "distinct()"),
        ("HashAggregate", 'groupBy("carrier").sum("twice")'),
        ("CollectLimit", "limit(3)"),
    }
    assert expected - found == set()


def test_an_operator_of_several_calls_bears_them_all(spark, tables):
    with capture(spark) as program:
        flights = spark.read.parquet(f"{tables.folder}/flights")
        late = flights.where("delay > 15").where(flights.hour > 18)
        twice = late.withColumn("twice", F.col("delay") * 2).withColumn("thrice", F.col("delay") * 3)
    assert program.results == {"twice": twice}
    filtered, projected = nodes(plan(program))[2:4]
    where = f"(test_planner.py, line {program.lineage.calls[1].location.line})"
    assert filtered.metadata["call"] == "where(flights.hour > 18)"
    assert filtered.metadata["also"] == [f'where("delay > 15") {where}']
    assert filtered.description == f'where("delay > 15") {where}, where(flights.hour > 18) {where}: Filter'
    assert projected.metadata["call"] == 'withColumn("thrice", F.col("delay") * 3)'
    assert [each.partition(" (test")[0] for each in projected.metadata["also"]] == [
        'withColumn("twice", F.col("delay") * 2)'
    ]


def test_a_partial_aggregate_is_a_part_of_the_one_above_it(spark, tables):
    with capture(spark) as program:
        totals = tables.flights.groupBy("hour", "carrier").agg(F.max("delay").alias("worst"))
        hours = totals.groupBy("hour").agg(F.max("worst").alias("worst_of_hour"))
    assert program.results == {"hours": hours}
    one = 'groupBy("hour", "carrier").agg(F.max("delay").alias("worst"))'
    other = 'groupBy("hour").agg(F.max("worst").alias("worst_of_hour"))'
    aggregates = [call for call, operator in words(plan(program)) if operator == "HashAggregate"]
    assert aggregates == [one, one, other, other]


def test_sql_text_is_one_call(spark, tables):
    with capture(spark) as program:
        flights = spark.read.parquet(f"{tables.folder}/flights")
        flights.createOrReplaceTempView("planner_flights")
        counts = spark.sql("SELECT hour, COUNT(*) AS n FROM planner_flights WHERE delay > 3 GROUP BY hour")
    assert program.results == {"counts": counts}
    sql = program.lineage.calls[-1].text
    assert sql.startswith("sql(")
    read = 'read.parquet(f"{tables.folder}/flights")'
    assert words(plan(program)) == [
        (read, "Scan parquet"),
        (read, "ColumnarToRow"),
        (sql, "Filter"),
        (sql, "Project"),
        (sql, "HashAggregate"),
        (sql, "HashAggregate"),
        (sql, "result"),
    ]


def test_a_self_join_reads_twice_what_one_line_reads(spark, tables):
    with capture(spark) as program:
        flights = spark.read.parquet(f"{tables.folder}/flights")
        pairs = flights.alias("a").join(flights.alias("b"), F.col("a.id") == F.col("b.id") + 1)
    assert program.results == {"pairs": pairs}
    read = 'read.parquet(f"{tables.folder}/flights")'
    assert [call for call, operator in words(plan(program)) if operator == "Scan parquet"] == [read, read]


def test_without_a_program_operators_have_spark_s_words(tables):
    job = plan({"late": tables.flights.where("delay > 15")})
    assert words(job) == [(None, "Scan parquet"), (None, "ColumnarToRow"), (None, "Filter"), (None, "result")]
    assert nodes(job)[2].description == "Filter"


def test_parallelism_is_that_of_the_session_bounded_by_the_slots(spark, tables):
    counts = tables.flights.groupBy("hour").count()
    before = spark.conf.get("spark.sql.shuffle.partitions")
    assert plan(counts, JobOptions(slots=3)).parallelism == 6
    spark.conf.set("spark.sql.shuffle.partitions", "5")
    try:
        assert plan(counts, JobOptions(slots=3)).parallelism == 5
        assert plan(counts, JobOptions(slots=2)).parallelism == 4
        assert plan(counts, JobOptions(parallelism=7, slots=2)).parallelism == 7
        assert plan(counts).slots == spark.sparkContext.defaultParallelism
        assert [node.parallelism for node in nodes(plan(counts, JobOptions(parallelism=7)))] == [2, 2, 2, 7, 7]
    finally:
        spark.conf.set("spark.sql.shuffle.partitions", before)


def test_the_user_s_configuration_and_plans_stay_as_they_are(spark, tables):
    counts = tables.flights.groupBy("hour").count()
    before = read_conf(spark._jsparkSession)
    active = spark._jvm.org.apache.spark.sql.SparkSession.getActiveSession().get()
    plan(counts, JobOptions(parallelism=3))
    assert read_conf(spark._jsparkSession) == before
    assert spark._jvm.org.apache.spark.sql.SparkSession.getActiveSession().get().equals(active)
    assert counts._jdf.queryExecution().executedPlan().toString().startswith("AdaptiveSparkPlan")


def test_each_write_is_planned_under_its_own_line_s_configuration(spark, tables, tmp_path):
    before = spark.conf.get("spark.sql.autoBroadcastJoinThreshold")
    try:
        with capture(spark) as program:
            joined = tables.flights.join(tables.carriers, "carrier")
            joined.write.parquet(f"{tmp_path}/small")
            spark.conf.set("spark.sql.autoBroadcastJoinThreshold", "-1")
            joined.write.parquet(f"{tmp_path}/never")
    finally:
        spark.conf.set("spark.sql.autoBroadcastJoinThreshold", before)
    operators = [
        operator for _, operator in words(plan(program, JobOptions(parallelism=2))) if operator.endswith("Join")
    ]
    assert operators == ["BroadcastHashJoin", "SortMergeJoin"]


def test_an_aggregation_takes_no_account_of_a_join_s_order_unless_the_user_wants_it(spark):
    """Whether the join sorts is decided when it runs."""
    threshold, sorts = "spark.sql.autoBroadcastJoinThreshold", "spark.sql.execution.replaceHashWithSortAgg"
    before = spark.conf.get(threshold)
    small, large = spark.range(10_000).withColumnRenamed("id", "key"), spark.range(1_000_000)
    counted = large.join(small, large.id == small.key).groupBy("id").count()

    def aggregations():
        return {name for _, name in words(plan(counted, JobOptions(parallelism=4))) if name.endswith("Aggregate")}

    try:
        spark.conf.set(threshold, "-1")
        assert aggregations() == {"HashAggregate"}
        spark.conf.set(sorts, "true")
        assert "SortAggregate" in aggregations()
    finally:
        spark.conf.unset(sorts)
        spark.conf.set(threshold, before)


def test_writes_to_one_place_keep_their_order(spark, tables, tmp_path, runner):
    with capture(spark) as program:
        tables.carriers.select("name").write.text(f"{tmp_path}/names")
        tables.carriers.select("carrier").write.mode("append").text(f"{tmp_path}/names")
        tables.carriers.write.json(f"{tmp_path}/elsewhere")
    job = plan(program)
    assert job.control_edges == {1: (0,)}
    runner.run(job)
    assert spark.read.text(f"{tmp_path}/names").count() == 18


def test_writers_options_partitions_and_empty_input(spark, tables, tmp_path, runner, status, compiled):
    with capture(spark) as program:
        tables.flights.write.partitionBy("month").option("compression", "gzip").parquet(f"{tmp_path}/by_month")
        tables.flights.where("1 = 0").write.option("header", True).csv(f"{tmp_path}/nothing")
        spark.createDataFrame([], "x int").write.parquet(f"{tmp_path}/no_rows")
    job = plan(program)
    handles = [vertex.operator_factory for vertex in compiled(job).vertices.values()]
    assert [type(handle) for handle in handles] == [WriteStageHandle] * 3
    with status.watch() as ran:
        runner.run(job)
    assert sorted(ran.stages.values()) == sorted(handle.tasks for handle in handles)
    assert sorted(name for name in os.listdir(f"{tmp_path}/by_month") if name.startswith("month=")) == sorted(
        f"month={month}" for month in range(1, 13)
    )
    assert any(name.endswith(".gz.parquet") for name in os.listdir(f"{tmp_path}/by_month/month=1"))
    assert spark.read.parquet(f"{tmp_path}/no_rows").schema.simpleString() == "struct<x:int>"
    assert os.path.exists(f"{tmp_path}/nothing/_SUCCESS")


def test_a_stage_without_partitions_has_one_subtask_and_no_task(spark, compiled, runner):
    job = plan({"counts": spark.range(0).groupBy("id").count()}, JobOptions(parallelism=3))
    source, sink = compiled(job).vertices_in_topological_order()
    assert (source.parallelism, source.operator_factory.tasks) == (1, 0)
    assert source.tail.metadata["partitions"] == 0
    assert (sink.parallelism, sink.operator_factory.tasks) == (3, 3)
    assert runner.run(job)["counts"] == []


def test_many_sinks_are_planned_side_by_side_and_in_order(tables, runner, compiled):
    joined = tables.flights.join(F.broadcast(tables.carriers), "carrier")
    frames = {f"hour{hour}": joined.where(f"hour = {hour}").groupBy("name").count() for hour in range(10)}
    heard = []
    job = plan(frames, JobOptions(parallelism=2), on_progress=lambda done, of: heard.append((done, of)))
    assert heard == [(done, 10) for done in range(1, 11)]
    assert [sink.name for sink in job.sinks] == list(frames)
    [shared] = job.shared
    assert shared.sinks == tuple(frames)
    assert len(compiled(job).vertices) == 1 + 2 * 10
    rows = runner.run(job)
    expected = tables.flights.where("hour < 10").groupBy("hour").count().collect()
    assert {name: sum(row["count"] for row in rows[name]) for name in frames} == {
        f"hour{row.hour}": row["count"] for row in expected
    }


def test_two_sinks_of_many_are_planned_at_the_same_time(tables, monkeypatch):
    monkeypatch.setattr(os, "cpu_count", lambda: 2)
    both, plan_one, met = threading.Barrier(2), SessionClones.plan, []

    def meet(self, *arguments):
        if len(met) < 2:
            met.append(threading.current_thread().name)
            both.wait(60)
        return plan_one(self, *arguments)

    monkeypatch.setattr(SessionClones, "plan", meet)
    plan({f"hour{hour}": tables.flights.where(f"hour = {hour}") for hour in range(10)})
    assert len(set(met)) == 2


def test_a_plan_deeper_than_python_s_stack(spark, compiled):
    deep = spark.range(10)
    for step in range(60):
        deep = deep.repartition(2 + step % 2).withColumn("id", F.col("id") + 1)
    plan(spark.range(1))  # what is imported and compiled once needs a deeper stack
    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(len(inspect.stack()) + 100)
    try:
        job = plan(deep, JobOptions(parallelism=2))
    finally:
        sys.setrecursionlimit(limit)
    assert len(compiled(job).vertices) == 61


def test_a_stage_may_have_more_tasks_than_flink_has_key_groups(spark, compiled):
    vertices = compiled(plan(spark.range(0, 40_000, 1, 40_000))).vertices_in_topological_order()
    assert max(vertex.parallelism for vertex in vertices) == 40_000


def test_results_are_named(tables):
    frames = [tables.flights, tables.carriers]
    assert [sink.name for sink in plan(frames).sinks] == ["result1", "result2"]
    assert [sink.name for sink in plan(tables.flights).sinks] == ["result"]
    assert [sink.name for sink in plan({"late": tables.flights}, name="n").sinks] == ["late"]
    assert plan(tables.flights, name="n").name == "n"


def test_what_a_command_answered_does_not_run_it_again(spark, tmp_path, runner):
    spark.sql(f"CREATE TABLE planner_once (x INT) USING parquet LOCATION '{tmp_path}/once'")
    answer = spark.sql("INSERT INTO planner_once VALUES (1)")
    assert runner.run(plan(answer)) == {"result": []}
    assert spark.table("planner_once").count() == 1


def test_what_is_refused(spark, tables):
    with pytest.raises(StreamingFrameError, match="'rates' is a streaming DataFrame"):
        plan({"rates": spark.readStream.format("rate").load()})
    for nothing in ([], {}):
        with pytest.raises(NoResultError):
            plan(nothing)
    for nothing in (7, [tables.flights, 7], "text"):
        with pytest.raises(NotAProgramError):
            plan(nothing)


def told(job):
    """The call of each operator; of one without a call what it does, with which tables; of neither its name."""
    facts = [node.metadata for node in nodes(job)]
    return [
        one.get("call") or (f"{one['reads']}: {one['does']}" if one.get("does") else one["operator"]) for one in facts
    ]


def test_what_a_program_was_given_bears_tables_and_operators_and_the_user_s_name(spark, tables, tmp_path):
    late = tables.flights.where("delay > 15").join(tables.carriers, "carrier").groupBy("hour", "name").count()
    with capture(spark, namespace={"_": late, "late": late}) as program:
        by_hour = late.where("hour > 6").groupBy("hour").agg(F.max("count").alias("most"))
        by_hour.write.parquet(str(tmp_path / "by_hour"))
        late.groupBy("name").agg(F.sum("count").alias("all")).write.parquet(str(tmp_path / "by_name"))
    job = plan(program, name="given")
    assert [shared.variable for shared in job.shared] == ["late"]
    most, total = (
        'groupBy("hour").agg(F.max("count").alias("most"))',
        'groupBy("name").agg(F.sum("count").alias("all"))',
    )
    assert [one for one in told(job) if one not in ("ColumnarToRow", "Project")] == [
        "flights: scan",
        "flights: filter",
        "carriers: scan",
        "carriers: filter",
        "flights: join on carrier",
        "flights: aggregate by hour, name",
        "flights, carriers: aggregate by hour, name",
        "late: scan",
        'where("hour > 6")',
        most,
        most,
        'write.parquet(str(tmp_path / "by_hour"))',
        "late: scan",
        total,
        total,
        'write.parquet(str(tmp_path / "by_name"))',
    ]


def test_calls_on_what_a_program_was_given_are_found_below_its_operators(spark, tables):
    named = tables.flights.join(tables.carriers, "carrier")
    with capture(spark) as program:
        few = named.where("delay > 90").join(named.select("hour", "name").distinct(), ["hour", "name"])
        few = few.orderBy("delay")
    assert program.results == {"few": few}
    join = 'join(named.select("hour", "name").distinct(), ["hour", "name"])'
    said = told(plan(program, name="given"))
    assert said.count("flights: join on carrier") == 2
    assert {one for one in said if "(" in one} == {'where("delay > 90")', join, "distinct()", 'orderBy("delay")'}
