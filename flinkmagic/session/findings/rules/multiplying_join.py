"""A join that makes many more rows than it reads, because keys are repeated on both sides.

Source: Databricks' query profile and DataFlint compare a join's rows with those of its inputs.

Threshold: three times as many rows as its stage has read, and at least 100,000 more.

Counter-example: a join with a dimension has as many rows as the facts. A join without a condition is a cross join.
"""

from __future__ import annotations

from collections.abc import Iterator

from flinkmagic.amounts import magnitude
from flinkmagic.session.findings.facts import JobFacts, metric
from flinkmagic.session.findings.finding import Finding, Rule

TIMES = 3
MANY_ROWS = 100_000

_JOINS = frozenset({"SortMergeJoinExec", "ShuffledHashJoinExec", "BroadcastHashJoinExec"})


def _find(job: JobFacts) -> Iterator[Finding]:
    for vertex in job.vertices:
        read = vertex.rows_in
        for join in vertex.operators:
            made = metric(join.metrics, "numOutputRows")
            if join.kind not in _JOINS or not made:
                continue
            if read and made >= TIMES * read and made - read >= MANY_ROWS:
                yield RULE.finding(
                    f"the join makes {magnitude(made)} rows of {magnitude(read)}: keys are repeated on both sides",
                    vertex,
                    join,
                    vertex.run_ms * (1 - read / made),
                    "estimated: the added rows' part of the stage's time",
                    "likely",
                    'df.join(other.dropDuplicates(["key"]), "key")  # or join by all columns that make a key',
                )
            read = max(read, made)


RULE = Rule("multiplying-join", _find)
