"""How data goes from one operator to the next: the modes that Flink knows, per job and per edge."""

from __future__ import annotations

from enum import Enum


class RuntimeExecutionMode(Enum):
    """Mirrors ``RuntimeExecutionMode`` (its AUTOMATIC is absent: the caller knows what it plans)."""

    STREAMING = "STREAMING"
    BATCH = "BATCH"


class StreamExchangeMode(Enum):
    """Mirrors ``StreamExchangeMode``: what a partition transformation asks for on its edges."""

    UNDEFINED = "UNDEFINED"
    PIPELINED = "PIPELINED"
    BATCH = "BATCH"
    HYBRID_FULL = "HYBRID_FULL"
    HYBRID_SELECTIVE = "HYBRID_SELECTIVE"
    """No plan of Spark's has these two. They are kept because Flink has them, and a topology may name them."""


class BatchShuffleMode(Enum):
    """Mirrors ``BatchShuffleMode``: what an edge of undefined mode becomes in a BATCH job."""

    ALL_EXCHANGES_PIPELINED = "ALL_EXCHANGES_PIPELINED"
    ALL_EXCHANGES_BLOCKING = "ALL_EXCHANGES_BLOCKING"
    ALL_EXCHANGES_HYBRID_FULL = "ALL_EXCHANGES_HYBRID_FULL"
    ALL_EXCHANGES_HYBRID_SELECTIVE = "ALL_EXCHANGES_HYBRID_SELECTIVE"
    """No plan of Spark's has the hybrid modes: only a topology's ``batch_shuffle_mode`` names them."""


class GlobalStreamExchangeMode(Enum):
    """Mirrors ``GlobalStreamExchangeMode``: the job-wide modes that a StreamGraph can have."""

    ALL_EDGES_BLOCKING = "ALL_EDGES_BLOCKING"
    ALL_EDGES_PIPELINED = "ALL_EDGES_PIPELINED"
    ALL_EDGES_HYBRID_FULL = "ALL_EDGES_HYBRID_FULL"
    ALL_EDGES_HYBRID_SELECTIVE = "ALL_EDGES_HYBRID_SELECTIVE"
    """No plan of Spark's has the hybrid modes: only a topology's ``batch_shuffle_mode`` makes them."""


GLOBAL_MODE_OF_SHUFFLE_MODE = {
    BatchShuffleMode.ALL_EXCHANGES_PIPELINED: GlobalStreamExchangeMode.ALL_EDGES_PIPELINED,
    BatchShuffleMode.ALL_EXCHANGES_BLOCKING: GlobalStreamExchangeMode.ALL_EDGES_BLOCKING,
    BatchShuffleMode.ALL_EXCHANGES_HYBRID_FULL: GlobalStreamExchangeMode.ALL_EDGES_HYBRID_FULL,
    BatchShuffleMode.ALL_EXCHANGES_HYBRID_SELECTIVE: GlobalStreamExchangeMode.ALL_EDGES_HYBRID_SELECTIVE,
}


class ChainingStrategy(Enum):
    """Mirrors ``ChainingStrategy``: whether an operator may share a task with its neighbours.

    ``HEAD_WITH_SOURCES`` is as HEAD: it takes sources of the newer kind only, and sources here are of the older one.
    ``HEAD_WITH_INPUTS`` is a departure, a generalisation of Flink's ``HEAD_WITH_SOURCES``: the operator takes every
    pointwise input that is not BATCH into its own task, whatever the inputs' number and parallelism (a Spark stage is
    such a tree). See :mod:`flinkmagic.graph.chaining`.
    """

    ALWAYS = "ALWAYS"
    NEVER = "NEVER"
    HEAD = "HEAD"
    HEAD_WITH_SOURCES = "HEAD_WITH_SOURCES"
    HEAD_WITH_INPUTS = "HEAD_WITH_INPUTS"
