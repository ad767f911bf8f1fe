"""Listeners of the user's session hear of deferred writes what they hear of plain ones."""

from __future__ import annotations

from weakref import WeakKeyDictionary

import pytest
from pyspark.sql import functions as F

from flinkmagic.capturing.capture import capture
from flinkmagic.deployment.java_classes import CLASSES
from flinkmagic.deployment.stages import session_queries
from flinkmagic.scheduling.job_status import JobStatus


@pytest.fixture
def heard(spark, listener_class):
    """What a listener hears that is registered only when it is first asked for."""
    manager = spark._jsparkSession.listenerManager()
    listener = listener_class.newInstance()
    registered = []

    def queries(own=True):
        """Of each query how it ended, its command, and the rows that its plan counted.

        `own`: only of those of the user's own session, and not of its clones, which have its listeners, too.
        """
        if not registered:
            manager.register(listener)
            registered.append(listener)
        spark.sparkContext._jsc.sc().listenerBus().waitUntilEmpty()
        found = []
        while (name := listener.next()) is not None:
            query = listener.next()
            if not own or query.sparkSession().equals(spark._jsparkSession):
                rows = query.executedPlan().metrics().get("numOutputRows")
                found.append((name, query.analyzed().nodeName(), rows.get().value() if rows.isDefined() else None))
        return found

    yield queries
    for each in registered:
        manager.unregister(each)


def test_a_listener_hears_of_writes_as_of_plain_ones(spark, deploy, tmp_path, heard):
    frame = spark.range(0, 9, 1, 2).groupBy((F.col("id") % 3).alias("k")).count()
    failing = frame.select(F.expr("raise_error('no')").alias("id"))

    def writes(where):
        frame.write.parquet(str(tmp_path / where))
        frame.write.format("noop").mode("overwrite").save()

    with capture(spark) as program:
        writes("deferred")
    with capture(spark) as failed:
        failing.write.parquet(str(tmp_path / "failed"))
    assert heard() == []
    writes("plain")
    plain = heard()
    assert [name for name, _, _ in plain] == ["command", "overwrite"]
    assert deploy(program).wait(60) is JobStatus.FINISHED
    deferred = heard()
    assert sorted(query[:2] for query in deferred) == sorted(query[:2] for query in plain)
    # The plan that a listener sees is the one that ran; plain Spark hides its counts under its adaptive plan.
    assert ("command", "InsertIntoHadoopFsRelationCommand", 3) in [
        (name, command.removeprefix("Execute "), rows) for name, command, rows in deferred
    ]
    assert deploy(failed).wait(60) is JobStatus.FAILED
    ((name, command, _),) = heard()
    assert (name, command.removeprefix("Execute ")) == ("command failed", "InsertIntoHadoopFsRelationCommand")


@pytest.mark.long
def test_a_listener_hears_of_writes_to_tables_and_of_what_runs_inside_them(spark, deploy, tmp_path, heard):
    frame = spark.range(0, 9, 1, 2).groupBy((F.col("id") % 3).alias("k")).count()
    driver = {"driver": "org.apache.derby.iapi.jdbc.AutoloadedDriver"}

    def writes(who):
        yield lambda: frame.write.saveAsTable(f"heard_{who}")
        yield lambda: frame.write.insertInto(f"heard_{who}")
        yield lambda: frame.write.mode("overwrite").saveAsTable(f"heard_{who}")
        yield lambda: frame.writeTo(f"heard_{who}_2").using("parquet").create()
        yield lambda: frame.write.jdbc(f"jdbc:derby:{tmp_path / 'db'};create=true", f"HEARD_{who}", properties=driver)

    assert heard() == []
    try:
        for plain, deferred in zip(writes("plain"), writes("late"), strict=True):
            plain()
            of_plain = heard()
            with capture(spark) as program:
                deferred()
            assert heard() == []
            assert deploy(program).wait(60) is JobStatus.FINISHED
            # What a command runs inside it is told first.
            told = heard(own=False)
            assert [query[:2] for query in told] == [query[:2] for query in of_plain]
            assert len(told) in (1, 2, 3)
    finally:
        for name in ("plain", "plain_2", "late", "late_2"):
            spark.sql(f"DROP TABLE IF EXISTS heard_{name}")


def test_the_configuration_is_that_of_the_writes_line_all_the_same(spark, deploy, tmp_path):
    spark.conf.set("spark.sql.session.timeZone", "Asia/Tokyo")
    try:
        with capture(spark) as program:
            at = spark.range(1).selectExpr("CAST(timestamp_seconds(id) AS STRING)", "timestamp_seconds(id) AS at")
            at.coalesce(1).write.csv(str(tmp_path / "out"))
    finally:
        spark.conf.unset("spark.sql.session.timeZone")
    assert deploy(program).wait(60) is JobStatus.FINISHED
    (line,) = spark.read.text(str(tmp_path / "out")).collect()
    assert line[0] == "1970-01-01 09:00:00,1970-01-01T09:00:00.000+09:00"


def test_where_queries_are_made_in_another_way_the_write_is_run_all_the_same(
    spark, deploy, tmp_path, monkeypatch, caplog
):
    monkeypatch.setattr(CLASSES, "_compiled", WeakKeyDictionary())
    monkeypatch.setattr(session_queries, "_arguments", lambda jvm: "noSuchDefault()")
    with capture(spark) as program:
        spark.range(3).write.parquet(str(tmp_path / "out"))
    assert deploy(program).wait(60) is JobStatus.FINISHED
    assert spark.read.parquet(str(tmp_path / "out")).count() == 3
    assert "its queries differently (Spark's driver did not compile SessionQuery.java" in caplog.text
