"""The JobGraph: chains of operators as vertices, the results between them as data sets."""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from flinkmagic.graph.exchange_mode import RuntimeExecutionMode
from flinkmagic.graph.execution_config import ExecutionConfig
from flinkmagic.graph.partitioner import StreamPartitioner
from flinkmagic.graph.result_partition_type import DistributionPattern, ResultPartitionType
from flinkmagic.graph.stream_config import StreamConfig
from flinkmagic.graph.stream_graph import Invokable, StreamEdge, StreamNode


@dataclass(eq=False, slots=True)
class _VertexGroup:
    name: str
    vertices: list[JobVertex] = field(default_factory=list)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.name!r}, {len(self.vertices)} vertices)"


class SlotSharingGroup(_VertexGroup):
    """Vertices whose subtasks may share slots. Mirrors ``SlotSharingGroup``."""

    __slots__ = ()


class CoLocationGroup(_VertexGroup):
    """Vertices whose subtasks of equal index must share a slot. Mirrors ``CoLocationGroup``."""

    __slots__ = ()


@dataclass(eq=False, slots=True)
class JobVertex:
    """A chain of operators that runs as one task. Mirrors ``JobVertex``."""

    id: str
    """32 hexadecimal digits, the id of the operator at which the task starts."""
    name: str
    head: StreamNode
    """The operator at which the task starts."""
    operators: tuple[StreamNode, ...]
    """In the order of ``JobVertex.getOperatorIDs``: last operator first, then upstream; chained inputs last."""
    operator_ids: tuple[str, ...]
    """In the order of ``operators``, 32 hexadecimal digits each."""
    configs: dict[int, StreamConfig]
    """By node id; Flink's vertex configuration and its chained configs."""
    parallelism: int = field(init=False)
    max_parallelism: int = field(init=False)
    invokable: Invokable = field(init=False)
    slot_sharing_group: SlotSharingGroup = field(init=False)
    co_location_group: CoLocationGroup | None = None
    produced: list[IntermediateDataSet] = field(default_factory=list)
    inputs: list[JobEdge] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.parallelism = self.head.parallelism
        self.max_parallelism = self.head.max_parallelism
        self.invokable = self.head.invokable

    @property
    def names(self) -> list[str]:
        """What people call it: its name and those of its operators, with and without the prefixes of their roles."""
        names = [self.name, *(operator.name for operator in self.operators)]
        bare = [name.removeprefix(prefix) for name in names for prefix in ("Source: ", "Sink: ")]
        return list(dict.fromkeys([*names, *bare]))

    @property
    def tail(self) -> StreamNode:
        """The last operator of the chain (of its first branch)."""
        return self.operators[0]

    @property
    def operator_factory(self) -> object | None:
        """The tail's handle, by which a gateway runs the vertex."""
        return self.operators[0].operator_factory

    def add_result(self, result_type: ResultPartitionType, dataset_id: str | None = None) -> IntermediateDataSet:
        """Produce one more result."""
        dataset = IntermediateDataSet(self, len(self.produced), result_type, dataset_id)
        self.produced.append(dataset)
        return dataset

    def consume(
        self,
        dataset: IntermediateDataSet,
        pattern: DistributionPattern,
        partitioner: StreamPartitioner,
        stream_edge: StreamEdge,
    ) -> JobEdge:
        """Read a result. With :meth:`add_result` it mirrors ``JobVertex.connectNewDataSetAsInput``."""
        edge = JobEdge(dataset, self, len(self.inputs), pattern, partitioner, stream_edge)
        dataset.consumers.append(edge)
        self.inputs.append(edge)
        return edge

    def __repr__(self) -> str:
        return f"JobVertex({self.name!r}, parallelism={self.parallelism})"


