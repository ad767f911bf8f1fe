"""Functions of `foreachBatch` through the machine: one graph for each batch, and nothing lost."""

from __future__ import annotations

import gc
import os
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import functions as F

from flinkmagic.capturing.source_code.source_location import CellSource
from flinkmagic.capturing.writes.writer_calls import NoCommandError, WriterCall
from flinkmagic.deployment.spark_deployment import SparkDeployment
from flinkmagic.planning import planner
from flinkmagic.scheduling.job_status import JobStatus
from flinkmagic.session import capture, compile, submitted_jobs

ROWS = 10


@pytest.fixture
def stream_of(spark, tmp_path):
    """Return a stream of so many batches; the batch n has the values from 10 n on."""

    def made(batches: int) -> Any:
        folder = tmp_path / "in"
        folder.mkdir()
        for number in range(batches):
            path = folder / f"{number}.csv"
            path.write_text("".join(f"{number * ROWS + row}\n" for row in range(ROWS)))
            os.utime(path, (1e9 + number, 1e9 + number))
        return spark.readStream.schema("value long").option("maxFilesPerTrigger", 1).csv(str(folder))

    return made


def run(spark, stream, function, **options):
    """Run a stream to its end with a function for batches; return its job."""
    with capture(spark, name="batches", mode="streaming") as program:
        stream.writeStream.foreachBatch(function).trigger(availableNow=True).start()
    job = compile(program, mode="streaming", **options).run(wait=False)
    job.wait(120)
    return job


def values(spark, folder) -> list[int]:
    return sorted(row.value for row in spark.read.schema("value long").json(str(folder)).collect())


def test_what_a_batch_writes_is_one_graph_and_shared_rows_are_computed_once(spark, stream_of, tmp_path) -> None:
    computed = spark.sparkContext.accumulator(0)

    def counted(value: int) -> int:
        computed.add(1)
        return value % 5

    def both(batch: Any, batch_id: int) -> None:
        keyed = batch.withColumn("k", F.udf(counted, "long")("value"))
        keyed.groupBy("k").agg(F.sum("value").alias("value")).write.mode("append").json(str(tmp_path / "sums"))
        keyed.where("k > 2").select("value").write.mode("append").json(str(tmp_path / "high"))

    job = run(spark, stream_of(3), both)
    assert job.status is JobStatus.FINISHED
    sums = spark.read.schema("k long, value long").json(str(tmp_path / "sums")).groupBy("k").sum("value").collect()
    assert {row[0]: row[1] for row in sums} == {k: sum(range(k, 30, 5)) for k in range(5)}
    assert values(spark, tmp_path / "high") == [value for value in range(30) if value % 5 > 2]
    assert computed.value == 30
    assert [(each.batch_id, each.status, each.reason) for each in job.batches()] == [
        (number, "FINISHED", "") for number in range(3)
    ]
    assert [len(each.graphs) for each in job.batches()] == [0, 0, 1]
    names = [vertex.name for vertex in job.batches()[-1].graphs[0].job_graph.vertices.values()]
    assert len(names) == 4, names
    # The batches are no jobs of their own for whoever lists jobs.
    assert [each.name for each in submitted_jobs()][-1] == "batches"
    assert "foreachBatch" not in [each.name for each in submitted_jobs()]


