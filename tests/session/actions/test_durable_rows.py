"""Rows that outlive their process: what is kept for later actions is found by other kernels, as it was, or computed."""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import subprocess
import sys
import threading
import time
import uuid
from dataclasses import replace
from pathlib import Path

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import functions as F

from flinkmagic.options import JobOptions
from flinkmagic.reuse import durable_rows, durable_store, result_keys, row_files
from flinkmagic.reuse.durable_rows import DurableRows
from flinkmagic.reuse.retained_results import retained_results
from flinkmagic.scheduling.job_status import JobStatus
from flinkmagic.session import SessionActions, capture, compile, release_retained, retained, warm_up
from tests.gates import held_until
from tests.session.actions.test_durable_answers import DATA, ROOT, _prepare
from tests.session.actions.test_durable_answers import kernel as kernel_of_its_own
from tests.status_store import StatusStore

FRAME = (
    "late = spark.read.parquet(path).where('id >= 0').groupBy(F.expr('id % 10 AS k'))"
    ".agg(F.sum('id').alias('total'), F.max('id').alias('top'))"
)
KEPT = ("late.collect()", "late.groupBy(F.expr('total % 2')).count().collect()")
"""Actions after which the rows of `late` are kept."""


class Kernel:
    """A session that keeps rows, in a process that forgets what it has kept as if it were another one."""

    def __init__(self, session, store):
        self.session, self.store = session, store
        session.actions = SessionActions(JobOptions(retain="session", durable=store.folder))

    def begin(self, made=FRAME):
        """Forget what is retained, and define the frames."""
        retained_results(self.session.spark.sparkContext).drop(lambda one: True)
        self.session.plain(made + "\nNone")

    def keep(self, made=FRAME, lines=KEPT):
        self.begin(made)
        for line in lines:
            self.session.cell(line)
        assert self.store.wait(60)

    def cell(self, line):
        """Run a line; return its rows, sorted, whose they are, and what is said."""
        answer = self.session.cell(line)
        is_found = any(one.is_from_store and one.uses for one in retained(self.session.spark))
        return sorted(map(tuple, answer)), is_found, self.session.report.note

    def plain(self, line):
        return sorted(map(tuple, self.session.plain(line)))

    def entries(self):
        """The entries that have rows."""
        found = [self.store.find(path.name) for path in self.store.path("").glob("?" * 64)]
        return [entry for entry in found if entry is not None and entry.folder]


@pytest.fixture
def kernel(session, store, tmp_path):
    session.namespace["path"] = str(tmp_path / "numbers")
    session.plain("spark.range(0, 100, 1, 2).write.parquet(path)")
    yield Kernel(session, store)
    retained_results(session.spark.sparkContext).drop(lambda one: True)


NEXT = "late.where('k > 2').groupBy(F.expr('top % 3')).agg(F.sum('total')).collect()"


def test_the_first_action_of_another_kernel_reads_stored_rows(kernel) -> None:
    kernel.keep()
    (entry,) = kernel.entries()
    kernel.begin()
    rows, is_found, note = kernel.cell(NEXT)
    assert (rows, is_found, note) == (kernel.plain(NEXT), True, "")
    report = kernel.session.report
    assert report.reused >= 2
    assert report.saved_seconds == entry.seconds
    (found,) = (one for one in retained(kernel.session.spark) if one.is_from_store)
    assert (found.place, found.made_at, found.what) == ("memory or disk, durable", entry.made_at, entry.what)
    for line in (*KEPT, NEXT):
        assert kernel.cell(line) == (kernel.plain(line), True, "")
    assert found.uses == 4


WIDE = (
    "late = spark.read.parquet(path).where('id >= 0').groupBy(F.expr('id % 10 AS k')).agg(F.sum('id').alias('total'), "
    "F.expr('max(id * 0.5D) AS rate'), F.expr('max(date_from_unix_date(try_cast(id AS int))) AS day'), "
    "F.expr('max(sha2(CAST(id AS string), 256)) AS text'), F.expr('max(try_cast(id AS decimal(20, 3))) AS exact'))"
)
"""A frame of columns of several types, whose files have all of them."""
NARROW = (
    "late.groupBy().count().collect()",
    "late.where('k > 2').groupBy('k').agg(F.sum('total')).collect()",
    "late.select('day').distinct().collect()",
    "late.select('exact').distinct().collect()",
    "late.select('rate').join(late.select((F.col('rate') + 0).alias('other')), F.expr('rate = other')).collect()",
    "late.select('k', 'rate').orderBy('k').limit(3).collect()",
)
"""Actions that read at most half of its columns, by their widths."""


