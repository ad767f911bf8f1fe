"""A join that shuffles a large side although the other one is small enough to be sent to all tasks.

Source: ``spark.sql.autoBroadcastJoinThreshold`` (10 MiB); DataFlint's alert "broadcast small table".

Threshold: the rows of one side have at most 10 MiB, those of the other ten times as much and more; the join may
broadcast the small side, and the large side is shuffled for this join alone. The shuffle is charged with what Spark
has measured of it, and a microsecond for each row that is taken apart and made again.

Counter-example: a side whose rows an outer join keeps cannot be broadcast; a large side that is grouped by the same key
is shuffled anyway.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from flinkmagic.amounts import size
from flinkmagic.display.findings import Finding
from flinkmagic.session.findings.facts import KEYED, InputFacts, JobFacts, OperatorFacts, VertexFacts, metric
from flinkmagic.session.findings.rule import Rule
from flinkmagic.session.findings.users_line import with_broadcast

SMALL = 10 << 20
TIMES = 10
ROW_MS = 0.001

_JOINS = frozenset({"SortMergeJoinExec", "ShuffledHashJoinExec"})
_GROUPS = ("Aggregate", "Window", "Join", "FlatMapGroups", "Python")
_TYPE = re.compile(r"\b(Inner|Cross|LeftOuter|RightOuter|FullOuter|LeftSemi|LeftAnti|ExistenceJoin)\b")
_MAY_BROADCAST = {
    "Inner": (True, True), "Cross": (True, True), "LeftOuter": (False, True), "RightOuter": (True, False),
    "LeftSemi": (False, True), "LeftAnti": (False, True), "ExistenceJoin": (False, True),
}  # fmt: skip
"""By Spark's join type, whether the left and the right side may be broadcast (`BuildLeft`, `BuildRight`)."""


def _find(job: JobFacts) -> Iterator[Finding]:
    for vertex in job.vertices:
        for join in vertex.operators:
            sides = _sides(job, vertex, join) if join.kind in _JOINS else []
            if len(sides) != 2:
                continue
            sizes = [_bytes(side) for side in sides]
            small, large = sorted((0, 1), key=sizes.__getitem__)
            few, many = sizes[small], sizes[large]
            kind = _TYPE.search(join.text)
            may = _MAY_BROADCAST.get(kind[1] if kind is not None else "", (False, False))
            if few > SMALL or many < TIMES * max(few, 1) or not may[small]:
                continue
            yield RULE.finding(
                f"a side of {size(few)} is joined by shuffling the other one of {size(many)}",
                vertex,
                join,
                _cost_ms(vertex, join, sides[large]),
                "estimated: what Spark measured of writing, fetching and sorting, and 1 µs for each shuffled row",
                "likely",
                with_broadcast(join.code, small) or 'large.join(F.broadcast(small), "key")',
            )


def _sides(job: JobFacts, vertex: VertexFacts, join: OperatorFacts) -> list[VertexFacts]:
    """Return what the left and the right side of a join read, if each is one shuffle and made for it alone."""
    by_id = {one.id: one for one in vertex.operators}
    found = []
    for side in join.inputs:
        below = vertex.below(by_id[side]) if side in by_id else []
        if any(word in one.kind for one in below for word in _GROUPS):
            return []
        ids = {one.id for one in below}
        read = [one for one in vertex.inputs if one.reader in ids or (not below and _is_direct(one, join, side))]
        if len(read) != 1 or read[0].partitioner not in KEYED or read[0].vertex_id not in job.vertex:
            return []
        producer = job.vertex[read[0].vertex_id]
        if len(job.consumers(producer)) != 1:
            return []
        found.append(producer)
    return found


def _is_direct(one: InputFacts, join: OperatorFacts, side: int) -> bool:
    return one.reader == join.id and one.source == side


def _bytes(producer: VertexFacts) -> int:
    """Return the size of the rows that a stage shuffles; of files that are compressed if that was not measured."""
    return metric(producer.metrics_above, "dataSize") or sum(producer.written)


def _cost_ms(vertex: VertexFacts, join: OperatorFacts, large: VertexFacts) -> float:
    written = sum(task.shuffle_write_ms or 0 for task in large.tasks)
    rows = sum(task.rows_out or 0 for task in large.tasks)
    fetched = sum(task.fetch_wait_ms or 0 for task in vertex.tasks)
    sorted_ms = sum(metric(one.metrics, "sortTime") for one in vertex.below(join) if one.kind == "SortExec")
    return written + fetched + sorted_ms + rows * ROW_MS


RULE = Rule("small-side-shuffled", _find)
