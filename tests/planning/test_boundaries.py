"""DataFrames that several sinks use: which of them are computed once, and that nothing else changes by it."""

from __future__ import annotations

from collections import Counter
from contextlib import contextmanager

import pytest
from pyspark.sql import functions as F

from flinkmagic.capturing.capture import capture
from flinkmagic.graph.transformations import CacheTransformation
from flinkmagic.options import JobOptions
from flinkmagic.planning import plan
from flinkmagic.planning.boundaries import junctions, worth_keeping
from flinkmagic.planning.stage_handles import BoundaryStageHandle


@contextmanager
def captured(spark, **names):
    """Capture a block whose names are those that it puts into the namespace that it is given."""
    namespace = dict(names)
    with capture(spark, name="job", namespace=namespace) as program:
        yield namespace, program


def rows(df):
    return Counter(df.collect())


def boundaries(job):
    return [(one.name, tuple(job.sinks[sink].name for sink in one.sinks)) for one in job.boundaries]


def persistent(graph):
    return {
        dataset.id.rpartition(" (")[0]: [edge.target.name for edge in dataset.consumers]
        for vertex in graph.vertices.values()
        for dataset in vertex.produced
        if dataset.result_type.is_persistent
    }


# -- the choice, without Spark ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("sinks", "inside", "expected"),
    [
        ([[1], [1]], {1: []}, [1]),
        ([[2], [2]], {1: [], 2: [1]}, [2]),  # 1 -> 2 -> two sinks: 2 represents 1
        ([[2], [2], [1]], {1: [], 2: [1]}, [1, 2]),
        ([[2, 3]], {1: [], 2: [1], 3: [1]}, []),  # one sink, twice
        ([[2, 3], [2, 3]], {1: [], 2: [1], 3: [1]}, [1, 2, 3]),
        ([[2], [3]], {1: [], 2: [1], 3: [1]}, [1]),
        ([[4], [5], [3]], {1: [], 2: [1], 3: [2], 4: [2], 5: [4]}, [2, 4]),
        ([[], []], {}, []),
    ],
)
def test_junctions_are_where_the_ways_to_sinks_part(sinks, inside, expected):
    assert sorted(junctions(sinks, inside.__getitem__)) == expected


def test_junctions_come_sources_first_and_chains_may_be_long():
    inside = {number: [number - 1] for number in range(1, 5000)} | {0: []}
    assert junctions([[4999], [2500], [2500]], inside.__getitem__) == [2500]
    assert junctions([[4999], [4999], [10]], inside.__getitem__) == [10, 4999]


PYTHON = "org.apache.spark.sql.execution.python"
FILES = "org.apache.spark.sql.execution.datasources.v2"
OTHER_ROWS = "its source may give other rows when it is read again"
SCAN = "org.apache.spark.sql.execution.FileSourceScanExec"
FILTER = "org.apache.spark.sql.execution.FilterExec"
TO_ROWS = "org.apache.spark.sql.execution.ColumnarToRowExec"


@pytest.mark.parametrize(
    ("kinds", "auto", "always"),
    [
        ([SCAN], "", ""),
        ([TO_ROWS, SCAN], "", ""),
        ([FILTER, TO_ROWS, SCAN], "", "everything is shared"),
        ([FILTER, "a.BroadcastHashJoinExec", "a.BroadcastExchangeExec", SCAN, SCAN], "", "everything is shared"),
        (["a.exchange.ShuffleExchangeExec", SCAN], "it holds a shuffle", "it holds a shuffle"),
        (["a.TakeOrderedAndProjectExec", SCAN], "it holds a shuffle", "it holds a shuffle"),
        (["a.CartesianProductExec", SCAN, SCAN], "it compares all rows with all", "it compares all rows with all"),
        ([f"{PYTHON}.MapInPandasExec", SCAN], "it calls Python functions", "it calls Python functions"),
        (["a.RDDScanExec", "a.PythonRDD"], "its rows come from Python", "its rows come from Python"),
        (["a.RDDScanExec", "a.MapPartitionsRDD", "a.ParallelCollectionRDD"], "", ""),
        (["a.RowDataSourceScanExec"], OTHER_ROWS, OTHER_ROWS),
        (["a.BatchScanExec", "a.kafka.KafkaScan"], OTHER_ROWS, OTHER_ROWS),
        (["a.BatchScanExec", f"{FILES}.parquet.ParquetScan"], "", ""),
    ],
)
def test_what_is_worth_keeping(kinds, auto, always):
    assert (worth_keeping(kinds, "auto"), worth_keeping(kinds, "always")) == (auto, always)


