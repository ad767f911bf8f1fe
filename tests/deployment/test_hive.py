"""Tables of Hive's own formats are written when the graph runs, with the rows of a plain write."""

from __future__ import annotations

from pathlib import Path

import pytest
from own_process import told_by

pytestmark = pytest.mark.long


def test_writes_to_hive_s_tables_are_deferred_and_give_the_rows_of_plain_ones(tmp_path):
    script = Path(__file__).with_name("hive_process.py")
    told = told_by(str(script), cwd=tmp_path).value
    assert {name: before for name, (_, before, _, _) in told.items()} == {
        "append": 1, "overwrite": 1, "partitions": 0, "created": False,
    }  # fmt: skip
    assert {name: len(ours) for name, (_, _, _, ours) in told.items()} == {
        "append": 21, "overwrite": 5, "partitions": 20, "created": 20,
    }  # fmt: skip
    for name, (status, _, plain, ours) in told.items():
        assert status == "FINISHED", name
        assert ours == plain, name
