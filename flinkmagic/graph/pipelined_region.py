"""Pipelined regions: vertices that must run simultaneously, of the JobGraph and of the ExecutionGraph."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from flinkmagic.graph.job_graph import JobGraph

if TYPE_CHECKING:
    from flinkmagic.graph.execution_job_vertex import ExecutionJobVertex
    from flinkmagic.graph.intermediate_result import Connection

IntArray = npt.NDArray[np.int64]


def logical_pipelined_regions(job_graph: JobGraph) -> dict[str, int]:
    """Assign numbers to logical pipelined regions, by job vertex id, in topological order of their first vertices.

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


class PipelinedRegions:
    """Which region each execution vertex is in. Mirrors ``DefaultSchedulingPipelinedRegion``s, as columns."""

    def __init__(self, region_of: npt.NDArray[np.int32], count: int) -> None:
        self.region_of = region_of
        """By execution vertex; regions are numbered by their first vertex."""
        self.count = count
        """How many regions there are."""
        self._order: IntArray | None = None
        self._starts: IntArray | None = None

    def vertices_of(self, region: int) -> IntArray:
        """Return the execution vertices of a region, ascending."""
        order, starts = self.by_region()
        return order[starts[region] : starts[region + 1]]

    def by_region(self) -> tuple[IntArray, IntArray]:
        """Return the execution vertices region by region, and where in them each region begins, and the last ends."""
        if self._order is None or self._starts is None:
            self._order = np.argsort(self.region_of, kind="stable")
            sizes = np.bincount(self.region_of, minlength=self.count)
            self._starts = np.concatenate((np.zeros(1, dtype=np.int64), np.cumsum(sizes)))
        return self._order, self._starts


def pipelined_regions(job_graph: JobGraph, job_vertices: Sequence[ExecutionJobVertex]) -> PipelinedRegions:
    """Find the regions of execution vertices.

    Mirrors ``DefaultExecutionTopology`` and ``SchedulingPipelinedRegionComputeUtil``. They are searched within each
    logical region: one with an all-to-all edge inside it, of any type, is one region; elsewhere regions are what
    pipelined edges hold together, merged if they would wait for each other.
    """
    logical = logical_pipelined_regions(job_graph)
    members: dict[int, list[ExecutionJobVertex]] = {}
    for job_vertex in job_vertices:
        members.setdefault(logical[job_vertex.id], []).append(job_vertex)
    region_of = np.empty(sum(job_vertex.parallelism for job_vertex in job_vertices), dtype=np.int32)
    count = 0
    for vertices in members.values():
        inner = [c for v in vertices for c in v.inputs if logical[c.result.producer.id] == logical[v.id]]
        count += _fill(region_of, count, vertices, inner)
    return PipelinedRegions(*_number_by_first_vertex(region_of, count))


def _fill(
    region_of: npt.NDArray[np.int32],
    first_number: int,
    vertices: Sequence[ExecutionJobVertex],
    inner: Sequence[Connection],
) -> int:
    """Write the regions of one logical region, numbered from ``first_number``; return their number."""
    width = vertices[0].parallelism
    if any(connection.is_all_to_all for connection in inner):
        for vertex in vertices:
            region_of[vertex.slice] = first_number
        return 1
    if all(vertex.parallelism == width for vertex in vertices):
        # Pointwise between equal parallelisms joins equal subtasks only.
        for vertex in vertices:
            region_of[vertex.slice] = np.arange(first_number, first_number + width)
        return width
    return _fill_by_components(region_of, first_number, vertices, inner)


def _fill_by_components(
    region_of: npt.NDArray[np.int32],
    first_number: int,
    vertices: Sequence[ExecutionJobVertex],
    inner: Sequence[Connection],
) -> int:
    offsets: dict[int, int] = {}
    size = 0
    for vertex in vertices:
        offsets[vertex.index] = size
        size += vertex.parallelism
    pipelined = [c for c in inner if c.result.result_type.must_be_pipelined_consumed]
    others = [c for c in inner if not c.result.result_type.must_be_pipelined_consumed]
    count, labels = _components(size, [_links(c, offsets) for c in pipelined], directed=False)
    if others:
        # Regions that wait for each other's results cannot be scheduled one after the other: they are one.
        links = [labels[_links(connection, offsets)] for connection in others]
        count, merged = _components(count, links, directed=True)
        labels = merged[labels]
    for vertex in vertices:
        start = offsets[vertex.index]
        region_of[vertex.slice] = labels[start : start + vertex.parallelism] + first_number
    return count


def _links(connection: Connection, offsets: dict[int, int]) -> IntArray:
    """Return producers and consumers, one column for each partition that a consumer reads (pointwise: few)."""
    wide = max(connection.n_partitions, connection.n_consumers)
    index = np.arange(wide, dtype=np.int64)
    if connection.n_partitions >= connection.n_consumers:
        producers, consumers = index, ((index + 1) * connection.n_groups - 1) // connection.n_partitions
    else:
        producers, consumers = index * connection.n_groups // connection.n_consumers, index
    return np.stack(
        (producers + offsets[connection.result.producer.index], consumers + offsets[connection.consumer.index])
    )


def _components(size: int, links: Sequence[IntArray], *, directed: bool) -> tuple[int, IntArray]:
    from scipy.sparse import coo_matrix
    from scipy.sparse.csgraph import connected_components

    sources, targets = np.concatenate(links, axis=1)
    matrix = coo_matrix((np.ones(len(sources), dtype=np.int8), (sources, targets)), shape=(size, size))
    count, labels = connected_components(matrix, directed=directed, connection="strong" if directed else "weak")
    return count, labels


def _number_by_first_vertex(region_of: npt.NDArray[np.int32], count: int) -> tuple[npt.NDArray[np.int32], int]:
    first = np.empty(count, dtype=np.int64)
    first[region_of[::-1]] = np.arange(len(region_of) - 1, -1, -1)  # the last write, of the first vertex, stays
    rank = np.empty(count, dtype=np.int32)
    rank[np.argsort(first)] = np.arange(count, dtype=np.int32)
    return rank[region_of], count
