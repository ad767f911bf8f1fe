"""Statements in SQL that write, deferred: they leave what plain Spark leaves, and their stages are the job's."""

from __future__ import annotations

from pathlib import Path

import pytest

from flinkmagic.capturing.capture import capture
from flinkmagic.scheduling.job_status import JobStatus

DRIVER = "org.apache.derby.iapi.jdbc.AutoloadedDriver"
QUERY = "SELECT sum(id) AS total, k FROM (SELECT k, m, sum(id) AS id FROM sql_numbers GROUP BY k, m) GROUP BY k"
WITH = "WITH sums AS (SELECT k, m, sum(id) AS id FROM sql_numbers GROUP BY k, m)"


@pytest.fixture(autouse=True)
def sql_numbers(spark, numbers):
    spark.read.parquet(numbers).createOrReplaceTempView("sql_numbers")


@pytest.fixture
def tables(spark):
    """Two tables partitioned by k, with a row of -1 for k = 1 and k = 9; what they are called is gone afterwards."""
    for name in ("sql_plain", "sql_late"):
        for made in (name, f"{name}_made"):
            spark.sql(f"DROP TABLE IF EXISTS {made}")
        spark.sql(f"CREATE TABLE {name} (total BIGINT, k BIGINT) USING parquet PARTITIONED BY (k)")
        spark.sql(f"INSERT INTO {name} VALUES (-1, 1), (-1, 9)")
    yield
    for name in ("sql_plain", "sql_late"):
        for made in (name, f"{name}_made"):
            spark.sql(f"DROP TABLE IF EXISTS {made}")


def _rows(frame):
    return sorted(tuple(row) for row in frame.collect())


STATEMENTS = {
    "insert": f"INSERT INTO {{t}} {QUERY}",
    "by name": f"INSERT INTO {{t}} BY NAME SELECT k, total FROM ({QUERY})",
    "common": f"{WITH} INSERT INTO {{t}} SELECT sum(id), k FROM sums GROUP BY k",
    "overwrite": f"INSERT OVERWRITE {{t}} {QUERY}",
    "partition": f"INSERT OVERWRITE {{t}} PARTITION (k = 9) SELECT total FROM ({QUERY})",
    "partition that is there": f"INSERT OVERWRITE {{t}} PARTITION (k = 9) IF NOT EXISTS SELECT total FROM ({QUERY})",
    "partition that is not": f"INSERT OVERWRITE {{t}} PARTITION (k = 4) IF NOT EXISTS SELECT total FROM ({QUERY})",
    "dynamic": f"INSERT OVERWRITE {{t}} PARTITION (k) {QUERY}",
    "create": f"CREATE TABLE {{t}}_made USING orc PARTITIONED BY (k) COMMENT 'made' AS {QUERY}",
    "create common": f"CREATE TABLE {{t}}_made AS {WITH} SELECT a.* FROM sums a JOIN sums b ON a.id = b.id",
    "directory": f"INSERT OVERWRITE DIRECTORY '{{at}}/{{t}}' USING parquet {QUERY}",
}


@pytest.mark.matrix(4)
@pytest.mark.parametrize("text", STATEMENTS.values(), ids=STATEMENTS.keys())
def test_a_statement_leaves_what_plain_spark_leaves(spark, deploy, tables, spark_work, tmp_path, text):
    if "PARTITION (k) SELECT" in text:
        spark.conf.set("spark.sql.sources.partitionOverwriteMode", "dynamic")
    try:
        spark.sql(text.format(t="sql_plain", at=tmp_path))
        with capture(spark) as program:
            answer = spark.sql(text.format(t="sql_late", at=tmp_path))
    finally:
        spark.conf.unset("spark.sql.sources.partitionOverwriteMode")
    assert (answer.collect(), len(program.writes), program.eager.statements) == ([], 1, ())
    assert _rows(spark.table("sql_late")) == [(-1, 1), (-1, 9)]
    assert not spark.catalog.tableExists("sql_late_made")
    before = spark_work.jobs()
    deployment = deploy(program)
    assert deployment.wait(100) is JobStatus.FINISHED, deployment.exceptions()
    if "EXISTS" not in text and "JOIN" not in text:
        # The stages of the query are the job's own: none of them ran beside it, or twice.
        ran = spark_work.tasks_by_stage(before)
        assert len(deployment.execution_graph.job_vertices) == len(ran) == 3
        assert sum(ran.values()) == len(deployment.tasks())
    assert _rows(spark.table("sql_late")) == _rows(spark.table("sql_plain"))
    if "CREATE" in text:
        plain, late = (spark.table(f"{name}_made") for name in ("sql_plain", "sql_late"))
        assert (_rows(late), late.schema) == (_rows(plain), plain.schema)
        assert _described(spark, "sql_late_made") == _described(spark, "sql_plain_made")
    if "DIRECTORY" in text:
        assert _rows(spark.read.parquet(f"{tmp_path}/sql_late")) == _rows(spark.read.parquet(f"{tmp_path}/sql_plain"))