# -- plans ---------------------------------------------------------------------------------------------------------


@pytest.fixture
def shared_worst(spark, tables):
    """An aggregate into which each of two results would push another filter."""
    with captured(spark) as (names, program):
        names["worst"] = worst = tables.flights.groupBy("hour", "carrier").agg(F.max("delay").alias("worst"))
        names["early"] = worst.where("hour < 6")
        names["by_carrier"] = worst.where("carrier <> 'C3'").groupBy("carrier").agg(F.avg("worst").alias("mean"))
    return program


def test_a_shared_aggregate_is_computed_once_and_its_rows_are_kept(shared_worst, status, runner, compiled):
    jobs_before = status.jobs()
    job = plan(shared_worst, JobOptions(parallelism=3))
    assert status.jobs() == jobs_before
    assert boundaries(job) == [("worst", ("early", "by_carrier"))]
    [stage] = job.shared
    assert (stage.variable, stage.sinks, stage.why) == ("worst", ("early", "by_carrier"), "it holds a shuffle")
    graph = compiled(job)
    assert persistent(graph) == {
        "worst": [
            "Scan In-memory table worst -> Filter -> Sink: early",
            "Scan In-memory table worst -> Filter -> HashAggregate",
        ]
    }
    [kept] = [v for v in graph.vertices.values() if isinstance(v.operator_factory, BoundaryStageHandle)]
    assert (kept.name, kept.parallelism, kept.operator_factory.tasks) == ("HashAggregate", 3, 3)
    assert kept.tail.metadata["variable"] == "worst"
    with status.watch() as ran:
        answers = runner.run(job)
    # Scan with partial aggregate, the aggregate, two scans of its rows, the second aggregate's last half.
    assert sorted(ran.stages.values()) == [2, 3, 3, 3, 3]
    for name, df in shared_worst.results.items():
        assert Counter(answers[name]) == rows(df)


def test_nothing_is_shared_where_nothing_is_to_be(shared_worst, status, runner, compiled):
    job = plan(shared_worst, JobOptions(parallelism=3, share="never"))
    assert (job.shared, job.boundaries, persistent(compiled(job))) == ((), (), {})
    with status.watch() as ran:
        runner.run(job)
    assert sorted(ran.stages.values()) == [2, 2, 3, 3, 3]


def test_equal_exchanges_are_not_shared_either_where_nothing_is_to_be(spark, tables):
    counts = tables.flights.groupBy("hour").count()
    frames = {"one": counts, "other": counts.where("count > 3")}
    assert len(plan(frames, JobOptions(parallelism=2)).shared) == 1
    assert plan(frames, JobOptions(parallelism=2, share="never")).shared == ()


def test_a_cheap_prefix_keeps_each_consumer_s_pruning_and_push_down(spark, tables, compiled):
    with captured(spark) as (names, program):
        names["late"] = late = spark.read.parquet(f"{tables.folder}/flights").where("delay > 15")
        names["night"] = late.where("hour < 6").select("id")
        names["lines"] = late.select("carrier").distinct()
    job = plan(program, JobOptions(parallelism=3))
    assert job.boundaries == ()
    night, lines = physical_plans(job, compiled)
    assert "PushedFilters: [IsNotNull(delay), IsNotNull(hour), GreaterThan(delay,15.0), LessThan(hour,6)]" in night
    assert "ReadSchema: struct<id:bigint,hour:int,delay:double>" in night
    assert "PushedFilters: [IsNotNull(delay), GreaterThan(delay,15.0)]" in lines
    assert "ReadSchema: struct<carrier:string,delay:double>" in lines
    always = plan(program, JobOptions(parallelism=3, share="always"))
    assert boundaries(always) == [("late", ("night", "lines"))]
    assert always.shared[0].why == "everything is shared"


def test_what_only_filters_a_boundary_s_rows_is_none(spark, tables, runner):
    with captured(spark) as (names, program):
        names["counts"] = counts = tables.flights.groupBy("hour", "carrier").count()
        names["many"] = many = counts.where("count > 20")
        names["early"] = many.where("hour < 6")
        names["lines"] = many.select("carrier").distinct()
        names["all"] = counts.agg(F.sum("count"))
    job = plan(program, JobOptions(parallelism=3))
    assert boundaries(job) == [("counts", ("early", "lines", "all"))]
    answers = runner.run(job)
    assert all(Counter(answers[name]) == rows(df) for name, df in program.results.items())