@pytest.mark.matrix(2)
@pytest.mark.parametrize("line", NARROW)
def test_of_stored_rows_few_columns_are_read_from_files_and_more_are_kept(kernel, line) -> None:
    kernel.keep(WIDE)
    kernel.begin(WIDE)
    for _ in range(2):
        assert kernel.cell(line) == (kernel.plain(line), True, "")
    (found,) = (one for one in retained(kernel.session.spark) if one.is_from_store)
    assert (found.uses, found.computed.rows.are_loaded()) == (2, False)
    whole = "late.where('k > 1').collect()"
    assert kernel.cell(whole) == (kernel.plain(whole), True, "")
    assert found.computed.rows.are_loaded()
    assert kernel.cell(line + "[:]") == (kernel.plain(line), True, "")


@pytest.mark.long
def test_few_columns_whose_files_vanish_while_they_are_read_are_computed(kernel, monkeypatch) -> None:
    kernel.keep(WIDE)
    kernel.begin(WIDE)
    check, checked = DurableRows._check, []
    monkeypatch.setattr(DurableRows, "_check", lambda *given: check(*given) if checked else checked.append(1))
    (entry,) = kernel.entries()
    for file in kernel.store.files_of(entry).iterdir():
        file.write_bytes(b"?" * file.stat().st_size)
    rows, is_found, note = kernel.cell(NARROW[1])
    assert (rows, is_found) == (kernel.plain(NARROW[1]), False)
    assert " could not be " in note


def test_files_are_the_users_alone_and_hold_a_partition_each(kernel) -> None:
    kernel.keep()
    (entry,) = kernel.entries()
    told = json.loads(entry.content)
    files = sorted(kernel.store.files_of(entry).iterdir())
    assert [file.name for file in files] == [f"{place:05d}.parquet" for place, _, _ in told["files"]]
    assert sum(file.stat().st_size for file in files) == entry.folder_bytes
    made = [kernel.store.folder, *kernel.store.folder.rglob("*")]
    assert {path.stat().st_mode & 0o777 for path in made if path.is_dir()} == {0o700}
    assert {path.stat().st_mode & 0o777 for path in made if path.is_file()} == {0o600}


def test_reading_is_made_ready_by_a_small_job_once_for_a_store(kernel, monkeypatch) -> None:
    kernel.keep()
    kernel.begin()
    planned = []
    read = row_files.RowFiles.read

    def reading(self, *args):
        planned.append(read(self, *args))
        return planned[-1]

    monkeypatch.setattr(row_files.RowFiles, "read", reading)
    spark, options = kernel.session.spark, JobOptions(durable=kernel.store.folder)
    jobs = spark.sparkContext._jsc.sc().dagScheduler().numTotalJobs()
    held = set(spark.sparkContext._jsc.getPersistentRDDs())
    warming = warm_up(spark, options)
    warming.join(60)
    assert warm_up(spark, options) is warming
    assert warm_up(spark) is not warming
    assert [rows.all().getNumPartitions() for rows in planned] == [
        json.loads(kernel.entries()[0].content)["partitions"]
    ]
    assert spark.sparkContext._jsc.sc().dagScheduler().numTotalJobs() == jobs + 1
    # What nobody refers to any more goes at any time.
    assert set(spark.sparkContext._jsc.getPersistentRDDs()) <= held
    assert spark.sparkContext.getLocalProperty("spark.job.description") is None


@pytest.mark.long
def test_reading_is_not_made_ready_while_a_job_runs(kernel, monkeypatch, eventually, tmp_path) -> None:
    kernel.keep()
    kernel.begin()
    sc = kernel.session.spark.sparkContext
    rehearsed = []
    monkeypatch.setattr(row_files.RowFiles, "rehearse", lambda *given: rehearsed.append(given))
    others = sc.parallelize([1], 1).map(held_until(tmp_path / "go"))
    busy = threading.Thread(target=others.count)
    busy.start()
    eventually(sc.statusTracker().getActiveJobsIds)
    rows = durable_rows.durable_rows(sc, kernel.store)
    rows.rehearse(kernel.session.spark._jsparkSession, "made ready")
    assert rehearsed == []
    (tmp_path / "go").touch()
    busy.join()
    StatusStore(kernel.session.spark).settle()
    rows.rehearse(kernel.session.spark._jsparkSession, "made ready")
    assert len(rehearsed) == 1