class IntermediateDataSet:
    """A result of a vertex. Mirrors ``IntermediateDataSet``.

    ``id`` is the given one of a persistent result, else made from the producer's id and ``index``, so that it is the
    same in every run (Flink's is random).
    """

    __slots__ = ("consumers", "id", "index", "producer", "result_type")

    def __init__(self, producer: JobVertex, index: int, result_type: ResultPartitionType, id: str | None) -> None:
        self.producer = producer
        self.index = index
        self.result_type = result_type
        self.id = id or f"{producer.id}_{index}"
        self.consumers: list[JobEdge] = []

    def __repr__(self) -> str:
        return f"IntermediateDataSet({self.producer.name!r}[{self.index}], {self.result_type.name})"


@dataclass(eq=False, slots=True)
class JobEdge:
    """A vertex reading a result. Mirrors ``JobEdge``."""

    source: IntermediateDataSet
    target: JobVertex
    input_index: int
    pattern: DistributionPattern
    partitioner: StreamPartitioner
    stream_edge: StreamEdge

    @property
    def producer(self) -> JobVertex:
        """The vertex that makes the result."""
        return self.source.producer

    @property
    def result_type(self) -> ResultPartitionType:
        """The type of the result."""
        return self.source.result_type

    @property
    def ship_strategy_name(self) -> str:
        """The partitioner's name."""
        return str(self.partitioner)

    def __repr__(self) -> str:
        return f"JobEdge({self.producer.name!r} -> {self.target.name!r}, {self.partitioner}, {self.result_type.name})"


class JobGraph:
    """The vertices of a job. Mirrors ``JobGraph``."""

    def __init__(
        self, name: str, job_type: RuntimeExecutionMode, config: ExecutionConfig, job_id: str | None = None
    ) -> None:
        self.name = name
        self.job_id = job_id or uuid.uuid4().hex
        """32 hexadecimal digits, random unless given."""
        self.job_type = job_type
        self.config = config
        self.vertices: dict[str, JobVertex] = {}
        """By id, in the order in which they were made: consumers first."""
        self.slot_sharing_groups: tuple[SlotSharingGroup, ...] = ()
        self.co_location_groups: tuple[CoLocationGroup, ...] = ()
        self._topological: list[JobVertex] | None = None

    @property
    def edges(self) -> Iterator[JobEdge]:
        """All edges, by producer."""
        return (edge for v in self.vertices.values() for dataset in v.produced for edge in dataset.consumers)

    def vertices_by_operator(self) -> dict[int, JobVertex]:
        """Return, by the id of an operator, the vertex that runs it."""
        return {node.id: vertex for vertex in self.vertices.values() for node in vertex.operators}

    def vertices_in_topological_order(self) -> Sequence[JobVertex]:
        """Return producers before consumers: sources as they were made, then depth first over what has become ready.

        Mirrors ``JobGraph.getVerticesSortedTopologicallyFromSources``; the order is kept.
        """
        if self._topological is None:
            self._topological = _topological(self.vertices)
        return self._topological


def _topological(vertices: Mapping[str, JobVertex]) -> list[JobVertex]:
    waiting = {vertex.id: len(vertex.inputs) for vertex in vertices.values()}
    order = [vertex for vertex in vertices.values() if not vertex.inputs]
    for vertex in order:
        _leave(vertex, waiting)
    for start in tuple(order):
        stack = [_consumers(start)]
        while stack:
            ready = next((v for v in stack[-1] if waiting.get(v.id) == 0), None)
            if ready is None:
                stack.pop()
                continue
            order.append(ready)
            _leave(ready, waiting)
            stack.append(_consumers(ready))
    return order


def _leave(vertex: JobVertex, waiting: dict[str, int]) -> None:
    """Count the vertex as placed: its consumers stop waiting for it."""
    del waiting[vertex.id]
    for consumer in _consumers(vertex):
        if consumer.id in waiting:
            waiting[consumer.id] -= 1


def _consumers(vertex: JobVertex) -> Iterator[JobVertex]:
    return (edge.target for dataset in vertex.produced for edge in dataset.consumers)