def test_a_boundary_may_read_another(spark, tables, status, runner, compiled):
    with captured(spark) as (names, program):
        names["worst"] = worst = tables.flights.groupBy("hour", "carrier").agg(F.max("delay").alias("worst"))
        names["mean"] = mean = worst.groupBy("carrier").agg(F.avg("worst").alias("mean"))
        names["high"] = mean.where("mean > 60")
        names["sorted"] = mean.orderBy("mean")
        names["early"] = worst.where("hour < 6")
    job = plan(program, JobOptions(parallelism=3))
    assert boundaries(job) == [("worst", ("high", "sorted", "early")), ("mean", ("high", "sorted"))]
    graph = compiled(job)
    assert [len(consumers) for consumers in persistent(graph).values()] == [2, 2]
    with status.watch() as ran:
        answers = runner.run(job)
    # Scan; worst; its two readers, one of them half an aggregate; mean; its two readers, and the sort behind one.
    assert sorted(ran.stages.values()) == [2, 3, 3, 3, 3, 3, 3, 3, 3]
    assert answers["sorted"] == program.results["sorted"].collect()
    assert all(Counter(answers[name]) == rows(df) for name, df in program.results.items())


def test_both_sides_of_a_self_join_read_the_rows(spark, tables, status, runner, compiled):
    with captured(spark) as (names, program):
        names["worst"] = worst = tables.flights.groupBy("hour", "carrier").agg(F.max("delay").alias("worst"))
        left, right = worst.alias("a"), worst.alias("b")
        names["pairs"] = left.join(right, F.expr("a.carrier = b.carrier AND a.hour + 1 = b.hour")).select(
            "a.hour", "a.carrier", "a.worst", F.col("b.worst").alias("next")
        )
        names["early"] = worst.where("hour < 6")
    job = plan(program, JobOptions(parallelism=3))
    assert boundaries(job) == [("worst", ("pairs", "early"))]
    assert len(next(iter(persistent(compiled(job)).values()))) == 3
    with status.watch() as ran:
        answers = runner.run(job)
    assert sum(tasks == 2 for tasks in ran.stages.values()) == 1
    assert all(Counter(answers[name]) == rows(df) for name, df in program.results.items())


def test_a_union_may_read_the_rows_twice(spark, tables, runner, compiled):
    with captured(spark) as (names, program):
        names["counts"] = counts = tables.flights.groupBy("hour").count()
        names["twice"] = counts.union(counts.selectExpr("hour + 24", "count"))
        names["early"] = counts.where("hour < 6")
    job = plan(program, JobOptions(parallelism=3))
    assert boundaries(job) == [("counts", ("twice", "early"))]
    answers = runner.run(job)
    assert len(answers["twice"]) == 48
    assert all(Counter(answers[name]) == rows(df) for name, df in program.results.items())


def test_what_one_sink_alone_uses_twice_is_left_to_spark(spark, tables, status, runner):
    with captured(spark) as (names, program):
        counts = tables.flights.groupBy("hour").count()
        names["twice"] = counts.union(counts)
    job = plan(program, JobOptions(parallelism=3))
    assert (job.boundaries, job.shared) == ((), ())
    with status.watch() as ran:
        answers = runner.run(job)
    assert sum(tasks == 2 for tasks in ran.stages.values()) == 1
    assert Counter(answers["twice"]) == rows(program.results["twice"])


def test_subqueries_read_the_rows_too(spark, tables, status, runner):
    with captured(spark) as (names, program):
        names["counts"] = counts = tables.flights.groupBy("hour").agg(F.max("delay").alias("worst"))
        counts.createOrReplaceTempView("boundary_counts")
        tables.flights.createOrReplaceTempView("boundary_flights")
        names["highest"] = spark.sql(
            "SELECT id FROM boundary_flights WHERE delay = (SELECT MAX(worst) FROM boundary_counts)"
        )
        names["among"] = spark.sql(
            "SELECT id FROM boundary_flights f WHERE EXISTS "
            "(SELECT 1 FROM boundary_counts c WHERE c.hour = f.hour AND c.worst = f.delay)"
        )
    job = plan(program, JobOptions(parallelism=3))
    assert boundaries(job) == [("counts", ("highest", "among"))]
    with status.watch() as ran:
        answers = runner.run(job)
    assert len(ran.stages) > 4
    assert all(answers[name] for name in ("highest", "among"))
    assert all(Counter(answers[name]) == rows(df) for name, df in program.results.items())


