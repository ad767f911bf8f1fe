"""No pending write runs on files that have changed since its line."""

from __future__ import annotations

import os
import shutil
import time
from pathlib import Path
from typing import Any

import pytest

from flinkmagic.capturing.writes.listed_inputs import check_inputs
from flinkmagic.errors.capturing import InputChangedError, InputChangedWarning

WRITE = "df = spark.read.parquet(at('a'))\ndf.where('id > 0').write.parquet(at('x'))\n"


def _part(cell: Any) -> Path:
    return next(Path(cell.at("a")).glob("part-*"))


def test_unchanged_and_appended_inputs_are_read(cell: Any, numbers: Any) -> None:
    numbers("a", 3)
    program = cell.capture(WRITE)
    cell.spark.range(2).write.mode("append").parquet(cell.at("a"))
    check_inputs(program.writes)


@pytest.mark.parametrize("change", ["deleted", "replaced", "rewritten"])
def test_changed_inputs_are_not_read(cell: Any, numbers: Any, change: str) -> None:
    numbers("a", 3)
    program = cell.capture(WRITE)
    part = _part(cell)
    if change == "rewritten":
        part.write_bytes(part.read_bytes() + b" ")
    else:
        shutil.rmtree(part.parent)
        if change == "replaced":
            numbers("a", 4)
    with pytest.raises(InputChangedError, match="cell 3, line 2") as raised:
        check_inputs(program.writes)
    assert ("is gone" in str(raised.value)) == (change != "rewritten")


def test_what_had_changed_before_the_line_is_told(cell: Any, numbers: Any) -> None:
    numbers("a", 3)
    cell.plain("df = spark.read.parquet(at('a'))")
    part = _part(cell)
    earlier = time.time() - 60
    os.utime(part, (earlier, earlier))
    program = cell.capture("df.write.parquet(at('x'))")
    with pytest.warns(InputChangedWarning, match="was changed after its DataFrame had listed it"):
        check_inputs(program.writes)


def test_changed_files_of_partitions_that_are_not_read_are_no_matter(cell: Any) -> None:
    cell.plain("""\
        spark.range(6).withColumn("day", F.col("id") % 3).write.partitionBy("day").parquet(at("days"))
        days = spark.read.parquet(at("days"))
        """)
    program = cell.capture("""\
        days.where("day = 0").write.parquet(at("zero"))
        days.where("day < 2").write.parquet(at("more"))
        """)
    shutil.rmtree(cell.at("days/day=1"))
    check_inputs(program.writes[:1])
    with pytest.raises(InputChangedError, match="cell 3, line 2"):
        check_inputs(program.writes)
