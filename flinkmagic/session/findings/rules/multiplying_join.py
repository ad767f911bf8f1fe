"""A join that makes many more rows than it reads, because keys are repeated on both sides.

Source: Databricks' query profile and DataFlint compare a join's rows with those of its inputs.

Threshold: three times as many rows as its stage has read, and at least 100,000 more.

Counter-example: a join with a dimension has as many rows as the facts, also if these are what is broadcast. A join
without a condition is a cross join.
"""

from __future__ import annotations

from collections.abc import Iterator

from flinkmagic.amounts import magnitude
from flinkmagic.display.findings import Finding
from flinkmagic.session.findings.facts import JobFacts, OperatorFacts, VertexFacts, metric
from flinkmagic.session.findings.rule import Rule
from flinkmagic.session.findings.users_line import with_distinct_keys

TIMES = 3
MANY_ROWS = 100_000

_DISTINCT = 'df.join(other.dropDuplicates(["key"]), "key")'
_JOINS = frozenset({"SortMergeJoinExec", "ShuffledHashJoinExec", "BroadcastHashJoinExec"})


def _broadcast_rows(job: JobFacts, vertex: VertexFacts, join: OperatorFacts) -> int:
    """Return how many rows a join has hashed that were broadcast to it: its tasks do not count them as read."""
    sides = (one.vertex_id for one in vertex.inputs if one.partitioner == "BROADCAST" and one.reader == join.id)
    return sum(metric(job.vertex[side].metrics_above, "numOutputRows") for side in sides if side in job.vertex)


def _find(job: JobFacts) -> Iterator[Finding]:
    for vertex in job.vertices:
        read = vertex.rows_in
        for join in vertex.operators:
            made = metric(join.metrics, "numOutputRows")
            if join.kind not in _JOINS or not made:
                continue
            read = max(read, _broadcast_rows(job, vertex, join))
            if read and made >= TIMES * read and made - read >= MANY_ROWS:
                yield RULE.finding(
                    f"the join makes {magnitude(made)} rows of {magnitude(read)}: keys are repeated on both sides",
                    vertex,
                    join,
                    vertex.run_ms * (1 - read / made),
                    "estimated: the added rows' part of the stage's time",
                    "likely",
                    f"{with_distinct_keys(join.code) or _DISTINCT}  # or join by all columns that make a key",
                )
            read = max(read, made)


RULE = Rule("multiplying-join", _find)
