"""All rows in one partition, because a window, a limit or a ``coalesce(1)`` brings them there.

Source: Spark's own warning ("No Partition Defined for Window operation! Moving all data to a single partition").

Threshold: one task that reads 10,000 rows and more, and runs for half a second, where the job has several slots.

Counter-example: the sum of a column ends in one task, too, but that reads one row of each partition.
"""

from __future__ import annotations

from collections.abc import Iterator

from flinkmagic.amounts import duration, magnitude
from flinkmagic.display.findings import Finding
from flinkmagic.session.findings.facts import JobFacts, OperatorFacts, VertexFacts
from flinkmagic.session.findings.few_tasks import idle_beside
from flinkmagic.session.findings.rule import Rule
from flinkmagic.session.findings.users_line import with_repartition

MANY_ROWS = 10_000


def _find(job: JobFacts) -> Iterator[Finding]:
    for vertex in job.vertices:
        culprit = _culprit(vertex)
        idle_ms = idle_beside(job, vertex)
        if not idle_ms or culprit is None or len(vertex.tasks) != 1 or vertex.rows_in < MANY_ROWS:
            continue
        yield RULE.finding(
            f"one task has all {magnitude(vertex.rows_in)} rows, and took {duration(vertex.run_ms)}",
            vertex,
            culprit,
            idle_ms,
            "measured: the time for which slots idled while it ran",
            "measured",
            _cure(culprit, job.slots),
        )


def _cure(culprit: OperatorFacts, slots: int) -> str:
    if culprit.kind == "CoalesceExec":
        line = with_repartition(culprit.code, 1) or "df.repartition(1)"
        return f"{line}  # in place of coalesce(1): what comes before it keeps its tasks"
    if culprit.kind == "WindowExec":
        return 'Window.partitionBy("key").orderBy(...)  # in place of a window over all rows'
    return f'df.repartition({2 * slots}, "key")  # in place of one partition'


def _culprit(vertex: VertexFacts) -> OperatorFacts | None:
    """Return the operator that wants one partition."""
    coalesce = vertex.first(lambda one: one.kind == "CoalesceExec")
    if coalesce is not None or not vertex.reads(["GLOBAL"]):
        return coalesce
    readers = {one.reader for one in vertex.inputs if one.partitioner == "GLOBAL"}
    wants = vertex.first(lambda one: one.kind == "WindowExec")
    return wants or vertex.first(lambda one: one.id in readers)


RULE = Rule("one-partition", _find, explains=frozenset({"too-few-tasks"}))
