"""Reports how a stage was adapted to the actual sizes of its inputs, which are known just before it runs.

`AdaptiveJoins.java` decides which joins hash a side, `CoalescedReads.java` how many partitions a task reads.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from flinkmagic.planning.plan_reader import PlanForest, PlanNode

if TYPE_CHECKING:
    from py4j.java_gateway import JavaObject

CHOOSES_JOINS = "flinkmagic.planning.adaptive"
"""The setting of the planning session that `AdaptiveJoins.java` reads."""

MERGES_PARTITIONS = "flinkmagic.planning.coalesce"
"""The setting that `CoalescedReads.java` reads."""

JOINS = frozenset({"SortMergeJoinExec", "ShuffledHashJoinExec"})
"""Joins whose method may change: rows of both sides come shuffled by the join's keys."""


class JoinChoice(NamedTuple):
    """A join that ran as a ``ShuffledHashJoin`` although something else was planned."""

    planned: str
    """The operator that was planned: ``SortMergeJoin``, or ``ShuffledHashJoin`` with the other side hashed."""
    side: str
    """The side that was hashed: ``left`` or ``right``."""
    bytes: int
    """The size of that side's rows, over all partitions."""

    def __str__(self) -> str:
        return f"{self.planned} run as ShuffledHashJoin, its {self.side} side hashed ({self.bytes:,} bytes)"


class StageAdaptation(NamedTuple):
    """How a stage's run differed from its plan."""

    joins: tuple[JoinChoice, ...] = ()
    tasks: int | None = None
    """How many it had, if some of them read several partitions, or if only what was added was read."""
    added_files: int = 0
    """How many files were added, if only these were read."""

    def __bool__(self) -> bool:
        return bool(self.joins) or self.tasks is not None or self.added_files > 0


AS_PLANNED = StageAdaptation()


def join_choices(rebuilder: JavaObject, forest: PlanForest, joins: list[PlanNode]) -> tuple[JoinChoice, ...]:
    """Return what was chosen for some joins once their stage's plan exists."""
    told = [rebuilder.joinChoice(forest.jvm_node(join)) for join in joins]
    parts = [choice.split("\t") for choice in told if choice is not None]
    return tuple(JoinChoice(planned, side, int(size)) for planned, side, size in parts)
