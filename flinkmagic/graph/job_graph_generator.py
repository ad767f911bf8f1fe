"""Makes a JobGraph from a StreamGraph. Mirrors ``StreamingJobGraphGenerator``.

The order is Flink's: chains are made depth first from the sources, chained outputs before others, so that a vertex is
made after its consumers; then equal results that leave operators are shared; then vertices are connected one by one;
then slot sharing and co-location groups are settled.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from flinkmagic.errors.graph import (
    CoLocationAcrossSlotSharingGroupsError,
    HybridInStreamingError,
    HybridWithSlotSharingGroupError,
)
from flinkmagic.graph.chaining import Chaining
from flinkmagic.graph.exchange_mode import (
    GlobalStreamExchangeMode,
    RuntimeExecutionMode,
    StreamExchangeMode,
)
from flinkmagic.graph.job_graph import (
    CoLocationGroup,
    IntermediateDataSet,
    JobGraph,
    JobVertex,
    SlotSharingGroup,
)
from flinkmagic.graph.partitioner import StreamPartitioner
from flinkmagic.graph.pipelined_region import logical_pipelined_regions
from flinkmagic.graph.result_partition_type import DistributionPattern, ResultPartitionType
from flinkmagic.graph.stream_config import StreamConfig
from flinkmagic.graph.stream_graph import DEFAULT_SLOT_SHARING_GROUP, StreamEdge, StreamGraph, StreamNode
from flinkmagic.graph.stream_graph_hasher import generate_hashes
from flinkmagic.graph.trampoline import Steps, run

_RESULT_OF_MODE = {
    StreamExchangeMode.PIPELINED: ResultPartitionType.PIPELINED_BOUNDED,
    StreamExchangeMode.BATCH: ResultPartitionType.BLOCKING,
    StreamExchangeMode.HYBRID_FULL: ResultPartitionType.HYBRID_FULL,
    StreamExchangeMode.HYBRID_SELECTIVE: ResultPartitionType.HYBRID_SELECTIVE,
}
_RESULT_OF_GLOBAL_MODE = {
    GlobalStreamExchangeMode.ALL_EDGES_BLOCKING: ResultPartitionType.BLOCKING,
    GlobalStreamExchangeMode.ALL_EDGES_PIPELINED: ResultPartitionType.PIPELINED_BOUNDED,
    GlobalStreamExchangeMode.ALL_EDGES_HYBRID_FULL: ResultPartitionType.HYBRID_FULL,
    GlobalStreamExchangeMode.ALL_EDGES_HYBRID_SELECTIVE: ResultPartitionType.HYBRID_SELECTIVE,
}


def create_job_graph(stream_graph: StreamGraph, job_id: str | None = None) -> JobGraph:
    """Compile a StreamGraph into a JobGraph; its id, 32 hexadecimal digits, is random if none is given.

    Raises
    ------
    JobGraphRefusedError
        If Flink refuses the program too.
    """
    return _JobGraphGenerator(stream_graph, job_id).generate()


def result_type_of(edge: StreamEdge, global_mode: GlobalStreamExchangeMode) -> ResultPartitionType:
    """Return the type of the result that an edge which leaves its task reads."""
    if edge.exchange_mode is not StreamExchangeMode.UNDEFINED:
        return _RESULT_OF_MODE[edge.exchange_mode]
    return _RESULT_OF_GLOBAL_MODE[global_mode]


@dataclass(eq=False)
class NonChainedOutput:
    """What an operator sends to other tasks: one result, or a share in one. Mirrors ``NonChainedOutput``."""

    partitioner: StreamPartitioner
    result_type: ResultPartitionType
    dataset_id: str | None


@dataclass
class _ChainInfo:
    """A chain while it is made. Mirrors ``OperatorChainInfo``."""

    start: StreamNode
    operators: list[StreamNode] = field(default_factory=list)
    configs: dict[int, StreamConfig] = field(default_factory=dict)
    out_edges: list[StreamEdge] = field(default_factory=list)


class _JobGraphGenerator:
    def __init__(self, stream_graph: StreamGraph, job_id: str | None) -> None:
        self._stream_graph = stream_graph
        self._chaining = Chaining(stream_graph)
        self._hashes = generate_hashes(stream_graph, self._chaining)
        self._job_graph = JobGraph(stream_graph.name, stream_graph.job_type, stream_graph.config, job_id)
        self._chains: dict[int, _ChainInfo] = {}
        self._vertices: dict[int, JobVertex] = {}
        self._hybrid: StreamEdge | None = None

    def generate(self) -> JobGraph:
        self._make_chains()
        self._connect_vertices(self._share_outputs())
        if self._hybrid is not None and self._job_graph.job_type is not RuntimeExecutionMode.BATCH:
            raise HybridInStreamingError(repr(self._hybrid.source), repr(self._hybrid.target))
        self._set_slot_sharing()
        self._set_co_location()
        return self._job_graph

    # Chains

    def _make_chains(self) -> None:
        nodes = self._stream_graph.nodes
        starts = dict.fromkeys(self._chaining.start_of(nodes[id]).id for id in self._stream_graph.source_ids)
        for id in _as_in_hash_set(starts) if self._stream_graph.has_split else sorted(starts):
            run(self._start_chain(nodes[id]))

    def _start_chain(self, start: StreamNode) -> Steps[None]:
        if start.id in self._chains:
            return
        info = self._chains[start.id] = _ChainInfo(start)
        yield self._chain(start, info, 1)
        self._make_vertex(info)

    def _chain(self, node: StreamNode, info: _ChainInfo, index: int) -> Steps[None]:
        chaining = self._chaining
        chained: list[StreamEdge] = []
        leaving: list[StreamEdge] = []
        for edge in node.out_edges:
            if chaining.is_chained_output(edge):
                chained.append(edge)
            elif not chaining.is_chained_input(edge):
                leaving.append(edge)
        for edge in chained:
            yield self._chain(edge.target, info, index + 1 if index else 0)
        for edge in leaving:
            info.out_edges.append(edge)
            yield self._start_chain(chaining.start_of(edge.target))
        info.operators.append(node)
        for start in chaining.chained_inputs(node):
            yield self._chain(start, info, 0)
        info.configs[node.id] = StreamConfig(node, index, chained)

    def _chained_name(self, info: _ChainInfo) -> str:
        """Name a chain: ``A [inputs] -> B -> (C, D)``."""
        parts: list[str] = []
        left: list[str | StreamNode] = [info.start]
        while left:
            node = left.pop()
            if isinstance(node, str):
                parts.append(node)
                continue
            parts.append(node.name)
            inputs = self._chaining.chained_inputs(node)
            outputs = [edge.target for edge in info.configs[node.id].chained_outputs]
            # What is to come last is pushed first.
            if len(outputs) > 1:
                left += [")", *_separated(outputs), " -> ("]
            elif outputs:
                left += [outputs[0], " -> "]
            if inputs:
                left += ["]", *_separated(inputs), " ["]
        return "".join(parts)

    def _make_vertex(self, info: _ChainInfo) -> None:
        start = info.start
        vertex = JobVertex(
            self._hashes[start.id].hex(),
            self._chained_name(info),
            start,
            tuple(info.operators),
            tuple(self._hashes[node.id].hex() for node in info.operators),
            info.configs,
        )
        self._vertices[start.id] = vertex
        self._job_graph.vertices[vertex.id] = vertex

    # Results

    def _share_outputs(self) -> dict[StreamEdge, NonChainedOutput]:
        """Give every edge that leaves its task a result, the same one to edges that may share it.

        Mirrors ``createOrReuseOutput``: a reconsumable result is shared by edges of one operator with equal type, side
        output, partitioner and consumers; a hybrid one of either kind with any other, and is FULL from then on.
        """
        outputs: dict[StreamEdge, NonChainedOutput] = {}
        shared: dict[object, NonChainedOutput] = {}
        may_share = not self._stream_graph.has_split
        for info in self._chains.values():
            for edge in info.out_edges:
                result_type = self._result_type(edge)
                target = edge.target
                # A named result is one, whichever of its rows a reader selects.
                is_named = edge.dataset_id is not None
                key = (
                    edge.source.id,
                    "HYBRID" if result_type.is_hybrid else result_type,
                    target.parallelism,
                    target.max_parallelism,
                    edge.dataset_id,
                    None if is_named else edge.output_tag,
                    edge.partitioner,
                )
                output = None
                if (may_share or is_named) and (result_type.is_reconsumable or result_type.is_hybrid):
                    output = shared.get(key)
                if output is None:
                    output = shared[key] = NonChainedOutput(edge.partitioner, result_type, edge.dataset_id)
                elif output.result_type is ResultPartitionType.HYBRID_SELECTIVE:
                    output.result_type = ResultPartitionType.HYBRID_FULL
                outputs[edge] = output
        return outputs

    def _result_type(self, edge: StreamEdge) -> ResultPartitionType:
        result_type = result_type_of(edge, self._stream_graph.global_exchange_mode)
        if edge.dataset_id is not None and result_type.is_blocking:
            return ResultPartitionType.BLOCKING_PERSISTENT
        if result_type.is_hybrid:
            self._hybrid = edge
            if edge.partitioner.is_broadcast:
                return ResultPartitionType.HYBRID_FULL
        return result_type

    def _connect_vertices(self, outputs: dict[StreamEdge, NonChainedOutput]) -> None:
        datasets: dict[int, IntermediateDataSet] = {}
        for start_id, vertex in self._vertices.items():
            for edge in self._chains[start_id].out_edges:
                output = outputs[edge]
                dataset = datasets.get(id(output))
                if dataset is None:
                    dataset = datasets[id(output)] = vertex.add_result(output.result_type, output.dataset_id)
                consumer = self._vertices[self._chaining.start_of(edge.target).id]
                consumer.consume(dataset, _pattern(output.partitioner), output.partitioner, edge)

    # Groups

    def _set_slot_sharing(self) -> None:
        """Put vertices of a named group together; group those of the default group by job, or by region in BATCH."""
        graph = self._job_graph
        regions = logical_pipelined_regions(graph)
        one_group = self._stream_graph.all_vertices_in_same_slot_sharing_group_by_default
        groups: dict[str | int, SlotSharingGroup] = {}
        for vertex in self._vertices.values():
            name = vertex.head.slot_sharing_group or DEFAULT_SLOT_SHARING_GROUP
            if name != DEFAULT_SLOT_SHARING_GROUP:
                if self._hybrid is not None:
                    raise HybridWithSlotSharingGroupError(vertex.name, name)
                key: str | int = name
            else:
                key = 0 if one_group else regions[vertex.id]
            group = groups.setdefault(key, SlotSharingGroup(name))
            group.vertices.append(vertex)
            vertex.slot_sharing_group = group
        graph.slot_sharing_groups = tuple(groups.values())

    def _set_co_location(self) -> None:
        groups: dict[str, CoLocationGroup] = {}
        for vertex in self._vertices.values():
            name = vertex.head.co_location_group
            if name is None:
                continue
            group = groups.setdefault(name, CoLocationGroup(name))
            if group.vertices and group.vertices[0].slot_sharing_group is not vertex.slot_sharing_group:
                raise CoLocationAcrossSlotSharingGroupsError(vertex.name, name)
            group.vertices.append(vertex)
            vertex.co_location_group = group
        self._job_graph.co_location_groups = tuple(groups.values())


def _separated(nodes: list[StreamNode]) -> list[str | StreamNode]:
    """Return the nodes with commas between them, the last one first."""
    return [part for node in reversed(nodes) for part in (node, ", ")][:-1]


def _pattern(partitioner: StreamPartitioner) -> DistributionPattern:
    return DistributionPattern.POINTWISE if partitioner.is_pointwise else DistributionPattern.ALL_TO_ALL


def _as_in_hash_set(ids: Iterable[int]) -> list[int]:
    """Return distinct ids in the order of Java's ``HashSet<Integer>``, which holds the sources of Flink 1.11's graph.

    Java goes through buckets, and through each in the order of insertion. There are at least 16, and twice as many
    whenever more than three quarters as many ids are in them. An id's bucket is that of ``id ^ id >>> 16``
    (``HashMap.hash``), so heads of iterations, whose ids are negative, lie between sources: -1 in bucket 0, -3 in 2.
    """
    inserted = list(ids)
    buckets = 16
    while len(inserted) > buckets * 3 // 4:
        buckets *= 2
    return sorted(inserted, key=lambda id: (id ^ (id & 0xFFFFFFFF) >> 16) & buckets - 1)
