"""The execution graph as strategies see it: read-only, and flat enough to be walked fast.

Mirrors Flink's `SchedulingTopology`. Flink hands its strategies objects for vertices, partitions, groups
and regions. Here they are numbers:

* an execution vertex is its global index, job vertices in topological order, subtasks ascending;
* a result partition is its global index, results in the order of their producers;
* a group joins one range of partitions with one range of consumer vertices of the same job edge. It is
  Flink's `ConsumedPartitionGroup` and `ConsumerVertexGroup` in one: every consumer in the range reads every
  partition in the range;
* a region is numbered by its first vertex, so that ascending numbers are Flink's topological order.

Rejected: numpy arrays throughout. A strategy hears of one vertex at a time, and reading single elements of
an array costs more than the work done with them. Arrays build the lists, lists answer the questions.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

IntArray = npt.NDArray[np.int64]


@dataclass(frozen=True)
class ResultProperties:
    """What strategies ask of a result's type (Flink's `ResultPartitionType`)."""

    name: str
    must_be_pipelined_consumed: bool
    can_be_pipelined_consumed: bool
    is_reconsumable: bool
    is_released_by_scheduler: bool
    is_persistent: bool

    @property
    def is_blocking(self) -> bool:
        """Whether consumers must wait until the partitions are finished."""
        return not self.can_be_pipelined_consumed


@dataclass(frozen=True)
class Result:
    """One result of a job vertex (Flink's `IntermediateResult`): a range of partitions."""

    index: int
    dataset_id: str
    producer: int
    first_partition: int
    n_partitions: int
    properties: ResultProperties


@dataclass(frozen=True)
class Connection:
    """One job edge: which partitions of `result` its `consumer` job vertex reads, group by group.

    Group `k` joins the partitions from `partition_bounds[k]` up to `partition_bounds[k + 1]` (relative to
    the result) with the subtasks from `consumer_bounds[k]` up to `consumer_bounds[k + 1]`.
    """

    result: int
    consumer: int
    partition_bounds: Sequence[int]
    consumer_bounds: Sequence[int]
    first_group: int = field(default=-1)

    @property
    def n_groups(self) -> int:
        """How many groups the edge has; 1 where everything is connected with everything."""
        return len(self.partition_bounds) - 1


class SchedulingTopology:
    """Vertices, partitions, groups and regions of one execution graph.

    Parameters
    ----------
    parallelisms : sequence of int
        Of the job vertices, in topological order.
    results : sequence of Result
        In the order of their first partitions.
    connections : sequence of Connection
        The job edges; those of one consumer in the order of its inputs.
    region_of : sequence of int
        The region of each execution vertex, under any numbering.
    """

    def __init__(
        self,
        parallelisms: Sequence[int],
        results: Sequence[Result],
        connections: Sequence[Connection],
        region_of: Sequence[int] | IntArray,
    ) -> None:
        self.parallelisms = list(parallelisms)
        self.results = list(results)
        firsts = np.concatenate(([0], np.cumsum(np.asarray(parallelisms, dtype=np.int64))))
        self.first_vertex: list[int] = firsts[:-1].tolist()
        self.n_vertices = int(firsts[-1])
        self.job_vertex_of: list[int] = np.repeat(np.arange(len(self.parallelisms)), parallelisms).tolist()
        self.n_partitions = sum(result.n_partitions for result in results)
        self._init_partitions()
        self._init_groups(connections)
        self._init_regions(np.asarray(region_of, dtype=np.int64))

    def _init_partitions(self) -> None:
        sizes = [result.n_partitions for result in self.results]
        self.result_of: list[int] = np.repeat(np.arange(len(sizes)), sizes).tolist()
        self.producer_of: list[int] = [
            vertex
            for result in self.results
            for vertex in range(
                self.first_vertex[result.producer], self.first_vertex[result.producer] + result.n_partitions
            )
        ]
        self._result_by_id = {result.dataset_id: result for result in self.results}
        self.results_of_job_vertex: list[list[Result]] = [[] for _ in self.parallelisms]
        for result in self.results:
            self.results_of_job_vertex[result.producer].append(result)

    def _init_groups(self, connections: Sequence[Connection]) -> None:
        self.connections: list[Connection] = []
        self.result_of_group: list[int] = []
        self.partition_start: list[int] = []
        self.partition_end: list[int] = []
        self.consumer_start: list[int] = []
        self.consumer_end: list[int] = []
        self.inputs_of: list[list[tuple[int, list[int] | None]]] = [[] for _ in self.parallelisms]
        """By job vertex, for each input: its first group, and each subtask's offset from it (None is 0)."""
        self.outputs_of: list[list[tuple[int, list[int] | None]]] = [[] for _ in self.parallelisms]
        """By job vertex, for each consuming edge: its first group, and each subtask's offset from it."""
        for connection in connections:
            self._add_connection(connection)
        self.n_groups = len(self.result_of_group)

    def _add_connection(self, connection: Connection) -> None:
        first_group = len(self.result_of_group)
        result = self.results[connection.result]
        partitions = np.asarray(connection.partition_bounds, dtype=np.int64)
        consumers = np.asarray(connection.consumer_bounds, dtype=np.int64)
        n_groups = connection.n_groups
        first_consumer = self.first_vertex[connection.consumer]
        self.connections.append(
            Connection(
                connection.result,
                connection.consumer,
                connection.partition_bounds,
                connection.consumer_bounds,
                first_group,
            )
        )
        self.result_of_group += [result.index] * n_groups
        self.partition_start += (partitions[:-1] + result.first_partition).tolist()
        self.partition_end += (partitions[1:] + result.first_partition).tolist()
        self.consumer_start += (consumers[:-1] + first_consumer).tolist()
        self.consumer_end += (consumers[1:] + first_consumer).tolist()
        by_consumer = by_producer = None
        if n_groups > 1:
            by_consumer = np.repeat(np.arange(n_groups), np.diff(consumers)).tolist()
            by_producer = np.repeat(np.arange(n_groups), np.diff(partitions)).tolist()
        self.inputs_of[connection.consumer].append((first_group, by_consumer))
        self.outputs_of[result.producer].append((first_group, by_producer))

    def _init_regions(self, region_of: IntArray) -> None:
        _, first_seen, inverse = np.unique(region_of, return_index=True, return_inverse=True)
        rank = np.empty(len(first_seen), dtype=np.int64)
        rank[np.argsort(first_seen)] = np.arange(len(first_seen))
        renumbered = rank[inverse]
        order = np.argsort(renumbered, kind="stable")
        self.n_regions = len(first_seen)
        self.region_array: IntArray = renumbered
        self.region_of: list[int] = renumbered.tolist()
        self._region_vertices: list[int] = order.tolist()
        self._region_starts: list[int] = np.concatenate(
            ([0], np.cumsum(np.bincount(renumbered, minlength=self.n_regions)))
        ).tolist()

    @property
    def is_empty(self) -> bool:
        """Whether there is no vertex at all."""
        return self.n_vertices == 0

    def vertices_of(self, region: int) -> list[int]:
        """The vertices of a region, ascending."""
        return self._region_vertices[self._region_starts[region] : self._region_starts[region + 1]]

    def region_size(self, region: int) -> int:
        """How many vertices a region has."""
        return self._region_starts[region + 1] - self._region_starts[region]

    def properties_of_group(self, group: int) -> ResultProperties:
        """The properties of the result that a group belongs to."""
        return self.results[self.result_of_group[group]].properties

    def consumed_groups(self, vertex: int) -> list[int]:
        """The groups that a vertex reads, one for each input, in the inputs' order."""
        job_vertex = self.job_vertex_of[vertex]
        subtask = vertex - self.first_vertex[job_vertex]
        return [
            first if offsets is None else first + offsets[subtask]
            for first, offsets in self.inputs_of[job_vertex]
        ]

    def produced_groups(self, vertex: int) -> list[int]:
        """The groups that hold a partition made by a vertex, one for each consuming edge."""
        job_vertex = self.job_vertex_of[vertex]
        subtask = vertex - self.first_vertex[job_vertex]
        return [
            first if offsets is None else first + offsets[subtask]
            for first, offsets in self.outputs_of[job_vertex]
        ]

    def produced_partitions(self, vertex: int) -> list[int]:
        """The partitions that a vertex makes, one for each of its results."""
        job_vertex = self.job_vertex_of[vertex]
        subtask = vertex - self.first_vertex[job_vertex]
        return [result.first_partition + subtask for result in self.results_of_job_vertex[job_vertex]]

    def partition_index(self, dataset_id: str, partition: int) -> int:
        """The global index of a result's partition."""
        result = self._result_by_id[dataset_id]
        if not 0 <= partition < result.n_partitions:
            raise IndexError(f"result {dataset_id} has {result.n_partitions} partitions, no number {partition}")
        return result.first_partition + partition

    def groups_of_partition(self, partition: int) -> list[int]:
        """The groups that a partition belongs to, one for each job edge that reads its result."""
        return [
            group
            for group in self.produced_groups(self.producer_of[partition])
            if self.result_of_group[group] == self.result_of[partition]
        ]

    def consumed_groups_of_region(self, region: int) -> list[int]:
        """The groups that a region's vertices read, each once."""
        return self._groups_of_region(region, self.inputs_of)

    def produced_groups_of_region(self, region: int) -> list[int]:
        """The groups that hold a partition made in a region, each once."""
        return self._groups_of_region(region, self.outputs_of)

    def _groups_of_region(
        self, region: int, edges_of: list[list[tuple[int, list[int] | None]]]
    ) -> list[int]:
        vertices = self.vertices_of(region)
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
        """The regions that read a group, ascending."""
        start, end = self.consumer_start[group], self.consumer_end[group]
        if end - start == 1:
            return [self.region_of[start]]
        return sorted(set(self.region_of[start:end]))

    def producer_regions(self, group: int) -> list[int]:
        """The regions that make a group's partitions, ascending."""
        start, end = self.partition_start[group], self.partition_end[group]
        if end - start == 1:
            return [self.region_of[self.producer_of[start]]]
        producer = self.producer_of[start]
        return sorted(set(self.region_of[producer : producer + end - start]))

    def regions_of(self, vertices: Iterable[int]) -> list[int]:
        """The regions of some vertices, ascending."""
        region_of = self.region_of
        return sorted({region_of[vertex] for vertex in vertices})
