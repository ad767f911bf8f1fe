"""The tutorials: executed in a real kernel, saved with what they showed, and right in what they say.

What a notebook says of its cells is checked twice: on the outputs that it is saved with, and on those of a new run.
Times are not compared.
"""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import nbformat
import psutil
import pytest

from tests import saved_notebooks

if TYPE_CHECKING:
    from nbformat import NotebookNode

FLINKSIM = "%flinksim pipeline --task-managers 2 --slots 3"
CLAIMS: dict[str, dict[str, tuple[str, ...]]] = {
    "quickstart": {
        "%%flinkgraph delays": ("by_line is shared by 2 sinks", "Nothing has been written yet"),
        "%flinkrun delays": ("FINISHED after", "✓ by_line: csv", "✓ worst_lines: json", "✓ by_hour: parquet"),
        "%flinkgraph delays --view stream": ("Stream graph", r"27 operators in 9 job vertices"),
        "%flinkgraph delays --view execution": ("26 execution vertices of 9 job vertices",),
        "%%flinkgraph word_count": ("FINISHED after",),
        'spark.read.csv("out/word_counts"': (r"their\|   20",),
        "%%flinkgraph route_speeds": ("2 job vertices reused", "✓ speeds: parquet"),
        'spark.read.parquet("out/speeds")': ("Jackson Hole Airport",),
    },
    "01-three-graphs": {
        "%%flinkgraph late_arrivals": ("12 operators in 3 job vertices, 6 tasks", "BROADCAST", "HASH"),
        "%flinkgraph late_arrivals --view stream": ("FORWARD", r"\[12\] Sink", "HASH", "BROADCAST"),
        "%%flinkgraph unchained": ("7 operators in 4 job vertices", r"FORWARD · pipelined bounded .* slow flights"),
        "%flinkgraph late_arrivals --view execution": ("6 execution vertices of 3 job vertices",),
        "%%flinkgraph socket_words": ("in 2 job vertices", r"HASH · pipelined", "Generate"),
        "%%flinkgraph dealt_out": ("in 3 job vertices", r"REBALANCE · pipelined", r"HASH · pipelined"),
    },
    "02-regions-and-slots": {
        "%%flinkgraph pipeline": ("5 operators in 3 job vertices, 11 tasks",),
        "%flinkgraph pipeline --view regions": ("7 pipelined regions, 1 slot sharing group",),
        FLINKSIM: ("6 slots used", "0 restarts"),
        f"{FLINKSIM} --fail Map:2@500ms": (r"Source: Source \(3/4\)#1", r"Map -> HashAggregate \(3/4\)#1"),
        f"{FLINKSIM} --task-seconds 2": ("FINISHED", r"\(1/4\)#1"),
        "%flinksim apart": ("8 slots used",),
        "%flinkrun pipeline": ("FINISHED after",),
        "pipeline.jobs[-1]": (rf"\|  3\|{sum(range(3, 1_000_000, 7))}\|",),
        "%flinkjobs pipeline --log": ("requires 4 slots", "offers driver_0", "gets driver_0", "deploy Source: Source"),
        "%flinksim pipeline --task-managers 4": ("pipeline, as it was",),
    },
    "03-failure-and-resume": {
        "%%flinkgraph checked_hours": ("FINISHED after", "✓ hours: parquet"),
        'spark.read.parquet("out/hours")': ("^20$",),
        "%flinkjobs checked_hours --errors": ("ConnectionError: the service does not answer", "cell 3, line 6"),
        "import time\n\njob = carriers": ("FINISHED",),
        "%flinkjobs carriers --log": (r"The executor \d+ is lost", "is lost with the executor", "the job is FINISHED"),
        'spark.read.parquet("out/carriers")': ("^16$",),
        "import sys": ("the first write is done",),
        "%%flinkgraph nightly": ("reused, 1 write kept of the failed run", "✓ means: parquet, append", "✓ slow"),
        'spark.read.parquet("out/means")': (r"^\(105, 105\)$",),
        "%%flinkgraph extremes": ("hours is shared by 2 sinks", "job vertices reused", "✓ most: parquet"),
        "%flinkjobs --retained": (r"shared rows  hours .* memory or disk, durable",),
    },
    "04-sharing": {
        "%%flinkgraph reports": (r"shared by 3 sinks \(sky, origin, carriers\)", "it calls Python functions"),
        "shared = ": ("times as fast",),
        "%flinkshow reports": ("FINISHED after",),
        "for name in": (r"sky 3 0\s+origin 9 0\s+carriers 16 0",),
        "%%flinkgraph cheap": ("14 operators in 4 job vertices", r"\[1\] Source", r"\[2\] Source"),
        "%%flinkgraph by_sky": ("✓ worst: rows that stay in the session",),
    },
    "05-streaming": {
        "%%flinkgraph weekly_flights": ("in 2 job vertices, 4 tasks", "HASH · pipelined"),
        "%flinkgraph weekly_flights --view regions": ("1 pipelined region, 1 slot sharing group",),
        "query.processAllAvailable": (r"weekly: batch 1\d had", "watermark lag", "state of stateStoreSave"),
        "spark.sql": (r"EWR\|        2477", r"JFK\|        2280", r"LGA\|        2182"),
        "batches = ": (r"\(0, 27004, ''\)", r"\(1, 24951, '2013-01-31'\)"),
        "%flinkcancel weekly_flights": ("CANCELED",),
        "%flinkrun exact": (r"^'FINISHED'$",),
        "%flinkjobs exact --errors": ("ConnectionError: the service does not answer",),
        "counted = ": (r"^\(True,",),
        "%flinkrun monthly": ("batch 11: FINISHED", r"shared by 2 sinks \(monthly, late_months\)"),
        'spark.read.parquet("out/monthly")': (r"^\(36, 336776, 336776\)$",),
        "%flinkrun socket_words": (r"their\| 20",),
        "%flinkcancel socket_words": ("CANCELED",),
    },
    "06-iterations": {
        "points = ": (r"\|  2\|", r"\|  3\|"),
        "loop = flinkmagic.iterations()[-1]\nloop": (r"FINISHED, 6 supersteps, converged", r"6: .*moved 0\.43"),
        "out = ": (r"\| EWR\|", r"\| JFK\|", r"\| LGA\|"),
        "loop = flinkmagic.iterations()[-1]\n[": (r"\(12, \d+, 4\.951\)",),
        "%flinkgraph hubs --view stream": (
            r"after loop_2: 12 supersteps, not converged",
            r"moved 33\.6 → .* → 4\.95",
            "FEEDBACK ← .*IterationSink",
            r"Source: CacheRead: ranks",
        ),
        "pathlib.Path": (r"\|    1\.5625\|  1\.671875\|",),
        "[(step.number": (r"^\[\(1, 2\), \(2, 2\), \(3, 2\), \(4, 2\), \(5, 4\), \(6, 2\)\]$",),
        "%%flinkgraph parts": ("delays is shared by 3 sinks", "computed once: it is split", "FINISHED after"),
        "%flinkgraph parts --view stream": (r"Scan In-memory table delays",),
        "train, test": (r"^\(True, 0\)$",),
        "%%flinkgraph by_season": ("flights is shared by 2 sinks", "computed once: it is split", "FINISHED after"),
        "[(season": (r"'summer', Row\(count=28243, month=6\)", r"'holidays', Row\(count=29425, month=7\)"),
        "%%flinkgraph filled": (
            r"by_hour is shared by 2 sinks \(late_hours, worst_hours\) .* it is cached",
            "FINISHED",
        ),
        "%%flinkgraph read_again": ("CacheRead: by_hour",),
        "%flinkrun read_again": ("FINISHED after", "^Disk Memory Deserialized 1x Replicated$"),
    },
    "07-a-whole-session": {
        "%flinkgraph on": ("The session mode is on",),
        "late.count()": (r"count\(\) · line 1 · 4 stages", "^181$"),
        "late.orderBy": (r"show\(",),
        "late.groupBy": (r"toPandas\(\) .* reused 3 stages",),
        "for month in": (r"first\(\) · line 2 · 12 times · .* reused 36 stages",),
        "%flinkrun --stale": (r"cell 4 +carriers +file data/airlines.parquet changed",),
        "%flinkrun --stale --yes": ("No cell is stale now", "JETBLUE AIRWAYS"),
        "wrong =": (r"✗ toPandas\(\) · line 2 · FAILED",),
        "%flinkgraph": ("session · Job graph", r"cell 5, line \d"),
        "%flinkgraph off": ("The session mode is off",),
    },
    "08-on-a-cluster": {
        "%%flinkgraph delays": ("by_route is shared by 2 sinks", "FINISHED after"),
        "import collections": (r"\('0', 'FINISHED'\): 18",),
        "%flinkjobs delays --log": ("0 offers 0_0", "deploy HashAggregate"),
        "%flinksim delays": ("delays, as it was",),
        "import time": ("endless is CANCELED", "CANCELED after"),
    },
}
"""For each notebook, and the beginning of a code cell, what its outputs show as text: regular expressions."""
FAILS = {
    "quickstart": ("JobFailedError", "unsupported operand type"),
    "07-a-whole-session": ("PythonException", "ZeroDivisionError"),
}
"""The notebooks with a cell that fails on purpose: its exception, and a part of its message."""
NAMES = [path.stem for path in saved_notebooks.paths()]
MACHINE = re.compile(r"/tmp/(?!ipykernel)|/home/|/root/|/work/|site-packages|\d+\.\d+\.\d+\.\d+(?<!127\.0\.0\.1)")


