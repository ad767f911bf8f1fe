"""Finds what was uneven in a run: the widest partition of any exchange, spills, and the slowest task."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from flinkmagic.amounts import duration, size
from flinkmagic.deployment import TaskRecord
from flinkmagic.graph.access_execution_graph import AccessExecutionGraph
from flinkmagic.graph.execution_state import ExecutionState

NOTABLE = 1.5
"""Something is reported from so many times the median on."""

NOTABLE_MS = 1000.0
NOTABLE_SHARE = 0.05
"""How much longer than the median a task must take to be reported: in all, and as a part of the job's time."""


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

    @property
    def median(self) -> float:
        return statistics.median(self.bytes_by_partition)

    @property
    def skew(self) -> float:
        """The ratio of the largest partition to the median; infinite if more than half of the partitions are empty."""
        most = max(self.bytes_by_partition)
        return most / self.median if self.median > 0 else float("inf") if most > 0 else 1.0


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
            tuple(connection.consumer.name for result in vertex.produced_results for connection in result.consumers),
            partition_bytes[vertex.id],
        )
        for vertex in graph.job_vertices
        if partition_bytes.get(vertex.id)
    ]


def uneven_notes(found: Sequence[EdgeBytes], tasks: Iterable[TaskRecord]) -> list[str]:
    """Return a line each for the widest skew and the slowest task, if they cost time, and for spills.

    They cost time if the slowest task of a vertex took longer than the median of its tasks by at least a second and at
    least a twentieth of the job: for that long it ran after most of them had ended.

    Parameters
    ----------
    tasks : iterable of TaskRecord
        All attempts.
    """
    done = [task for task in tasks if task.state is ExecutionState.FINISHED and task.role != "helper"]
    lost = _lost(done)
    lines = [_skew_line(found, lost), _spill_line(done), _slowest_line(lost)]
    return [line for line in lines if line]


@dataclass(frozen=True)
class _Lost:
    """The time that a vertex lost through its slowest task."""

    task: TaskRecord
    took_ms: float
    median_ms: float


def _lost(done: Sequence[TaskRecord]) -> dict[str, _Lost]:
    """Return the losses that are worth reporting, by the name of their vertex."""
    by_vertex: dict[str, list[tuple[float, TaskRecord]]] = {}
    times = [(task.start_ms, task.end_ms, task) for task in done if task.end_ms is not None]
    for start, end, task in times:
        by_vertex.setdefault(task.vertex_id, []).append((end - start, task))
    job_ms = max((end for _, end, _ in times), default=0.0) - min((start for start, _, _ in times), default=0.0)
    found = {}
    for timed in by_vertex.values():
        median = statistics.median(took for took, _ in timed)
        took, task = max(timed, key=lambda one: one[0])
        if took >= NOTABLE * median and took - median >= max(NOTABLE_MS, NOTABLE_SHARE * job_ms):
            found[task.vertex] = _Lost(task, took, median)
    return found


def _skew_line(found: Sequence[EdgeBytes], lost: Mapping[str, _Lost]) -> str:
    uneven = [
        edge
        for edge in found
        if len(edge.bytes_by_partition) > 1 and edge.skew >= NOTABLE and not lost.keys().isdisjoint(edge.consumers)
    ]
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


def _slowest_line(lost: Mapping[str, _Lost]) -> str:
    """Return a line for the slowest task among those that lost time."""
    if not lost:
        return ""
    one = max(lost.values(), key=lambda each: each.took_ms)
    return (
        f"slowest task: {one.task.vertex}, subtask {one.task.subtask + 1}, took {duration(one.took_ms)} "
        f"(median {duration(one.median_ms)})"
    )
