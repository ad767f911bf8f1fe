"""A job whose kernel dies is taken up by another one, which runs the rest."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import functions as F

import flinkmagic
from flinkmagic.errors.job_store import CheckpointInUseError
from flinkmagic.reuse.checkpoints import Checkpoints, checkpointed_job_id
from flinkmagic.reuse.durable_store import DurableEntry, durable_store
from flinkmagic.scheduling.job_status import JobStatus
from flinkmagic.scheduling.recovery.job_graph_store import JobGraphStore

PROCESS = Path(__file__).with_name("checkpoint_process.py")


@pytest.fixture
def folder(spark, tmp_path):
    spark.range(0, 200, 1, 2).selectExpr("id", "id % 7 AS k").write.parquet(str(tmp_path / "numbers"))
    return tmp_path


def start(folder):
    return subprocess.Popen(
        [sys.executable, str(PROCESS), str(folder)], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
        start_new_session=True,
    )  # fmt: skip


def stored(folder):
    (journal,) = (folder / "checkpoints").glob("*.journal")
    return JobGraphStore(folder / "checkpoints").read(journal.stem)


def entries(folder):
    """Those of the store that have rows."""
    store = durable_store(folder / "checkpoints")
    found = [store.find(path.name) for path in store.path("").glob("?" * 64)]
    return [entry for entry in found if entry is not None and entry.folder]


def is_recorded(folder):
    """Whether the shared rows are stored, and the sound write is in the journal."""
    if not list((folder / "checkpoints").glob("*.journal")):
        return False
    return len(entries(folder)) == 1 and len(stored(folder).writes) == 1


@pytest.mark.long
def test_another_kernel_takes_the_job_up_and_runs_the_rest(spark, folder):
    first = start(folder)
    try:
        deadline = time.monotonic() + 300
        while not is_recorded(folder):
            assert first.poll() is None, "the first kernel ended by itself"
            assert time.monotonic() < deadline, "the first kernel did not come that far"
            time.sleep(0.2)
        with flinkmagic.capture(spark, name="nightly") as program:
            spark.range(3).write.json(str(folder / "other"))
        with pytest.raises(CheckpointInUseError):  # its leader lives
            flinkmagic.compile(program, parallelism=2, checkpoint_dir=folder / "checkpoints").run()
    finally:
        os.killpg(first.pid, signal.SIGKILL)
        first.wait()
    assert stored(folder).status is JobStatus.RUNNING
    sound = sorted(os.listdir(folder / "sound"))

    (folder / "gate").touch()
    second = start(folder)
    try:
        answer = json.loads(second.communicate(timeout=300)[0].splitlines()[-1])
    finally:
        if second.poll() is None:
            os.killpg(second.pid, signal.SIGKILL)
    assert answer["status"] == "FINISHED"
    assert re.search(r"leads job (\w+)\n.*takes job \1 up\n", answer["log"])
    assert len(answer["ran"]) == 1
    assert answer["ran"][0].endswith("parquet waiting")
    assert "1 write kept" in answer["note"]
    assert sorted(os.listdir(folder / "sound")) == sound
    expected = [(k, sum(i + 1 for i in range(200) if i % 7 == k)) for k in range(7)]
    for part in ("sound", "waiting"):
        assert sorted(map(tuple, spark.read.parquet(str(folder / part)).collect())) == expected
    assert stored(folder).status is JobStatus.FINISHED
    assert not list((folder / "checkpoints").rglob("*.parquet"))


def refused_above(limit):
    """The column `s`, computed by a function that fails where it is too large."""

    def check(x):
        if x > limit:
            raise ValueError("too much")
        return x

    return F.udf(check, "long")("s").alias("s")


def compiled(spark, folder, *, limit):
    with flinkmagic.capture(spark, name="checkpointed") as program:
        df = spark.read.parquet(str(folder / "numbers"))
        sums = df.repartition(2, "k").groupBy("k").agg(F.sum("id").alias("s"), F.sum("id").alias("s s"))
        sums.write.mode("overwrite").json(str(folder / "sound"))
        sums.withColumn("s", refused_above(limit)).write.mode("overwrite").json(str(folder / "failing"))
    return flinkmagic.compile(program, parallelism=2, checkpoint_dir=folder / "checkpoints", retain="none")


@pytest.mark.long
def test_rows_come_back_from_disk_whatever_their_columns_are_called(spark, folder):
    assert compiled(spark, folder, limit=1).run().status is JobStatus.FAILED
    job = stored(folder)
    assert (job.status, len(entries(folder)), len(job.writes)) == (JobStatus.FAILED, 1, 1)
    mended = compiled(spark, folder, limit=10**9).run()
    assert mended.status is JobStatus.FINISHED
    assert len({task.vertex_id for task in mended.tasks() if task.role == "task"}) == 1
    rows = [sorted(spark.read.json(str(folder / part)).collect()) for part in ("sound", "failing")]
    assert rows[0] == rows[1]
    assert len(rows[0]) == 7


@pytest.mark.long
def test_damaged_rows_are_computed_and_one_line_says_so(spark, folder, capsys):
    assert compiled(spark, folder, limit=1).run().status is JobStatus.FAILED
    (entry,) = entries(folder)
    file = min((folder / "checkpoints" / "flinkmagic-rows" / entry.folder).glob("*.parquet"))
    file.write_bytes(file.read_bytes()[:-9] + b"123456789")
    capsys.readouterr()
    mended = compiled(spark, folder, limit=10**9).run()
    assert mended.status is JobStatus.FINISHED
    assert "1 write kept" in mended.snapshot().note
    assert "damaged" in capsys.readouterr().err
    assert len({task.vertex_id for task in mended.tasks() if task.role == "task"}) == 3
    assert entries(folder) == []


@pytest.mark.long
def test_rows_of_a_job_are_nobody_else_s_in_a_folder_that_is_durable(spark, folder):
    """And what is stored there for later kernels stays when the job is over."""

    def run(name, limit):
        with flinkmagic.capture(spark, name=name) as program:
            sums = spark.read.parquet(str(folder / "numbers")).groupBy("k").agg(F.sum("id").alias("s"))
            sums.write.mode("overwrite").json(str(folder / name))
            sums.select(refused_above(limit)).write.mode("overwrite").json(str(folder / f"{name}-failing"))
        place = folder / "checkpoints"
        graph = flinkmagic.compile(program, parallelism=2, checkpoint_dir=place, retain="none", durable=place)
        return graph.run()

    store = durable_store(folder / "checkpoints")
    other = DurableEntry(64 * "a", "other()", 1.0, 1.0, b"")
    store.store(other)
    assert run("one", 1).status is JobStatus.FAILED
    assert [bool(entry.owner) for entry in entries(folder)] == [True]
    assert run("two", 1).reused() == []
    assert run("one", 10**9).reused() != []
    assert [entry.owner for entry in entries(folder)] == [checkpointed_job_id("two")]
    assert store.find(64 * "a") == other


@pytest.mark.long
def test_writes_to_one_folder_are_known_by_what_the_last_of_them_left(spark, folder):
    def run(limit):
        with flinkmagic.capture(spark, name="appending") as program:
            sums = spark.read.parquet(str(folder / "numbers")).groupBy("k").agg(F.sum("id").alias("s"))
            for more in (0, 0, 1):
                sums.selectExpr("k", f"s + {more} AS s").write.mode("append").json(str(folder / "appended"))
            sums.select("k").write.mode("append").json(str(folder / "appended" / "day=1"))
            sums.select(refused_above(limit)).write.mode("overwrite").json(str(folder / "failing"))
        return flinkmagic.compile(program, parallelism=2, checkpoint_dir=folder / "checkpoints", retain="none").run()

    assert run(1).status is JobStatus.FAILED
    assert spark.read.json(str(folder / "appended" / "*.json")).count() == 21
    mended = run(10**9)
    assert mended.status is JobStatus.FINISHED
    assert "4 writes kept" in mended.snapshot().note
    assert spark.read.json(str(folder / "appended" / "*.json")).count() == 21
    assert spark.read.json(str(folder / "appended" / "day=1")).count() == 7


@pytest.mark.long
@pytest.mark.parametrize("immediately", [True, False])
def test_what_was_appended_and_then_overwritten_is_not_taken_for_written(spark, folder, immediately):
    """Whether in one run, or by a run that did not append any more."""

    def run(*, appends, overwrites, limit):
        with flinkmagic.capture(spark, name="overwriting") as program:
            sums = spark.read.parquet(str(folder / "numbers")).groupBy("k").agg(F.sum("id").alias("s"))
            if appends:
                sums.write.mode("append").json(str(folder / "both"))
            if overwrites:
                sums.where("k < 3").write.mode("overwrite").json(str(folder / "both"))
            sums.select(refused_above(limit)).write.mode("overwrite").json(str(folder / "failing"))
        return flinkmagic.compile(program, parallelism=2, checkpoint_dir=folder / "checkpoints", retain="none").run()

    assert run(appends=True, overwrites=immediately, limit=1).status is JobStatus.FAILED
    if not immediately:
        assert run(appends=False, overwrites=True, limit=1).status is JobStatus.FAILED
    assert spark.read.json(str(folder / "both")).count() == 3
    mended = run(appends=True, overwrites=False, limit=10**9)
    assert mended.status is JobStatus.FINISHED
    assert spark.read.json(str(folder / "both")).count() == 3 + 7


def test_a_write_that_cannot_be_recorded_is_written_all_the_same(spark, folder, monkeypatch, caplog):
    def refuse(*_):
        raise PySparkException("no such file system")

    monkeypatch.setattr(Checkpoints, "record_write", refuse)
    with flinkmagic.capture(spark, name="unnoted") as program:
        spark.range(3).write.json(str(folder / "unnoted"))
    job = flinkmagic.compile(program, parallelism=2, checkpoint_dir=folder / "checkpoints").run()
    assert job.status is JobStatus.FINISHED
    assert spark.read.json(str(folder / "unnoted")).count() == 3
    assert "is done, but that could not be recorded" in caplog.text
    assert stored(folder).writes == {}


def test_one_process_at_a_time(spark, folder):
    graph = compiled(spark, folder, limit=10**9)
    (folder / "checkpoints").mkdir()
    held = start_lock(folder / "checkpoints", graph.name)
    try:
        with pytest.raises(CheckpointInUseError, match="'checkpointed'"):
            graph.run()
    finally:
        held.communicate("")
    assert graph.run().status is JobStatus.FINISHED


def appended(spark, folder, *, limit):
    with flinkmagic.capture(spark, name="in_parts") as program:
        df = spark.read.parquet(str(folder / "numbers"))
        sums = df.repartition(2, "k").groupBy("k").agg(F.sum("id").alias("s"))
        sums.write.mode("append").json(str(folder / "sound"))
        sums.withColumn("s", refused_above(limit)).write.mode("overwrite").json(str(folder / "failing"))
        sums.select("k").write.mode("append").json(str(folder / "late"))
    return flinkmagic.compile(program, parallelism=2, checkpoint_dir=folder / "checkpoints", retain="none")


def written(spark, folder):
    return [spark.read.json(str(folder / part)).count() for part in ("sound", "failing", "late")]


@pytest.mark.long
def test_a_run_of_one_sink_says_nothing_of_the_others(spark, folder):
    one = appended(spark, folder, limit=10**9).run(only=["late"])
    assert one.status is JobStatus.FINISHED
    assert stored(folder).is_part
    whole = appended(spark, folder, limit=10**9).run()
    assert whole.status is JobStatus.FINISHED
    assert "kept" not in whole.snapshot().note
    assert written(spark, folder) == [7, 7, 14]
    assert not list((folder / "checkpoints").rglob("*.parquet"))


@pytest.mark.long
@pytest.mark.parametrize("full", [False, True])
def test_after_a_failure_a_run_of_one_sink_leaves_what_is_known_of_the_others(spark, folder, full):
    assert appended(spark, folder, limit=1).run().status is JobStatus.FAILED
    one = appended(spark, folder, limit=10**9).run(only=["failing"], full=full)
    assert one.status is JobStatus.FINISHED
    assert (one.reused() == []) is full
    whole = appended(spark, folder, limit=10**9).run()
    assert "2 writes kept" in whole.snapshot().note
    assert written(spark, folder) == [7, 7, 7]


@pytest.mark.long
def test_a_run_in_full_takes_nothing_up_from_disk(spark, folder):
    assert appended(spark, folder, limit=1).run().status is JobStatus.FAILED
    again = appended(spark, folder, limit=1).run(full=True)
    assert (again.status, again.reused(), again.snapshot().note) == (JobStatus.FAILED, [], "")
    assert spark.read.json(str(folder / "sound")).count() == 14


def start_lock(checkpoints, name):
    """Another process that leads the job."""
    script = (
        "import hashlib, sys, filelock\n"
        f"name = hashlib.sha256({name!r}.encode()).hexdigest()[:32]\n"
        f"with filelock.FileLock({str(checkpoints)!r} + '/' + name + '.lock'):\n"
        "    print('held', flush=True)\n"
        "    sys.stdin.read()\n"
    )
    process = subprocess.Popen([sys.executable, "-c", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert process.stdout.readline() == "held\n"
    return process