def path_of(name: str) -> Path:
    return saved_notebooks.NOTEBOOKS / f"{name}.ipynb"


def check_claims(notebook: NotebookNode, name: str) -> None:
    cells = saved_notebooks.code_cells(notebook)
    for beginning, patterns in CLAIMS[name].items():
        # The longest beginning that fits is a cell's: "%flinkrun --stale --yes" is not "%flinkrun --stale".
        fitting = [cell for cell in cells if _claimed(cell.source, name) == beginning]
        assert fitting, f"no cell begins with {beginning!r}"
        text = saved_notebooks.text_of(fitting[-1])
        for pattern in patterns:
            assert re.search(pattern, text, re.MULTILINE), f"{beginning}: {pattern!r} is not in\n{text}"
    errors = [output for cell in cells for output in cell.outputs if output.output_type == "error"]
    if name in FAILS:
        (error,) = errors
        exception, message = FAILS[name]
        assert (error.ename, message in error.evalue) == (exception, True)
    else:
        assert not errors


def _claimed(source: str, name: str) -> str | None:
    return max((beginning for beginning in CLAIMS[name] if source.startswith(beginning)), key=len, default=None)


def test_each_notebook_is_checked() -> None:
    assert list(CLAIMS) == NAMES


@pytest.mark.parametrize("name", NAMES)
def test_what_a_notebook_is_saved_with_is_of_its_code(name: str) -> None:
    notebook = saved_notebooks.read(path_of(name))
    nbformat.validate(notebook)
    cells = saved_notebooks.code_cells(notebook)
    saved = [cell.metadata.get(saved_notebooks.KEY) for cell in cells]
    assert saved == saved_notebooks.code_hashes(notebook), f"run `python -m tests.saved_notebooks {name}`"
    assert [cell.execution_count for cell in cells] == list(range(1, len(cells) + 1))
    for output in (output for cell in cells for output in cell.outputs):
        assert output.get("name") != "stderr"
        assert set(output.get("data", {})) <= {"text/html", "text/plain"}
    check_claims(notebook, name)


