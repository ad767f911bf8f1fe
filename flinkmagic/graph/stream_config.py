"""What a chain's task has to know about each of its operators. Mirrors ``StreamConfig``.

Flink serialises this into the vertex's configuration; here it is an object, read by gateways and displays.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from flinkmagic.graph.partitioner import StreamPartitioner
from flinkmagic.graph.result_partition_type import ResultPartitionType
from flinkmagic.graph.stream_graph import StreamEdge, StreamNode
from flinkmagic.graph.transformations import OutputTag


@dataclass(frozen=True)
class NetworkInputConfig:
    """An input that comes from other tasks, by the number of its gate. Mirrors ``StreamConfig.NetworkInputConfig``."""

    input_gate: int


@dataclass(frozen=True)
class ChainedInputConfig:
    """An input that a chain in the same task produces. Generalises ``StreamConfig.SourceInputConfig``."""

    edge: StreamEdge


@dataclass(eq=False)
class NonChainedOutput:
    """What an operator sends to other tasks: one result, or a share in one. Mirrors ``NonChainedOutput``."""

    __slots__ = (
        "dataset_id",
        "output_tag",
        "partitioner",
        "result_type",
        "source_id",
    )

    source_id: int
    output_tag: OutputTag | None
    partitioner: StreamPartitioner
    result_type: ResultPartitionType
    dataset_id: str | None


@dataclass(eq=False)
class StreamConfig:
    """One operator of a chain."""

    node: StreamNode
    """The operator, with its factory, description and metadata."""
    chain_index: int
    """Place in the chain: 1 for the operator at which the task starts, 0 for those that run as its chained inputs."""
    inputs: tuple[NetworkInputConfig | ChainedInputConfig, ...]
    """By position: from the network, or from a chained input."""
    chained_outputs: list[StreamEdge]
    non_chained_outputs: list[NonChainedOutput] = field(default_factory=list)
    """What stays in the task and what leaves it."""
    in_physical_edges: list[StreamEdge] = field(default_factory=list)
    """The edges that feed the task, in the order of its gates."""