def _described(spark, name):
    told = {row["col_name"]: row["data_type"] for row in spark.sql(f"DESCRIBE EXTENDED {name}").collect()}
    return {key: told.get(key) for key in ("Provider", "Comment", "Type", "k", "total", "# Partition Information")}


@pytest.mark.long
def test_several_inserts_in_one_statement_are_sinks_of_one_job(spark, deploy, tables):
    with capture(spark) as program:
        first, second = "INSERT INTO sql_plain SELECT total, k WHERE k < 2", "INSERT INTO sql_late SELECT total, k + 10"
        spark.sql(f"FROM ({QUERY}) {first} {second}")
    assert [write.name for write in program.writes] == ["sql_plain", "sql_late"]
    deployment = deploy(program)
    assert deployment.wait(100) is JobStatus.FINISHED, deployment.exceptions()
    sums = {row["k"]: row["total"] for row in spark.sql(QUERY).collect()}
    assert _rows(spark.table("sql_plain")) == sorted([(-1, 1), (-1, 9), (sums[0], 0), (sums[1], 1)])
    assert _rows(spark.table("sql_late")) == sorted([(-1, 1), (-1, 9), *((total, k + 10) for k, total in sums.items())])


def test_a_statement_and_a_writer_share_what_they_have_in_common(spark, deploy, tables, tmp_path):
    with capture(spark) as program:
        sums = spark.sql(QUERY)
        sums.createOrReplaceTempView("sql_sums")
        sums.write.parquet(str(tmp_path / "sums"))
        spark.sql("INSERT INTO sql_late SELECT * FROM {sums} WHERE k < :most", args={"most": 3}, sums=sums)
        spark.sql("CREATE TABLE sql_late_made USING parquet AS SELECT max(total) AS most FROM sql_sums")
    deployment = deploy(program)
    assert deployment.wait(100) is JobStatus.FINISHED, deployment.exceptions()
    assert len(deployment.kept_boundaries()) == 1
    totals = {k: total for total, k in _rows(spark.read.parquet(str(tmp_path / "sums")))}
    assert sorted(totals) == list(range(7))
    assert _rows(spark.table("sql_late")) == sorted([(-1, 1), (-1, 9), *((totals[k], k) for k in range(3))])
    assert _rows(spark.table("sql_late_made")) == [(max(totals.values()),)]


@pytest.mark.long
def test_tables_of_another_catalog(spark, deploy, tmp_path):
    settings = {
        "spark.sql.catalog.sqldb": "org.apache.spark.sql.execution.datasources.v2.jdbc.JDBCTableCatalog",
        "spark.sql.catalog.sqldb.url": f"jdbc:derby:{Path(tmp_path) / 'db'};create=true",
        "spark.sql.catalog.sqldb.driver": DRIVER,
    }
    for key, value in settings.items():
        spark.conf.set(key, value)
    statements = (
        f"CREATE TABLE sqldb.APP.{{t}} AS {QUERY}",
        "INSERT INTO sqldb.APP.{t} BY NAME SELECT k + 10 AS k, total FROM sqldb.APP.{t} WHERE k > 4",
        f"INSERT OVERWRITE sqldb.APP.{{t}} SELECT * FROM ({QUERY}) WHERE k > 2",
        f"CREATE OR REPLACE TABLE sqldb.APP.{{t}} AS SELECT total, k + 1 AS k FROM ({QUERY})",
    )
    try:
        for text in statements:
            spark.sql(text.format(t="PLAIN"))
            with capture(spark) as program:
                spark.sql(text.format(t="LATE"))
            assert len(program.writes) == 1
            deployment = deploy(program)
            assert deployment.wait(100) is JobStatus.FINISHED, deployment.exceptions()
            assert _rows(spark.table("sqldb.APP.LATE")) == _rows(spark.table("sqldb.APP.PLAIN"))
    finally:
        for key in settings:
            spark.conf.unset(key)
