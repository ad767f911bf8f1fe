"""The StreamGraph: one node for each operator, with the virtual transformations resolved into its edges."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

from flinkmagic.errors.graph import ForwardChangesParallelismError, SideOutputOfSelectError, SideOutputTypeClashError
from flinkmagic.graph.exchange_mode import (
    ChainingStrategy,
    GlobalStreamExchangeMode,
    RuntimeExecutionMode,
    StreamExchangeMode,
)
from flinkmagic.graph.execution_config import ExecutionConfig
from flinkmagic.graph.partitioner import FORWARD, REBALANCE, PartitionerKind, StreamPartitioner
from flinkmagic.graph.transformations import OutputTag

DEFAULT_SLOT_SHARING_GROUP = "default"
"""``StreamGraphGenerator.DEFAULT_SLOT_SHARING_GROUP``."""


class Invokable(Enum):
    """The task kinds; the value is Flink's class, which here names the kind and is not run."""

    SOURCE = "org.apache.flink.streaming.runtime.tasks.SourceStreamTask"
    ONE_INPUT = "org.apache.flink.streaming.runtime.tasks.OneInputStreamTask"
    TWO_INPUT = "org.apache.flink.streaming.runtime.tasks.TwoInputStreamTask"
    MULTIPLE_INPUT = "org.apache.flink.streaming.runtime.tasks.MultipleInputStreamTask"
    ITERATION_HEAD = "org.apache.flink.streaming.runtime.tasks.StreamIterationHead"
    ITERATION_TAIL = "org.apache.flink.streaming.runtime.tasks.StreamIterationTail"


@dataclass(eq=False, slots=True)
class StreamNode:
    """An operator in the StreamGraph. Mirrors ``StreamNode``.

    The head and the tail of an iteration have no chaining strategy: they are never chained. ``description``,
    ``metadata`` and ``operator_factory`` are the transformation's.
    """

    id: int
    name: str
    invokable: Invokable
    parallelism: int
    max_parallelism: int
    slot_sharing_group: str | None
    co_location_group: str | None
    chaining_strategy: ChainingStrategy | None = None
    uid: str | None = None
    description: str | None = None
    metadata: Mapping[str, Any] | None = None
    operator_factory: object | None = None
    iteration_id: int | None = None
    consumed_dataset_id: str | None = None
    in_edges: list[StreamEdge] = field(default_factory=list)
    out_edges: list[StreamEdge] = field(default_factory=list)

    @property
    def label(self) -> int | str:
        """The display id: iteration heads and tails have that of their feedback transformation."""
        if self.iteration_id is None:
            return self.id
        kind = "source" if self.invokable is Invokable.ITERATION_HEAD else "sink"
        return f"iteration-{kind}:{self.iteration_id}"

    def __repr__(self) -> str:
        return f"{self.name}-{self.id}"


@dataclass(eq=False, slots=True)
class StreamEdge:
    """A connection of two nodes. Mirrors ``StreamEdge``.

    Only split streams have ``selected_names``; it is None past a side output, as in Flink 1.11. ``dataset_id`` names
    the persistent result that the edge produces.
    """

    source: StreamNode
    target: StreamNode
    type_number: int
    partitioner: StreamPartitioner
    exchange_mode: StreamExchangeMode
    output_tag: OutputTag | None = None
    selected_names: tuple[str, ...] | None = ()
    dataset_id: str | None = None

    def __repr__(self) -> str:
        return f"StreamEdge({self.source!r} -> {self.target!r}, {self.partitioner}, {self.exchange_mode.name})"


@dataclass(eq=False, slots=True)
class VirtualNode:
    """A partition, side output or selection on the way to a real node; it lives while the graph is built."""

    origin: int
    partitioner: StreamPartitioner | None = None
    exchange_mode: StreamExchangeMode = StreamExchangeMode.UNDEFINED
    output_tag: OutputTag | None = None
    selected_names: tuple[str, ...] | None = None
    dataset_id: str | None = None


