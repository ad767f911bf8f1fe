"""PySpark's classes: hooked while something is captured, for one thread only, and the same objects afterwards."""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextvars import Context, copy_context
from queue import Queue
from typing import Any

import pytest
from pyspark import RDD, SparkContext
from pyspark.sql import DataFrameReader, DataFrameWriter, DataFrameWriterV2, GroupedData, SparkSession
from pyspark.sql.catalog import Catalog
from pyspark.sql.streaming import DataStreamReader, DataStreamWriter

from flinkmagic.capturing.capture import capture
from flinkmagic.capturing.hooks.hook_table import classic_data_frame, entries

OWNERS = [
    classic_data_frame(),
    GroupedData,
    SparkSession,
    DataFrameReader,
    DataFrameWriter,
    DataFrameWriterV2,
    DataStreamReader,
    DataStreamWriter,
    Catalog,
    RDD,
    SparkContext,
]


def _attributes() -> dict[tuple[type, str], Any]:
    owners = {*OWNERS, *(owner for owner, _, _ in entries())}
    return {(owner, name): value for owner in owners for name, value in vars(owner).items()}


def test_every_attribute_is_the_very_same_after_a_capture(cell: Any) -> None:
    before = _attributes()
    with capture(cell.spark):
        during = _attributes()
    assert during[DataFrameWriter, "save"] is not before[DataFrameWriter, "save"]
    assert during.keys() >= before.keys()
    after = _attributes()
    assert after.keys() == before.keys()
    assert [key for key in before if after[key] is not before[key]] == []


def test_every_attribute_is_the_very_same_after_an_error(cell: Any) -> None:
    before = _attributes()
    with pytest.raises(KeyboardInterrupt), capture(cell.spark):
        raise KeyboardInterrupt
    after = _attributes()
    assert [key for key in before if after.get(key) is not before[key]] == []


def test_a_hooked_method_looks_like_the_original(cell: Any) -> None:
    plain = DataFrameWriter.parquet
    with capture(cell.spark):
        hooked = DataFrameWriter.parquet
        assert (hooked.__name__, hooked.__doc__) == (plain.__name__, plain.__doc__)
        assert hooked.__wrapped__ is plain  # type: ignore[attr-defined]


def test_an_inner_capture_takes_what_is_its_own(cell: Any) -> None:
    before = _attributes()
    with capture(cell.spark, namespace={}) as outer:
        cell.spark.range(1).write.parquet(cell.at("one"))
        with capture(cell.spark, namespace={}) as inner:
            cell.spark.range(2).write.parquet(cell.at("two"))
        cell.spark.range(3).write.parquet(cell.at("three"))
    assert [write.name for write in outer.writes] == ["one", "three"]
    assert [write.name for write in inner.writes] == ["two"]
    assert cell.made() == set()
    assert [key for key, value in _attributes().items() if before.get(key) is not value] == []


@pytest.mark.matrix(2)
@pytest.mark.parametrize("inherits", [False, True], ids=["own context", "the cell's context"])
def test_a_write_of_a_thread_that_was_there_before_is_a_plain_write(cell: Any, inherits: bool) -> None:
    work: Queue[Callable[[], None]] = Queue()
    thread = threading.Thread(target=lambda: work.get(timeout=60)())
    thread.start()
    with capture(cell.spark, namespace={}) as program:
        context = copy_context() if inherits else Context()
        work.put(lambda: context.run(lambda: cell.spark.range(5).write.parquet(cell.at("theirs"))))
        thread.join()
        cell.spark.range(3).write.parquet(cell.at("ours"))
    assert cell.made() == {"theirs"}
    assert cell.rows("theirs") == [0, 1, 2, 3, 4]
    assert [write.name for write in program.writes] == ["ours"]
    assert len(program.lineage.calls) == 1


def test_a_context_that_outlives_the_capture_is_plain_again(cell: Any) -> None:
    with capture(cell.spark, namespace={}) as program:
        context = copy_context()
    with capture(cell.spark, namespace={}):
        context.run(lambda: cell.spark.range(2).write.parquet(cell.at("later")))
    assert cell.rows("later") == [0, 1]
    assert program.writes == ()


def test_two_threads_capture_side_by_side(cell: Any) -> None:
    before = _attributes()
    programs: dict[str, Any] = {}
    barrier = threading.Barrier(2, timeout=60)

    def work(name: str, size: int) -> None:
        with capture(cell.spark, namespace={}) as program:
            barrier.wait()
            for _ in range(size):
                cell.spark.range(size).write.mode("append").parquet(cell.at(name))
            if name == "short":
                barrier.wait()
        if name == "long":
            barrier.wait()
        programs[name] = program

    threads = [threading.Thread(target=work, args=args) for args in (("short", 2), ("long", 4))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [write.name for write in programs["short"].writes] == ["short", "short_2"]
    assert [write.after for write in programs["long"].writes] == [(), (0,), (0, 1), (0, 1, 2)]
    assert cell.made() == set()
    assert [key for key, value in _attributes().items() if before.get(key) is not value] == []


def test_a_patch_of_another_library_is_left_in_place(cell: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    plain = DataFrameWriter.__dict__["csv"]
    with capture(cell.spark, namespace={}):
        hooked = DataFrameWriter.csv

        def theirs(*args: Any, **kwargs: Any) -> Any:
            return hooked(*args, **kwargs)

        monkeypatch.setattr(DataFrameWriter, "csv", theirs)
    assert DataFrameWriter.csv is theirs
    cell.spark.range(2).write.csv(cell.at("out"))
    assert cell.rows("out", "csv") == ["0", "1"]
    monkeypatch.setattr(DataFrameWriter, "csv", plain)
