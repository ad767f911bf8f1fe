"""Which operators share a task.

There are two rules. The first is exactly Flink's: :func:`is_chainable`. The second is the extension for operators with
``ChainingStrategy.HEAD_WITH_INPUTS``: such an operator takes into its own task the chains that feed it pointwise,
whatever their number and parallelism, as Flink's HEAD_WITH_SOURCES takes single sources. A chain is taken only if all
its outputs go to this operator over such edges: otherwise two vertices could wait for each other.
"""

from __future__ import annotations

from collections.abc import Iterable

from flinkmagic.graph.exchange_mode import ChainingStrategy, StreamExchangeMode
from flinkmagic.graph.stream_graph import StreamEdge, StreamGraph, StreamNode

_UPSTREAM = frozenset(ChainingStrategy) - {ChainingStrategy.NEVER}


def is_chainable(edge: StreamEdge, chaining_enabled: bool) -> bool:
    """Return whether the edge's target goes into the task of its source: the conditions of Flink, one by one.

    Mirrors ``StreamingJobGraphGenerator.isChainable``. Max parallelism and co-location group do not matter.
    """
    source, target = edge.source, edge.target
    return (
        len(target.in_edges) == 1
        and edge.partitioner.is_forward
        and edge.exchange_mode is not StreamExchangeMode.BATCH
        and source.parallelism == target.parallelism
        and source.slot_sharing_group == target.slot_sharing_group
        and source.chaining_strategy in _UPSTREAM
        and target.chaining_strategy is ChainingStrategy.ALWAYS
        and chaining_enabled
    )


def is_chainable_input(edge: StreamEdge, chaining_enabled: bool) -> bool:
    """Return whether a HEAD_WITH_INPUTS target may take the edge's source into its task, judging by the edge."""
    source, target = edge.source, edge.target
    return (
        target.chaining_strategy is ChainingStrategy.HEAD_WITH_INPUTS
        and edge.partitioner.is_pointwise
        and edge.exchange_mode is not StreamExchangeMode.BATCH
        and source.slot_sharing_group == target.slot_sharing_group
        and source.chaining_strategy in _UPSTREAM
        and chaining_enabled
    )


class Chaining:
    """The decision for every edge of a StreamGraph, made once."""

    def __init__(self, graph: StreamGraph) -> None:
        enabled = graph.chaining_enabled
        self._outputs = {
            edge for node in graph.nodes.values() for edge in node.out_edges if is_chainable(edge, enabled)
        }
        self._inputs: set[StreamEdge] = set()
        self._start: dict[int, StreamNode] = {}
        if any(node.chaining_strategy is ChainingStrategy.HEAD_WITH_INPUTS for node in graph.nodes.values()):
            self._chain_inputs(graph)

    def is_chained_output(self, edge: StreamEdge) -> bool:
        """Return whether the target goes into its source's task (Flink's rule)."""
        return edge in self._outputs

    def is_chained_input(self, edge: StreamEdge) -> bool:
        """Return whether the source goes into its target's task (the extension)."""
        return edge in self._inputs

    def start_of(self, node: StreamNode) -> StreamNode:
        """Return where the task of a chain's head starts: there, or at the operator that took the chain."""
        return self._start.get(node.id, node)

    def chained_inputs(self, node: StreamNode) -> list[StreamNode]:
        """Return the starts of the chains that the node took as inputs, in the order of its edges, each once."""
        if node.chaining_strategy is not ChainingStrategy.HEAD_WITH_INPUTS:
            return []
        starts = {edge.source.id: self._inner_start(edge.source) for edge in node.in_edges if edge in self._inputs}
        return list({start.id: start for start in starts.values()}.values())

    def _inner_start(self, node: StreamNode) -> StreamNode:
        """Go up Flink's chain to where it starts."""
        while len(node.in_edges) == 1 and node.in_edges[0] in self._outputs:
            node = node.in_edges[0].source
        return node

    def _chain_inputs(self, graph: StreamGraph) -> None:
        """Make each HEAD_WITH_INPUTS operator, upstream ones first, take the chains that feed it."""
        chains: dict[int, list[StreamNode]] = {}
        for node in graph.nodes.values():
            chains.setdefault(self._inner_start(node).id, []).append(node)
        for node in graph.nodes.values():
            if node.chaining_strategy is not ChainingStrategy.HEAD_WITH_INPUTS:
                continue
            candidates = [edge for edge in node.in_edges if is_chainable_input(edge, graph.chaining_enabled)]
            for start in {id(s): s for s in (self._inner_start(edge.source) for edge in candidates)}.values():
                members = set(chains[start.id])  # with what that chain took before
                if _leads_only_to(members, candidates):
                    self._inputs.update(edge for edge in candidates if edge.source in members)
                    chains[node.id] += members
                    self._start.update((member.id, node) for member in members)


def _leads_only_to(members: set[StreamNode], edges: Iterable[StreamEdge]) -> bool:
    """Return whether every edge that leaves the members is one of the edges."""
    allowed = set(edges)
    return all(edge.target in members or edge in allowed for member in members for edge in member.out_edges)
