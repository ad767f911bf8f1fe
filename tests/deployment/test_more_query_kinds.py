"""Kinds of queries that few jobs have, deployed: rows, their order, types and nulls are those of a plain run."""

from __future__ import annotations

import pandas as pd
import pyarrow as pa
import pytest
from pyspark.sql import functions as F

from flinkmagic.scheduling.job_status import JobStatus

ORDERED = {"offset", "top_k", "sorted_nulls"}


@pytest.fixture(scope="module")
def tables(spark, tmp_path_factory):
    """`orders` with nulls in its keys and values and in an array; `days`, a folder for each day; a permanent view."""
    folder = str(tmp_path_factory.mktemp("more_kinds"))
    orders = spark.range(0, 600, 1, 3).selectExpr(
        "id",
        "IF(id % 11 = 0, NULL, id % 7) AS k",
        "IF(id % 5 = 0, NULL, CAST(id % 40 AS decimal(9, 2))) AS amount",
        "IF(id % 13 = 0, NULL, concat('n', id % 6)) AS name",
        "IF(id % 17 = 0, NULL, array(id, NULL)) AS parts",
        "CAST(id % 4 AS int) AS day",
    )
    orders.write.parquet(f"{folder}/orders")
    spark.read.parquet(f"{folder}/orders").write.partitionBy("day").parquet(f"{folder}/days")
    spark.range(6).selectExpr("IF(id = 5, NULL, id) AS k", "id * 10 AS ten").write.parquet(f"{folder}/small")
    spark.read.parquet(f"{folder}/orders").write.partitionBy("day").saveAsTable("more_days")
    for name in ("orders", "small"):
        written = spark.read.parquet(f"{folder}/{name}").write
        written.bucketBy(4, "k").sortBy("k").saveAsTable(f"more_bucketed_{name}")
    spark.read.parquet(f"{folder}/orders").createOrReplaceTempView("more_orders")
    spark.read.parquet(f"{folder}/small").createOrReplaceTempView("more_small")
    spark.read.parquet(f"{folder}/small").createOrReplaceGlobalTempView("more_small")
    spark.sql(f"CREATE OR REPLACE VIEW more_permanent AS SELECT k, amount FROM parquet.`{folder}/orders`")
    spark.sparkContext.setCheckpointDir(f"{folder}/checkpoints")
    yield folder
    spark.sql("DROP VIEW more_permanent")
    for name in ("more_days", "more_bucketed_orders", "more_bucketed_small"):
        spark.sql(f"DROP TABLE {name}")
    spark.catalog.dropGlobalTempView("more_small")


def _sql_kinds(spark):
    joins = {
        f"{kind.replace(' ', '_')}_join": f"SELECT * FROM more_orders o {kind} JOIN more_small s ON o.k = s.k"
        for kind in ("INNER", "LEFT", "RIGHT", "FULL", "LEFT SEMI", "LEFT ANTI")
    }
    queries = {
        **joins,
        "nested_loop_join": "SELECT o.id, s.ten FROM more_orders o LEFT JOIN more_small s ON o.amount < s.ten - 20",
        "null_safe_join": "SELECT o.id, s.ten FROM more_orders o JOIN more_small s ON o.k <=> s.k",
        "lateral_join": "SELECT s.k, t.n FROM more_small s, LATERAL (SELECT count(*) AS n FROM more_orders o "
        "WHERE o.k = s.k) t",
        "grouping_sets": "SELECT k, day, sum(amount), grouping_id() FROM more_orders "
        "GROUP BY GROUPING SETS ((k), (day), ())",
        "cube": "SELECT k, day, count(DISTINCT name) AS names FROM more_orders GROUP BY CUBE (k, day)",
        "not_in": "SELECT id FROM more_orders WHERE day NOT IN (SELECT ten FROM more_small)",
        "correlated": "SELECT id FROM more_orders o WHERE amount > (SELECT avg(ten) FROM more_small s WHERE s.k = o.k)",
        "intersect": "SELECT k FROM more_orders INTERSECT ALL SELECT k FROM more_small",
        "permanent_view": "SELECT k, sum(amount) FROM more_permanent GROUP BY k",
        "global_view": "SELECT sum(ten) FROM global_temp.more_small WHERE k IS NOT NULL",
        "bucketed_join": "SELECT /*+ MERGE(s) */ * FROM more_bucketed_orders o JOIN more_bucketed_small s ON o.k = s.k",
        "bucketed_group": "SELECT k, sum(amount) FROM more_bucketed_orders GROUP BY k",
        "partitioned_table": "SELECT day, count(k), max(name) FROM more_days WHERE day > 1 GROUP BY day",
        "partitioned_table_pruned_by_a_join": "SELECT d.* FROM more_days d JOIN (SELECT CAST(k AS int) AS day "
        "FROM more_small WHERE ten = 20) s USING (day)",
        "offset": "SELECT id, k FROM more_orders ORDER BY k NULLS LAST, id LIMIT 20 OFFSET 7",
        "top_k": "SELECT id, amount FROM more_orders ORDER BY amount DESC NULLS FIRST, id LIMIT 150",
        "sorted_nulls": "SELECT id, name FROM more_orders ORDER BY name DESC, id",
        "generated": "SELECT id, pos, part FROM more_orders LATERAL VIEW OUTER posexplode(parts) AS pos, part",
    }
    return {name: spark.sql(query) for name, query in queries.items()}


