"""Rows of the user's own caches, stored by one kernel and read by the next one."""

from __future__ import annotations

import shutil
import threading
from pathlib import Path

import pytest

from flinkmagic.errors.actions import CACHE_NOT_FILLED
from flinkmagic.options import JobOptions
from flinkmagic.reuse import durable_caches, durable_rows, durable_store
from flinkmagic.reuse.retained_answers import retained_answers
from flinkmagic.reuse.retained_results import retained_results
from flinkmagic.session.actions import asked_answers
from flinkmagic.session.actions.session_actions import SessionActions
from tests.session.actions.conftest import Session

MADE = "lines = spark.read.csv(path, schema='id long, text string').withColumn('hash', F.sha2('text', 256))"
CACHED = MADE + ".cache()"
SUM = "lines.where('id > 5').agg(F.count('hash'), F.max('hash'), F.sum('id')).collect()"
FILL = "lines.groupBy(F.expr('id % 3')).agg(F.max('hash')).collect()"


class Kernel:
    """A session in a process that forgets what it has kept, as if it were another one."""

    def __init__(self, spark, store, path):
        self.spark, self.store, self.path = spark, store, path

    def begin(self, lines=CACHED):
        """Run the first cell in a new session."""
        self.spark.catalog.clearCache()
        retained_results(self.spark.sparkContext).drop(lambda one: True)
        self.session = Session(self.spark)
        self.session.actions = self.actions()
        self.session.namespace["path"] = str(self.path)
        self.session.cell(lines + "\nNone")

    def cell(self, line):
        """Run a line as a cell of its own: each has its own `SessionActions`."""
        self.session.actions = self.actions()
        return self.session.cell(line)

    def actions(self):
        return SessionActions(JobOptions(retain="session", durable=self.store.folder))

    def plain(self, line):
        self.spark.catalog.clearCache()
        return self.session.plain(f"{MADE}\n{line}")

    def keep(self):
        """Fill the cache, and store its rows."""
        self.begin()
        self.cell(FILL)
        assert self.store.wait(60)

    def entries(self):
        found = [self.store.find(path.name) for path in self.store.path("").glob("?" * 64)]
        return [entry for entry in found if entry is not None and entry.what == "cache()"]

    def has_parsed(self):
        """Whether the rows of the cache are read from the user's own files."""
        return ".parquet" not in _files_below(self.relation().cacheBuilder().cachedColumnBuffers())

    def relation(self):
        """The relation of the cache."""
        manager = self.spark._jsparkSession.sharedState().cacheManager()
        return manager.lookupCachedData(self.session.namespace["lines"]._jdf).get().cachedRepresentation()

    def stored(self, number=None):
        """What Spark says of the RDDs that it holds, or of one."""
        found = self.spark.sparkContext._jsc.sc().getRDDStorageInfo()
        return [one for one in found if number is None or one.id() == number]


def _files_below(rdd):
    if rdd.getClass().getSimpleName() == "FileScanRDD":
        return " ".join(file.toString() for one in rdd.getPartitions() for file in one.files())
    return " ".join(_files_below(rdd.dependencies().apply(i).rdd()) for i in range(rdd.dependencies().size()))


@pytest.fixture
def kernel(spark, store, tmp_path):
    path = tmp_path / "lines"
    spark.range(0, 1000, 1, 3).selectExpr("id", "concat('line ', id) AS text").write.csv(str(path))
    yield Kernel(spark, store, path)
    spark.catalog.clearCache()
    retained_results(spark.sparkContext).drop(lambda one: True)


def test_a_cache_of_another_kernel_is_filled_from_stored_rows(kernel) -> None:
    kernel.keep()
    (entry,) = kernel.entries()
    kernel.begin()
    rows = kernel.cell(SUM)
    assert not kernel.has_parsed()
    assert "cache() takes the rows that were stored (from " in kernel.session.report.note
    kernel.cell(FILL)
    assert "stored" not in kernel.session.report.note
    assert kernel.plain(SUM) == rows
    assert kernel.entries() == [entry]


