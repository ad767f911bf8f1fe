"""A partition that has far more rows than the others, so that one task runs on when they are done.

Source: Spark's ``spark.sql.adaptive.skewJoin``, which splits partitions of five times the median in joins; Sparklens'
skew of a stage (the longest task by the median).

Threshold: the last task took twice the median of the others, and read twice as much as they did, or at least a third as
many times as much as it took longer. Only what is behind a shuffle has partitions by key.

Counter-example: a task that takes long with no more rows than the others is a straggler. A large partition that is
begun early, while other tasks have work for all slots, costs nothing.
"""

from __future__ import annotations

from collections.abc import Iterator

from flinkmagic.amounts import duration
from flinkmagic.display.findings import Finding
from flinkmagic.session.findings.facts import SHUFFLES, JobFacts, OperatorFacts
from flinkmagic.session.findings.rule import Rule
from flinkmagic.session.findings.slowest import slowest_task
from flinkmagic.session.findings.users_line import with_broadcast

MUCH_MORE = 2.0
EXPLAINS = 1 / 3

_BY_KEY = ("Join", "Window", "Aggregate", "FlatMapGroups", "FlatMapCoGroups")


def _find(job: JobFacts) -> Iterator[Finding]:
    for vertex in job.vertices:
        slow = slowest_task(job, vertex)
        if slow is None or slow.load < max(MUCH_MORE, EXPLAINS * slow.times) or not vertex.reads(SHUFFLES):
            continue
        operator = vertex.first(_is_by_key)
        more = "most rows" if slow.load == float("inf") else f"{slow.load:.1f} times as much as the others"
        yield RULE.finding(
            f"partition {slow.task.subtask + 1} of {len(vertex.tasks)} has {more}: its task took "
            f"{duration((slow.task.end_ms or 0) - slow.task.start_ms)}, the median {duration(slow.typical_ms)}",
            vertex,
            operator,
            slow.idle_ms,
            "measured: the time for which slots idled after the vertex's other tasks",
            "measured",
            _cure(operator),
        )


def _is_by_key(operator: OperatorFacts) -> bool:
    return any(word in operator.kind for word in _BY_KEY)


def _cure(operator: OperatorFacts | None) -> str:
    kind = operator.kind if operator is not None else ""
    if "Join" in kind:
        line = with_broadcast(operator.code, 1) if operator is not None else ""
        line = line or 'df.join(F.broadcast(other), "key")'
        return f"{line}  # if the other side fits into memory; else add a salt to the key"
    if "Aggregate" in kind:
        return 'df.groupBy("key", (F.rand() * 8).cast("int").alias("salt")).agg(...).groupBy("key").agg(...)'
    if "Window" in kind:
        return 'Window.partitionBy("key", "another_column")  # a key that divides the large group'
    return 'df.repartition(n, "key", "another_column")  # a key that divides the large group, or no key'


RULE = Rule("skewed-partition", _find)
