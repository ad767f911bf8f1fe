"""The groups of a graph from both sides, by its connections: what a vertex reads, and who reads a partition."""

from __future__ import annotations

from typing import NamedTuple

from flinkmagic.graph.access_execution_graph import AccessExecutionGraph
from flinkmagic.graph.intermediate_result import Connection, IntermediateResult
from flinkmagic.graph.result_partition_type import ResultPartitionType


class Group(NamedTuple):
    """Partitions that the same consumers read; indices are global."""

    connection: Connection
    partitions: range
    consumers: range

    @classmethod
    def of(cls, connection: Connection, number: int) -> Group:
        partitions, consumers = connection.partition_range(number), connection.consumer_range(number)
        return cls(
            connection,
            shifted(partitions, connection.result.first_partition),
            shifted(consumers, connection.consumer.first),
        )

    @property
    def result_type(self) -> ResultPartitionType:
        return self.connection.result.result_type

    @property
    def producers(self) -> range:
        result = self.connection.result
        return shifted(self.partitions, result.producer.first - result.first_partition)


def shifted(numbers: range, by: int) -> range:
    return range(numbers.start + by, numbers.stop + by)


def consumed_groups(graph: AccessExecutionGraph, vertex: int) -> list[Group]:
    """What a vertex reads, input by input."""
    job_vertex = graph.job_vertex_of(vertex)
    subtask = vertex - job_vertex.first
    return [Group.of(edge, edge.group_of_consumer(subtask)) for edge in job_vertex.inputs]


def consumer_groups(graph: AccessExecutionGraph, partition: int) -> list[Group]:
    """Who reads a partition, edge by edge."""
    result = result_of(graph, partition)
    number = partition - result.first_partition
    return [Group.of(edge, edge.group_of_partition(number)) for edge in result.consumers]


def result_of(graph: AccessExecutionGraph, partition: int) -> IntermediateResult:
    """The result that a partition belongs to."""
    [result] = [one for one in graph.results if 0 <= partition - one.first_partition < one.n_partitions]
    return result
