"""The part of an ExecutionGraph that never changes: vertices, results, connections, regions.

A live graph and its archives share one.
"""

from __future__ import annotations

import numpy as np

from flinkmagic.errors.graph import CoLocationAcrossRegionsError
from flinkmagic.graph.execution_job_vertex import ExecutionJobVertex
from flinkmagic.graph.intermediate_result import Connection, IntermediateResult
from flinkmagic.graph.job_graph import CoLocationGroup, JobGraph
from flinkmagic.graph.pipelined_region import PipelinedRegions, pipelined_regions


class ExecutionTopology:
    """Arranges the job vertices' subtasks, partitions and groups along global indices."""

    def __init__(self, job_graph: JobGraph) -> None:
        self.job_graph = job_graph
        self.n_vertices = self.n_partitions = self.n_groups = 0
        job_vertices: list[ExecutionJobVertex] = []
        results: list[IntermediateResult] = []
        connections: list[Connection] = []
        by_dataset: dict[int, IntermediateResult] = {}
        for vertex in job_graph.vertices_in_topological_order():
            upper_bound = job_graph.config.upper_bound_max_parallelism
            job_vertex = ExecutionJobVertex(vertex, len(job_vertices), self.n_vertices, upper_bound)
            job_vertices.append(job_vertex)
            self.n_vertices += job_vertex.parallelism
            for edge in vertex.inputs:
                connection = Connection(edge, by_dataset[id(edge.source)], job_vertex, self.n_groups)
                connection.result.consumers.append(connection)
                job_vertex.inputs.append(connection)
                connections.append(connection)
                self.n_groups += connection.n_groups
            for dataset in vertex.produced:
                result = IntermediateResult(dataset, job_vertex, len(results), self.n_partitions)
                by_dataset[id(dataset)] = result
                job_vertex.produced_results.append(result)
                results.append(result)
                self.n_partitions += result.n_partitions
        self.job_vertices = tuple(job_vertices)
        self.results = tuple(results)
        self.connections = tuple(connections)
        self.by_id = {job_vertex.id: job_vertex for job_vertex in job_vertices}
        self.first_vertices = [job_vertex.first for job_vertex in job_vertices]
        self.pipelined_regions: PipelinedRegions = pipelined_regions(job_graph, self.job_vertices)
        for group in job_graph.co_location_groups:
            self._check_co_location(group)

    def _check_co_location(self, group: CoLocationGroup) -> None:
        """Refuse co-located subtasks of different regions: they could not be given one slot."""
        region_of = self.pipelined_regions.region_of
        members = [self.by_id[vertex.id] for vertex in group.vertices]
        regions = np.full(max(member.parallelism for member in members), -1, dtype=np.int64)
        for member in members:
            own = region_of[member.slice]
            known = regions[: member.parallelism]
            clash = np.flatnonzero((known >= 0) & (known != own))
            if clash.size:
                raise CoLocationAcrossRegionsError(member.name, int(clash[0]))
            known[:] = own