@dataclass(eq=False, repr=False)
class StreamGraph:
    """Operators and the connections between them. Mirrors ``StreamGraph``."""

    name: str
    job_type: RuntimeExecutionMode
    config: ExecutionConfig
    global_exchange_mode: GlobalStreamExchangeMode
    has_split: bool
    """Whether streams are split and selected.

    Flink 1.11 was the last to support it; where it differs from 1.20, such programs follow 1.11: BATCH exchanges are
    kept in STREAMING, equal results are not shared, and chains are made from the sources in another order.
    """
    nodes: dict[int, StreamNode] = field(default_factory=dict)
    """By id, in order of registration."""
    source_ids: list[int] = field(default_factory=list)
    """As registered; heads of iterations are sources."""
    sink_ids: list[int] = field(default_factory=list)
    """As registered; tails of iterations are sinks."""
    iterations: list[tuple[StreamNode, StreamNode]] = field(default_factory=list)
    """Head and tail of each iteration."""
    _virtual: dict[int, VirtualNode] = field(default_factory=dict)
    _tags: dict[tuple[int, str], OutputTag] = field(default_factory=dict)

    @property
    def chaining_enabled(self) -> bool:
        """Whether operators may share tasks."""
        return self.config.chaining

    @property
    def all_vertices_in_same_slot_sharing_group_by_default(self) -> bool:
        """Whether the default slot sharing group is one for the job (STREAMING) or one for each region (BATCH)."""
        return self.job_type is RuntimeExecutionMode.STREAMING

    @property
    def edges(self) -> list[StreamEdge]:
        """All edges, by source."""
        return [edge for node in self.nodes.values() for edge in node.out_edges]

    def add_virtual_node(self, virtual_id: int, node: VirtualNode) -> None:
        """Add a virtual node; refuse one side output read as two types from the very same origin."""
        tag = node.output_tag
        if tag is not None:
            known = self._tags.setdefault((node.origin, tag.id), tag)
            if known.type != tag.type:
                raise SideOutputTypeClashError(tag.id, (known.type, tag.type))
        self._virtual[virtual_id] = node

    def origin_of(self, id: int) -> StreamNode:
        """Return the node with an id, or the node behind a virtual one."""
        while id in self._virtual:
            id = self._virtual[id].origin
        return self.nodes[id]

    def add_edge(self, source_id: int, target_id: int, type_number: int, dataset_id: str | None = None) -> None:
        """Connect two nodes, resolving the virtual nodes on the way.

        As in Flink, the partitioner nearest the consumer and the exchange mode farthest upstream take precedence.
        """
        partitioner: StreamPartitioner | None = None
        mode: StreamExchangeMode = StreamExchangeMode.UNDEFINED
        tag: OutputTag | None = None
        names: tuple[str, ...] | None = ()
        while source_id in self._virtual:
            virtual = self._virtual[source_id]
            source_id = virtual.origin
            dataset_id = dataset_id or virtual.dataset_id
            if virtual.partitioner is not None:
                partitioner = partitioner or virtual.partitioner
                mode = virtual.exchange_mode
            elif virtual.output_tag is not None:
                tag = tag or virtual.output_tag
                names = None
            elif names is None:
                raise SideOutputOfSelectError(tag.id if tag else "")
            else:
                names = names or virtual.selected_names
        source, target = self.nodes[source_id], self.nodes[target_id]
        same_parallelism = source.parallelism == target.parallelism
        if partitioner is None:
            partitioner = FORWARD if same_parallelism else REBALANCE
        elif partitioner.kind is PartitionerKind.FORWARD and not same_parallelism:
            raise ForwardChangesParallelismError(repr(source), source.parallelism, repr(target), target.parallelism)
        edge = StreamEdge(source, target, type_number, partitioner, mode, tag, names, dataset_id)
        source.out_edges.append(edge)
        target.in_edges.append(edge)
