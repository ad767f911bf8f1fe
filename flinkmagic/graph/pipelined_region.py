"""Pipelined regions: vertices that must run side by side, of the JobGraph and of the ExecutionGraph."""

from __future__ import annotations

from flinkmagic.graph.job_graph import JobGraph


def logical_pipelined_regions(job_graph: JobGraph) -> dict[str, int]:
    """Number the logical pipelined regions, by job vertex id, in the order of their first vertex in topological order.

    Mirrors ``DefaultLogicalTopology`` and ``LogicalPipelinedRegionComputeUtil``: vertices are joined over results that
    must be consumed pipelined. Cycles between logical regions are not merged.
    """
    parent = {vertex_id: vertex_id for vertex_id in job_graph.vertices}

    def root(vertex_id: str) -> str:
        while parent[vertex_id] != vertex_id:
            parent[vertex_id] = vertex_id = parent[parent[vertex_id]]
        return vertex_id

    for edge in job_graph.edges:
        if edge.result_type.must_be_pipelined_consumed:
            parent[root(edge.target.id)] = root(edge.producer.id)
    numbers: dict[str, int] = {}
    return {
        vertex.id: numbers.setdefault(root(vertex.id), len(numbers))
        for vertex in job_graph.vertices_in_topological_order()
    }
