"""What a result is, and how it is connected to its consumers."""

from __future__ import annotations

from enum import Enum


class ResultPartitionType(Enum):
    """Mirrors ``ResultPartitionType``: the types that results can have."""

    BLOCKING = "BLOCKING"
    BLOCKING_PERSISTENT = "BLOCKING_PERSISTENT"
    PIPELINED_BOUNDED = "PIPELINED_BOUNDED"
    HYBRID_FULL = "HYBRID_FULL"
    HYBRID_SELECTIVE = "HYBRID_SELECTIVE"
    """No plan of Spark's has these two: only a topology's shuffle or exchange mode makes them."""

    @property
    def is_blocking(self) -> bool:
        """Whether consumers wait until it is finished (``BLOCKING`` and ``BLOCKING_PERSISTENT``)."""
        return self in _BLOCKING

    @property
    def is_persistent(self) -> bool:
        """Whether it outlives the job."""
        return self is ResultPartitionType.BLOCKING_PERSISTENT

    @property
    def is_hybrid(self) -> bool:
        """Whether it may be consumed while it is produced and afterwards."""
        return self in _HYBRID

    @property
    def is_reconsumable(self) -> bool:
        """Whether a consumer may read it again."""
        return self in _RECONSUMABLE

    @property
    def must_be_pipelined_consumed(self) -> bool:
        """Whether consumers must run while the producer runs: such results make pipelined regions."""
        return self is ResultPartitionType.PIPELINED_BOUNDED


_T = ResultPartitionType
_BLOCKING = frozenset({_T.BLOCKING, _T.BLOCKING_PERSISTENT})
_HYBRID = frozenset({_T.HYBRID_FULL, _T.HYBRID_SELECTIVE})
_RECONSUMABLE = frozenset({_T.BLOCKING, _T.BLOCKING_PERSISTENT, _T.HYBRID_FULL})


class DistributionPattern(Enum):
    """Mirrors ``DistributionPattern``: whether a consumer's subtask reads some partitions or all."""

    ALL_TO_ALL = "ALL_TO_ALL"
    POINTWISE = "POINTWISE"
