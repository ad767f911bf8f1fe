"""Draws this process's loops in the stream graphs that read their results.

A loop runs on its line; the graph of the cell begins with the persistent result that it has left. The stream graph
shows the loop before that: Flink's head, step and tail, and the feedback edge. The job graph and the execution graph of
the cell do not contain it, because its jobs are its own, one for each superstep.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from flinkmagic.display.snapshot import ClusterView, EdgeView

if TYPE_CHECKING:
    from flinkmagic.display.snapshot import GraphView
    from flinkmagic.graph.stream_graph import StreamGraph, StreamNode

MOST = 100
"""At most so many loops are known. A loop holds no rows here, and costs some kilobytes."""


@dataclass(frozen=True)
class KnownLoop:
    """A loop that has ended."""

    view: GraphView
    """Of its stream graph."""
    told: str
    """Its name, how many supersteps there were, and how they ended."""


_KNOWN: OrderedDict[str, KnownLoop] = OrderedDict()


def remember(dataset_id: str, loop: KnownLoop) -> None:
    """Remember a loop by the persistent result that it has left."""
    _KNOWN[dataset_id] = loop
    while len(_KNOWN) > MOST:
        _KNOWN.popitem(last=False)


def with_loops(view: GraphView, stream_graph: StreamGraph) -> GraphView:
    """Return the view of a stream graph with the loops whose results it reads."""
    readers: dict[str, list[StreamNode]] = {}
    for node in stream_graph.nodes.values():
        if node.consumed_dataset_id in _KNOWN:
            readers.setdefault(str(node.consumed_dataset_id), []).append(node)
    for dataset_id, nodes in readers.items():
        view = _before(view, _KNOWN[dataset_id], dataset_id, [str(node.id) for node in nodes])
    return view


def _before(view: GraphView, loop: KnownLoop, prefix: str, readers: Iterable[str]) -> GraphView:
    """Put a loop before those that read its result."""
    [result] = [node.id for node in loop.view.nodes if node.role == "sink"]
    nodes = [replace(node, id=f"{prefix}/{node.id}") for node in loop.view.nodes if node.id != result]
    edges: list[EdgeView] = []
    for edge in loop.view.edges:
        targets = list(readers) if edge.target == result else [f"{prefix}/{edge.target}"]
        edges += [replace(edge, source=f"{prefix}/{edge.source}", target=target) for target in targets]
    frame = ClusterView(f"loop-{prefix}", loop.told, tuple(node.id for node in nodes))
    return replace(
        view,
        nodes=(*nodes, *view.nodes),
        edges=(*edges, *view.edges),
        clusters=(*view.clusters, frame),
        summary=f"{view.summary}, after {loop.told}",
    )