@pytest.mark.long
def test_a_write_that_fails_fails_its_batch_which_the_checkpoint_repeats(spark, stream_of, tmp_path, caplog) -> None:
    marker = tmp_path / "raised"

    def torn(value: int) -> int:
        if value == 25 and not marker.exists():
            marker.touch()
            raise ValueError("the third batch is torn")
        return value

    def both(batch: Any, batch_id: int) -> None:
        checked = batch.select(F.udf(torn, "long")("value").alias("value"))
        checked.write.mode("overwrite").json(str(tmp_path / "a" / f"batch={batch_id}"))
        checked.where("value % 2 = 0").write.mode("overwrite").json(str(tmp_path / "b" / f"batch={batch_id}"))

    job = run(spark, stream_of(4), both, restart="fixed-delay:2:100ms")
    assert job.status is JobStatus.FINISHED
    assert values(spark, tmp_path / "a") == list(range(40))
    assert values(spark, tmp_path / "b") == list(range(0, 40, 2))
    assert [(each.batch_id, each.status) for each in job.batches()] == [
        (0, "FINISHED"), (1, "FINISHED"), (2, "FAILED"), (2, "FINISHED"), (3, "FINISHED"),
    ]  # fmt: skip
    (failure,) = job.exceptions()
    line = both.__code__.co_firstlineno + 1
    assert "ValueError: the third batch is torn" in str(failure.root.error)
    assert f"test_batch_runs.py, line {line}: raised in" in str(failure.root.error)
    raised = [record.exc_info[0].__name__ for record in caplog.records if record.exc_info]
    assert raised == ["PythonException"]


def test_an_error_of_a_batch_names_spark_s_class_the_cell_and_the_line(spark, stream_of, tmp_path) -> None:
    source = (
        "def write(batch, batch_id):\n"
        "    batch.write.json(f'{out}/a')\n"
        "    batch.selectExpr('value', 'raise_error(\"no good\") e').write.json(f'{out}/b')\n"
        "query = stream.writeStream.foreachBatch(write).trigger(availableNow=True).start()\n"
    )
    namespace = {"stream": stream_of(1), "out": str(tmp_path)}
    cell = CellSource("cell 7", "/tmp/ipykernel_1/77.py", source)
    with capture(spark, name="lines", mode="streaming", location=cell, namespace=namespace) as program:
        exec(compile_source(source, cell.filename), namespace)
    job = compile(program, mode="streaming").run(wait=False)
    assert job.wait(60) is JobStatus.FAILED
    text = str(job.exceptions()[0].root.error)
    assert "cell 7, line 3" in text
    assert "no good" in text
    assert "pyspark.errors.exceptions" in text
    assert "batch 0 of foreachBatch" in text


def compile_source(source: str, filename: str) -> Any:
    import builtins

    return builtins.compile(source, filename, "exec")


@pytest.mark.long
def test_lines_that_need_an_earlier_write_get_it_done(spark, stream_of, tmp_path) -> None:
    seen = []

    def write(batch: Any, batch_id: int) -> None:
        batch.write.json(str(tmp_path / f"a{batch_id}"))
        again = batch.sparkSession.read.schema("value long").json(str(tmp_path / f"a{batch_id}"))
        seen.append((batch.isEmpty(), batch.count(), again.count()))
        again.where("value % 2 = 1").write.json(str(tmp_path / f"b{batch_id}"))

    job = run(spark, stream_of(2), write)
    assert job.status is JobStatus.FINISHED, job.exceptions()
    assert seen == [(False, ROWS, ROWS)] * 2
    assert values(spark, tmp_path / "b1") == [11, 13, 15, 17, 19]
    assert len(job.batches()[-1].graphs) == 2


def test_a_handler_in_the_function_gets_what_its_write_raises(spark, stream_of, tmp_path) -> None:
    handled = []

    def write(batch: Any, batch_id: int) -> None:
        try:
            batch.selectExpr("raise_error('no good') e").write.json(str(tmp_path / "a"))
        except PySparkException as error:
            handled.append("no good" in str(error))
        batch.write.mode("append").json(str(tmp_path / "b"))

    assert run(spark, stream_of(1), write).status is JobStatus.FINISHED
    assert handled == [True]
    assert values(spark, tmp_path / "b") == list(range(10))


