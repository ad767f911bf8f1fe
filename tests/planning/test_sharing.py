"""Equal exchanges of several sinks are one, and run once."""

from __future__ import annotations

from pyspark.sql import functions as F

from flinkmagic.graph.partitioner import PartitionerKind
from flinkmagic.graph.transformations import PartitionTransformation
from flinkmagic.options import JobOptions
from flinkmagic.planning import plan


def partitions(job):
    found = {}
    for operator in job.environment.transformations:
        for each in operator.inputs:
            if isinstance(each, PartitionTransformation):
                found[each.id] = each
    return list(found.values())


def test_an_exchange_of_three_sinks_runs_once(tables, status, runner, compiled):
    worst = tables.flights.groupBy("hour").agg(F.max("delay").alias("worst"))
    job = plan(
        {"all": worst, "some": worst.where("worst > 70"), "top": worst.orderBy(F.desc("worst"), "hour").limit(3)},
        JobOptions(parallelism=3),
    )

    hashed = [each for each in partitions(job) if each.partitioner.kind is PartitionerKind.HASH]
    assert len(hashed) == 1
    assert [stage.sinks for stage in job.shared] == [("all", "some", "top")]
    assert job.shared[0].why == "equal exchanges"
    # The aggregate's map stage; two reading stages; the two halves of the top three.
    assert len(compiled(job).vertices) == 5
    with status.watch() as ran:
        rows = runner.run(job)
    assert sorted(ran.stages.values()) == [1, 2, 3, 3, 3]
    assert len(rows["all"]) == 24
    assert {tuple(row) for row in rows["some"]} == {tuple(row) for row in rows["all"] if row.worst > 70}
    assert [row.worst for row in rows["top"]] == sorted((row.worst for row in rows["all"]), reverse=True)[:3]


def test_a_stage_below_a_shared_one_is_not_run_again(tables, status, runner):
    joined = tables.flights.hint("merge").join(tables.carriers, "carrier").groupBy("name").count()
    often = joined.where("count > 571").select(F.max("name"))
    job = plan({"one": joined, "often": often}, JobOptions(parallelism=3))
    with status.watch() as ran:
        rows = runner.run(job)
    # Two scans, the join with its partial count, two stages that read it, and one behind an exchange of the second.
    assert sorted(ran.stages.values()) == [1, 1, 2, 3, 3, 3]
    assert len(rows["one"]) == 7
    assert rows["often"][0][0] == max(row["name"] for row in rows["one"] if row["count"] > 571)


def test_a_broadcast_is_made_once_also_for_partition_pruning(spark, tables, status, runner):
    months = tables.carriers.where("rank IN (2, 3)")
    joined = tables.by_month.join(months, tables.by_month.month == months["rank"])
    job = plan(
        {"names": joined.groupBy("name").count(), "rows": joined.select("name", "id")}, JobOptions(parallelism=3)
    )
    broadcasts = [each for each in partitions(job) if each.partitioner.is_broadcast]
    assert len(broadcasts) == 1
    assert [stage.sinks for stage in job.shared] == [("names", "rows")]
    with status.watch() as ran:
        rows = runner.run(job)
    assert len(ran.stages) == 4
    assert sum(row["count"] for row in rows["names"]) == len(rows["rows"]) == 668


def test_a_subquery_of_two_sinks_runs_once(spark, tables, status, runner):
    tables.flights.createOrReplaceTempView("shared_flights")
    late = "SELECT {} FROM shared_flights WHERE delay > (SELECT AVG(delay) FROM shared_flights)"
    job = plan(
        {"ids": spark.sql(late.format("id")), "hours": spark.sql(late.format("hour"))}, JobOptions(parallelism=3)
    )
    with status.watch() as ran:
        rows = runner.run(job)
    assert sorted(ran.stages.values()) == [1, 2, 2, 2]
    average = tables.flights.agg(F.avg("delay")).first()[0]
    assert len(rows["ids"]) == len(rows["hours"]) == tables.flights.where(F.col("delay") > average).count()


def test_one_folder_listed_at_two_times_is_two_sources(spark, runner, tmp_path):
    path = str(tmp_path / "grows")
    spark.range(10).selectExpr("id % 2 AS k").write.parquet(path)
    before = spark.read.parquet(path).groupBy("k").count()
    spark.range(10).selectExpr("id % 2 AS k").write.mode("append").parquet(path)
    after = spark.read.parquet(path).groupBy("k").count()
    job = plan({"before": before, "after": after}, JobOptions(parallelism=2))
    assert job.shared == ()
    rows = runner.run(job)
    assert sorted(map(tuple, rows["before"])) == [(0, 5), (1, 5)]
    assert sorted(map(tuple, rows["after"])) == [(0, 10), (1, 10)]


def test_what_a_function_sees_by_the_names_of_columns_is_not_shared(spark, runner):
    def first_name(frames):
        for frame in frames:
            yield frame.assign(name=frame.columns[0])[["name"]]

    def counts(column):
        return spark.range(10).toDF(column).mapInPandas(first_name, "name string").groupBy("name").count()

    job = plan({"one": counts("a"), "other": counts("b")}, JobOptions(parallelism=2))
    assert job.shared == ()
    rows = runner.run(job)
    assert list(map(tuple, rows["one"] + rows["other"])) == [("a", 10), ("b", 10)]


def test_no_sharing_where_the_user_turned_reuse_of_exchanges_off(spark, tables):
    counts = tables.flights.groupBy("hour").count()
    spark.conf.set("spark.sql.exchange.reuse", "false")
    try:
        job = plan({"one": counts, "other": counts.where("count > 3")}, JobOptions(parallelism=2))
    finally:
        spark.conf.unset("spark.sql.exchange.reuse")
    assert job.shared == ()
    assert len(partitions(job)) == 2


def test_handles_keep_their_objects(tables, compiled):
    counts = tables.flights.groupBy("hour").count()
    job = plan({"one": counts, "other": counts.where("count > 3")}, JobOptions(parallelism=2))
    shuffle = next(v.operator_factory for v in compiled(job).vertices.values() if v.operator_factory.name == "Exchange")
    first = shuffle.make()
    assert shuffle.make() is first
    for result in (v.operator_factory for v in compiled(job).vertices.values() if v.operator_factory is not shuffle):
        [dependency] = shuffles_of(result.make().execute())
        assert dependency.shuffleId() == first.shuffleId()


def shuffles_of(rdd):
    found, waiting = [], [rdd]
    while waiting:
        dependencies = waiting.pop().dependencies()
        for i in range(dependencies.size()):
            dependency = dependencies.apply(i)
            if hasattr(dependency, "shuffleId") and "ShuffleDependency" in dependency.getClass().getName():
                found.append(dependency)
            else:
                waiting.append(dependency.rdd())
    return found