def _python_kinds(orders):
    def keep(frames):
        for frame in frames:
            yield frame[frame.day == 3][["id", "name"]]

    def keep_in_arrow(batches):
        for batch in batches:
            yield batch.select(["id", "amount"])

    def sizes(key, one, other):
        return pd.DataFrame({"day": [key[0]], "one": [len(one)], "other": [len(other)]})

    def first_in_arrow(table):
        return pa.table({"day": table["day"].slice(0, 1), "rows": pa.array([table.num_rows], pa.int64())})

    def halved(values: pd.Series) -> pd.Series:
        return values.astype("float64") / 2

    def most(ids: pd.Series) -> int:
        return int(ids.max())

    shout = lambda name: None if name is None else name.upper()  # noqa: E731
    by_day = orders.groupBy("day")
    return {
        "pickled_udf": orders.select("id", F.udf(shout, "string", useArrow=False)("name").alias("loud")),
        "arrow_optimised_udf": orders.select("id", F.udf(shout, "string", useArrow=True)("name").alias("loud")),
        "udf_in_a_filter": orders.where(F.udf(lambda name: name == "n3", "boolean")("name")),
        "pandas_udf_of_nulls": orders.groupBy(F.pandas_udf(halved, "double")("amount").alias("half")).count(),
        "grouped_pandas_udf": by_day.agg(F.pandas_udf(most, "long")("id").alias("most")),
        "map_in_pandas": orders.mapInPandas(keep, "id long, name string"),
        "map_in_arrow": orders.mapInArrow(keep_in_arrow, "id long, amount decimal(9,2)"),
        "apply_in_arrow": by_day.applyInArrow(first_in_arrow, "day int, rows long"),
        "cogrouped": by_day.cogroup(orders.where("k = 1").groupBy("day")).applyInPandas(
            sizes, "day int, one long, other long"
        ),
    }


@pytest.fixture
def kinds(spark, tables):
    orders = spark.read.parquet(f"{tables}/orders")
    days, small = spark.read.parquet(f"{tables}/days"), spark.read.parquet(f"{tables}/small")
    spark.conf.set("spark.sql.sources.useV1SourceList", "")
    of_version_2 = spark.read.parquet(f"{tables}/orders")
    spark.conf.unset("spark.sql.sources.useV1SourceList")
    chosen = small.where("ten IN (10, 20)").selectExpr("CAST(k AS int) AS day")
    return {
        **_sql_kinds(spark),
        **_python_kinds(orders),
        "pivot": orders.groupBy("day").pivot("name", ["n1", "n2"]).agg(F.sum("amount")),
        "pruned_partitions_by_a_join": days.join(F.broadcast(chosen), "day").groupBy("day").count(),
        "version_2_source": of_version_2.where("amount > 3").groupBy("day").count(),
        "checkpointed": orders.where("day = 1").checkpoint().groupBy("k").count(),
        "checkpointed_locally": orders.where("day = 2").localCheckpoint().groupBy("name").count(),
        "no_rows": orders.where("id < 0").join(small, "k").groupBy("k").agg(F.sum("amount")),
        "unpivoted": orders.unpivot(["id"], ["k", "day"], "which", "value").groupBy("which").agg(F.max("value")),
    }


@pytest.mark.long
def test_rows_order_types_and_nulls_are_those_of_a_plain_run(kinds, deploy, spark_work, ran_once):
    before = spark_work.jobs()
    deployment = deploy(kinds, parallelism=None)
    assert deployment.wait(280) is JobStatus.FINISHED, deployment.exceptions()
    ran = spark_work.tasks_by_stage(before)
    ran_once(deployment.tasks(), ran)
    for name, frame in kinds.items():
        result = deployment.result(name)
        rows, plain = result.collect(), frame.collect()
        if name not in ORDERED:
            rows, plain = sorted(rows, key=str), sorted(plain, key=str)
        assert rows == plain, name
        assert result.schema == frame.schema, name
        assert (rows == []) is (name == "no_rows"), name


@pytest.mark.long
def test_partitions_that_a_join_prunes_are_not_read(spark, deploy, tables):
    days, small = spark.read.parquet(f"{tables}/days"), spark.read.parquet(f"{tables}/small")
    chosen = small.where("ten IN (10, 20)").selectExpr("CAST(k AS int) AS day")
    deployment = deploy({"pruned": days.join(F.broadcast(chosen), "day").select("id", "day")})
    assert deployment.wait(60) is JobStatus.FINISHED
    names = {vertex.id: vertex.name for vertex in deployment.execution_graph.job_vertices}
    read = sum(task.rows_in or 0 for task in deployment.tasks() if "days" in names.get(task.vertex_id, ""))
    assert read == days.where("day IN (1, 2)").count() == 300
