"""The groups of a graph from the producers' side."""

from __future__ import annotations

from flinkmagic.graph.access_execution_graph import AccessExecutionGraph
from flinkmagic.graph.intermediate_result import ConsumedPartitionGroup


def consumer_groups(graph: AccessExecutionGraph, partition: int) -> list[ConsumedPartitionGroup]:
    """Who reads a partition, edge by edge."""
    result = graph.result_of(partition)
    number = partition - result.first_partition
    return [graph._topology.group(edge.first_group + edge.group_of_partition(number)) for edge in result.consumers]
