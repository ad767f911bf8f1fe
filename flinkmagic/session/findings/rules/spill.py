"""Rows that did not fit into a task's memory, and went to disk and back.

Source: the columns "Spill (memory)" and "Spill (disk)" of a stage in Spark's UI.

Threshold: any bytes on disk, if what that took is worth telling. Spark has no metric of the time. Measured as the
processor time of tasks that Spark was told to spill every 100,000 rows, less that of the same tasks without: 3 to 24 ms
for each MB on disk in sorts, windows and aggregates (the most where rows are a few bytes each, for the cost is by row),
0 to 7 in shuffles. A disk that is slower than the page cache adds to it.

Counter-example: a spill of 16 MB, which takes less than 200 ms.
"""

from __future__ import annotations

from collections.abc import Iterator

from flinkmagic.amounts import count, size
from flinkmagic.display.findings import Finding
from flinkmagic.session.findings.facts import KEYED, JobFacts, OperatorFacts, VertexFacts
from flinkmagic.session.findings.rule import Rule

BYTES_A_MS = 100_000
"""Compressed bytes that are written, read back and merged in a millisecond."""

_KEEPS_ROWS = ("Window", "Sort", "Aggregate", "SortMergeJoin", "CartesianProduct", "FlatMapGroups")


def _find(job: JobFacts) -> Iterator[Finding]:
    for vertex in job.vertices:
        spilled = [task for task in vertex.tasks if task.disk_spilled_bytes]
        if not spilled:
            continue
        on_disk = sum(task.disk_spilled_bytes or 0 for task in spilled)
        ran_ms = sum(task.run_ms or 0 for task in spilled)
        yield RULE.finding(
            f"{count(len(spilled), 'task')} of {len(vertex.tasks)} wrote {size(on_disk)} of rows to disk that did "
            "not fit into memory",
            vertex,
            vertex.first(_keeps_rows),
            min(ran_ms, on_disk / BYTES_A_MS),
            "estimated: 10 ms for each MB on disk (3 to 24 were measured), at most the time of these tasks",
            "likely",
            _cure(vertex, job.slots),
        )


def _keeps_rows(operator: OperatorFacts) -> bool:
    return any(word in operator.kind for word in _KEEPS_ROWS)


def _cure(vertex: VertexFacts, slots: int) -> str:
    if vertex.reads(KEYED):
        return f"%config FlinkMagics.parallelism = {4 * max(len(vertex.tasks), slots)}  # smaller partitions"
    return 'SparkSession.builder.config("spark.executor.memory", "8g")  # spark.driver.memory in a local session'


RULE = Rule("spill", _find)
