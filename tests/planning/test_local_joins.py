"""Which joins of few rows are evaluated while a query is planned, and what they come to."""

from __future__ import annotations

import pytest
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from flinkmagic.jvm.java import dataset_of, simple_name
from flinkmagic.planning.java_classes import CLASSES


@pytest.fixture
def left(spark):
    return spark.sql("""SELECT * FROM VALUES
        (1, 'one', 1.50, DATE'2026-01-01', array(1, NULL), named_struct('x', 1, 'y', 'a'), map('k', 2), X'00FF'),
        (2, NULL, 2.50, NULL, NULL, NULL, NULL, NULL),
        (NULL, 'none', NULL, DATE'2026-01-03', array(3), named_struct('x', NULL, 'y', 'c'), map('k', NULL), X'')
        AS t (id, text, amount, day, list, pair, named, bytes)""")


@pytest.fixture
def right(spark):
    return spark.sql("""SELECT * FROM VALUES
        (1, 10L, TIMESTAMP'2026-01-01 10:00:00'), (1, 11L, NULL), (3, 0L, TIMESTAMP'2026-01-02 10:00:00'),
        (NULL, 13L, NULL) AS t (key, value, at)""")


def evaluated(df):
    """Return a DataFrame over the plan without joins; None if none was evaluated."""
    spark = df.sparkSession
    joins = CLASSES.shared_instance(spark.sparkContext._gateway, "LocalJoins")
    plan = joins.evaluated(df._jdf.queryExecution().optimizedPlan())
    return None if plan is None else DataFrame(dataset_of(spark._jvm, spark._jsparkSession, plan), spark)


def kind(df):
    return simple_name(df._jdf.queryExecution().optimizedPlan())


JOINS = {
    "all pairs": lambda left, right: left.crossJoin(right),
    "by a key": lambda left, right: left.join(right, F.col("id") == F.col("key")),
    "by a key or null": lambda left, right: left.join(right, F.col("id").eqNullSafe(F.col("key"))),
    "by a condition": lambda left, right: left.join(right, F.col("id") * 10 < F.col("value")),
    "none match": lambda left, right: left.join(right, F.col("id") == F.col("value")),
    "with itself": lambda left, _: left.alias("a").join(left.alias("b"), F.col("a.id") < F.col("b.id")),
    "with what is above": lambda left, right: (
        left.crossJoin(right).where("value > 10").select(F.col("amount") * F.col("value"), "pair.y", "list", "at")
    ),
    "two joins": lambda left, right: (
        left.crossJoin(right).select("id", "value").join(right.select("key", "at"), F.col("id") == F.col("key"))
    ),
}


@pytest.mark.parametrize("join", JOINS.values(), ids=JOINS)
def test_rows_are_those_that_spark_joins(left, right, join):
    joined = join(left, right)
    found = evaluated(joined)
    assert kind(found) == "LocalRelation"
    assert found.schema == joined.schema
    assert sorted(map(repr, found.collect())) == sorted(map(repr, joined.collect()))


def test_a_join_below_an_aggregate_is_evaluated_alone(left, right):
    joined = left.join(right, F.col("id") == F.col("key")).agg(F.sum("value"), F.count("text"))
    found = evaluated(joined)
    assert kind(found) == "Aggregate"
    assert found.collect() == joined.collect() == [(21, 2)]


LEFT_TO_SPARK = {
    "no join": lambda left, _: left.groupBy("id").count(),
    "outer": lambda left, right: left.join(right, F.col("id") == F.col("key"), "left"),
    "semi": lambda left, right: left.join(right, F.col("id") == F.col("key"), "semi"),
    "rows of tasks": lambda left, _: left.crossJoin(left.sparkSession.range(3).repartition(2)),
    "many pairs": lambda left, _: left.join(many(left.sparkSession, 6000), F.col("n") < F.col("id")),
    "many rows": lambda left, _: left.crossJoin(many(left.sparkSession, 400)),
}


def many(spark, rows):
    return spark.sql(f"SELECT * FROM VALUES {', '.join(f'({n})' for n in range(rows))} AS t (n)")


@pytest.mark.parametrize("query", LEFT_TO_SPARK.values(), ids=LEFT_TO_SPARK)
def test_what_is_left_to_spark(left, right, query):
    assert evaluated(query(left, right)) is None


def test_an_expression_that_raises_is_left_to_spark(spark, left, right):
    spark.conf.set("spark.sql.ansi.enabled", "true")
    try:
        ratio = F.lit(20) / F.col("value") > F.col("amount")
        joined = left.join(right, (F.col("id") == F.col("key")) & ratio)
        assert evaluated(joined).count() == joined.count() == 2  # no pair of one key has 0
        assert evaluated(left.join(right, ratio)) is None
        assert evaluated(left.crossJoin(right).select(ratio)) is None
    finally:
        spark.conf.unset("spark.sql.ansi.enabled")
