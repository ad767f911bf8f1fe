"""Views of an ExecutionGraph, live or archived."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

import numpy as np

from flinkmagic import amounts
from flinkmagic.display.snapshot import ClusterView, GraphView, NodeView
from flinkmagic.display.views import job_edge, vertex_nodes
from flinkmagic.graph.access_execution_graph import AccessExecutionGraph
from flinkmagic.graph.execution_job_vertex import ExecutionJobVertex
from flinkmagic.graph.intermediate_result import Connection

MAX_PAIRS = 256
"""Connections of single subtasks are listed if an edge has at most this many."""


def states_by_vertex(graph: AccessExecutionGraph) -> dict[str, bytes]:
    """Return the states of each job vertex's subtasks, one byte each."""
    codes = graph.state.astype(np.uint8, copy=False)
    return {v.id: codes[v.slice].tobytes() for v in graph.job_vertices}


def execution_view(graph: AccessExecutionGraph) -> GraphView:
    """Return the view of the ExecutionGraph: each job vertex with its subtasks, and who reads from whom.

    Connections of single subtasks are in an edge's `pairs` if there are at most `MAX_PAIRS`; a larger edge represents
    all of them.
    """
    nodes = _nodes(graph)
    edges = tuple(replace(job_edge(one.job_edge), pairs=_pairs(one)) for one in graph.connections)
    summary = (
        f"{amounts.count(graph.n_vertices, 'execution vertex', 'execution vertices')} of "
        f"{amounts.count(len(nodes), 'job vertex', 'job vertices')}, "
        f"{amounts.count(graph.pipelined_regions.count, 'pipelined region')}"
    )
    return GraphView("execution", graph.job_graph.name, nodes, edges, (), summary)


def regions_view(graph: AccessExecutionGraph) -> GraphView:
    """Return the job vertices framed by the pipelined regions that their subtasks form.

    Vertices that share a region are in one frame. If each subtask is a region of its own, as over blocking edges, the
    frame of its vertex says so.
    """
    clusters = tuple(_region_frame(graph, index, group) for index, group in enumerate(_region_groups(graph)))
    counts = graph.pipelined_regions.count
    groups = len({vertex.job_vertex.slot_sharing_group.name for vertex in graph.job_vertices})
    summary = f"{amounts.count(counts, 'pipelined region')}, {amounts.count(groups, 'slot sharing group')}"
    edges = tuple(job_edge(connection.job_edge) for connection in graph.connections)
    return GraphView("regions", graph.job_graph.name, _nodes(graph), edges, clusters, summary)


def _nodes(graph: AccessExecutionGraph) -> tuple[NodeView, ...]:
    states = states_by_vertex(graph)
    width = {vertex.id: vertex.parallelism for vertex in graph.job_vertices}
    return tuple(
        replace(node, parallelism=width[node.id], states=states[node.id]) for node in vertex_nodes(graph.job_graph)
    )


def _pairs(connection: Connection) -> tuple[tuple[int, int], ...] | None:
    groups = range(connection.n_groups)
    ranges = [(connection.partition_range(group), connection.consumer_range(group)) for group in groups[:MAX_PAIRS]]
    if len(groups) > MAX_PAIRS or sum(len(p) * len(c) for p, c in ranges) > MAX_PAIRS:
        return None
    return tuple((p, c) for partitions, consumers in ranges for p in partitions for c in consumers)


def _region_groups(graph: AccessExecutionGraph) -> Iterable[list[ExecutionJobVertex]]:
    """Return job vertices that share a region, directly or through others, in topological order."""
    region_of = graph.pipelined_regions.region_of
    owner: dict[int, int] = {}
    groups: list[list[ExecutionJobVertex]] = []
    for vertex in graph.job_vertices:
        regions = np.unique(region_of[vertex.slice]).tolist()
        shared = sorted({owner[region] for region in regions if region in owner})
        if not shared:
            shared = [len(groups)]
            groups.append([])
        first, *others = shared
        groups[first].append(vertex)
        for other in others:
            groups[first] += groups[other]
            groups[other] = []
            owner.update({region: first for region, group in owner.items() if group == other})
        owner.update(dict.fromkeys(regions, first))
    return [sorted(group, key=lambda vertex: vertex.first) for group in groups if group]


def _region_frame(graph: AccessExecutionGraph, index: int, group: list[ExecutionJobVertex]) -> ClusterView:
    region_of = graph.pipelined_regions.region_of
    parts = [region_of[vertex.slice] for vertex in group]
    count = len(np.unique(np.concatenate(parts)))
    subtasks = sum(vertex.parallelism for vertex in group)
    # Short: arrows into the frame pass behind the label.
    label = amounts.count(count, "region")
    each = (("regions", "one for each subtask"),) if count == subtasks else ()
    if count < subtasks and len(group) > 1:
        label += f" over {len(group)} vertices"
    names = sorted({vertex.job_vertex.slot_sharing_group.name for vertex in group})
    return ClusterView(
        id=f"regions-{index}",
        label=label,
        nodes=tuple(vertex.id for vertex in group),
        vertex_id=group[0].id if len(group) == 1 else "",
        facts=(*each, ("subtasks", str(subtasks)), ("slot sharing group", ", ".join(names))),
    )
