"""Queries that Spark runs as one stage, known without planning them (`SingleStages.java`)."""

from __future__ import annotations

import pytest
from pyspark.sql import functions as F

from flinkmagic.planning.java_classes import CLASSES


@pytest.fixture(scope="module")
def source(spark, tmp_path_factory):
    path = str(tmp_path_factory.mktemp("single") / "rows")
    spark.range(20).selectExpr("id", "id % 3 AS k").write.parquet(path)
    return spark.read.parquet(path)


def takes_first_rows(df):
    stages = CLASSES.shared_instance(df.sparkSession.sparkContext._gateway, "SingleStages")
    return bool(stages.takesFirstRows(df._jdf.queryExecution()))


@pytest.mark.parametrize(
    "query",
    [
        lambda df: df.limit(5),
        lambda df: df.select((F.col("id") + 1).alias("next")).alias("a").limit(1),
        lambda df: df.limit(0),
    ],
    ids=["limit", "computed columns", "no rows"],
)
def test_the_first_rows_of_a_source(source, query):
    assert takes_first_rows(query(source))


@pytest.mark.parametrize(
    "query",
    [
        lambda df: df,
        lambda df: df.limit(5).select("k"),
        lambda df: df.where("k = 1").limit(5),
        lambda df: df.distinct().limit(5),
        lambda df: df.orderBy("k").limit(5),
        lambda df: df.join(df.select("k").distinct(), "k").limit(5),
        lambda df: df.select(F.explode(F.sequence(F.lit(0), "k"))).limit(5),
        lambda df: df.select(F.udf(lambda k: k)("k")).limit(5),
        lambda df: df.selectExpr("(SELECT max(id) FROM range(3)) AS m").limit(5),
        lambda df: df.offset(3).limit(5),
        lambda df: df.select(F.col("id") * 2).cache().limit(5),
    ],
    ids=[
        "all rows", "limit below", "filter", "distinct", "sort", "join", "explode", "Python", "subquery", "offset",
        "a cache to be filled",
    ],
)  # fmt: skip
def test_what_may_read_more_than_the_first_rows(spark, source, query):
    try:
        assert not takes_first_rows(query(source))
    finally:
        spark.catalog.clearCache()


def test_the_first_rows_of_a_view_and_of_a_filled_cache(spark, source):
    source.createOrReplaceTempView("single_rows")
    assert takes_first_rows(spark.sql("SELECT * FROM single_rows LIMIT 5"))
    cached = source.select((F.col("id") * 3).alias("thrice")).cache()
    try:
        cached.count()
        assert takes_first_rows(cached.limit(5))
    finally:
        cached.unpersist()
        spark.catalog.dropTempView("single_rows")
