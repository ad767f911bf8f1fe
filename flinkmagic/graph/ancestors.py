"""Finds the part of a graph that some of its vertices need.

Flink runs a JobGraph as a whole. Here a run may be asked for some of the sinks: it runs this part, whose vertices keep
their ids, so that pictures of the whole show it and results of other runs are found.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TypeVar

from flinkmagic.graph.execution_job_vertex import ExecutionJobVertex
from flinkmagic.graph.job_graph import (
    CoLocationGroup,
    IntermediateDataSet,
    JobEdge,
    JobGraph,
    JobVertex,
    SlotSharingGroup,
)

_Group = TypeVar("_Group", SlotSharingGroup, CoLocationGroup)


def with_ancestors(job_graph: JobGraph, vertices: Iterable[str]) -> JobGraph:
    """Return a JobGraph of some vertices and of all that they read from, directly or through others."""
    needed, waiting = set[str](), list(vertices)
    while waiting:
        vertex_id = waiting.pop()
        if vertex_id not in needed:
            needed.add(vertex_id)
            waiting += [edge.producer.id for edge in job_graph.vertices[vertex_id].inputs]
    part = JobGraph(job_graph.name, job_graph.job_type, job_graph.config, job_graph.job_id)
    part.vertices = {one.id: _alone(one) for one in job_graph.vertices.values() if one.id in needed}
    _connect(job_graph, part)
    part.slot_sharing_groups = tuple(_in_part(job_graph.slot_sharing_groups, part))
    for sharing in part.slot_sharing_groups:
        for member in sharing.vertices:
            member.slot_sharing_group = sharing
    part.co_location_groups = tuple(_in_part(job_graph.co_location_groups, part))
    for co_location in part.co_location_groups:
        for member in co_location.vertices:
            member.co_location_group = co_location
    return part


def with_inputs(vertex: ExecutionJobVertex) -> list[ExecutionJobVertex]:
    """Return a job vertex, and then all that it reads from, directly or through others."""
    found, waiting = {vertex.index: vertex}, [vertex]
    while waiting:
        for connection in waiting.pop().inputs:
            producer = connection.result.producer
            if producer.index not in found:
                found[producer.index] = producer
                waiting.append(producer)
    return list(found.values())


def _alone(vertex: JobVertex) -> JobVertex:
    """Return a copy of a vertex without its edges and groups."""
    copy = JobVertex(vertex.id, vertex.name, vertex.head, vertex.operators, vertex.operator_ids, vertex.configs)
    copy.parallelism, copy.max_parallelism, copy.invokable = (
        vertex.parallelism, vertex.max_parallelism, vertex.invokable,
    )  # fmt: skip
    return copy


def _connect(whole: JobGraph, part: JobGraph) -> None:
    """Give the part the data sets that are read in it, and their edges, all in the order of the whole."""
    datasets: dict[int, IntermediateDataSet] = {}
    for vertex in part.vertices.values():
        for dataset in whole.vertices[vertex.id].produced:
            if not dataset.consumers or any(edge.target.id in part.vertices for edge in dataset.consumers):
                datasets[id(dataset)] = vertex.add_result(dataset.result_type, dataset.id)
    edges: dict[int, JobEdge] = {}
    for vertex in part.vertices.values():
        for edge in whole.vertices[vertex.id].inputs:
            source = datasets[id(edge.source)]
            edges[id(edge)] = vertex.consume(source, edge.pattern, edge.partitioner, edge.stream_edge)
    for vertex in part.vertices.values():
        for dataset in whole.vertices[vertex.id].produced:
            if id(dataset) in datasets:
                datasets[id(dataset)].consumers = [edges[id(one)] for one in dataset.consumers if id(one) in edges]


def _in_part(groups: Iterable[_Group], part: JobGraph) -> Iterator[_Group]:
    """Yield copies of the groups that have members in the part, with these alone."""
    for group in groups:
        members = [part.vertices[one.id] for one in group.vertices if one.id in part.vertices]
        if members:
            yield type(group)(group.name, members)
