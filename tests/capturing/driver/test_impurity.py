"""The functions of others than Spark in plans and lineages."""

from __future__ import annotations

from typing import Any

import pytest
from pyspark.sql import functions as F

from flinkmagic.capturing.driver import impurity
from flinkmagic.capturing.driver.impurity import functions_of, functions_of_rdd


def _plan(df: Any) -> Any:
    return df._jdf.queryExecution().analyzed()


def _twice(rows: Any) -> Any:
    yield from rows


@pytest.mark.parametrize(
    ("query", "number"),
    [
        ("numbers.groupBy(F.col('id') % 2).agg(F.sum('id')).orderBy('sum(id)')", 0),
        ("numbers.select(double('id'))", 1),
        ("numbers.where(double('id') > 2).join(numbers.select(double('id').alias('id')), 'id')", 1),
        ("numbers.mapInPandas(twice, 'id long')", 1),
        ("numbers.groupBy('id').applyInPandas(lambda frame: frame, 'id long')", 1),
        ("numbers.rdd.map(tuple).toDF('id long')", 1),
        ("numbers.select(double('id').alias('id')).rdd.toDF('id long')", 2),
        ("numbers.select(double('id').alias('id')).cache()", 1),
        ("spark.sql('select (select max(two(id)) from range(3)) from range(2)')", 1),
    ],
)
def test_python_functions_of_a_plan(spark: Any, query: str, number: int) -> None:
    double = F.udf(lambda value: value * 2, "long")
    spark.udf.register("two", double)
    names = {"spark": spark, "F": F, "numbers": spark.range(4), "double": double, "twice": _twice}
    try:
        found = functions_of(_plan(eval(query, names)))
    finally:
        spark.catalog.clearCache()
    assert found.opaque is None
    assert len(found.pickled) >= number
    assert bool(found.pickled) == bool(number)


def test_the_lineage_of_an_rdd(spark: Any) -> None:
    frame = spark.range(4).select(F.udf(lambda value: value * 7919, "long")("id"))
    found = functions_of_rdd(frame._jdf.queryExecution().toRdd())
    assert found.opaque is None
    assert any(b"\xef\x1e" in pickled for pickled in found.pickled)  # 7919, as a pickle holds it
    numbers = spark.sparkContext.parallelize(range(4))
    mapped = numbers.map(lambda value: value + 7919).groupBy(lambda value: value % 2).mapValues(list)
    assert any(b"\xef\x1e" in pickled for pickled in functions_of_rdd(mapped._jrdd.rdd()).pickled)
    assert functions_of_rdd(spark.range(4)._jdf.queryExecution().toRdd()).pickled == ()


@pytest.mark.parametrize(
    ("query", "what"),
    [
        ("select reflect('java.lang.System', 'getProperty', 'user.dir')", "CallMethodViaReflection"),
        ("select transform(id) using 'cat' as (a string) from range(2)", "a script"),
    ],
)
def test_code_that_cannot_be_seen(spark: Any, query: str, what: str) -> None:
    found = functions_of(_plan(spark.sql(query)))
    assert what in str(found.opaque)
    assert what in str(impurity.impure_reason(_plan(spark.sql(query))))


def test_the_functions_of_sparks_machine_learning_are_sparks_own(spark: Any) -> None:
    pytest.importorskip("numpy")
    from pyspark.ml.feature import Bucketizer

    frame = spark.range(4).selectExpr("cast(id as double) x")
    bucketed = Bucketizer(splits=[0.0, 2.0, 9.0], inputCol="x", outputCol="b").transform(frame)
    assert functions_of(_plan(bucketed)) == impurity.Functions((), None)
