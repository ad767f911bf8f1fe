"""Reports on a run: its tasks, the sizes of its stages' shuffles, and what ran differently from the plan."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from flinkmagic.amounts import count, size
from flinkmagic.deployment import TaskRecord
from flinkmagic.deployment.failures import short_reason
from flinkmagic.display import TaskView
from flinkmagic.display.costs import VertexCost
from flinkmagic.display.measures import Facts
from flinkmagic.graph.access_execution_graph import AccessExecutionGraph
from flinkmagic.graph.execution_state import ExecutionState
from flinkmagic.planning.adaptive_stages import AS_PLANNED, JoinChoice, StageAdaptation
from flinkmagic.session.edge_bytes import EdgeBytes


def task_views(tasks: Iterable[TaskRecord]) -> list[TaskView]:
    """Return the attempts of tasks as views show them, without those of helpers."""
    return [
        TaskView(
            vertex_id=task.vertex_id,
            subtask=task.subtask,
            attempt=task.attempt,
            state=task.state.name,
            slot=task.slot,
            executor=task.executor,
            start_ms=task.start_ms,
            end_ms=task.end_ms,
            rows_in=task.rows_in,
            rows_out=task.rows_out,
            bytes_in=task.bytes_in,
            bytes_out=task.bytes_out,
            error=short_reason(task.error) if task.error else None,
        )
        for task in tasks
        if task.role != "helper"
    ]


def costs(tasks: Iterable[TaskView]) -> dict[str, VertexCost]:
    """Return the costs of the tasks that have finished, by job vertex."""
    found: dict[str, tuple[float, float, list[int | None]]] = {}
    for task in tasks:
        start, end = task.start_ms, task.end_ms
        if task.state != ExecutionState.FINISHED.name or start is None or end is None:
            continue
        numbers = (task.rows_in, task.rows_out, task.bytes_in, task.bytes_out)
        first, last, sums = found.get(task.vertex_id, (start, end, [None] * len(numbers)))
        added = [one if more is None else (one or 0) + more for one, more in zip(sums, numbers, strict=True)]
        found[task.vertex_id] = (min(first, start), max(last, end), added)
    return {vertex: VertexCost(last - first, *sums) for vertex, (first, last, sums) in found.items()}


def run_facts(
    graph: AccessExecutionGraph, found: Sequence[EdgeBytes], adaptations: Mapping[str, StageAdaptation]
) -> dict[str, Facts]:
    """Return readable names and values by the id of a job vertex.

    Parameters
    ----------
    found : sequence of EdgeBytes
        Only exchanges that are written.
    adaptations : mapping of str to StageAdaptation
        By the id of a job vertex, how its stage's run differed from the plan.
    """
    facts: dict[str, list[tuple[str, str]]] = {}
    for edge in found:
        facts.setdefault(edge.vertex_id, []).append(("shuffle written", _written(edge)))
    for vertex in graph.job_vertices:
        how = adaptations.get(vertex.id, AS_PLANNED)
        told = facts.setdefault(vertex.id, [])
        told += [("join", _join(choice)) for choice in how.joins]
        if how.added_files:
            told.append(("reads", count(how.added_files, "added file")))
        elif how.tasks is not None:
            told.append(("tasks", f"{how.tasks}, for {count(vertex.parallelism, 'partition')} that turned out small"))
    return {vertex: tuple(told) for vertex, told in facts.items() if told}


def adaptation_notes(graph: AccessExecutionGraph, adaptations: Mapping[str, StageAdaptation]) -> list[str]:
    """Return a line for each join that ran differently from the plan, and one for all stages with fewer tasks."""
    lines = []
    merged = saved = 0
    for vertex in graph.job_vertices:
        how = adaptations.get(vertex.id, AS_PLANNED)
        lines += [f"{vertex.name}: {_join(choice)}" for choice in how.joins]
        if how.tasks is not None and not how.added_files:
            merged, saved = merged + 1, saved + vertex.parallelism - how.tasks
    if merged:
        lines.append(f"small partitions read together: {count(merged, 'stage')}, {count(saved, 'task')} fewer")
    return lines


def _written(edge: EdgeBytes) -> str:
    number = len(edge.bytes_by_partition)
    if number == 1:
        return size(edge.total)
    widest = f"the widest, {edge.widest + 1}, has {size(max(edge.bytes_by_partition))}"
    return f"{size(edge.total)} in {number} partitions; {widest}"


def _join(choice: JoinChoice) -> str:
    return f"{choice.planned} run as ShuffledHashJoin: its {choice.side} side has only {size(choice.bytes)}"