def test_writes_read_the_rows_whatever_their_command(spark, tables, tmp_path, status, runner):
    with captured(spark) as (names, program):
        names["counts"] = counts = tables.flights.groupBy("hour").count()
        counts.write.parquet(f"{tmp_path}/all")
        counts.where("hour < 6").write.json(f"{tmp_path}/early")
        counts.write.saveAsTable("boundary_table")
    job = plan(program, JobOptions(parallelism=3))
    try:
        assert [(name, len(sinks)) for name, sinks in boundaries(job)] == [("counts", 3)]
        with status.watch() as ran:
            runner.run(job)
        assert sum(tasks == 2 for tasks in ran.stages.values()) == 1
        expected = rows(tables.flights.groupBy("hour").count())
        assert rows(spark.read.parquet(f"{tmp_path}/all")) == rows(spark.table("boundary_table")) == expected
        assert spark.read.json(f"{tmp_path}/early").count() == 6
    finally:
        spark.sql("DROP TABLE IF EXISTS boundary_table")


def test_a_hint_on_a_boundary_still_holds(spark, tables, compiled, runner):
    spark.conf.set("spark.sql.autoBroadcastJoinThreshold", "-1")
    try:
        with captured(spark) as (names, program):
            names["counts"] = counts = tables.flights.groupBy("carrier").count().hint("broadcast")
            names["named"] = tables.carriers.join(counts, "carrier")
            names["many"] = counts.where("count > 571")
        job = plan(program, JobOptions(parallelism=3))
    finally:
        spark.conf.unset("spark.sql.autoBroadcastJoinThreshold")
    assert boundaries(job) == [("counts", ("named", "many"))]
    assert "BroadcastHashJoin" in physical_plans(job, compiled)[0]
    assert len(runner.run(job)["named"]) == 7


def test_python_functions_are_called_once_for_a_row(spark, runner):
    calls = spark.sparkContext.accumulator(0)

    @F.udf("long")
    def counted(value):
        calls.add(1)
        return value * 2

    with captured(spark) as (names, program):
        names["doubled"] = doubled = spark.range(0, 60, 1, 2).select("id", counted("id").alias("twice"))
        names["low"] = doubled.where("twice < 20")
        names["sum"] = doubled.agg(F.sum("twice"))
    job = plan(program, JobOptions(parallelism=3))
    assert [stage.why for stage in job.shared] == ["it calls Python functions"]
    answers = runner.run(job)
    assert calls.value == 60
    assert (len(answers["low"]), answers["sum"][0][0]) == (10, 3540)


def test_sinks_of_one_run_see_the_same_random_rows(spark, runner):
    @F.udf("double")
    def drawn(value):
        import random

        return random.random()

    with captured(spark) as (names, program):
        names["drawn"] = numbers = spark.range(0, 50, 1, 2).select("id", drawn.asNondeterministic()("id").alias("x"))
        names["low"] = numbers.where("x < 0.5")
        names["high"] = numbers.where("x >= 0.5")
    answers = runner.run(plan(program, JobOptions(parallelism=2)))
    low, high = ({row.id for row in answers[name]} for name in ("low", "high"))
    assert not low & high
    assert low | high == set(range(50))


def test_equal_dataframes_over_different_listings_are_two(spark, runner, tmp_path):
    path = str(tmp_path / "grows")
    spark.range(10).selectExpr("id % 2 AS k").write.parquet(path)
    old = spark.read.parquet(path).groupBy("k").count()
    spark.range(10).selectExpr("id % 2 AS k").write.mode("append").parquet(path)
    with captured(spark) as (names, program):
        names["new"] = new = spark.read.parquet(path).groupBy("k").count()
        names["both"] = old.union(new)
        names["sums"] = new.agg(F.sum("count")).union(old.agg(F.sum("count")))
    job = plan(program, JobOptions(parallelism=2))
    assert [sinks for _, sinks in boundaries(job)] == [("both", "sums"), ("both", "sums")]
    answers = runner.run(job)
    assert sorted(map(tuple, answers["both"])) == [(0, 5), (0, 10), (1, 5), (1, 10)]
    assert sorted(map(tuple, answers["sums"])) == [(10,), (20,)]


@pytest.fixture
def few_partitions(spark):
    """A cache's plan has the session's own shuffles: a task for each of 200 partitions takes seconds."""
    spark.conf.set("spark.sql.shuffle.partitions", "4")
    yield
    spark.conf.unset("spark.sql.shuffle.partitions")


