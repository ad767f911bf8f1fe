"""Measures how long slots idle because a vertex has fewer tasks than there are slots."""

from __future__ import annotations

from flinkmagic.deployment import TaskRecord
from flinkmagic.session.findings.facts import JobFacts, VertexFacts, metric

LEAST_MS = 500.0
"""A stage whose tasks had less to do is not worth spreading."""
MANY_ROWS = 50_000
SOME_BYTES = 1 << 20
"""What has fewer rows, and bytes, is nothing to spread: its time is that of code which is loaded and compiled. Python
functions may work long on a row."""
MANY_BYTES = 8 << 20
LONG_MS = 2000.0
"""A stage that reads fewer bytes, but some, is worth spreading if it took so long: the first reading of CSV or JSON
takes a second, and none of it is saved by more tasks. Seen with files of 2 to 3 MB, when Spark had read others: 0.24 to
0.71 s in one task, 0.29 to 0.80 in four.
"""
MOSTLY = 0.5
"""The slots without a task of the stage must have idled for this part of its time: else other stages use them."""


def with_rows(vertex: VertexFacts) -> tuple[TaskRecord, ...]:
    """Return the tasks that read rows, as far as that is known: those of a columnar file without a row group do not."""
    if vertex.first(lambda one: "paths" in one.metrics) is None:
        return vertex.tasks
    return tuple(task for task in vertex.tasks if task.rows_in is None or task.rows_in) or vertex.tasks


def idle_beside(job: JobFacts, vertex: VertexFacts) -> float:
    """Return the time for which slots idled while a vertex ran of which fewer tasks have rows than there are slots."""
    tasks = with_rows(vertex)
    collecting_ms = sum(task.gc_ms or 0 for task in tasks)  # there is no less garbage for more tasks
    if not 0 < len(tasks) < job.slots or vertex.run_ms - collecting_ms < LEAST_MS:
        return 0.0
    rows = max([vertex.rows_in, *(metric(one.metrics, "numOutputRows") for one in vertex.operators)])
    calls_python = any(one.calls_python for one in vertex.operators)
    # Of a stage of RDDs it may be unknown how many rows it has.
    if 0 < rows < MANY_ROWS and vertex.bytes_in < SOME_BYTES and not calls_python:
        return 0.0
    if 0 < vertex.bytes_in < MANY_BYTES and vertex.run_ms < LONG_MS and not calls_python:
        return 0.0
    idle_ms = job.idle_ms(vertex.start_ms, vertex.end_ms)
    free_ms = (job.slots - len(tasks)) * (vertex.end_ms - vertex.start_ms)
    return idle_ms if idle_ms >= MOSTLY * free_ms else 0.0