def test_what_is_written_before_the_function_raises_is_there_as_after_a_plain_run(spark, stream_of, tmp_path) -> None:
    def write(batch: Any, batch_id: int) -> None:
        batch.write.mode("append").json(str(tmp_path / "a"))
        raise RuntimeError("after the write")

    job = run(spark, stream_of(1), write)
    assert job.status is JobStatus.FAILED
    assert "after the write" in str(job.exceptions()[0].root.error)
    assert values(spark, tmp_path / "a") == list(range(10))


@pytest.mark.long
def test_a_stateful_stream_gives_each_sink_the_same_rows(spark, stream_of, tmp_path) -> None:
    def both(batch: Any, batch_id: int) -> None:
        for name in ("a", "b"):
            batch.selectExpr("n as value").write.mode("overwrite").json(str(tmp_path / name / f"batch={batch_id}"))

    with capture(spark, name="counts", mode="streaming") as program:
        counts = stream_of(3).groupBy((F.col("value") % 2).alias("k")).agg(F.count("*").alias("n"))
        writer = counts.writeStream.outputMode("update")
        writer.foreachBatch(func=both).trigger(availableNow=True).start()
    job = compile(program, mode="streaming").run(wait=False)
    assert job.wait(60) is JobStatus.FINISHED, job.exceptions()
    assert values(spark, tmp_path / "a") == values(spark, tmp_path / "b") == [5, 5, 10, 10, 15, 15]


@pytest.mark.long
def test_the_same_function_writes_a_bounded_frame_with_the_rest_of_the_cell(spark, stream_of, tmp_path) -> None:
    def both(batch: Any, batch_id: int) -> None:
        batch.write.json(str(tmp_path / f"a{batch_id}"))
        batch.where("value > 4").write.json(str(tmp_path / f"b{batch_id}"))

    assert run(spark, stream_of(1), both).status is JobStatus.FINISHED
    with capture(spark, name="bounded") as program:
        rows = spark.range(10).withColumnRenamed("id", "value")
        both(rows, 1)
        rows.where("value < 3").write.json(str(tmp_path / "c"))
    assert not (tmp_path / "a1").exists()
    job = compile(program).run()
    assert job.status is JobStatus.FINISHED
    assert len(job.finished_writes()) == 3
    for number in range(2):
        assert values(spark, tmp_path / f"a{number}") == list(range(10))
        assert values(spark, tmp_path / f"b{number}") == list(range(5, 10))
    assert values(spark, tmp_path / "c") == list(range(3))


@pytest.mark.long
def test_each_batch_has_the_settings_and_the_tables_of_its_own_time(spark, stream_of, tmp_path) -> None:
    zone = "spark.sql.session.timeZone"

    def write(batch: Any, batch_id: int) -> None:
        own = batch.sparkSession
        own.conf.set(zone, f"+0{batch_id + 1}:00")
        batch.write.mode("append").saveAsTable("seen_so_far")
        known = own.table("seen_so_far").agg(F.count("*").alias("known"))
        hours = batch.limit(1).select(F.hour(F.timestamp_seconds(F.lit(0))).alias("hour"), F.current_timezone())
        known.crossJoin(hours).write.mode("append").csv(str(tmp_path / "a"))

    try:
        job = run(spark, stream_of(3), write)
        assert job.status is JobStatus.FINISHED, job.exceptions()
        written = sorted(tuple(row) for row in spark.read.csv(str(tmp_path / "a")).collect())
        assert written == [("10", "1", "+01:00"), ("20", "2", "+02:00"), ("30", "3", "+03:00")]
    finally:
        spark.sql("DROP TABLE IF EXISTS seen_so_far")
    assert {each.reason for each in job.batches()} == {""}


