"""What a cell that raises leaves behind: with pending writes deployed, what the plain cell leaves."""

from __future__ import annotations

from typing import Any

import pytest
from pyspark.errors import AnalysisException

from flinkmagic.errors.capturing import PendingWriteError

WRITE = "spark.range(0, 3, 1, 1).write.parquet(at('x'))\n"


def test_what_was_pending_is_written_first(cell: Any) -> None:
    later = "spark.range(1).write.parquet(at('y'))\nassert False\nspark.range(1).write.csv(at('z'))"
    with pytest.raises(AssertionError):
        cell.capture(WRITE + later, deploying=True)
    assert cell.deployed == ["x", "y"]
    assert cell.rows("x") == [0, 1, 2]


def test_a_second_write_to_a_path_raises_after_the_first_is_written(cell: Any) -> None:
    with pytest.raises(AnalysisException, match="PATH_ALREADY_EXISTS"):
        cell.capture(WRITE + WRITE, deploying=True)
    assert cell.rows("x") == [0, 1, 2]


def test_without_deploying_the_error_says_what_is_not_going_to_run(cell: Any) -> None:
    with pytest.raises(ZeroDivisionError) as raised:
        cell.capture(WRITE + "1 / 0")
    (note,) = raised.value.__notes__
    assert note.startswith("Captured before this line, and not going to run: the writes to file:")
    assert note.endswith("/x (cell 3, line 1).")
    assert cell.made() == set()


def test_a_refusal_says_it_too(cell: Any) -> None:
    with pytest.raises(PendingWriteError) as raised:
        cell.capture(WRITE + "spark.read.parquet(at('x')).count()")
    assert "not going to run" in "".join(raised.value._render_traceback_())


@pytest.mark.parametrize("deploying", [True, False])
def test_an_interrupt_drops_what_is_pending_and_says_so(cell: Any, deploying: bool) -> None:
    with pytest.raises(KeyboardInterrupt) as raised:
        cell.capture(WRITE + "raise KeyboardInterrupt", deploying)
    assert "dropped: the writes to" in raised.value.__notes__[0]
    assert cell.deployed == []
    assert cell.made() == set()


def test_a_refusal_that_the_cell_drops_is_raised_at_its_end(cell: Any) -> None:
    with pytest.raises(PendingWriteError):
        cell.capture(WRITE + "try:\n    spark.read.parquet(at('x')).count()\nexcept Exception:\n    pass")
    assert cell.made() == set()


def test_a_failed_deployment_is_not_tried_again(cell: Any) -> None:
    tries = []

    def fail(program: Any) -> None:
        tries.append(program)
        raise RuntimeError("no executor")

    cell.run_pending = fail
    with pytest.raises(RuntimeError, match="no executor"):
        cell.capture(WRITE + "spark.read.parquet(at('x')).count()", deploying=True)
    assert len(tries) == 1