def test_what_reads_the_cache_without_a_dataframe_reads_stored_rows(kernel) -> None:
    kernel.keep()
    kernel.begin()
    line = "lines.select('id').rdd.map(lambda row: row.id).sum()"
    assert kernel.cell(line) == sum(range(1000))
    assert not kernel.has_parsed()


def test_answers_over_a_cache_that_has_found_its_rows_are_given_again(kernel) -> None:
    kernel.keep()
    rows = kernel.cell(SUM)
    assert kernel.store.wait(60)
    kernel.begin()
    retained_answers(kernel.spark.sparkContext).drop(lambda one: True)
    kernel.cell(FILL)
    assert kernel.cell(SUM) == rows
    assert kernel.session.report.kept_at
    assert not kernel.has_parsed()


def test_what_another_kernel_has_answered_fills_no_cache(kernel, monkeypatch) -> None:
    kernel.keep()
    rows = kernel.cell(SUM)
    assert kernel.store.wait(60)
    kernel.begin()
    retained_answers(kernel.spark.sparkContext).drop(lambda one: True)
    monkeypatch.setattr(asked_answers, "KERNEL", "another")
    kernel.cell(FILL)
    assert kernel.session.report.kept_at
    assert kernel.session.report.note == CACHE_NOT_FILLED
    assert kernel.cell(SUM) == rows
    assert kernel.session.report.kept_at
    assert not kernel.relation().cacheBuilder().isCachedColumnBuffersLoaded()
    assert kernel.cell("lines.count()") == 1000
    assert not kernel.session.report.kept_at
    assert kernel.relation().cacheBuilder().isCachedColumnBuffersLoaded()
    assert kernel.cell(SUM) == rows
    assert kernel.session.report.kept_at
    assert not kernel.session.report.note


def test_what_this_kernel_has_answered_fills_a_cache_again(kernel) -> None:
    kernel.keep()
    kernel.begin()
    kernel.cell(FILL)
    assert not kernel.session.report.kept_at
    assert kernel.relation().cacheBuilder().isCachedColumnBuffersLoaded()


CHOSEN = MADE + ".limit(10).cache()"


def test_what_fills_a_cache_with_rows_of_its_own_is_computed(kernel, monkeypatch) -> None:
    monkeypatch.setattr(asked_answers, "KERNEL", "another")
    for _ in range(2):
        kernel.begin(CHOSEN)
        kernel.cell(FILL)
        assert not kernel.session.report.kept_at
        assert kernel.store.wait(60)


def test_a_filled_cache_is_sparks_own(kernel) -> None:
    kernel.keep()
    kernel.begin()
    kernel.cell(FILL)
    relation = kernel.relation()
    number = relation.cacheBuilder().cachedColumnBuffers().id()
    (stored,) = kernel.stored(number)
    assert stored.numCachedPartitions() == stored.numPartitions() > 1
    assert relation.cacheBuilder().isCachedColumnBuffersLoaded()
    assert relation.computeStats().rowCount().get() == 1000
    kernel.session.cell("lines.unpersist()\nNone")
    assert kernel.stored(number) == []
    assert kernel.cell(SUM) == kernel.plain(SUM)


def test_a_cache_does_not_need_the_store_once_it_has_found_its_rows(kernel) -> None:
    kernel.keep()
    kernel.begin(MADE + ".persist(__import__('pyspark').StorageLevel.MEMORY_ONLY)")
    assert not kernel.has_parsed()
    shutil.rmtree(kernel.store.folder)
    rows = kernel.cell(SUM)
    assert rows == kernel.plain(SUM)


def test_stored_rows_on_another_disk_are_copied(kernel, monkeypatch) -> None:
    def refuse(*_):
        raise OSError(18, "Invalid cross-device link")

    kernel.keep()
    monkeypatch.setattr(durable_caches.os, "link", refuse)
    kernel.begin()
    rows = kernel.cell(SUM)
    assert not kernel.has_parsed()
    assert rows == kernel.plain(SUM)