@pytest.mark.long
def test_what_is_kept_from_batch_to_batch_goes_with_the_query(spark, stream_of, tmp_path) -> None:
    clones: list[Any] = []

    def write(batch: Any, batch_id: int) -> None:
        (runs,) = job.streams
        clones.append([clone.session for _, clone in runs._clones._clones])
        batch.write.mode("append").json(str(tmp_path / "a"))

    with capture(spark, name="batches", mode="streaming") as program:
        query = stream_of(3).writeStream.foreachBatch(write).start()
    job = compile(program, mode="streaming").run(wait=False)
    query.processAllAvailable()
    job.cancel()
    assert job.wait(30) is JobStatus.CANCELED
    assert [len(each) for each in clones] == [0, 1, 1]
    assert clones[1] == clones[2]
    assert not job.streams[0]._clones._clones


@pytest.mark.long
def test_a_mistake_of_ours_leaves_the_batch_to_plain_spark_and_is_told_once(
    spark, stream_of, tmp_path, monkeypatch, capfd
) -> None:
    def both(batch: Any, batch_id: int) -> None:
        batch.sparkSession.conf.set("spark.sql.session.timeZone", "Asia/Tokyo")
        batch.selectExpr("value", "date_format(timestamp'2024-01-01 00:00:00Z', 'HH') h").write.mode("append").json(
            str(tmp_path / "a")
        )
        batch.sparkSession.conf.set("spark.sql.session.timeZone", "UTC")
        batch.write.mode("append").json(str(tmp_path / "b"))

    stream = stream_of(2)

    def broken(*_: Any) -> None:
        raise KeyError("ours")

    monkeypatch.setattr(planner._Planner, "plan", broken)
    job = run(spark, stream, both)
    monkeypatch.undo()
    assert job.status is JobStatus.FINISHED, job.exceptions()
    assert values(spark, tmp_path / "a") == values(spark, tmp_path / "b") == list(range(20))
    # Each write has the settings of its own line.
    assert {row.h for row in spark.read.json(str(tmp_path / "a")).collect()} == {"09"}
    told = [line for line in capfd.readouterr().err.splitlines() if "ran as plain Spark" in line]
    assert len(told) == 1
    assert "KeyError: 'ours'" in told[0]
    assert f"{Path(__file__).name}, line " in told[0]
    assert [each.graphs for each in job.batches()] == [(), ()]
    assert all("KeyError" in each.reason for each in job.batches())


def test_a_write_that_cannot_be_put_off_runs_on_its_line(spark, stream_of, tmp_path, monkeypatch) -> None:
    def no_command(*_: Any) -> None:
        raise NoCommandError

    def both(batch: Any, batch_id: int) -> None:
        batch.write.json(str(tmp_path / "a"))
        monkeypatch.setattr(WriterCall, "command", no_command)
        batch.write.json(str(tmp_path / "b"))
        assert (tmp_path / "a" / "_SUCCESS").exists()
        assert (tmp_path / "b" / "_SUCCESS").exists()

    job = run(spark, stream_of(1), both)
    assert job.status is JobStatus.FINISHED, job.exceptions()
    assert values(spark, tmp_path / "a") == values(spark, tmp_path / "b") == list(range(10))


@pytest.mark.long
@pytest.mark.parametrize("way", ["cancel", "stop"])
def test_a_batch_ends_within_three_seconds_of_a_cancel(spark, stream_of, tmp_path, eventually, way) -> None:
    begun = tmp_path / "begun"

    def both(batch: Any, batch_id: int) -> None:
        nap = F.udf(lambda value: begun.touch() or time.sleep(60) or value, "long")
        slow = batch.select(nap("value").alias("value"))
        slow.repartition(2).write.json(str(tmp_path / "a"))
        slow.write.json(str(tmp_path / "b"))

    with capture(spark, name="slow", mode="streaming") as program:
        query = stream_of(1).writeStream.foreachBatch(both).start()
    job = compile(program, mode="streaming").run(wait=False)
    eventually(begun.exists)
    began = time.monotonic()
    if way == "cancel":
        job.cancel()
        assert job.wait(30) is JobStatus.CANCELED
    else:
        query.stop()
        assert job.wait(30) is JobStatus.FINISHED, job.exceptions()
    assert time.monotonic() - began < 3
    assert not query.isActive
    assert not (tmp_path / "a" / "_SUCCESS").exists()
    assert [each.status for each in job.batches()] == ["CANCELED"]


