"""Tells the real size of each exchange of a run, partition by partition."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from flinkmagic.graph.access_execution_graph import AccessExecutionGraph


@dataclass(frozen=True)
class EdgeBytes:
    """The real size of one exchange."""

    vertex_id: str
    """Of the job vertex that wrote it."""
    vertex: str
    """The name of the job vertex that wrote it."""
    consumers: tuple[str, ...]
    """The names of the job vertices that read it."""
    bytes_by_partition: tuple[int, ...]
    """Sums over all tasks of the vertex."""

    @property
    def total(self) -> int:
        return sum(self.bytes_by_partition)

    @property
    def widest(self) -> int:
        """The number of the largest partition, from 0."""
        return self.bytes_by_partition.index(max(self.bytes_by_partition))


def edges(graph: AccessExecutionGraph, partition_bytes: Mapping[str, tuple[int, ...]]) -> list[EdgeBytes]:
    """Return the exchanges whose sizes are known, in the order of the job.

    Parameters
    ----------
    partition_bytes : mapping of str to tuple of int
        By the id of a job vertex that wrote a shuffle, the bytes of each of its partitions.
    """
    return [
        EdgeBytes(
            vertex.id,
            vertex.name,
            tuple(consumer.name for consumer in vertex.consumers),
            partition_bytes[vertex.id],
        )
        for vertex in graph.job_vertices
        if partition_bytes.get(vertex.id)
    ]
