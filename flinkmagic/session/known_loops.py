"""The loops of this process in the graphs that go on from their rows.

A loop runs on its line; the graph of the cell begins with the persistent result that it has left. In the stream graph,
what is known of the loop is drawn before it: Flink's head, step and tail, and the edge that feeds back. Its jobs are
its own, one for each superstep, so the job graph and the execution graph of the cell do not have it.
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
"""How many are known; as a loop holds no rows here, one costs some kilobytes."""


@dataclass(frozen=True)
class KnownLoop:
    """What is known of a loop that has ended.

    Attributes
    ----------
    view : GraphView
        Its stream graph.
    told : str
        Its name, how many supersteps there were, and how they ended.
    """

    view: GraphView
    told: str


_KNOWN: OrderedDict[str, KnownLoop] = OrderedDict()


def remember(dataset_id: str, loop: KnownLoop) -> None:
    """Know a loop by the persistent result that it has left."""
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
