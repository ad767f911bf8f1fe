"""Finds the task of a vertex that ran on when the others were done, for skewed partitions and straggling tasks."""

from __future__ import annotations

from dataclasses import dataclass

from flinkmagic.deployment import TaskRecord
from flinkmagic.session.findings.facts import JobFacts, VertexFacts, median, ratio, took_ms

SLOW = 2.0
"""From so many times the median of the others on a task is slow."""


@dataclass(frozen=True)
class SlowestTask:
    """The last task of a vertex, if it was slow."""

    task: TaskRecord
    typical_ms: float
    """The median time of the others."""
    times: float
    """How many times that it took."""
    load: float
    """How many times the rows, or the bytes, that the others read it read: the larger of the two."""
    idle_ms: float
    """The time for which the job's slots had nothing to do meanwhile, since the vertex's other tasks were over."""


def slowest_task(job: JobFacts, vertex: VertexFacts) -> SlowestTask | None:
    """Return the task of a vertex that ended last, if it was slow and all others were over before."""
    if len(vertex.tasks) < 2:
        return None
    slow = max(vertex.tasks, key=lambda task: task.end_ms or 0.0)
    others = [task for task in vertex.tasks if task is not slow]
    typical_ms = median(map(took_ms, _alike(vertex, slow, others)))
    times = ratio(took_ms(slow), typical_ms)
    if times < SLOW:
        return None
    rows = ratio(slow.rows_in or 0, median(task.rows_in or 0 for task in others))
    size = ratio(slow.bytes_in or 0, median(task.bytes_in or 0 for task in others))
    alone_since = max(slow.start_ms, *(task.end_ms or 0.0 for task in others))
    return SlowestTask(slow, typical_ms, times, max(rows, size), job.idle_ms(alone_since, slow.end_ms or 0.0))


def _alike(vertex: VertexFacts, slow: TaskRecord, others: list[TaskRecord]) -> list[TaskRecord]:
    """Return the tasks to compare one with: the first one on each slot may wait until a Python worker has started."""
    if not any(one.start_of_python_ms for one in vertex.operators):
        return others
    ordered = sorted(vertex.tasks, key=lambda task: task.start_ms, reverse=True)
    first = {task.slot: task for task in ordered}
    warm = [task for task in others if task is not first[task.slot]]
    return warm if warm and slow is not first[slow.slot] else others
