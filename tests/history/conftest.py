"""One log of a few queries, for all tests of a process."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import Window
from pyspark.sql import functions as F

from flinkmagic.history.event_files import find_logs
from flinkmagic.history.event_log import read_application
from flinkmagic.history.logged_run import LoggedRun, logged_runs
from tests.history.logging_spark import APP_ID, logged


@pytest.fixture(scope="session")
def log(spark, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The log: a write, a join by broadcast, a sort, a cache, first rows, a job of an RDD, partitions, a failure."""
    folder = tmp_path_factory.mktemp("history")
    own = spark.newSession()
    own.conf.set("spark.sql.shuffle.partitions", "3")
    rows = str(folder / "rows")
    with logged(spark, folder / "logs"):
        source = own.range(0, 3000, 1, 3).select("id", (F.col("id") % 10).alias("k"))
        source.write.parquet(rows)
        read = own.read.parquet(rows)
        keys = own.range(0, 5, 1, 1).select(F.col("id").alias("k"), F.concat(F.lit("n"), "id").alias("name"))
        read.join(F.broadcast(keys), "k").groupBy("name").count().orderBy("name").collect()
        kept = read.where("k < 3").cache()
        kept.count()
        kept.unpersist()
        again = read.where("k < 4").cache()
        again.count()
        again.agg(F.sum("id")).collect()
        again.unpersist()
        read.orderBy("id").limit(30).groupBy("k").count().collect()
        own.sparkContext.parallelize(range(20), 2).map(lambda one: (one % 3, one)).reduceByKey(max, 2).collect()
        read.write.partitionBy("k").parquet(str(folder / "parts"))
        parts = own.read.parquet(str(folder / "parts"))
        sevens = parts.where(F.udf(lambda k: k == 7, "boolean")("k")).orderBy("id")
        place = F.row_number().over(Window.partitionBy("k").orderBy(F.desc("id")))
        sevens.withColumn("place", place).write.format("noop").mode("append").save()
        with pytest.raises(Exception, match="no way"):
            own.range(0, 2, 1, 1).select(F.raise_error(F.lit("no way <b>out</b>"))).collect()
    return folder / "logs" / APP_ID


@pytest.fixture(scope="session")
def runs(log: Path) -> dict[str, LoggedRun]:
    """The jobs of that log, by what they do."""
    (found,) = find_logs(log)
    names = ("write", "join", "cache", "fill", "again", "first", "rdd", "parts", "needless", "failure")
    told = [run for run in logged_runs(read_application(found)) if run.n_tasks]
    whole = [run for run in told if run.executions or len(run.facts.vertices) > 1]
    return dict(zip(names, whole, strict=True))
