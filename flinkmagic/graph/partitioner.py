"""How the records of one operator are spread over the subtasks of the next."""

from __future__ import annotations

from enum import Enum


class PartitionerKind(Enum):
    """The kinds of ``StreamPartitioner``; the value is how topologies spell it."""

    FORWARD = "forward"
    REBALANCE = "rebalance"
    RESCALE = "rescale"
    SHUFFLE = "shuffle"
    HASH = "hash"
    RANGE = "range"
    BROADCAST = "broadcast"
    GLOBAL = "global"
    CUSTOM = "custom"


_POINTWISE = frozenset({PartitionerKind.FORWARD, PartitionerKind.RESCALE})
_KEYED = frozenset({PartitionerKind.HASH, PartitionerKind.RANGE, PartitionerKind.CUSTOM})


class StreamPartitioner:
    """Spreads records over the consumer's subtasks.

    Mirrors ``StreamPartitioner`` and its subclasses: the kind is a value here, not a class. RANGE represents the
    table planner's range partitioning, which Flink keeps outside the streaming API.

    Parameters
    ----------
    kind : PartitionerKind
        The kind of spreading. A keyed one (HASH, RANGE, CUSTOM) is equal only to itself, as a key selector is in Flink.
    """

    __slots__ = ("kind",)

    def __init__(self, kind: PartitionerKind) -> None:
        self.kind = kind

    @property
    def is_pointwise(self) -> bool:
        """Whether a subtask sends to a few neighbours only instead of to all."""
        return self.kind in _POINTWISE

    @property
    def is_broadcast(self) -> bool:
        """Whether every record goes to every subtask."""
        return self.kind is PartitionerKind.BROADCAST

    @property
    def is_forward(self) -> bool:
        """Whether subtask i sends to subtask i only."""
        return self.kind is PartitionerKind.FORWARD

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        return isinstance(other, StreamPartitioner) and self.kind is other.kind and self.kind not in _KEYED

    def __hash__(self) -> int:
        return hash(self.kind)

    def __str__(self) -> str:
        return self.kind.name

    def __repr__(self) -> str:
        return f"StreamPartitioner({self.kind.name})"


FORWARD = StreamPartitioner(PartitionerKind.FORWARD)
REBALANCE = StreamPartitioner(PartitionerKind.REBALANCE)