@pytest.mark.long
def test_a_query_that_is_stopped_between_two_stages_starts_no_other_one(
    spark, stream_of, tmp_path, monkeypatch
) -> None:
    reached, go_on = threading.Event(), threading.Event()
    start = SparkDeployment.start

    def held(deployment: SparkDeployment) -> None:
        start(deployment)
        if deployment._name == "foreachBatch":
            reached.set()
            go_on.wait(20)

    def write(batch: Any, batch_id: int) -> None:
        slow = batch.select(F.udf(lambda value: time.sleep(60) or value, "long")("value").alias("value"))
        slow.write.json(str(tmp_path / "a"))

    with capture(spark, name="between", mode="streaming") as program:
        query = stream_of(1).writeStream.foreachBatch(write).start()
    monkeypatch.setattr(SparkDeployment, "start", held)
    job = compile(program, mode="streaming").run(wait=False)
    assert reached.wait(30)
    stopping = threading.Thread(target=query.stop)
    stopping.start()
    time.sleep(0.5)
    began = time.monotonic()
    go_on.set()
    stopping.join(30)
    assert time.monotonic() - began < 3
    assert job.wait(10) is JobStatus.FINISHED, job.exceptions()
    assert not (tmp_path / "a" / "_SUCCESS").exists()


@pytest.mark.long
def test_twenty_batches_leave_nothing(spark, stream_of, tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    held: list[tuple[Any, ...]] = []
    context = spark.sparkContext._jsc.sc()

    def state() -> tuple[Any, ...]:
        deadline = time.monotonic() + 60  # a job's thread ends a moment after its job
        while names := [one.name for one in threading.enumerate() if one.name.startswith("flinkmagic-foreachBatch")]:
            if time.monotonic() > deadline:
                break
            time.sleep(0.01)
        return context.getPersistentRDDs().size(), context.listenerBus().listeners().size(), names

    def both(batch: Any, batch_id: int) -> None:
        held.append(state())
        shared = batch.groupBy((F.col("value") % 5).alias("value")).count()
        shared.write.mode("append").json(str(tmp_path / "a"))
        shared.where("value > 2").write.mode("append").json(str(tmp_path / "b"))

    gc.collect()  # an earlier test's job may have been cancelled
    before = state()
    job = run(spark, stream_of(20), both)
    assert job.status is JobStatus.FINISHED, job.exceptions()
    gc.collect()
    assert len(held) == 20
    assert max(each[0] for each in held) <= before[0]
    # The first batch sets up what the session keeps for all its jobs; what listened to an earlier job may have ended.
    assert max(each[1] for each in held[1:]) <= held[1][1]
    assert [each[2] for each in held] == [[]] * 20
    assert state()[0] <= before[0]
    assert not [path for path in tmp_path.iterdir() if path.name.startswith("flinkmagic-")]


def test_a_batch_evaluates_nothing_that_its_writes_do_not_ask_for(spark, stream_of, tmp_path) -> None:
    def both(batch: Any, batch_id: int) -> None:
        rated = batch.repartition(2).withColumn("rate", F.expr("100 div (value % 5)"))
        rated.where("value % 5 > 0").groupBy("value").agg(F.max("rate")).write.mode("append").json(f"{tmp_path}/rates")
        rated.groupBy("value").count().write.mode("append").json(f"{tmp_path}/counts")

    job = run(spark, stream_of(2), both)
    assert job.status is JobStatus.FINISHED
    assert values(spark, tmp_path / "counts") == list(range(20))
    assert values(spark, tmp_path / "rates") == [value for value in range(20) if value % 5]
    assert [report.reason for report in job.batches()] == ["", ""]
