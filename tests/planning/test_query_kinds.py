"""Every kind of query: planned without a job, one vertex for each Spark stage, the rows of a plain run."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import pandas as pd
import pytest
from pyspark.sql import DataFrame, SparkSession, Window
from pyspark.sql import functions as F

from flinkmagic.options import JobOptions
from flinkmagic.planning import plan
from flinkmagic.planning.stage_handles import StageHandle

Query = Callable[[SparkSession, Any], DataFrame]
QUERIES: dict[str, Query] = {}


def query(build: Query) -> Query:
    QUERIES[build.__name__] = build
    return build


@query
def filter_and_project(spark, t):
    return t.flights.where("delay > 15").select("id", (F.col("delay") * 2).alias("twice"))


@query
def aggregate(spark, t):
    return t.flights.groupBy("hour").agg(F.avg("delay").alias("delay"), F.count("*").alias("n"))


@query
def aggregate_of_all(spark, t):
    return t.flights.agg(F.sum("delay"), F.max("hour"))


@query
def distinct_aggregate(spark, t):
    return t.flights.groupBy("hour").agg(F.countDistinct("carrier"), F.sum("delay"))


@query
def rollup(spark, t):
    return t.flights.rollup("month", "carrier").agg(F.count("*").alias("n"))


@query
def cube(spark, t):
    return t.flights.cube("month", "carrier").agg(F.max("delay"))


@query
def pivot(spark, t):
    return t.flights.groupBy("month").pivot("carrier", ["C0", "C1"]).agg(F.count("id"))


@query
def grouping_sets(spark, t):
    t.flights.createOrReplaceTempView("kinds_flights")
    return spark.sql("SELECT month, hour, SUM(delay) FROM kinds_flights GROUP BY GROUPING SETS ((month), (hour), ())")


@query
def broadcast_join(spark, t):
    return t.flights.join(F.broadcast(t.carriers), "carrier")


@query
def sort_merge_join(spark, t):
    other = t.flights.groupBy("hour").agg(F.max("delay").alias("worst"))
    return t.flights.hint("merge").join(other, "hour")


@query
def shuffled_hash_join(spark, t):
    return t.flights.join(t.carriers.hint("shuffle_hash"), "carrier", "left")


@query
def full_outer_join(spark, t):
    return t.flights.hint("merge").join(t.carriers, "carrier", "full_outer")


@query
def anti_join(spark, t):
    return t.carriers.join(t.flights.hint("merge"), "carrier", "left_anti")


@query
def self_join(spark, t):
    totals = t.flights.groupBy("carrier").agg(F.count("*").alias("n"))
    one, other = totals.alias("one"), totals.alias("other")
    return one.hint("merge").join(other, F.col("one.n") == F.col("other.n")).select("one.carrier", "other.n")


@query
def cartesian(spark, t):
    return t.carriers.hint("shuffle_replicate_nl").crossJoin(t.carriers.select(F.col("rank").alias("r")).repartition(3))


@query
def nested_loop_join(spark, t):
    return t.flights.join(F.broadcast(t.carriers), t.flights.hour < t.carriers["rank"])


@query
def nested_loop_full_outer_join(spark, t):
    few = t.flights.where("id < 100")
    return few.join(F.broadcast(t.carriers), few.hour < t.carriers["rank"] - 5, "full_outer")


@query
def nested_loop_anti_join_of_the_broadcast_side(spark, t):
    return F.broadcast(t.carriers).join(t.flights, t.flights.delay < t.carriers["rank"] - 25, "left_anti")


@query
def pruned_partitions_by_a_join(spark, t):
    months = t.carriers.where("rank IN (2, 3)")
    return t.by_month.join(months, t.by_month.month == months["rank"]).groupBy("name").count()


@query
def bucketed_table(spark, t):
    writer = t.flights.write.mode("overwrite").option("path", f"{t.folder}/bucketed")
    writer.bucketBy(4, "carrier").sortBy("carrier").saveAsTable("kinds_bucketed")
    return spark.table("kinds_bucketed").where("carrier <> 'C1'").groupBy("carrier").count()


@query
def version_2_source(spark, t):
    spark.conf.set("spark.sql.sources.useV1SourceList", "")
    try:
        return spark.read.parquet(f"{t.folder}/flights").where("delay > 3").groupBy("hour").count()
    finally:
        spark.conf.unset("spark.sql.sources.useV1SourceList")


@query
def files_chosen_by_their_names(spark, t):
    named = spark.read.parquet(f"{t.folder}/flights").where("_metadata.file_name LIKE 'part-00000%'")
    return named.select("id").union(t.flights.select("id"))


@query
def rows_of_a_command(spark, t):
    return spark.sql("SHOW FUNCTIONS LIKE 'max*'")


@query
def sort(spark, t):
    return t.flights.orderBy("delay", "id")


@query
def sort_within_partitions(spark, t):
    return t.flights.sortWithinPartitions("delay")


@query
def top_k(spark, t):
    return t.flights.orderBy(F.desc("delay"), "id").limit(7)


@query
def aggregate_over_top_k(spark, t):
    return t.flights.orderBy(F.desc("delay"), "id").limit(70).groupBy("carrier").count()


@query
def limit_on_top(spark, t):
    return t.flights.where("id >= 0").select("month").limit(5).select(F.lit(1).alias("one"))


@query
def limit_in_the_middle(spark, t):
    return t.flights.limit(50).select(F.lit(1).alias("one")).groupBy("one").count()


@query
def offset(spark, t):
    return t.flights.orderBy("id").offset(3990)


@query
def union(spark, t):
    return t.flights.select("carrier").union(t.carriers.select("carrier"))


@query
def union_of_aggregates(spark, t):
    return t.flights.groupBy("hour").count().union(t.flights.groupBy("month").count())


@query
def aggregate_over_union(spark, t):
    return t.flights.select("carrier").union(t.carriers.select("carrier")).groupBy("carrier").count()


@query
def set_operations(spark, t):
    left, right = t.flights.select("carrier"), t.carriers.select("carrier")
    return right.subtract(left).union(left.intersect(right))


@query
def distinct(spark, t):
    return t.flights.select("carrier", "hour").distinct()


@query
def drop_duplicates(spark, t):
    return t.flights.select("carrier", "hour").dropDuplicates(["carrier", "hour"])


@query
def explode(spark, t):
    return t.carriers.select("carrier", F.explode(F.sequence(F.lit(1), "rank")).alias("each")).where("rank > 0")


@query
def window(spark, t):
    by_carrier = Window.partitionBy("carrier").orderBy("id")
    return t.flights.withColumn("n", F.row_number().over(by_carrier)).where("n < 4")


@query
def window_without_partitions(spark, t):
    return t.carriers.withColumn("n", F.row_number().over(Window.orderBy("rank")))


@query
def repartition(spark, t):
    return t.flights.select("id").repartition(5)


@query
def repartition_by_column(spark, t):
    return t.flights.repartition(5, "carrier").groupBy("carrier").count()


@query
def repartition_by_range(spark, t):
    return t.flights.repartitionByRange(3, "delay")


@query
def repartition_then_aggregate(spark, t):
    return t.flights.repartition(5).groupBy("hour").count()


@query
def coalesce(spark, t):
    return t.flights.repartition(6).coalesce(4).select("id")


@query
def coalesce_to_one(spark, t):
    return t.flights.coalesce(1).groupBy("hour").count()


@query
def sample(spark, t):
    return t.flights.sample(0.1, seed=7)


@query
def local_rows(spark, t):
    return spark.createDataFrame([(1, "a"), (2, "b"), (3, "c")], "x int, y string").where("x > 1")


@query
def range_of_numbers(spark, t):
    return spark.range(0, 100, 1, 7).selectExpr("id * 2 AS twice")


@query
def empty_rows(spark, t):
    return spark.createDataFrame([], "x int, y string").groupBy("y").agg(F.sum("x"))


@query
def empty_rows_alone(spark, t):
    return spark.createDataFrame([], "x int, y string")


@query
def empty_files(spark, t):
    return t.flights.where("1 = 0").groupBy("hour").count()


@query
def rows_of_an_rdd(spark, t):
    return spark.createDataFrame(spark.sparkContext.parallelize([(n, n % 3) for n in range(10)], 3), "a int, b int")


@query
def scalar_subquery(spark, t):
    t.flights.createOrReplaceTempView("kinds_flights")
    return spark.sql("SELECT * FROM kinds_flights WHERE delay > (SELECT AVG(delay) FROM kinds_flights)")


@query
def scalar_subquery_used_twice(spark, t):
    t.flights.createOrReplaceTempView("kinds_flights")
    return spark.sql(
        "SELECT id, delay - (SELECT AVG(delay) FROM kinds_flights) AS d FROM kinds_flights"
        " WHERE delay > (SELECT AVG(delay) FROM kinds_flights)"
    )


@query
def in_and_exists(spark, t):
    t.flights.createOrReplaceTempView("kinds_flights")
    t.carriers.createOrReplaceTempView("kinds_carriers")
    return spark.sql(
        "SELECT id FROM kinds_flights f WHERE carrier IN (SELECT carrier FROM kinds_carriers WHERE rank > 3)"
        " AND NOT EXISTS (SELECT 1 FROM kinds_carriers c WHERE c.rank = f.hour)"
    )


@query
def pruned_partitions(spark, t):
    return t.by_month.where("month = 3").groupBy("hour").count()


@query
def plain_udf(spark, t):
    twice = F.udf(lambda hour: hour * 2, "int")
    return t.flights.select("id", twice("hour").alias("twice")).where("twice > 10")


@query
def pandas_udf(spark, t):
    @F.pandas_udf("double")
    def scaled(delay: pd.Series) -> pd.Series:
        return delay * 10

    return t.flights.select("id", scaled("delay").alias("scaled"))


@query
def map_in_pandas(spark, t):
    def keep(frames: Any) -> Any:
        for frame in frames:
            yield frame[frame.hour == 3][["id"]]

    return t.flights.mapInPandas(keep, "id long")


@query
def apply_in_pandas(spark, t):
    def centred(frame: Any) -> Any:
        return frame.assign(delay=frame.delay - frame.delay.mean())[["id", "delay"]]

    return t.flights.groupBy("carrier").applyInPandas(centred, "id long, delay double")


@query
def cogrouped(spark, t):
    def sizes(key: Any, one: Any, other: Any) -> Any:
        return pd.DataFrame({"carrier": [key[0]], "one": [len(one)], "other": [len(other)]})

    grouped = t.flights.groupBy("carrier").cogroup(t.carriers.groupBy("carrier"))
    return grouped.applyInPandas(sizes, "carrier string, one long, other long")


@query
def checkpointed(spark, t):
    return t.flights.where("hour = 1").localCheckpoint().groupBy("carrier").count()


@query
def three_shuffles(spark, t):
    late = t.flights.where("delay > 0").join(t.carriers.hint("merge"), "carrier")
    return late.groupBy("name", "hour").count().groupBy("hour").agg(F.max("count").alias("most")).orderBy("hour")


INNER_STAGES = {"nested_loop_full_outer_join": [2]}
"""Tasks of the stages that Spark runs inside an operator, so that they belong to the operator's vertex."""


def comparable(rows: list[Any]) -> Counter[str]:
    return Counter(map(repr, rows))


@pytest.mark.matrix(5)
@pytest.mark.parametrize("name", QUERIES)
def test_runs_as_in_spark(name, spark, tables, status, runner, plain, compiled):
    df = QUERIES[name](spark, tables)
    jobs_before = status.jobs()
    job = plan({"result": df}, JobOptions(parallelism=3))
    graph = compiled(job)
    assert status.jobs() == jobs_before, "planning started a Spark job"

    with status.watch() as ours:
        rows = runner.run(job)["result"]
    expected_rows, theirs = plain(df, 3)

    assert comparable(rows) == comparable(expected_rows)
    handles = [vertex.operator_factory for vertex in graph.vertices_in_topological_order()]
    assert all(isinstance(handle, StageHandle) for handle in handles)
    sampling = sum(handle.starts_jobs_early for handle in handles)
    planned = sorted(handle.tasks for handle in handles if handle.tasks)
    inner = INNER_STAGES.get(name, [])
    if not sampling:
        assert sorted(planned + inner) == sorted(theirs.stages.values())
    assert len(planned) + len(inner) + sampling == len(theirs.stages)
    assert sorted(ours.stages.values()) == sorted(theirs.stages.values())
