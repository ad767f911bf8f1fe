"""Derives how many partitions a streaming source has, as far as that is known before it runs.

The leaf of an unstarted plan (``StreamingRelationExec``) does not know its options; the logical plan does. Seen on
3.5.9 and 4.3.0: the rate source takes ``numPartitions``; it, the socket source and the rest otherwise make as many as
Spark's default parallelism. How many tasks read files is known only when a batch has listed them.
"""

from __future__ import annotations

from typing import Any

from py4j.protocol import Py4JError

from flinkmagic.jvm.java import items, simple_name
from flinkmagic.planning.partitions import PartitionCount, PartitionCounts
from flinkmagic.planning.plan_reader import PlanForest, PlanNode

STREAMING_RELATION = "StreamingRelationExec"


class StreamPartitionCounts(PartitionCounts):
    """The partition counts of unstarted plans."""

    def __init__(self, forest: PlanForest) -> None:
        super().__init__(forest)
        self._sources: dict[int, int] = {}

    def note_sources(self, logical_plan: Any) -> None:
        """Note the options of a query's sources."""
        for leaf in items(logical_plan.collectLeaves()):
            wanted = _asked(leaf)
            if wanted:
                self._sources.update({attribute.exprId().id(): wanted for attribute in items(leaf.output())})

    def _leaf(self, node: PlanNode) -> PartitionCount:
        if node.kind != STREAMING_RELATION:
            return super()._leaf(node)
        asked = next((self._sources[each] for each in node.output if each in self._sources), None)
        return PartitionCount(asked or self._forest.sc.defaultParallelism, asked is not None)


def _asked(leaf: Any) -> int:
    if simple_name(leaf) != "StreamingRelationV2":
        return 0
    try:
        text = leaf.extraOptions().get("numPartitions")
        return int(text) if text else 0
    except (Py4JError, ValueError):  # Spark itself says so when the query starts
        return 0
