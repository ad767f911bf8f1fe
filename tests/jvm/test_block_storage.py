"""How much room there is for rows."""

from __future__ import annotations

from flinkmagic.jvm import block_storage
from flinkmagic.jvm.block_storage import LEAST_FREE_DISK, lack_of_room, memory_for_rows


def test_a_context_has_memory_for_rows_and_persisted_ones_take_some(spark) -> None:
    most, free = memory_for_rows(spark.sparkContext)
    assert 0 < free <= most
    rows = spark.range(0, 200_000, 1, 2).selectExpr("uuid()").cache()  # more than Spark cleans up meanwhile
    try:
        rows.count()
        assert memory_for_rows(spark.sparkContext)[1] < free
    finally:
        rows.unpersist(blocking=True)


def test_what_is_lacking_is_told(spark, monkeypatch) -> None:
    sc = spark.sparkContext
    monkeypatch.setattr(block_storage, "free_disk", lambda sc: None)
    assert lack_of_room(sc) == ""
    monkeypatch.setattr(block_storage, "free_disk", lambda sc: LEAST_FREE_DISK - 1)
    assert lack_of_room(sc) == "only 1.0 GiB are free where Spark keeps its files"
    monkeypatch.setattr(block_storage, "free_disk", lambda sc: LEAST_FREE_DISK)
    monkeypatch.setattr(block_storage, "memory_for_rows", lambda sc: (100 * 2**20, 4 * 2**20))
    assert lack_of_room(sc) == "only 4.0 MiB of 100.0 MiB are free in Spark's memory for rows"
    monkeypatch.setattr(block_storage, "memory_for_rows", lambda sc: (100, 5))
    assert lack_of_room(sc) == ""
