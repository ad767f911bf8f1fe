"""Marks the operators of stale cells in a graph's views."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from flinkmagic.display.snapshot import GraphView
    from flinkmagic.graph.job_graph import JobGraph
    from flinkmagic.graph.stream_graph import StreamGraph, StreamNode
    from flinkmagic.session.staleness.stale_cells import StaleCell

STALE = "stale"
"""The badge of a box that holds an operator of a stale cell."""


@dataclass(frozen=True)
class GraphMarks:
    """What is marked in a graph."""

    boxes: frozenset[str] = frozenset()
    """Ids of stream nodes and of job vertices."""
    notes: tuple[str, ...] = ()
    """A line for each stale cell: ``stale: cell 3: file data/x.csv changed``."""

    def on(self, views: tuple[GraphView, ...]) -> tuple[GraphView, ...]:
        """Return the views with their marks."""
        if not self.boxes:
            return views
        return tuple(
            replace(
                view,
                nodes=tuple(
                    replace(node, badges=(*node.badges, STALE)) if node.id in self.boxes else node
                    for node in view.nodes
                ),
            )
            for view in views
        )


NO_MARKS = GraphMarks()


def stale_marks(stream_graph: StreamGraph, job_graph: JobGraph, stale: Sequence[StaleCell]) -> GraphMarks:
    """Return the marks of the stale cells that define operators of a graph."""
    labels = {one.record.title: one for one in stale}

    def cell_of(node: StreamNode) -> str:
        return str((node.metadata or {}).get("cell") or "")

    boxes = {str(node.id) for node in stream_graph.nodes.values() if cell_of(node) in labels}
    found = {cell_of(node) for node in stream_graph.nodes.values()}
    for vertex in job_graph.vertices.values():
        if any(str(node.id) in boxes for node in vertex.operators):
            boxes.add(vertex.id)
    notes = [f"stale: {one.record.title}: {'; '.join(one.reasons)}" for label, one in labels.items() if label in found]
    return GraphMarks(frozenset(boxes), tuple(notes))
