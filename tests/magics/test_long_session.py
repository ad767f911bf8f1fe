"""A long session stays light: what its cells leave in the driver is bounded, however many they are."""

from __future__ import annotations

import gc
import threading
import time
from collections.abc import Callable
from typing import Any

import pytest
from py4j.finalizer import ThreadSafeFinalizer

from flinkmagic.reuse import retained_results
from flinkmagic.session import release_retained, retained

BOUND = 6
BEYOND = 40
SLACK = 10
"""What may come and go beside the cells: threads of Spark's pools, what its cleaner has still to drop."""


def left(spark: Any) -> dict[str, int]:
    """What the driver and the JVM hold now."""
    gc.collect()
    spark._jvm.System.gc()  # Spark's cleaner drops what this finds
    sc = spark.sparkContext._jsc.sc()
    return {
        "results": sum(one.kind != "answer" for one in retained(spark)),
        "persistent RDDs": sc.getPersistentRDDs().size(),
        "listeners": sc.listenerBus().listeners().size(),
        "py4j objects": len(ThreadSafeFinalizer.finalizers),
        "threads of Python": threading.active_count(),
        "our threads of the JVM": _our_threads(spark),
    }


def _our_threads(spark: Any) -> int:
    names = [str(thread.getName()) for thread in spark._jvm.Thread.getAllStackTraces().keySet()]
    return sum("flinkmagic" in name or name.startswith("Thread-") for name in names)


def wait_for(holds: Callable[[], bool]) -> None:
    """Wait for Spark's cleaner and for threads that end."""
    for _ in range(100):
        if holds():
            return
        time.sleep(0.1)


@pytest.mark.long
def test_cells_beyond_the_bound_leave_nothing_more(notebook, spark, monkeypatch) -> None:
    for graph in {one.graph for one in retained(spark)}:
        release_retained(spark, graph)
    monkeypatch.setattr(retained_results, "MOST_OF_ACTIONS", BOUND)
    notebook.run("%flinkgraph on")

    def cells(first: int, count: int) -> None:
        for number in range(first, first + count):
            query = f"spark.range(0, 500, 1, 2).groupBy((F.col('id') % {number}).alias('k')).count()"
            cell = notebook.run(f"df = {query}\ndf.count() + df.count()")  # the second one keeps its results
            assert cell.value == 2 * number, cell.error

    cells(3, 2 * BOUND)
    before = left(spark)
    assert before["results"] == BOUND
    cells(3 + 2 * BOUND, BEYOND)
    wait_for(lambda: all(now <= before[what] + SLACK for what, now in left(spark).items()))
    after = left(spark)
    notebook.run("%flinkgraph off")
    assert after["results"] == BOUND
    assert after["listeners"] <= before["listeners"]  # those of earlier tests may go meanwhile
    assert all(now <= before[what] + SLACK for what, now in after.items()), (before, after)