@pytest.mark.long
def test_what_is_released_leaves_the_folder(kernel) -> None:
    kernel.keep()
    (found,) = (one for one in retained(kernel.session.spark) if one.stored_at is not None)
    release_retained(kernel.session.spark, found.name)
    assert kernel.entries() == []
    assert list((kernel.store.folder / "flinkmagic-rows").iterdir()) == []
    kernel.begin()
    assert kernel.cell(NEXT) == (kernel.plain(NEXT), False, "")


# -- damage ------------------------------------------------------------------------------------------------


def _flip(file):
    data = bytearray(file.read_bytes())
    data[len(data) // 2] ^= 1
    file.chmod(0o600)
    file.write_bytes(data)


DAMAGE = {
    "a changed byte": _flip,
    "a file that is cut off": lambda file: os.truncate(file, file.stat().st_size - 1),
    "no file": Path.unlink,
}


@pytest.mark.long
def test_rows_without_files_count_as_none_and_are_stored_again(kernel) -> None:
    kernel.keep()
    (entry,) = kernel.entries()
    shutil.rmtree(kernel.store.files_of(entry))
    kernel.begin()
    assert kernel.cell(NEXT)[:2] == (kernel.plain(NEXT), False)
    kernel.cell(KEPT[1])
    assert kernel.store.wait(60)
    (again,) = kernel.entries()
    assert again.folder != entry.folder


@pytest.mark.matrix(3)
@pytest.mark.parametrize("damage", DAMAGE.values(), ids=DAMAGE)
def test_damaged_rows_are_removed_and_computed(kernel, capsys, damage) -> None:
    kernel.keep()
    (entry,) = kernel.entries()
    damage(max(kernel.store.files_of(entry).iterdir()))
    kernel.begin()
    rows, is_found, _ = kernel.cell(NEXT)
    assert (rows, is_found) == (kernel.plain(NEXT), False)
    told = capsys.readouterr().err
    assert told.startswith("A stored result was damaged (0000")
    assert told.count("\n") == 1
    assert kernel.store.wait(60)
    (again,) = kernel.entries()  # computed, and stored again
    assert again.folder != entry.folder
    assert not kernel.store.files_of(entry).exists()


WRONG = {
    "other columns": {"schema": '{"type": "struct", "fields": []}'},
    "other partitions": {"partitions": 77},
    "too few partitions": {"partitions": 1},
    "a partition twice": {"files": [[0, 1, "x"], [0, 1, "x"]]},
    "no list": {"files": {"a": 1}},
}


@pytest.mark.long
@pytest.mark.parametrize("change", WRONG.values(), ids=WRONG)
def test_what_an_entry_says_is_not_believed(kernel, capsys, change) -> None:
    """Whoever can write here can write a checksum."""
    kernel.keep()
    (entry,) = kernel.entries()
    content = json.dumps({**json.loads(entry.content), **change}).encode()
    assert kernel.store.store(replace(entry, content=content))
    kernel.begin()
    assert kernel.cell(NEXT)[:2] == (kernel.plain(NEXT), False)
    assert "was damaged" in capsys.readouterr().err


@pytest.mark.matrix(2)
@pytest.mark.parametrize("line", ["late.where('k > 2').collect()", NEXT])
def test_rows_that_vanish_while_they_are_read_are_computed(kernel, monkeypatch, line) -> None:
    kernel.keep()
    kernel.begin()
    check, checked = DurableRows._check, []
    monkeypatch.setattr(DurableRows, "_check", lambda *given: check(*given) if checked else checked.append(1))
    (entry,) = kernel.entries()
    for file in kernel.store.files_of(entry).iterdir():
        file.write_bytes(b"?" * file.stat().st_size)
    rows, is_found, note = kernel.cell(line)
    assert (rows, is_found) == (kernel.plain(line), False)
    assert " could not be " in note


@pytest.mark.long
def test_an_error_of_the_users_leaves_stored_rows_in_use(kernel) -> None:
    kernel.keep()
    kernel.begin()
    with pytest.raises(Exception, match="ZeroDivisionError"):
        kernel.session.cell("late.select(F.udf(lambda k: 1 // (k - k), 'long')('k')).collect()")
    assert kernel.session.report.note == ""
    assert kernel.cell(NEXT) == (kernel.plain(NEXT), True, "")


# -- another plan of the same query ------------------------------------------------------------------------

BASE = "base = spark.read.parquet(path).selectExpr('id', 'id % 10 AS k', 'id * 2 AS m').repartition(2, 'id')\n"
OVER_BASE = BASE + "late = base.groupBy('k').agg(F.sum('id').alias('total'), F.max('id').alias('top'))"


def keep_over_kept(kernel):
    """Keep rows that are made from kept ones, which are then gone; return the entry of the former."""
    reads = [f"base.groupBy(F.expr('{column} % 5')).count().collect()" for column in ("m", "id", "m + id")]
    kernel.keep(OVER_BASE, (*reads, *KEPT))
    late, base = sorted(kernel.entries(), key=lambda entry: json.loads(entry.content)["kept_bytes"])
    kernel.store.drop(base.key)
    return late


def test_rows_are_found_although_their_plan_read_kept_ones(kernel) -> None:
    entry = keep_over_kept(kernel)
    kernel.begin(OVER_BASE)
    assert kernel.cell(NEXT) == (kernel.plain(NEXT), True, "")
    (found,) = (one for one in retained(kernel.session.spark) if one.is_from_store)
    assert found.durable_key == entry.key
    assert kernel.cell(KEPT[0]) == (kernel.plain(KEPT[0]), True, "")


@pytest.mark.long
@pytest.mark.parametrize("change", [{"layout": "another one"}, {"layout": ""}, {"partitions": 77}])
def test_rows_that_lie_otherwise_than_planned_are_not_taken_by_their_query(kernel, capsys, monkeypatch, change) -> None:
    entry = keep_over_kept(kernel)
    content = json.dumps({**json.loads(entry.content), **change}).encode()
    assert kernel.store.store(replace(entry, content=content))
    kernel.begin(OVER_BASE)
    read, asked = DurableRows.read, []

    def reading(self, stored_as, result, **how):
        asked.append(how)
        return read(self, stored_as, result, **how)

    monkeypatch.setattr(DurableRows, "read", reading)
    assert kernel.cell(NEXT)[:2] == (kernel.plain(NEXT), False)
    assert capsys.readouterr().err == ""
    assert {"by_note": True} in asked
    asked.clear()
    retained_results(kernel.session.spark.sparkContext).drop(lambda one: True)
    assert kernel.cell(KEPT[0])[0] == kernel.plain(KEPT[0])
    assert {"by_note": True} not in asked


def test_rows_that_depend_on_their_order_are_those_that_were_kept(kernel) -> None:
    made = "late = spark.read.parquet(path).selectExpr('id % 10 AS k', 'id AS total', 'id AS top')"
    made += ".dropDuplicates(['k'])"
    kernel.keep(made)
    kernel.begin(made)
    rows, is_found, _ = kernel.cell("late.where('k >= 0').collect()")
    assert (len(rows), is_found) == (10, True)
    assert rows == kernel.plain("late.collect()")  # a file's rows are read in their order here


# -- what consumers are planned on -------------------------------------------------------------------------


@pytest.mark.long
def test_what_is_planned_on_partitions_and_their_order_finds_them(kernel) -> None:
    """Two frames in equal partitions are joined without a shuffle, and a sorted one is not sorted again."""
    made = (
        "numbers = spark.read.parquet(path).selectExpr('id % 40 AS k', 'id')\n"
        "one = numbers.repartition(4, 'k').sortWithinPartitions('k', 'id')\n"
        "two = numbers.where('id % 3 = 0').repartition(4, 'k').groupBy('k').agg(F.max('id').alias('top'))\n"
    )
    lines = [
        "one.join(two.hint('merge'), 'k').collect()",
        "one.groupBy('k').agg(F.max('id')).collect()",
        "one.selectExpr('spark_partition_id() AS p', 'monotonically_increasing_id() AS i', 'k', 'id').collect()",
    ]
    kernel.begin(made)
    for name in ("one", "two"):
        for aggregate in ("max", "min"):
            kernel.session.cell(f"{name}.groupBy().agg(F.{aggregate}('k')).collect()")
    assert kernel.store.wait(60)
    assert sorted(entry.what for entry in kernel.entries()) == ["HashAggregate", "Sort"]
    computed = [kernel.cell(line)[0] for line in lines]
    kernel.begin(made)
    for line, rows in zip(lines, computed, strict=True):
        assert kernel.cell(line) == (rows, True, ""), line
    assert computed[:2] == [kernel.plain(line) for line in lines[:2]]


@pytest.mark.long
def test_a_graph_reads_what_its_sinks_shared_in_another_kernel(kernel, tmp_path) -> None:
    spark, names = kernel.session.spark, kernel.session.namespace

    def run(number):
        retained_results(spark.sparkContext).drop(lambda one: True)
        with capture(spark, name="shared") as program:
            late = spark.read.parquet(names["path"]).selectExpr("id % 10 AS k", "id").repartition(2, "k")
            for name, condition in (("all", "true"), ("some", "k > 3")):
                late.where(condition).groupBy("k").agg(F.max("id")).write.json(f"{tmp_path}/{name}{number}")
        job = compile(program, parallelism=2, durable=kernel.store.folder).run()
        assert job.status is JobStatus.FINISHED
        written = [spark.read.json(f"{tmp_path}/{name}{number}") for name in ("all", "some")]
        return [sorted(map(tuple, rows.collect())) for rows in written], job

    computed, job = run(1)
    assert kernel.store.wait(60)
    assert (len(kernel.entries()), job.found_durable()) == (1, [])
    again, job = run(2)
    (found,) = job.found_durable()
    assert (again, found.durable_key) == (computed, kernel.entries()[0].key)
    assert len(job.reused()) >= 2


# -- what is stored ----------------------------------------------------------------------------------------

NOT_DURABLE = {
    "rows of the driver": "late = spark.createDataFrame([(1, 2, 3)], 'k long, total long, top long').repartition(2)",
    "chance": "late = spark.read.parquet(path).selectExpr('id AS k', 'rand() AS total', 'id AS top').repartition(2)",
    "calendar intervals": (
        "late = spark.read.parquet(path).selectExpr('id AS k', 'id AS total', 'make_interval(1) AS top').repartition(2)"
    ),
}


@pytest.mark.matrix(3)
@pytest.mark.parametrize("made", NOT_DURABLE.values(), ids=NOT_DURABLE)
def test_what_means_nothing_later_or_has_no_bits_in_files_is_not_stored(kernel, made) -> None:
    kernel.keep(made, ("late.select('k').collect()", "late.select('k', 'top').where('k > 1').select('k').collect()"))
    assert kernel.entries() == []


def test_what_is_cheaper_to_compute_is_not_stored(kernel, monkeypatch) -> None:
    monkeypatch.setattr(durable_rows, "WRITE_S", 60.0)
    kernel.keep()
    assert kernel.entries() == []
    monkeypatch.setattr(durable_rows, "WRITE_S", -1e9)
    kernel.store.most_bytes = 100
    kernel.keep()
    assert kernel.entries() == []


@pytest.mark.long
def test_rows_that_save_least_per_byte_make_room(kernel) -> None:
    kernel.keep()
    (entry,) = kernel.entries()
    kernel.store.most_bytes = entry.folder_bytes + 3000
    better = durable_store.DurableEntry(64 * "a", "f()", 1e6, 1.0, b"x" * 2500)
    assert kernel.store.store(better)
    assert kernel.entries() == []
    assert not kernel.store.files_of(entry).exists()
    kernel.begin()
    assert kernel.cell(NEXT)[:2] == (kernel.plain(NEXT), False)


def test_files_that_were_just_changed_leave_no_rows(kernel, monkeypatch) -> None:
    monkeypatch.setattr(result_keys, "SETTLED_S", 3600)
    kernel.keep()
    assert kernel.entries() == []


@pytest.fixture
def jobs(spark):
    # A tag of its own: those that other tests have made still follow the context, and keep their jobs out of the log.
    tag = f"tag-{uuid.uuid4()}"
    made = durable_rows.CLASSES.new_instance(spark.sparkContext._gateway, "BackgroundJobs", tag)
    made.follow(spark.sparkContext._jsc.sc())
    return made


def sleeping(spark, seconds):
    """A job of one task that takes some time."""
    return spark.range(0, 1, 1, 1).select(F.udf(lambda n: time.sleep(seconds) or n, "long")("id")).collect()


def while_a_job_runs(spark, act):
    """Let another thread act once a task of a job runs; return the thread."""
    tracker = spark.sparkContext.statusTracker()

    def is_running():
        stages = [stage for job in tracker.getActiveJobsIds() for stage in tracker.getJobInfo(job).stageIds]
        return any(info.numActiveTasks for info in map(tracker.getStageInfo, stages) if info is not None)

    def wait_and_act():
        while not is_running():
            time.sleep(0.05)
        act()

    thread = threading.Thread(target=wait_and_act)
    thread.start()
    return thread


def wait_until_no_task_runs(spark):
    """Ask the scheduler: the status store hears late of a task that begins."""
    scheduler = spark.sparkContext._jsc.sc().taskScheduler()
    while scheduler.rootPool().runningTasks():
        time.sleep(0.1)
    time.sleep(0.5)  # another thread logs what has failed


def end_for_the_users(spark, jobs):
    """Let a job that stores be ended by one of the user's."""
    assert jobs.awaitQuiet(50, 10_000)
    jobs.begin("stores rows")
    users = while_a_job_runs(spark, spark.range(5).collect)
    with pytest.raises(Exception, match="cancelled"):
        sleeping(spark, 60)
    assert jobs.end()
    users.join()


@pytest.mark.long
def test_a_job_of_the_users_ends_one_that_stores(spark, jobs) -> None:
    end_for_the_users(spark, jobs)
    jobs.begin("stores rows")
    assert len(sleeping(spark, 0)) == 1
    assert not jobs.end()


@pytest.fixture
def log(spark):
    """What is logged meanwhile, warnings and worse."""
    log4j, written = spark._jvm.org.apache.logging.log4j, spark._jvm.java.io.StringWriter()
    root = log4j.LogManager.getContext(False).getConfiguration().getRootLogger()
    level = root.getLevel().toString()
    appender = log4j.core.appender.WriterAppender.createAppender(None, None, written, "test", False, True)
    appender.start()
    root.addAppender(appender, None, None)
    spark.sparkContext.setLogLevel("WARN")
    yield written
    spark.sparkContext.setLogLevel(level)
    root.removeAppender("test")


@pytest.mark.long
def test_nothing_is_logged_of_a_job_that_was_ended_for_another(spark, jobs, log, eventually, tmp_path) -> None:
    spark.range(0, 2**20, 1, 1).write.parquet(str(tmp_path / "read"))
    # Whether its task was killed is asked by each batch that it reads.
    many = spark.read.parquet(str(tmp_path / "read")).select("id", F.explode(F.sequence(F.lit(1), F.lit(64))))

    def written_until(cancel):
        """Write many rows until something cancels that; return what is logged."""
        canceller = while_a_job_runs(spark, cancel)
        with pytest.raises(Exception, match="cancelled"):
            many.write.mode("overwrite").parquet(str(tmp_path / "rows"))
        canceller.join()
        wait_until_no_task_runs(spark)
        return log.toString()

    assert jobs.awaitQuiet(50, 10_000)
    jobs.begin("stores rows")
    said = written_until(spark.range(5).collect)
    assert jobs.end()
    assert "abort" not in said.lower()
    assert "Lost task" not in said
    written_until(spark.sparkContext.cancelAllJobs)
    texts = ("Aborting job", "Aborting task", "Lost task")
    eventually(lambda: all(text in log.toString() for text in texts))


@pytest.mark.long
def test_nothing_is_logged_of_an_ended_job_either_when_the_next_one_has_begun(spark, jobs, log) -> None:
    end_for_the_users(spark, jobs)
    jobs.begin("stores other rows")
    wait_until_no_task_runs(spark)
    assert "Lost task" not in log.toString()
    assert not jobs.end()


@pytest.mark.long
def test_a_folder_named_like_the_tag_is_logged_of(spark, log) -> None:
    jobs = durable_rows.CLASSES.new_instance(spark.sparkContext._gateway, "BackgroundJobs", "flinkmagic-durable")
    jobs.follow(spark.sparkContext._jsc.sc())
    spark._jvm.org.apache.logging.log4j.LogManager.getLogger("test").warn("/home/me/flinkmagic-durable is full")
    assert "/home/me/flinkmagic-durable is full" in log.toString()


@pytest.mark.long
def test_rows_wait_until_no_job_runs(spark, jobs, eventually, tmp_path) -> None:
    rows = spark.sparkContext.parallelize([1], 1).map(held_until(tmp_path / "go"))
    users = threading.Thread(target=rows.count)
    users.start()
    eventually(spark.sparkContext.statusTracker().getActiveJobsIds)
    assert not jobs.awaitQuiet(50, 300)
    (tmp_path / "go").touch()
    assert jobs.awaitQuiet(50, 60_000)
    users.join()


@pytest.mark.long
def test_rows_whose_job_was_ended_are_stored_later(kernel, monkeypatch) -> None:
    session, write, times = kernel.session, durable_rows.RowFiles.write, []

    def disturbed(files, rows, schema, folder):
        times.append(folder)
        if len(times) == 2:
            raise PySparkException("ended by another job")
        write(files, rows, schema, folder)

    class Disturbed:
        def __init__(self, jobs):
            self._jobs = jobs

        def __getattr__(self, name):
            return getattr(self._jobs, name)

        def end(self):
            return self._jobs.end() or len(times) == 2

    made = DurableRows._background_jobs
    monkeypatch.setattr(durable_rows.RowFiles, "write", disturbed)
    monkeypatch.setattr(DurableRows, "_background_jobs", lambda *given: Disturbed(made(*given)))
    kernel.keep()
    (entry,) = kernel.entries()
    assert len(times) == 1 + json.loads(entry.content)["partitions"]
    assert times[1] == times[2]
    kernel.begin()
    assert kernel.cell(NEXT) == (kernel.plain(NEXT), True, "")
    assert session.report.reused >= 2


# -- processes of their own --------------------------------------------------------------------------------

KILLS = 4


def _cell(at, number):
    made = f"{DATA}kept = df.selectExpr('n * {number} AS n', 's').repartition(2)"
    return {"name": str(number), "first": "", "settings": {}, "source": f"at = {str(at)!r}\n{made}", "method": ""}


def _killed(at, store, number, wait_s):
    """Run a cell in a kernel that is killed some time after it has begun to store rows."""
    given = {"folder": str(store), "master": "local[2]", "rows": True, "cells": [_cell(at, number)]}
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.session.actions.durable_process"], stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, text=True, cwd=ROOT, start_new_session=True,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )  # fmt: skip
    try:
        process.stdin.write(json.dumps(given))
        process.stdin.close()
        while process.poll() is None and not list((store / "flinkmagic-rows").glob(".storing-*")):
            time.sleep(0.01)
        time.sleep(wait_s)
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    for left in (store / "flinkmagic-rows").glob(".storing-*"):  # or the next one would be killed for it
        left.rename(left.with_name(left.name.replace("storing", f"left-{number}")))


def after_kills(folder, kills):
    """Kill kernels at chance moments while they store rows; return which answers are wrong then, and what is said."""
    chance, at, store = random.Random(11), folder / "0", folder / "store"
    _prepare(at)
    for number in range(kills):
        _killed(at, store, number, chance.random() * 0.8)
    answers, told = kernel_of_its_own(store, [_cell(at, number) for number in range(kills)], rows=True)
    return [name for name, one in answers.items() if one["answer"] != one["plain"]], told


@pytest.mark.long
def test_a_kernel_that_is_killed_while_it_stores_rows_leaves_whole_ones(tmp_path) -> None:
    wrong, told = after_kills(tmp_path, KILLS)
    assert wrong == []
    assert "damaged" not in told


@pytest.mark.long
@pytest.mark.exhaustive
def test_another_version_another_zone_and_another_master_find_nothing(tmp_path) -> None:
    at, store = tmp_path / "0", tmp_path / "store"
    _prepare(at)

    def found(**how):
        (answer,) = kernel_of_its_own(store, [_cell(at, 1)], rows=True, **{"TZ": "UTC", **how})[0].values()
        assert answer["answer"] == answer["plain"]
        return answer["is_other_s"]

    assert [found(), found(), found(TZ="Asia/Tokyo"), found(master="local[3]"), found()] == [
        False, True, False, False, True,
    ]  # fmt: skip