@pytest.mark.parametrize("name", NAMES)
def test_a_notebook_tells_nothing_of_the_machine_that_ran_it(name: str) -> None:
    notebook = saved_notebooks.read(path_of(name))
    shown = nbformat.writes(nbformat.from_dict({**notebook, "cells": saved_notebooks.code_cells(notebook)}))
    shown = saved_notebooks.PICTURE.sub(lambda found: saved_notebooks.decoded(found[1]), shown)
    assert MACHINE.search(shown) is None, MACHINE.search(shown)


@contextmanager
def peak_memory() -> Iterator[list[int]]:
    """The most bytes that this process's children have together had: of what they share, each its part."""
    peak, over = [0], threading.Event()

    def look() -> None:
        while not over.wait(0.5):
            peak[0] = max(peak[0], sum(map(proportional_bytes, psutil.Process().children(recursive=True))))

    thread = threading.Thread(target=look)
    thread.start()
    try:
        yield peak
    finally:
        over.set()
        thread.join()


STARTED_S = 0.2
"""A process that the JVM starts has the JVM's own memory until it runs its program, and would count that twice."""


def proportional_bytes(process: psutil.Process) -> int:
    try:
        is_starting = time.time() - process.create_time() < STARTED_S
        return 0 if is_starting else int(process.memory_full_info().pss)
    except psutil.NoSuchProcess:
        return 0


@pytest.mark.notebook
@pytest.mark.timeout(600)  # A tutorial waits for jobs of its own, and beside others on a slow machine for its turn.
@pytest.mark.parametrize("name", NAMES)
def test_a_notebook_shows_what_it_says_within_the_memory_of_a_binder(name: str, tmp_path: Path) -> None:
    with peak_memory() as peak:
        executed = saved_notebooks.executed(path_of(name), tmp_path)
    check_claims(executed, name)
    assert peak[0] < 2 * 2**30
