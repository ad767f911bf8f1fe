"""What was uneven in a run: the widest partition of any exchange, spills, and the slowest task."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from flinkmagic.deployment import TaskRecord
from flinkmagic.display.labels import duration, size
from flinkmagic.graph.access_execution_graph import AccessExecutionGraph
from flinkmagic.graph.execution_state import ExecutionState

NOTABLE = 1.5
"""How many times the median something must be to be told of."""


@dataclass(frozen=True)
class EdgeBytes:
    """The real size of what went over one exchange.

    Attributes
    ----------
    vertex_id, vertex : str
        The job vertex that wrote it.
    consumers : tuple of str
        Those that read it, by name.
    bytes_by_partition : tuple of int
        Over all of the vertex's tasks.
    """

    vertex_id: str
    vertex: str
    consumers: tuple[str, ...]
    bytes_by_partition: tuple[int, ...]

    @property
    def total(self) -> int:
        return sum(self.bytes_by_partition)

    @property
    def widest(self) -> int:
        """The number of the largest partition, from 0."""
        return self.bytes_by_partition.index(max(self.bytes_by_partition))

    @property
    def median(self) -> float:
        return statistics.median(self.bytes_by_partition)

    @property
    def skew(self) -> float:
        """The largest partition to the median; infinite where more than half of them are empty."""
        most = max(self.bytes_by_partition)
        return most / self.median if self.median > 0 else float("inf") if most > 0 else 1.0


def edges(graph: AccessExecutionGraph, partition_bytes: Mapping[str, tuple[int, ...]]) -> list[EdgeBytes]:
    """The exchanges whose sizes are known, in the order of the job.

    Parameters
    ----------
    graph : AccessExecutionGraph
        The run's.
    partition_bytes : mapping of str to tuple of int
        By the id of a job vertex that wrote a shuffle, the bytes of each of its partitions.
    """
    return [
        EdgeBytes(
            vertex.id,
            vertex.name,
            tuple(
                connection.consumer.name for result in vertex.produced_results for connection in result.consumers
            ),
            partition_bytes[vertex.id],
        )
        for vertex in graph.job_vertices
        if partition_bytes.get(vertex.id)
    ]


def uneven_notes(found: Sequence[EdgeBytes], tasks: Iterable[TaskRecord]) -> list[str]:
    """A line each for the widest skew, for spills and for the slowest task, where there is one.

    Parameters
    ----------
    found : sequence of EdgeBytes
        The exchanges.
    tasks : iterable of TaskRecord
        All attempts.
    """
    done = [task for task in tasks if task.state is ExecutionState.FINISHED and task.role != "helper"]
    lines = [_skew_line(found), _spill_line(done), _slowest_line(done)]
    return [line for line in lines if line]


def _skew_line(found: Sequence[EdgeBytes]) -> str:
    uneven = [edge for edge in found if len(edge.bytes_by_partition) > 1 and edge.skew >= NOTABLE]
    if not uneven:
        return ""
    edge = max(uneven, key=lambda edge: (edge.skew, edge.bytes_by_partition[edge.widest]))
    against = f"{edge.skew:.1f} times the median of {size(edge.median)}"
    if edge.median == 0:
        against = "and more than half of the others are empty"
    return (
        f"widest skew: partition {edge.widest + 1} of {len(edge.bytes_by_partition)} of {edge.vertex} "
        f"has {size(edge.bytes_by_partition[edge.widest])}, {against}"
    )


def _spill_line(done: Sequence[TaskRecord]) -> str:
    spilled: dict[str, int] = {}
    for task in done:
        spilled[task.vertex] = spilled.get(task.vertex, 0) + (task.disk_spilled_bytes or 0)
    total = sum(spilled.values())
    if not total:
        return ""
    most = max(spilled, key=lambda vertex: spilled[vertex])
    return f"spilled to disk: {size(total)}, most of it by {most} ({size(spilled[most])})"


def _slowest_line(done: Sequence[TaskRecord]) -> str:
    """The task that took longest against the median of its own vertex."""
    by_vertex: dict[str, list[tuple[float, TaskRecord]]] = {}
    for task in done:
        if task.end_ms is not None:
            by_vertex.setdefault(task.vertex_id, []).append((task.end_ms - task.start_ms, task))
    slowest: tuple[float, float, TaskRecord] | None = None
    for timed in by_vertex.values():
        median = statistics.median(took for took, _ in timed)
        took, task = max(timed, key=lambda one: one[0])
        if len(timed) > 1 and took >= NOTABLE * median and (slowest is None or took > slowest[0]):
            slowest = (took, median, task)
    if slowest is None:
        return ""
    took, median, task = slowest
    return f"slowest task: {task.vertex}, subtask {task.subtask + 1}, took {duration(took)} (median {duration(median)})"
