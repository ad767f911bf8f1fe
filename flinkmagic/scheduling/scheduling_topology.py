"""Shows the execution graph to strategies: read-only, and flat enough to be walked fast.

Mirrors Flink's `SchedulingTopology`. Flink hands its strategies objects for vertices, partitions, groups
and regions. Here they are the execution graph's own numbers:

* an execution vertex is its global index, job vertices in topological order, subtasks ascending;
* a result partition is its global index, results in the order of their producers;
* a group joins one range of partitions with one range of consumer vertices of the same job edge. It is
  Flink's `ConsumedPartitionGroup` and `ConsumerVertexGroup` in one: every consumer in the range reads every
  partition in the range;
* a region is numbered by its first vertex, so that ascending numbers are Flink's topological order.

Rejected: numpy arrays throughout. A strategy looks at one vertex at a time, and reading single elements of an array
costs more than the work done with them. Arrays build the lists, lists answer the questions.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable

import numpy as np

from flinkmagic.graph.access_execution_graph import AccessExecutionGraph
from flinkmagic.graph.intermediate_result import Connection, IntermediateResult
from flinkmagic.graph.result_partition_type import ResultPartitionType

Edge = tuple[int, list[int] | None]
"""A job edge seen from one side: its first group, and each subtask's offset from it (None: all are 0)."""


