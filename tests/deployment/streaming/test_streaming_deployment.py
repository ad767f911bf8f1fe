"""Streaming queries under the scheduler: they end, fail, resume from their checkpoints, and are cancelled."""

from __future__ import annotations

import os
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import AnalysisException
from pyspark.sql import GroupedData
from pyspark.sql import functions as F

from flinkmagic.amounts import size
from flinkmagic.display import to_svg, to_table
from flinkmagic.errors.deployment import VertexFailedError
from flinkmagic.errors.streaming import StreamRestartError
from flinkmagic.scheduling.job_status import JobStatus
from flinkmagic.session import capture, compile

pytestmark = pytest.mark.long  # queries that restart take seconds


def made_files(folder: Path, files: int, rows: int = 10) -> str:
    folder.mkdir()
    for number in range(files):
        lines = "".join(f"{number * rows + row}\n" for row in range(rows))
        path = folder / f"{number}.csv"
        path.write_text(lines)
        os.utime(path, (1e9 + number, 1e9 + number))
    return str(folder)


def file_by_file(spark: Any, folder: str) -> Any:
    return spark.readStream.schema("value long").option("maxFilesPerTrigger", 1).csv(folder)


def raises_once(marker: str, at: int) -> Any:
    def check(value: int) -> int:
        from pathlib import Path

        if value == at and not Path(marker).exists():
            Path(marker).touch()
            raise ValueError("the third batch is torn")
        return value

    return F.udf(check, "long")


