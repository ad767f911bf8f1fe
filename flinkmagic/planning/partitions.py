"""Derives how many partitions an operator has from the structure of the plan.

Asking Spark (``execute().getNumPartitions()``) starts jobs above a broadcast, a range exchange or a subquery; so only
leaves are asked, and the numbers above them are derived by the rules of Spark's operators.
"""

from __future__ import annotations

from dataclasses import dataclass

from flinkmagic.planning.plan_reader import (
    ADAPTIVE,
    BROADCAST_EXCHANGE,
    CACHED_SCAN,
    DISTRIBUTED_SEQUENCE,
    REUSED_EXCHANGE,
    SHUFFLE_EXCHANGE,
    PlanForest,
    PlanNode,
)

HIDDEN_SHUFFLES = frozenset({"TakeOrderedAndProjectExec", "CollectLimitExec", "CollectTailExec"})
"""Operators that bring their input into one partition by a shuffle that is no operator of the plan."""


@dataclass(frozen=True)
class PartitionCount:
    """A number of partitions."""

    number: int
    """It may be 0: then Spark runs no task."""
    exact: bool = True
    """False if Spark decides only when it runs; then the number is that without pruning and merging."""


class PartitionCounts:
    """The partition counts of the nodes of a forest, each derived once."""

    def __init__(self, forest: PlanForest) -> None:
        self._forest = forest
        self._known: dict[int, PartitionCount] = {}
        self.filled_before: set[int] = set()
        """The numbers of scans of cached rows that a stage of its own computes."""

    def of(self, node: PlanNode) -> PartitionCount:
        """Return how many partitions the operator's output has (for an exchange: how many it makes)."""
        waiting = [node]  # deep plans would exhaust Python's stack
        while waiting:
            unknown = [each for each in _read_by(waiting[-1]) if each.number not in self._known]
            if unknown:
                waiting.extend(unknown)
                continue
            derived = waiting.pop()
            if derived.number not in self._known:
                self._known[derived.number] = self._derive(derived)
        return self._known[node.number]

    def starts_job(self, node: PlanNode) -> bool:
        """Return whether Spark starts a job merely to make the operator's RDD."""
        if node.kind == DISTRIBUTED_SEQUENCE:
            return True
        if is_adaptive_cache(node) and node.number not in self.filled_before:
            return True
        return _looks_for_matches(node) == "semi"

    def _derive(self, node: PlanNode) -> PartitionCount:
        if node.kind == SHUFFLE_EXCHANGE:
            return PartitionCount(node.partitions or 0)
        if node.kind in HIDDEN_SHUFFLES:
            return PartitionCount(1, self.of(node.children[0]).exact)
        if not node.children:
            return self._leaf(node)
        streams = [self.of(child) for child in node.children if not is_broadcast(child)]
        exact = all(stream.exact for stream in streams)
        if not streams:
            return PartitionCount(1, False)
        return PartitionCount(self._combine(node, [stream.number for stream in streams]), exact)

    def _leaf(self, node: PlanNode) -> PartitionCount:
        if node.partitions is not None:
            return PartitionCount(node.partitions, not node.pruned)
        if node.inside is None:
            return PartitionCount(1, False)
        inside = self.of(node.inside)
        if node.kind == REUSED_EXCHANGE:
            return inside
        return PartitionCount(inside.number, inside.exact and node.kind != ADAPTIVE)

    def _combine(self, node: PlanNode, streams: list[int]) -> int:
        if node.kind == "CoalesceExec":
            wanted = self._forest.jvm_node(node).numPartitions()
            # CoalesceExec(1) promises one partition, even of nothing.
            return 1 if wanted == 1 else min(wanted, streams[0])
        if node.kind == "UnionExec":
            # From 4.1 on, a union of equally partitioned inputs combines their partitions one by one.
            together = self._forest.jvm_node(node).outputPartitioning().numPartitions()
            return together if together > 0 and len(set(streams)) == 1 else sum(streams)
        if node.kind == "CartesianProductExec":
            return streams[0] * streams[1]
        matches = _looks_for_matches(node)
        if matches == "semi":
            return self._forest.sc.defaultParallelism
        return streams[0] + 1 if matches == "outer" else streams[0]


def _looks_for_matches(node: PlanNode) -> str:
    """Return whether a nested loop join must find out which rows of the broadcast side have a match: empty if not.

    For an ``outer`` join Spark adds one partition with those that have none, behind a shuffle inside the operator.
    For a ``semi`` join (or anti, or existence) it runs a job, and makes its rows again on the driver.
    """
    if not node.join_type:
        return ""
    build_is_left = is_broadcast(node.children[0])
    if node.join_type.startswith(("LeftSemi", "LeftAnti", "ExistenceJoin")):
        return "semi" if build_is_left else ""
    outer = {"LeftOuter": build_is_left, "RightOuter": not build_is_left, "FullOuter": True}
    return "outer" if outer.get(node.join_type, False) else ""


def _read_by(node: PlanNode) -> tuple[PlanNode, ...]:
    return node.children if node.inside is None else (*node.children, node.inside)


def is_broadcast(node: PlanNode) -> bool:
    """Return whether a node's rows reach its consumer as a broadcast variable."""
    if node.kind == REUSED_EXCHANGE and node.inside is not None:
        return is_broadcast(node.inside)
    return node.kind == BROADCAST_EXCHANGE


def is_adaptive_cache(node: PlanNode) -> bool:
    """Return whether a leaf reads a cached plan that plans its own stages while it runs."""
    return node.kind == CACHED_SCAN and node.inside is not None and node.inside.kind == ADAPTIVE