@pytest.mark.usefixtures("few_partitions")
def test_what_the_user_cached_is_left_whole(spark, tables, runner):
    cached = tables.flights.groupBy("hour", "carrier").count().cache()
    try:
        with captured(spark) as (names, program):
            names["kept"] = cached
            names["early"] = cached.where("hour < 6")
            names["lines"] = lines = cached.groupBy("carrier").agg(F.sum("count").alias("n"))
            names["many"], names["few"] = lines.where("n > 571"), lines.where("n <= 571")
        job = plan(program, JobOptions(parallelism=3))
        assert boundaries(job) == [("lines", ("many", "few"))]
        answers = runner.run(job)
        cache = spark._jsparkSession.sharedState().cacheManager()
        entry = cache.lookupCachedData(cached._jdf).get()
        assert entry.cachedRepresentation().cacheBuilder().isCachedColumnBuffersLoaded()
        assert all(Counter(answers[name]) == rows(df) for name, df in program.results.items())
    finally:
        cached.unpersist(blocking=True)


@pytest.mark.usefixtures("few_partitions")
def test_a_frame_below_a_cached_one_is_read_by_the_cache_itself(spark, tables, runner):
    below = tables.flights.groupBy("hour", "carrier").count()
    cached = below.groupBy("carrier").agg(F.sum("count").alias("n")).cache()
    try:
        with captured(spark) as (names, program):
            names["many"], names["few"] = cached.where("n > 571"), cached.where("n <= 571")
            names["early"] = below.where("hour < 6")
        job = plan(program, JobOptions(parallelism=3))
        assert job.boundaries == ()
        answers = runner.run(job)
        assert all(Counter(answers[name]) == rows(df) for name, df in program.results.items())
    finally:
        cached.unpersist(blocking=True)


def test_lines_of_different_configuration_share_nothing(spark, tables, tmp_path, runner):
    with captured(spark) as (names, program):
        names["days"] = days = (
            spark.range(0, 4, 1, 2)
            .selectExpr("CAST(id * 40000 AS TIMESTAMP) AS t")
            .groupBy(F.expr("CAST(t AS DATE)").alias("day"))
            .count()
        )
        days.write.parquet(f"{tmp_path}/here")
        spark.conf.set("spark.sql.session.timeZone", "Asia/Tokyo")
        try:
            days.write.parquet(f"{tmp_path}/there")
        finally:
            spark.conf.unset("spark.sql.session.timeZone")
    job = plan(program, JobOptions(parallelism=2))
    assert (job.boundaries, job.shared) == ((), ())


@pytest.mark.long
def test_a_boundary_may_be_empty_or_end_in_a_shuffle_of_its_own(spark, tables, runner):
    with captured(spark) as (names, program):
        empty = spark.createDataFrame([], "k int").mapInPandas(lambda frames: frames, "k int")
        names["none"], names["no_sum"] = empty.where("k > 1"), empty.agg(F.count("k").alias("n"))
        top = tables.flights.orderBy(F.desc("delay"), "id").limit(5)
        names["top_hours"], names["top_ids"] = top.select("hour"), top.agg(F.sum("id"))
        dealt = tables.flights.repartition(4, "hour")
        names["dealt"], names["dealt_sum"] = dealt.where("hour < 2"), dealt.agg(F.sum("id"))
    job = plan(program, JobOptions(parallelism=3))
    assert [sinks for _, sinks in boundaries(job)] == [
        ("none", "no_sum"), ("top_hours", "top_ids"), ("dealt", "dealt_sum"),
    ]  # fmt: skip
    answers = runner.run(job)
    assert (answers["none"], answers["no_sum"][0].n) == ([], 0)
    assert all(Counter(answers[name]) == rows(df) for name, df in program.results.items())


def test_spark_s_cache_never_hears_of_the_rows(shared_worst, spark, runner):
    cache = spark._jsparkSession.sharedState().cacheManager()
    entries = cache.numCachedEntries()
    runner.run(plan(shared_worst, JobOptions(parallelism=3)))
    assert cache.numCachedEntries() == entries
    assert not any(cache.lookupCachedData(df._jdf).isDefined() for df in shared_worst.variables.values())


def physical_plans(job, compiled):
    """Spark's own text of the plan of each result, in program order."""
    vertices = compiled(job).vertices.values()
    made = {vertex.tail.id: getattr(vertex.operator_factory, "query_execution", None) for vertex in vertices}
    return [made[sink.transformation_id].executedPlan().toString() for sink in job.sinks if sink.kind == "result"]


def test_caches_of_the_graph_are_cache_transformations(shared_worst):
    job = plan(shared_worst, JobOptions(parallelism=3))
    assert len(job.boundaries) == 1
    inputs = [each for operator in job.environment.transformations for each in operator.inputs]
    caches = {each.inputs[0].id for each in inputs if each.inputs and isinstance(each.inputs[0], CacheTransformation)}
    assert len(caches) == 1