@pytest.fixture(autouse=True)
def _own_temporary_folder(tmp_path_factory, monkeypatch) -> None:
    """Other processes have queries of their own."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path_factory.mktemp("own")))


def own_folders() -> set[str]:
    return {str(path) for path in Path(tempfile.gettempdir()).glob("flinkmagic-query-*")}


def test_a_query_that_raises_in_its_third_batch_resumes_with_exact_counts(spark, tmp_path) -> None:
    before = own_folders()
    folder, marker = made_files(tmp_path / "in", 5), str(tmp_path / "raised")
    with capture(spark, name="torn", mode="streaming") as program:
        values = file_by_file(spark, folder).withColumn("value", raises_once(marker, 25)("value"))
        counts = values.groupBy((F.col("value") % 3).alias("k")).agg(F.count("*").alias("n"), F.sum("value").alias("s"))
        query = (
            counts.writeStream.format("memory")
            .queryName("torn_counts")
            .outputMode("complete")
            .trigger(availableNow=True)
            .start()
        )
    graph = compile(program, mode="streaming", parallelism=2, restart="fixed-delay:2:100ms")
    job = graph.run(wait=False)
    assert job.wait(120) is JobStatus.FINISHED
    assert query.awaitTermination() is None
    rows = {row.k: (row.n, row.s) for row in spark.table("torn_counts").collect()}
    assert rows == {k: (len(range(k, 50, 3)), sum(range(k, 50, 3))) for k in range(3)}
    (failure,) = job.exceptions()
    assert isinstance(failure.root.error, VertexFailedError)
    assert "the third batch is torn" in str(failure.root.error)
    assert "=== Streaming" not in str(failure.root.error)
    assert failure.root.error.where.endswith(f"line {program.streams[0].location.line}")
    # Two batches had been committed: the second start goes on with the third.
    assert query.recentProgress[0]["batchId"] == 2
    assert {fact.name: fact.value for fact in job.snapshot().queries[0].facts}["restarts"] == "1"
    assert own_folders() == before


def test_without_a_restart_the_job_fails_with_what_the_query_raised(spark, tmp_path) -> None:
    folder, marker = made_files(tmp_path / "in", 3), str(tmp_path / "raised")
    with capture(spark, name="fails", mode="streaming") as program:
        values = file_by_file(spark, folder).withColumn("value", raises_once(marker, 5)("value"))
        query = values.writeStream.format("memory").queryName("failing").trigger(availableNow=True).start()
    job = compile(program, mode="streaming").run(wait=False)
    assert job.wait(60) is JobStatus.FAILED
    with pytest.raises(Exception, match="the third batch is torn"):
        query.awaitTermination()


def test_a_memory_table_that_is_appended_to_starts_over_with_exact_rows(spark, tmp_path) -> None:
    folder, marker = made_files(tmp_path / "in", 4), str(tmp_path / "raised")
    with capture(spark, name="over", mode="streaming") as program:
        values = file_by_file(spark, folder).withColumn("value", raises_once(marker, 25)("value"))
        values.writeStream.format("memory").queryName("over").trigger(availableNow=True).start()
    job = compile(program, mode="streaming", restart="fixed-delay:1:100ms").run(wait=False)
    assert job.wait(90) is JobStatus.FINISHED
    assert sorted(row.value for row in spark.table("over").collect()) == list(range(40))


def test_a_failing_query_stops_the_others_of_its_job(spark, tmp_path) -> None:
    folder, marker = made_files(tmp_path / "in", 1), str(tmp_path / "raised")
    with capture(spark, name="two", mode="streaming") as program:
        ticks = spark.readStream.format("rate").load()
        ticks.writeStream.format("noop").queryName("endless").start()
        values = file_by_file(spark, folder).withColumn("value", raises_once(marker, 5)("value"))
        values.writeStream.format("noop").queryName("short").start()
    job = compile(program, mode="streaming").run(wait=False)
    assert job.wait(60) is JobStatus.FAILED
    assert [query.name for query in spark.streams.active if query.name in ("endless", "short")] == []


def test_cancel_ends_a_running_query_within_three_seconds(spark) -> None:
    with capture(spark, name="endless", mode="streaming") as program:
        slow = F.udf(lambda value: time.sleep(60) or value, "long")
        ticks = spark.readStream.format("rate").option("rowsPerSecond", 5).load()
        query = ticks.select(slow("value").alias("v")).writeStream.format("noop").queryName("slow").start()
    job = compile(program, mode="streaming").run(wait=False)
    deadline = time.monotonic() + 60
    while not (query.status["isTriggerActive"] and spark.sparkContext.statusTracker().getActiveStageIds()):
        assert time.monotonic() < deadline
        time.sleep(0.1)
    assert job.status is JobStatus.RUNNING
    began = time.monotonic()
    job.cancel()
    assert job.wait(30) is JobStatus.CANCELED
    assert time.monotonic() - began < 3
    assert not query.isActive


def test_starts_and_stops_leave_nothing(spark) -> None:
    def run_once(number: int) -> None:
        with capture(spark, name="many", mode="streaming") as program:
            ticks = spark.readStream.format("rate").load()
            ticks.writeStream.format("memory").queryName("many").start()
        job = compile(program, mode="streaming").run(wait=False)
        if number % 2:
            program.streams[0].query.id  # noqa: B018 - waits for the start
        job.cancel()
        assert job.wait(30) is JobStatus.CANCELED

    def threads() -> list[str]:
        return sorted(each.name for each in threading.enumerate() if each.name.startswith("flinkmagic-"))

    def java_threads() -> int:
        # Those of queries, and of py4j's connections; Spark's pools grow to their bounds.
        names = [each.getName() for each in spark._jvm.java.lang.Thread.getAllStackTraces().keySet().toArray()]
        return sum(name.startswith(("stream execution thread", "Thread-")) for name in names)

    others = threads()  # of earlier tests
    partitions = spark.conf.get("spark.sql.shuffle.partitions")
    run_once(1)
    before = java_threads()
    for number in range(50):
        run_once(number)
    deadline = time.monotonic() + 60
    while (set(threads()) - set(others) or own_folders() or java_threads() > before) and time.monotonic() < deadline:
        time.sleep(0.1)
    assert (set(threads()) - set(others), own_folders()) == (set(), set())
    assert java_threads() <= before
    assert spark.streams.active == []
    assert spark.conf.get("spark.sql.shuffle.partitions") == partitions


def checkpoint_of(job: Any) -> str:
    (query,) = job.snapshot(closely=True).queries
    return next(fact.value for fact in query.facts if fact.name == "checkpoint")


def test_a_file_sink_needs_a_checkpoint_and_resumes_over_runs(spark, eventually, tmp_path) -> None:
    folder, out, kept = made_files(tmp_path / "in", 2), str(tmp_path / "out"), str(tmp_path / "checkpoint")

    def program_of(**options: str) -> Any:
        with capture(spark, name="files", mode="streaming") as program:
            writer = file_by_file(spark, folder).writeStream.format("parquet").options(**options)
            writer.trigger(availableNow=True).start(out)
        return program

    with pytest.raises(AnalysisException, match="checkpointLocation"):
        program_of()
    graph = compile(program_of(checkpointLocation=kept), mode="streaming")
    assert graph.run().status is JobStatus.FINISHED
    assert spark.read.parquet(out).count() == 20
    # Who looks closely at the checkpoint is not kept waiting for its bytes: a later look has them.
    held = size(sum(path.stat().st_size for path in Path(kept).rglob("*") if path.is_file() and path.suffix != ".crc"))
    eventually(lambda: checkpoint_of(graph.jobs[-1]).endswith(f", {held}"))
    (Path(folder) / "9.csv").write_text("99\n")
    assert graph.run().status is JobStatus.FINISHED
    assert spark.read.parquet(out).count() == 21


def test_a_query_that_a_cluster_could_not_restart_is_refused_and_leaves_no_thread(spark, tmp_path, monkeypatch) -> None:
    with capture(spark, name="refused", mode="streaming") as program:
        file_by_file(spark, made_files(tmp_path / "in", 1)).writeStream.format("noop").start()
    graph = compile(program, mode="streaming", restart="fixed-delay:1:0s")
    with monkeypatch.context() as patch:
        patch.setattr(spark.sparkContext, "master", "spark://cluster:7077")
        with pytest.raises(StreamRestartError, match="checkpointLocation"):
            graph.run()
    thread = next((one for one in threading.enumerate() if one.name == "flinkmagic-refused"), None)
    if thread is not None:
        thread.join(10)
    assert not any(one.name == "flinkmagic-refused" for one in threading.enumerate())
    assert graph.jobs == []


def test_the_batches_of_a_query_are_seen_as_they_end(spark, tmp_path) -> None:
    folder = made_files(tmp_path / "in", 3)
    with capture(spark, name="seen", mode="streaming") as program:
        counts = file_by_file(spark, folder).groupBy((F.col("value") % 3).alias("k")).count()
        query = counts.writeStream.format("memory").queryName("seen").outputMode("complete").start()
    graph = compile(program, mode="streaming", parallelism=2)
    job = graph.run(wait=False)
    query.processAllAvailable()
    seen = job.progress()["seen"]
    # Each batch is there although only now somebody looks; an empty one may follow the three.
    assert [(one.batch, one.input_rows) for one in seen][:3] == [(0, 10), (1, 10), (2, 10)]
    assert [(one.operator, one.rows) for one in seen[-1].state] == [("stateStoreSave", 3)]
    assert seen[-1].state[0].bytes > 0
    assert seen[-1].phases_ms["addBatch"] <= seen[-1].batch_ms
    (view,) = job.snapshot().queries
    facts = {fact.name: fact for fact in view.facts}
    assert facts["state of stateStoreSave"].value.startswith("3 rows, ")
    assert facts["state of stateStoreSave"].course[:3] == (3, 3, 3)
    assert any("state of stateStoreSave" in line for line in job.report())
    assert facts["output"].value == "3 rows"
    assert facts["trigger"].value == "ProcessingTimeTrigger(0)"
    assert "batches, the last in " in facts["checkpoint"].value
    assert facts["source"].value.startswith(f"FileStreamSource[file:{folder}]: ")
    assert "restarts" not in facts
    # What each vertex has read and written, of one batch that has ended.
    snapshot = job.snapshot()
    source, sink = (snapshot.costs[vertex.id] for vertex in job.execution_graph.job_vertices)
    assert source.batch == sink.batch
    assert (source.rows_in, source.rows_out, source.bytes_in) in ((10, 3, None), (0, 0, None))
    assert (sink.rows_in, sink.bytes_in, sink.bytes_out) == (source.rows_out, source.bytes_out, None)
    assert sink.rows_out == 3
    # The picture and the table tell it while the stream runs.
    read = f"{source.rows_in} → {source.rows_out} rows" if source.rows_in else "rows"
    shown = to_svg(graph.view("job").paint(snapshot))
    assert f"batch {source.batch} · " in shown
    assert read in shown
    rows = [line for line in to_table(graph.view("job"), snapshot).splitlines() if f"  batch {source.batch}  " in line]
    assert len(rows) == 2
    job.cancel()
    assert job.wait(30) is JobStatus.CANCELED
    assert job.progress()["seen"][:3] == seen[:3]


def test_the_tasks_of_the_running_batch_are_seen_and_late_rows_move_the_watermark(spark, tmp_path) -> None:
    folder, gate = made_files(tmp_path / "in", 3), tmp_path / "gate"

    def wait(value: int, gate: str = str(gate)) -> int:
        from pathlib import Path

        while value >= 20 and not Path(gate).exists():
            time.sleep(0.05)
        return value

    with capture(spark, name="gated", mode="streaming") as program:
        timed = file_by_file(spark, folder).select(F.udf(wait, "long")("value").alias("value"))
        timed = timed.withColumn("at", F.timestamp_seconds("value")).withWatermark("at", "2 seconds")
        counts = timed.groupBy(F.window("at", "5 seconds")).count()
        query = counts.writeStream.format("memory").queryName("gated").outputMode("update").start()
    job = compile(program, mode="streaming", parallelism=2).run(wait=False)
    try:
        end = time.monotonic() + 60
        # The tasks of the first two batches may be seen, too, as they run.
        while not (doing := job.snapshot().queries[0].doing).startswith("batch 1 had 10 rows and took ") or (
            "1 running" not in doing
        ):
            assert time.monotonic() < end, doing
            time.sleep(0.05)
        assert "task" in doing.partition("; ")[2]
    finally:
        gate.touch()
    query.processAllAvailable()
    facts = {fact.name: fact for fact in job.snapshot().queries[0].facts}
    # The watermark of a batch is that of the rows before it, so that of the third is two seconds before row 19.
    batch = job.progress()["gated"][2]
    assert batch.watermark == "1970-01-01T00:00:17.000Z"
    assert batch.watermark_lag_ms == 12_000.0
    assert facts["watermark lag"].course[:2] == (12_000.0, 12_000.0)  # the first batch had no watermark yet
    assert "watermark of stateStoreSave" in facts
    assert not any(name.startswith("dropped late") for name in facts)
    (Path(folder) / "late.csv").write_text("3\n")
    query.processAllAvailable()
    facts = {fact.name: fact for fact in job.snapshot().queries[0].facts}
    assert sum(facts["dropped late by stateStoreSave"].course) == 1.0
    assert facts["watermark of stateStoreSave"].value == "1970-01-01T00:00:27.000Z"
    job.cancel()
    assert job.wait(30) is JobStatus.CANCELED
    assert job.report()[1].startswith("  ⊘ gated: memory, update")
    assert ";" not in job.snapshot().queries[0].doing


@pytest.mark.parametrize("method", ["transformWithState", "transformWithStateInPandas"])
def test_a_keyed_process_keeps_its_state_from_batch_to_batch(spark, tmp_path, method) -> None:
    pytest.importorskip("google.protobuf", reason="Spark's functions with state need it")
    if not hasattr(GroupedData, method):
        pytest.skip("Spark 4 has it")
    import pandas as pd
    from pyspark.sql import Row
    from pyspark.sql.streaming import StatefulProcessor

    is_pandas = method.endswith("InPandas")

    class Totals(StatefulProcessor):
        def init(self, handle: Any) -> None:
            self.total = handle.getValueState("total", "s long")

        def handleInputRows(self, key: Any, rows: Any, timerValues: Any) -> Any:  # noqa: N802, N803 - Spark's names
            added = sum(int(each["value"].sum()) if is_pandas else each.value for each in rows)
            self.total.update(((self.total.get() or (0,))[0] + added,))
            made = {"k": key[0], "s": self.total.get()[0]}
            yield pd.DataFrame([made]) if is_pandas else Row(**made)

        def close(self) -> None:
            pass

    provider = "spark.sql.streaming.stateStore.providerClass"
    spark.conf.set(provider, "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider")
    try:
        with capture(spark, name="keyed", mode="streaming") as program:
            keyed = file_by_file(spark, made_files(tmp_path / "in", 2)).withColumn("k", F.col("value") % 2).groupBy("k")
            totals = getattr(keyed, method)(Totals(), "k long, s long", "Update", "None")
            writer = totals.writeStream.format("memory").queryName(f"keyed_{is_pandas}").outputMode("update")
            writer.trigger(availableNow=True).start()
        job = compile(program, mode="streaming", parallelism=2).run(wait=False)
        assert job.wait(120) is JobStatus.FINISHED, job.exceptions()
    finally:
        spark.conf.unset(provider)
    rows = spark.table(f"keyed_{is_pandas}").collect()
    assert sorted((row.k, row.s) for row in rows) == [
        (k, sum(range(k, 10 * files, 2))) for k in range(2) for files in (1, 2)
    ]
