"""Each row of one side is compared with each of the other: a join without an equality.

Source: Spark's operators ``CartesianProduct`` and ``BroadcastNestedLoopJoin``; DataFlint's alert on large cross joins.

Threshold: a million pairs.

Counter-example: a join with one row, such as a total, or with a handful of ranges.
"""

from __future__ import annotations

from collections.abc import Iterator

from flinkmagic.amounts import magnitude
from flinkmagic.display.findings import Finding
from flinkmagic.session.findings.facts import JobFacts, OperatorFacts, VertexFacts, metric
from flinkmagic.session.findings.rule import Rule
from flinkmagic.session.findings.users_line import sides_of_join

PAIRS = 1_000_000

_KINDS = frozenset({"CartesianProductExec", "BroadcastNestedLoopJoinExec"})


def _find(job: JobFacts) -> Iterator[Finding]:
    for vertex in job.vertices:
        for join in vertex.operators:
            pairs = _pairs(job, vertex, join) if join.kind in _KINDS else 0
            if pairs < PAIRS:
                continue
            rows = max(1, vertex.rows_in)
            yield RULE.finding(
                f"the join compares all with all: {magnitude(pairs)} pairs, of {magnitude(rows)} rows",
                vertex,
                join,
                vertex.run_ms * max(0.0, 1 - rows / pairs),
                "estimated: the stage's time, without that of reading its rows",
                "likely",
                f"{_equality(join.code)}  # an equality: for ranges, of buckets that both sides have",
            )


def _pairs(job: JobFacts, vertex: VertexFacts, join: OperatorFacts) -> int:
    made = metric(join.metrics, "numOutputRows")
    if join.kind == "CartesianProductExec":
        return made
    broadcasts = {one.vertex_id for one in vertex.inputs if one.partitioner == "BROADCAST" and one.reader == join.id}
    rows = sum(metric(job.vertex[one].metrics_above, "numOutputRows") for one in broadcasts if one in job.vertex)
    return max(made, rows * vertex.rows_in)


def _equality(code: str) -> str:
    left, right = sides_of_join(code) or ("df", "other")
    return f'{left}.join({right}, {left}["key"] == {right}["key"])'


RULE = Rule("cross-join", _find)
