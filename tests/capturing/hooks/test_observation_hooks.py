"""`Observation.get` in a cell: it waits for a query, and a pending write is none yet."""

from __future__ import annotations

from typing import Any

import pytest

from flinkmagic.errors.capturing import AwaitedMetricsError, PendingWriteError
from flinkmagic.session import compile

OBSERVED = """\
    from pyspark.sql import Observation
    seen, other, past = Observation("seen (all)"), Observation(), Observation()
    df = spark.range(0, 5, 1, 2).observe(seen, F.count("*").alias("n"))
    counted = spark.range(3).observe(past, F.count("*").alias("n"))
    counted.count()
"""


def test_the_metrics_of_a_pending_write_need_it_done(cell: Any) -> None:
    source = (
        OBSERVED
        + """\
    df.where("id > 1").write.parquet(at("out"))
    counted.write.parquet(at("counted"))
    of_past = past.get
    of_seen = seen.get
    """
    )
    with pytest.raises(PendingWriteError, match=r"cell 3, line 9: `of_seen = seen.get` waits for what is observed in"):
        cell.capture(source)
    assert cell.made() == set()
    assert cell.namespace["of_past"] == {"n": 3}  # of the action that has run, as in a plain cell
    program = cell.capture(source, deploying=True)
    assert cell.namespace["of_seen"] == {"n": 5}
    assert cell.rows("out") == [2, 3, 4]
    assert cell.deployed == ["out", "counted"]
    assert not program.writes


def test_a_table_that_hides_its_query_counts_too(cell: Any) -> None:
    source = (
        OBSERVED
        + """\
    df.write.saveAsTable("observed_here")
    of_seen = seen.get
    """
    )
    try:
        with pytest.raises(PendingWriteError, match=r"line 7: .* spark_catalog.default.observed_here"):
            cell.capture(source)
    finally:
        cell.spark.sql("DROP TABLE IF EXISTS observed_here")


def test_in_a_later_cell_they_say_what_they_wait_for_until_it_runs(cell: Any) -> None:
    cell.capture(OBSERVED + '    df.where("id > 1").write.parquet(at("out"))\n', name="seen_late")
    waits = r"seen \(all\) come .*/out \(cell 3, line 6\), .* %flinkrun seen_late"
    with pytest.raises(AwaitedMetricsError, match=waits):
        cell.plain("late = seen.get")
    cell.plain("of_past = past.get")  # an action of the cell has run
    assert cell.namespace["of_past"] == {"n": 3}
    cell.plain("df.count(); of_seen = seen.get")  # so does one of a later cell
    assert cell.namespace["of_seen"] == {"n": 5}


def test_they_wait_for_the_graph_that_runs(cell: Any) -> None:
    program = cell.capture(OBSERVED + '    df.write.parquet(at("out"))\n')
    compile(program).run()
    cell.plain("of_seen = seen.get")
    assert cell.namespace["of_seen"] == {"n": 5}
