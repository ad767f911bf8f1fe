"""Starts of streaming queries that are deferred."""

from __future__ import annotations

import pytest
from pyspark.errors import AnalysisException

from flinkmagic.capturing.capture_listener import StreamStartingListener
from flinkmagic.capturing.capture_mode import CaptureMode
from flinkmagic.errors.streaming import BatchWriteInStreamError, NoStreamError, StreamModeError, StreamNotStartedError
from flinkmagic.session import capture, compile, start_stream


def test_a_start_is_deferred_and_keeps_the_settings_of_its_line(spark, tmp_path) -> None:
    with capture(spark, name="later", mode="streaming") as program:
        ticks = spark.readStream.format("rate").load()
        writer = ticks.writeStream.format("memory").queryName("first")
        first = writer.start()
        writer.queryName("second").option("checkpointLocation", str(tmp_path))
        writer.start()
        third = ticks.writeStream.option("checkpointLocation", str(tmp_path / "third")).toTable("of_ticks")
    assert spark.streams.active == []
    found = [(one.name, one.format, one.output_mode, one.checkpoint) for one in program.streams]
    assert found[:2] == [("first", "memory", "append", ""), ("second", "memory", "append", str(tmp_path))]
    assert found[2][:2] == ("of_ticks", "table")
    for ask in (
        lambda: first.id,
        lambda: first.isActive,
        first.stop,
        first.processAllAvailable,
        third.awaitTermination,
    ):
        with pytest.raises(StreamNotStartedError, match="%flinkrun later"):
            ask()


def test_what_waits_for_a_query_makes_its_job_where_that_is_allowed(spark) -> None:
    deployed = []

    class Runs(StreamStartingListener):
        def start_stream(self, stream):
            start_stream(stream, spark, None, mode="streaming")

        def run_pending(self, program):
            deployed.append([one.name for one in program.streams])
            compile(program, mode="streaming").run(wait=False)

    with capture(spark, mode=CaptureMode.STREAMING_RUN, listener=Runs()) as program:
        ticks = spark.readStream.format("rate").option("rowsPerSecond", 100).load()
        query = ticks.writeStream.format("memory").queryName("needed").start()
        assert (deployed, query.isActive) == ([], True)
        query.processAllAvailable()
        query.stop()
        assert query.awaitTermination(30)
    assert deployed == [["needed"]]
    assert program.streams == ()
    assert not query.isActive


def test_a_batch_write_is_refused_and_nothing_is_written(spark, tmp_path) -> None:
    with (
        pytest.raises(BatchWriteInStreamError, match="cell of its own"),
        capture(spark, mode="streaming"),
    ):
        spark.range(3).write.parquet(str(tmp_path / "out"))
    assert not (tmp_path / "out").exists()


def test_what_no_stream_can_do_is_refused_on_its_line(spark) -> None:
    counts = spark.readStream.format("rate").load().groupBy("value").count()
    with pytest.raises(AnalysisException), capture(spark, mode="streaming"):
        counts.writeStream.format("memory").queryName("no_watermark").start()
    assert spark.streams.active == []


def test_a_start_that_is_put_off_does_not_raise_where_a_handler_waits_for_it(spark) -> None:
    ticks = spark.readStream.format("rate").load()
    query = None
    with capture(spark, mode="streaming") as program:
        try:
            query = ticks.writeStream.format("noop").start()
        except Exception:  # noqa: BLE001 - as users write it
            query = "the handler ran"
    assert [stream.query for stream in program.streams] == [query]


def test_what_spark_refuses_to_start_is_refused_on_its_line_by_spark(spark, tmp_path) -> None:
    with capture(spark, mode="streaming") as program:
        ticks = spark.readStream.format("rate").load()
        with pytest.raises(AnalysisException, match="checkpointLocation"):
            ticks.writeStream.format("parquet").start(str(tmp_path / "out"))
        with pytest.raises(AnalysisException, match="queryName"):
            ticks.writeStream.format("memory").start()
        ticks.writeStream.format("noop").start()
    assert [stream.name for stream in program.streams] == ["noop"]
    assert spark.streams.active == []


def test_a_program_is_compiled_for_its_own_mode(spark) -> None:
    with capture(spark, mode="streaming") as program:
        spark.readStream.format("rate").load().writeStream.format("noop").start()
    with pytest.raises(StreamModeError):
        compile(program)
    with pytest.raises(NoStreamError):
        compile(spark.range(3), mode="streaming")
