"""Forecasts how long a job would take on more slots, or without skew, by simulation with the times of its tasks.

Source: Sparklens, which tells how long an application takes with more executors, from the times of its tasks.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from flinkmagic.amounts import duration
from flinkmagic.graph.access_execution_graph import AccessExecutionGraph
from flinkmagic.graph.execution_job_vertex import ExecutionJobVertex
from flinkmagic.graph.execution_state import ExecutionState
from flinkmagic.session.findings.facts import JobFacts, VertexFacts, took_ms
from flinkmagic.session.findings.rules import skewed_partition
from flinkmagic.simulation.what_if import MeasuredRun, measured_work_ms

MOST_TASKS = 5000
"""For a job of more tasks there is no forecast: a simulation would take seconds."""

LONGEST_MS = 1e9
"""Nor is there one for a job that takes more than eleven days: the clocks of a simulation tick all the time."""


@dataclass(frozen=True)
class Forecast:
    """How long a job would take on more slots, and without skew."""

    slots: int
    """All of the session's slots if the job had fewer, else twice as many as it had."""
    with_slots_s: float
    without_skew_s: float | None
    """If the tasks of each stage with a skewed partition took the same time; None if there is no such stage."""
    error: float
    """By which part the run as it was takes longer when it is simulated (negative: less)."""

    def __str__(self) -> str:
        text = f"with {self.slots} slots {duration(1000 * self.with_slots_s)}"
        if self.without_skew_s is not None:
            text += f", without the skew {duration(1000 * self.without_skew_s)}"
        return f"{text} (simulated; as it was: {round(100 * self.error):+d} %)"


def forecast(job: JobFacts, graph: AccessExecutionGraph) -> Forecast | None:
    """Return how long a job would take otherwise; None if it has not finished, has too many tasks, or took too long."""
    if not job.is_finished or not job.vertices or graph.n_vertices > MOST_TASKS:
        return None
    measured = measured_run(job, graph)
    work_ms = sum(measured.task_ms.values()) + sum(measured.lead_ms.values()) + measured.tail_ms
    if max(job.elapsed_ms, work_ms / measured.slots) > LONGEST_MS:
        return None
    slots = job.slots_of_session if job.slots_of_session > measured.slots else 2 * measured.slots
    skewed = {finding.vertex_id for finding in skewed_partition.RULE.find(job)}
    spread = measured_run(job, graph, spread=skewed) if skewed else None
    return Forecast(
        slots=slots,
        with_slots_s=measured.simulated_ms(graph.job_graph, slots) / 1000,
        without_skew_s=None if spread is None else spread.simulated_ms(graph.job_graph, measured.slots) / 1000,
        error=measured.error(graph.job_graph),
    )


def measured_run(job: JobFacts, graph: AccessExecutionGraph, *, spread: Collection[str] = ()) -> MeasuredRun:
    """Return how long the parts of a run took.

    Parameters
    ----------
    graph : AccessExecutionGraph
        Its vertices have the ids of those of `job`. Subtasks of a finished vertex for which no task has run take no
        time.
    spread : collection of str
        The ids of vertices whose work is spread evenly over their tasks.
    """
    task_ms = dict.fromkeys(range(graph.n_vertices), 0.0) if job.is_finished else {}
    # Where one stage is several vertices, Spark's tasks are those of the last one, and all have run as long.
    task_ms |= measured_work_ms(graph)
    for vertex in graph.job_vertices:
        facts = job.vertex.get(vertex.id)
        took = _took(job, facts, vertex) if facts is not None else {}
        if vertex.id in spread:
            took = dict.fromkeys(took, sum(took.values()) / len(took))
        if facts is not None and (job.is_finished or _is_finished(graph, vertex)):
            task_ms |= dict.fromkeys(vertex.vertices, 0.0)
        task_ms |= {vertex.first + subtask: ms for subtask, ms in took.items()}
    last_ms = max((vertex.end_ms for vertex in job.vertices), default=job.started_ms)
    return MeasuredRun(
        elapsed_ms=job.elapsed_ms,
        slots=_slots(job),
        task_ms=task_ms,
        lead_ms={vertex.id: _lead_ms(job, vertex) for vertex in job.vertices},
        tail_ms=max(0.0, job.ended_ms - last_ms),
    )


def _is_finished(graph: AccessExecutionGraph, vertex: ExecutionJobVertex) -> bool:
    return all(graph.state_of(subtask) is ExecutionState.FINISHED for subtask in vertex.vertices)


def _slots(job: JobFacts) -> int:
    """Return how many slots a job had. Spark does not know how many it may use: a stage has all of the session's."""
    most = job.most_tasks if not job.slots_of_session else min(job.most_tasks, job.slots_of_session)
    return max(job.slots, most)


def _lead_ms(job: JobFacts, vertex: VertexFacts) -> float:
    """Return how long slots were free until a vertex's first task, although all that it reads was there."""
    ready_ms = max((producer.end_ms for producer in job.producers(vertex)), default=job.started_ms)
    return job.free_ms(ready_ms, vertex.start_ms)


def _took(job: JobFacts, facts: VertexFacts, vertex: ExecutionJobVertex) -> dict[int, float]:
    """Return how long each subtask of a vertex took, with its failed attempts, and its part of the time between tasks.

    Where Spark has divided a partition there are more tasks than subtasks: a subtask then has several.
    """
    tasks = facts.tasks
    launched_ms = max((task.start_ms for task in tasks), default=0.0)
    between_ms = job.idle_ms(facts.start_ms, launched_ms) / len(tasks) if len(tasks) > job.slots else 0.0
    took: dict[int, float] = {}
    for task in tasks:
        subtask = task.subtask % vertex.parallelism
        took[subtask] = took.get(subtask, 0.0) + took_ms(task) + between_ms
    for task in facts.attempts:
        subtask = task.subtask % vertex.parallelism
        if task.state is ExecutionState.FAILED and not task.speculative and subtask in took:
            took[subtask] += took_ms(task)
    return took
