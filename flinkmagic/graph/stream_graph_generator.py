"""Makes a StreamGraph from registered transformations. Mirrors ``StreamGraphGenerator`` and its translators.

Each kind of transformation has one method; ``_transform`` dispatches. Departure: the walk keeps its own stack
(:mod:`~flinkmagic.graph.trampoline`), so that a chain of a hundred thousand transformations compiles.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import chain
from typing import TYPE_CHECKING, Any

from flinkmagic.errors.graph import (
    CacheInStreamingError,
    CacheOfVirtualStreamError,
    IterationInBatchError,
    NoFeedbackEdgesError,
    NoOperatorsError,
    SplitOfSideOutputError,
    SplitOfSplitError,
    UnboundedSourceInBatchError,
)
from flinkmagic.graph.exchange_mode import (
    GLOBAL_MODE_OF_SHUFFLE_MODE,
    GlobalStreamExchangeMode,
    RuntimeExecutionMode,
    StreamExchangeMode,
)
from flinkmagic.graph.partitioner import FORWARD
from flinkmagic.graph.stream_graph import (
    DEFAULT_SLOT_SHARING_GROUP,
    Invokable,
    StreamGraph,
    StreamNode,
    VirtualNode,
)
from flinkmagic.graph.trampoline import Steps, run
from flinkmagic.graph.transformations import (
    PARALLELISM_DEFAULT,
    CacheTransformation,
    CoFeedbackTransformation,
    FeedbackTransformation,
    MultipleInputTransformation,
    OneInputTransformation,
    PartitionTransformation,
    SelectTransformation,
    SideOutputTransformation,
    SinkTransformation,
    SourceTransformation,
    SplitTransformation,
    Transformation,
    TwoInputTransformation,
    UnionTransformation,
)

if TYPE_CHECKING:
    from flinkmagic.graph.environment import StreamExecutionEnvironment

Ids = list[int]
"""Ids of the nodes, virtual ones included, that represent a transformation."""


class StreamGraphGenerator:
    """Walks transformations from the registered operators upstream and adds nodes and edges."""

    def __init__(self, environment: StreamExecutionEnvironment) -> None:
        self._environment = environment
        self._batch = environment.runtime_mode is RuntimeExecutionMode.BATCH
        self._done: dict[int, Ids] = {}
        self._keep_alive: list[Transformation] = []
        self._virtual_ids = 0
        self._iteration_ids = 0
        config = environment.config
        mode = GlobalStreamExchangeMode.ALL_EDGES_PIPELINED
        if self._batch:
            mode = GLOBAL_MODE_OF_SHUFFLE_MODE[config.batch_shuffle_mode]
        self._graph = StreamGraph(environment.name, environment.runtime_mode, config, mode, environment.has_split)
        self._translators: dict[type[Transformation], Callable[[Any], Steps[Ids]]] = {
            SourceTransformation: self._source,
            OneInputTransformation: self._operator,
            TwoInputTransformation: self._operator,
            MultipleInputTransformation: self._operator,
            SinkTransformation: self._operator,
            CacheTransformation: self._cache,
            UnionTransformation: self._union,
            PartitionTransformation: self._partition,
            SideOutputTransformation: self._side_output,
            SplitTransformation: self._split,
            SelectTransformation: self._select,
            FeedbackTransformation: self._feedback,
            CoFeedbackTransformation: self._co_feedback,
        }

    def generate(self) -> StreamGraph:
        """Return the StreamGraph.

        Raises
        ------
        StreamGraphRefusedError
            If Flink refuses the program too.
        """
        registered = self._environment.transformations
        if not registered:
            raise NoOperatorsError(self._environment.name)
        if self._batch:
            self._check_bounded(registered)
        for transformation in registered:
            run(self._transform(transformation))
        return self._graph

    @staticmethod
    def _check_bounded(registered: Iterable[Transformation]) -> None:
        seen: set[int] = set()
        stack = list(registered)
        while stack:
            transformation = stack.pop()
            if id(transformation) in seen:
                continue
            seen.add(id(transformation))
            if isinstance(transformation, SourceTransformation) and not transformation.bounded:
                raise UnboundedSourceInBatchError(transformation.name)
            stack.extend(transformation.inputs)

    def _transform(self, transformation: Transformation) -> Steps[Ids]:
        """Translate what a transformation needs, then the transformation; return the ids that represent it."""
        if id(transformation) not in self._done:
            if transformation.id is None:
                self._environment.adopt(transformation)
            self._keep_alive.append(transformation)
            ids = yield self._translators[type(transformation)](transformation)
            self._done.setdefault(id(transformation), ids)
        return self._done[id(transformation)]

    # Operators

    def _source(self, source: SourceTransformation) -> Steps[Ids]:
        yield from ()
        node = self._add_node(source, f"Source: {source.name}", Invokable.SOURCE, ())
        self._graph.source_ids.append(node.id)
        return [node.id]

    def _operator(self, operator: Transformation) -> Steps[Ids]:
        inputs: list[Ids] = []
        for other in operator.inputs:
            inputs.append((yield self._transform(other)))
        if id(operator) in self._done:  # an iteration below led back to it
            return self._done[id(operator)]
        if isinstance(operator, SinkTransformation):
            name, invokable, first_type = f"Sink: {operator.name}", Invokable.ONE_INPUT, 0
        elif isinstance(operator, OneInputTransformation):
            name, invokable, first_type = operator.name, Invokable.ONE_INPUT, 0
        elif isinstance(operator, TwoInputTransformation):
            name, invokable, first_type = operator.name, Invokable.TWO_INPUT, 1
        else:
            name, invokable, first_type = operator.name, Invokable.MULTIPLE_INPUT, 1
        node = self._add_node(operator, name, invokable, chain.from_iterable(inputs))
        for position, ids in enumerate(inputs):
            for source_id in ids:
                self._graph.add_edge(source_id, node.id, position + first_type)
        if isinstance(operator, SinkTransformation):
            self._graph.sink_ids.append(node.id)
            return []  # nothing comes out of a sink
        return [node.id]

    def _cache(self, cache: CacheTransformation) -> Steps[Ids]:
        dataset_id = cache.dataset_id or f"cache-{cache.id}"
        if cache.cached:
            node = self._add_node(cache, f"CacheRead: {cache.name}", Invokable.SOURCE, ())
            node.consumed_dataset_id = dataset_id
            self._graph.source_ids.append(node.id)
            return [node.id]
        if not self._batch:
            raise CacheInStreamingError(cache.name)
        origin = cache.input
        if not origin.is_physical and not isinstance(origin, SideOutputTransformation):
            raise CacheOfVirtualStreamError(cache.name, type(origin).__name__)
        ids: Ids = yield self._transform(origin)
        if cache.read_by_job:
            return self._add_virtual(
                ids, partitioner=FORWARD, exchange_mode=StreamExchangeMode.BATCH, dataset_id=dataset_id
            )
        # Flink adds a task that does nothing to the persistent result, so that something consumes it.
        node = self._add_node(cache, f"CacheWrite: {cache.name}", Invokable.ONE_INPUT, ids)
        node.parallelism = self._graph.origin_of(ids[0]).parallelism
        for virtual_id in self._add_virtual(ids, partitioner=FORWARD, exchange_mode=StreamExchangeMode.BATCH):
            self._graph.add_edge(virtual_id, node.id, 0, dataset_id)
        self._graph.sink_ids.append(node.id)
        return ids

    def _add_node(self, operator: Transformation, name: str, invokable: Invokable, inputs: Iterable[int]) -> StreamNode:
        assert operator.id is not None
        config = self._environment.config
        parallelism = config.parallelism if operator.parallelism is None else operator.parallelism
        node = StreamNode(
            operator.id,
            name,
            invokable,
            config.parallelism if parallelism == PARALLELISM_DEFAULT else parallelism,
            self._max_parallelism(operator),
            self._slot_sharing_group(operator.slot_sharing_group, inputs),
            operator.co_location_group,
        )
        node.chaining_strategy = operator.chaining_strategy
        node.uid = operator.uid
        node.description = operator.description
        node.metadata = operator.metadata
        node.operator_factory = operator.operator_factory
        self._graph.nodes[node.id] = node
        return node

    def _max_parallelism(self, transformation: Transformation) -> int:
        return transformation.max_parallelism or self._environment.config.max_parallelism or -1

    def _slot_sharing_group(self, specified: str | None, inputs: Iterable[int]) -> str:
        """Return what was asked for, else what all inputs agree on, else the default."""
        if specified is not None:
            return specified
        group: str | None = None
        for source_id in inputs:
            candidate = self._graph.origin_of(source_id).slot_sharing_group
            if group is None:
                group = candidate
            elif group != candidate:
                return DEFAULT_SLOT_SHARING_GROUP
        return group or DEFAULT_SLOT_SHARING_GROUP

    # Virtual transformations

    def _add_virtual(self, ids: Ids, **properties: Any) -> Ids:
        """Put a virtual node with these properties behind each of some nodes."""
        added: Ids = []
        for source_id in ids:
            self._virtual_ids += 1
            # Callers' ids are ints, and iterations' small negative ones; virtual ids stay out of their way.
            added.append(-(1 << 40) - self._virtual_ids)
            self._graph.add_virtual_node(added[-1], VirtualNode(source_id, **properties))
        return added

    def _union(self, union: UnionTransformation) -> Steps[Ids]:
        found: Ids = []
        for other in union.inputs:
            found += yield self._transform(other)
        return found

    def _partition(self, partition: PartitionTransformation) -> Steps[Ids]:
        ids: Ids = yield self._transform(partition.input)
        mode = partition.exchange_mode
        if mode is StreamExchangeMode.BATCH and not self._batch and not self._graph.has_split:
            mode = StreamExchangeMode.UNDEFINED
        return self._add_virtual(ids, partitioner=partition.partitioner, exchange_mode=mode)

    def _side_output(self, side_output: SideOutputTransformation) -> Steps[Ids]:
        ids: Ids = yield self._transform(side_output.input)
        return self._add_virtual(ids, output_tag=side_output.tag)

    def _split(self, split: SplitTransformation) -> Steps[Ids]:
        ids: Ids = yield self._transform(split.input)
        self._check_split(split)
        return ids

    @staticmethod
    def _check_split(split: SplitTransformation) -> None:
        stack = [split.input]
        while stack:
            origin = stack.pop()
            if isinstance(origin, (SplitTransformation, SelectTransformation)):
                raise SplitOfSplitError(split.name)
            if isinstance(origin, SideOutputTransformation):
                raise SplitOfSideOutputError(split.name)
            if isinstance(origin, (UnionTransformation, PartitionTransformation)):
                stack.extend(origin.inputs)

    def _select(self, select: SelectTransformation) -> Steps[Ids]:
        ids: Ids = yield self._transform(select.input)
        return self._add_virtual(ids, selected_names=select.selected_names)

    # Iterations

    def _feedback(self, feedback: FeedbackTransformation) -> Steps[Ids]:
        if self._batch:
            raise IterationInBatchError(feedback.name)
        if not feedback.feedback_edges:
            raise NoFeedbackEdgesError(feedback.name)
        inputs: Ids = yield self._transform(feedback.input)
        if id(feedback) in self._done:  # an iteration below led back to it
            return self._done[id(feedback)]
        head, tail = self._add_iteration(feedback)
        ids = [*inputs, head.id]
        self._done[id(feedback)] = ids
        yield self._close_iteration(feedback, head, tail)
        return ids

    def _co_feedback(self, feedback: CoFeedbackTransformation) -> Steps[Ids]:
        if self._batch:
            raise IterationInBatchError(feedback.name)
        head, tail = self._add_iteration(feedback)
        self._done[id(feedback)] = [head.id]
        yield self._close_iteration(feedback, head, tail)
        return [head.id]

    def _add_iteration(
        self, feedback: FeedbackTransformation | CoFeedbackTransformation
    ) -> tuple[StreamNode, StreamNode]:
        assert feedback.id is not None
        self._environment.check_feedback(feedback)
        parallelism = self._environment.parallelism_of(feedback)
        co_location_group = f"IterationCoLocationGroup-{feedback.id}"
        nodes = []
        for name, invokable, max_parallelism in (
            (f"IterationSource-{feedback.id}", Invokable.ITERATION_HEAD, self._max_parallelism(feedback)),
            (f"IterationSink-{feedback.id}", Invokable.ITERATION_TAIL, parallelism),
        ):
            self._iteration_ids -= 1
            node = StreamNode(
                self._iteration_ids, name, invokable, parallelism, max_parallelism, None, co_location_group
            )
            node.iteration_id = feedback.id
            node.description = feedback.description
            node.metadata = feedback.metadata
            self._graph.nodes[node.id] = node
            nodes.append(node)
        head, tail = nodes
        self._graph.source_ids.append(head.id)
        self._graph.sink_ids.append(tail.id)
        self._graph.iterations.append((head, tail))
        return head, tail

    def _close_iteration(
        self, feedback: FeedbackTransformation | CoFeedbackTransformation, head: StreamNode, tail: StreamNode
    ) -> Steps[None]:
        fed_back: Ids = []
        for edge in feedback.feedback_edges:
            ids: Ids = yield self._transform(edge)
            fed_back += ids
            for source_id in ids:
                self._graph.add_edge(source_id, tail.id, 0)
        head.slot_sharing_group = tail.slot_sharing_group = self._slot_sharing_group(None, fed_back)