class SchedulingTopology:
    """Vertices, partitions, groups and regions of one execution graph."""

    def __init__(self, graph: AccessExecutionGraph) -> None:
        self.results: tuple[IntermediateResult, ...] = graph.results
        self.connections: tuple[Connection, ...] = graph.connections
        self.n_vertices = graph.n_vertices
        self.n_partitions = graph.n_partitions
        self.n_groups = graph.n_groups
        self.n_regions = graph.pipelined_regions.count
        self.parallelisms = [job_vertex.parallelism for job_vertex in graph.job_vertices]
        self.first_vertex = [job_vertex.first for job_vertex in graph.job_vertices]
        self.job_vertex_of: list[int] = np.repeat(np.arange(len(self.parallelisms)), self.parallelisms).tolist()
        """By vertex, the index of its job vertex."""
        self._results_of = [job_vertex.produced_results for job_vertex in graph.job_vertices]
        self._result_by_id = {result.id: result for result in self.results}
        self._init_partitions()
        self._init_groups()
        self._init_regions(graph)

    def _init_partitions(self) -> None:
        self.producer_of: list[int] = []
        """By partition, the vertex that makes it."""
        self.result_of: list[int] = []
        """By partition, the index of the result that it belongs to."""
        for result in self.results:
            self.producer_of += range(result.producer.first, result.producer.first + result.n_partitions)
            self.result_of += [result.index] * result.n_partitions

    def _init_groups(self) -> None:
        self.partition_start: list[int] = []
        """By group, the start of its range of partitions."""
        self.partition_end: list[int] = []
        """By group, the end of its range of partitions, exclusive."""
        self.consumer_start: list[int] = []
        """By group, the start of its range of consumer vertices."""
        self.consumer_end: list[int] = []
        """By group, the end of its range of consumer vertices, exclusive."""
        self.result_of_group: list[int] = []
        """By group, the index of the result that its partitions belong to."""
        self.inputs_of: list[list[Edge]] = [[] for _ in self.parallelisms]
        """By job vertex, the edges that it reads, in the order of its inputs."""
        self.outputs_of: list[list[Edge]] = [[] for _ in self.parallelisms]
        """By job vertex, the edges that read it."""
        for connection in self.connections:
            result, consumer = connection.result, connection.consumer
            partitions, consumers = connection.partition_bounds, connection.consumer_bounds
            self.partition_start += (partitions[:-1] + result.first_partition).tolist()
            self.partition_end += (partitions[1:] + result.first_partition).tolist()
            self.consumer_start += (consumers[:-1] + consumer.first).tolist()
            self.consumer_end += (consumers[1:] + consumer.first).tolist()
            self.result_of_group += [result.index] * connection.n_groups
            by_consumer = by_producer = None
            if connection.n_groups > 1:
                numbers = np.arange(connection.n_groups)
                by_consumer = np.repeat(numbers, np.diff(consumers)).tolist()
                by_producer = np.repeat(numbers, np.diff(partitions)).tolist()
            self.inputs_of[consumer.index].append((connection.first_group, by_consumer))
            self.outputs_of[result.producer.index].append((connection.first_group, by_producer))
        reconsumable = [result.result_type.is_reconsumable for result in self.results]
        self.is_reconsumable_group = bytes(reconsumable[result] for result in self.result_of_group)

    def _init_regions(self, graph: AccessExecutionGraph) -> None:
        self.region_of: list[int] = graph.pipelined_regions.region_of.tolist()
        """By vertex, the number of its region."""
        vertices, starts = graph.pipelined_regions.by_region()
        self._region_vertices: list[int] = vertices.tolist()
        self._region_starts: list[int] = starts.tolist()

    def vertices_of(self, region: int) -> list[int]:
        """Return the vertices of a region, ascending."""
        return self._region_vertices[self._region_starts[region] : self._region_starts[region + 1]]

    def region_size(self, region: int) -> int:
        """Return how many vertices a region has."""
        return self._region_starts[region + 1] - self._region_starts[region]

    def type_of_group(self, group: int) -> ResultPartitionType:
        """Return the type of the result that a group belongs to."""
        return self.results[self.result_of_group[group]].result_type

    def consumed_groups(self, vertex: int) -> list[int]:
        """Return the groups that a vertex reads, one for each input, in the inputs' order."""
        return self._groups_of(vertex, self.inputs_of)

    def produced_groups(self, vertex: int) -> list[int]:
        """Return the groups that hold a partition made by a vertex, one for each consuming edge."""
        return self._groups_of(vertex, self.outputs_of)

    def _groups_of(self, vertex: int, edges_of: list[list[Edge]]) -> list[int]:
        job_vertex = self.job_vertex_of[vertex]
        subtask = vertex - self.first_vertex[job_vertex]
        return [first if offsets is None else first + offsets[subtask] for first, offsets in edges_of[job_vertex]]

    def produced_partitions(self, vertex: int) -> list[int]:
        """Return the partitions that a vertex makes, one for each of its results."""
        job_vertex = self.job_vertex_of[vertex]
        subtask = vertex - self.first_vertex[job_vertex]
        return [result.first_partition + subtask for result in self._results_of[job_vertex]]

    def partition_index(self, dataset_id: str, partition: int) -> int:
        """Return the global index of a result's partition."""
        result = self._result_by_id[dataset_id]
        if not 0 <= partition < result.n_partitions:
            raise IndexError(f"result {dataset_id} has {result.n_partitions} partitions, no number {partition}")
        return result.first_partition + partition

    def consumed_groups_of_region(self, region: int) -> list[int]:
        """Return the groups that a region's vertices read, each once."""
        return self._groups_of_region(region, self.inputs_of)

    def produced_groups_of_region(self, region: int) -> list[int]:
        """Return the groups that hold a partition made in a region, each once."""
        return self._groups_of_region(region, self.outputs_of)

    def _groups_of_region(self, region: int, edges_of: list[list[Edge]]) -> list[int]:
        vertices = self.vertices_of(region)
        if len(vertices) == 1:
            return self._groups_of(vertices[0], edges_of)
        found: dict[int, None] = {}
        position = 0
        while position < len(vertices):
            job_vertex = self.job_vertex_of[vertices[position]]
            first = self.first_vertex[job_vertex]
            end = bisect_left(vertices, first + self.parallelisms[job_vertex], position)
            for first_group, offsets in edges_of[job_vertex]:
                if offsets is None:
                    found[first_group] = None
                else:
                    found.update(
                        dict.fromkeys(first_group + offsets[vertex - first] for vertex in vertices[position:end])
                    )
            position = end
        return list(found)

    def consumer_regions(self, group: int) -> list[int]:
        """Return the regions that read a group, ascending."""
        start, end = self.consumer_start[group], self.consumer_end[group]
        if end - start == 1:
            return [self.region_of[start]]
        return sorted(set(self.region_of[start:end]))

    def producer_regions(self, group: int) -> list[int]:
        """Return the regions that make a group's partitions, ascending."""
        start, end = self.partition_start[group], self.partition_end[group]
        producer = self.producer_of[start]
        if end - start == 1:
            return [self.region_of[producer]]
        return sorted(set(self.region_of[producer : producer + end - start]))

    def regions_of(self, vertices: Iterable[int]) -> list[int]:
        """Return the regions of some vertices, ascending."""
        region_of = self.region_of
        return sorted({region_of[vertex] for vertex in vertices})