def _other_rows(path):
    for checksum in path.glob(".*.crc"):
        checksum.unlink()
    next(path.glob("part-*")).write_text("3000,other\n")


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (lambda path: path.joinpath("more.csv").write_text("2000,more\n"), 2000),
        (_other_rows, 3000),
    ],
    ids=["a file more", "a file changed"],
)
def test_rows_of_other_files_are_not_found(kernel, change, told) -> None:
    kernel.keep()
    change(Path(kernel.path))
    kernel.begin()
    assert kernel.has_parsed()
    assert kernel.cell("lines.agg(F.max('id')).collect()")[0][0] == told


def test_damaged_rows_are_removed_and_computed(kernel, capsys) -> None:
    kernel.keep()
    (entry,) = kernel.entries()
    file = next(kernel.store.files_of(entry).glob("*.parquet"))
    data = bytearray(file.read_bytes())
    data[len(data) // 2] ^= 1
    file.write_bytes(bytes(data))
    kernel.begin()
    assert kernel.has_parsed()
    assert kernel.entries() == []
    assert "A stored result was damaged (00000.parquet is another one)" in capsys.readouterr().err
    assert kernel.cell(SUM) == kernel.plain(SUM)


def test_a_cache_that_something_has_read_before_is_not_stored(kernel) -> None:
    kernel.begin("lines = spark.read.csv(path, schema='id long, text string')")
    kernel.session.plain("lines.cache().count()")
    kernel.cell("lines.cache().count()")
    assert kernel.store.wait(60)
    assert kernel.entries() == []


SHUFFLED = "spark.read.csv(path, schema='id long, text string').groupBy(F.expr('id % 7 AS k')).count()"


@pytest.mark.parametrize("adaptive", ["true", "false"])
def test_a_cache_above_a_shuffle_is_read_as_it_was_planned(kernel, adaptive, capsys) -> None:
    kernel.spark.conf.set("spark.sql.adaptive.enabled", adaptive)
    try:
        found = []
        for _ in range(2):
            kernel.begin(f"lines = {SHUFFLED}.cache()")
            found.append(sorted(map(tuple, kernel.cell("lines.sortWithinPartitions('k').collect()"))))
            found.append(sorted(map(tuple, kernel.cell("lines.groupBy('k').agg(F.sum('count')).collect()"))))
            found.append(sorted(map(tuple, kernel.session.plain("lines.join(lines.select('k'), 'k').collect()"))))
            assert kernel.store.wait(60)
    finally:
        kernel.spark.conf.unset("spark.sql.adaptive.enabled")
    assert found == 6 * [[(k, 143 if k < 6 else 142) for k in range(7)]]
    assert len(kernel.entries()) == 1
    assert not kernel.has_parsed()
    assert capsys.readouterr().err == ""


def test_a_cache_that_is_dropped_before_it_is_stored_is_not_stored(kernel, monkeypatch) -> None:
    waits, goes_on = threading.Event(), threading.Event()
    has_room = durable_store.DurableStore.has_room

    def late(*args):
        waits.set()
        assert goes_on.wait(60)
        return has_room(*args)

    monkeypatch.setattr(durable_store.DurableStore, "has_room", late)
    kernel.begin()
    kernel.cell(FILL)
    assert waits.wait(60)
    before = len(kernel.stored())
    kernel.cell("lines.unpersist()\nNone")
    goes_on.set()
    assert kernel.store.wait(60)
    assert kernel.entries() == []
    assert len(kernel.stored()) == before - 1


def test_what_is_cheaper_to_compute_is_not_stored(kernel, monkeypatch) -> None:
    monkeypatch.setattr(durable_rows, "WRITE_S", 1e9)
    kernel.keep()
    assert kernel.entries() == []
