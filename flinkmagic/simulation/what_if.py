"""Compares a real run with the same job on a cluster that one does not have."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from flinkmagic.amounts import count, duration
from flinkmagic.graph.access_execution_graph import AccessExecutionGraph
from flinkmagic.graph.execution_state import ExecutionState
from flinkmagic.graph.job_graph import JobGraph
from flinkmagic.scheduling.execution_graph_info import ExecutionGraphInfo
from flinkmagic.scheduling.job_status import JobStatus
from flinkmagic.simulation.gantt import gantt_svg
from flinkmagic.simulation.options import SimulationOptions
from flinkmagic.simulation.simulation import SimulationResult, simulate
from flinkmagic.simulation.timeline import Timeline, timeline_of, timeline_text

_FINISHED, _RUNNING, _DEPLOYING = ExecutionState.FINISHED, ExecutionState.RUNNING, ExecutionState.DEPLOYING

_SELDOM_MS = 1e9
"""An interval of heartbeats that no run reaches: they cost time, and only faults need them."""


@dataclass(frozen=True)
class MeasuredRun:
    """How long the parts of a real run took: what a simulation is calibrated with."""

    elapsed_ms: float
    slots: int
    task_ms: Mapping[int, float]
    """By execution vertex, from a task's launch to its end. One that is absent takes what the options say."""
    lead_ms: Mapping[str, float]
    """By the id of a job vertex how long the driver needed before its first task, although a slot was free."""
    tail_ms: float
    """How long the driver needed after the last task."""

    def calibrated(self, options: SimulationOptions) -> SimulationOptions:
        """Return options with these times. What messages and launches took is in the times already."""
        return replace(
            options,
            measured_ms=self.task_ms,
            lead_ms=self.lead_ms,
            tail_ms=self.tail_ms,
            initialization_ms=0.0,
            latency_ms=0.0,
        )

    def simulated_ms(self, job_graph: JobGraph, slots: int) -> float:
        """Return how long the job takes on some slots, when it is simulated."""
        plain = SimulationOptions(slots=slots, heartbeat_interval_ms=_SELDOM_MS, heartbeat_timeout_ms=2 * _SELDOM_MS)
        return simulate(job_graph, self.calibrated(plain)).timeline.makespan_ms

    def error(self, job_graph: JobGraph) -> float:
        """Return by which part the run as it was takes longer when it is simulated; negative if it takes less."""
        return self.simulated_ms(job_graph, self.slots) / self.elapsed_ms - 1.0 if self.elapsed_ms > 0 else 0.0

    def calibration(self, job_graph: JobGraph) -> str:
        """Return how long the run as it was takes when it is simulated, and took."""
        simulated = duration(self.simulated_ms(job_graph, self.slots))
        return (
            f"calibration: as it was, on {count(self.slots, 'slot')}: {simulated}, measured {duration(self.elapsed_ms)}"
        )


@dataclass(frozen=True)
class WhatIf:
    """Both runs: `real` as it was, `simulated` as it would be."""

    real: Timeline
    simulated: SimulationResult
    notes: tuple[str, ...] = ()
    """What is assumed of tasks that were not measured, and how well the simulation repeats the real run."""

    def to_svg(self) -> str:
        """Return both as SVG, one below the other on the same time scale, and the notes."""
        titles = [self._real_title, self._simulated_title]
        return gantt_svg(self.real, self.simulated.timeline, titles=titles, notes=self.notes)

    def to_text(self) -> str:
        """Return both as text, one after the other, and the notes."""
        parts = (self._real_title, timeline_text(self.real))
        simulated = (self._simulated_title, timeline_text(self.simulated.timeline))
        return "\n".join([*parts, "", *simulated, *self.notes])

    @property
    def _real_title(self) -> str:
        return f"{self.real.name}, as it was"

    @property
    def _simulated_title(self) -> str:
        return f"{self.real.name}, simulated on {count(len(self.simulated.timeline.slots), 'slot')}"


def what_if(
    job_graph: JobGraph, info: ExecutionGraphInfo, options: SimulationOptions, measured: MeasuredRun | None = None
) -> WhatIf:
    """Simulate a job on another cluster, with the times that its tasks really took.

    Parameters
    ----------
    info : ExecutionGraphInfo
        The run that really happened (`scheduler.request_job()`).
    options : SimulationOptions
        The other cluster. Tasks that did not finish in the real run take `task_ms`, and those that `task_ms_by_name`
        names take its time.
    measured : MeasuredRun, optional
        What is known of the run's tasks and driver; by default the times of its executions.
    """
    graph = info.archived_execution_graph
    if measured is None:
        used = replace(options, measured_ms=measured_work_ms(graph))
    else:
        used = measured.calibrated(options)
    notes = list(_assumed(graph, used))
    if measured is not None and info.job_status is JobStatus.FINISHED:
        notes.append(measured.calibration(job_graph))
    return WhatIf(timeline_of(info), simulate(job_graph, used), tuple(notes))


def measured_work_ms(graph: AccessExecutionGraph) -> dict[int, float]:
    """Return how long each finished task ran, by execution vertex: from RUNNING, else from deployment, to its end.

    One whose result was there before the run took no time.
    """
    found: dict[int, float] = {}
    for vertex in range(graph.n_vertices):
        times = graph.current_execution(vertex).timestamps
        if _FINISHED in times:
            found[vertex] = max(times[_FINISHED] - (_start_ms(times) or times[_FINISHED]), 0.0)
    return found


def _start_ms(times: Mapping[ExecutionState, float]) -> float | None:
    return times.get(_RUNNING, times.get(_DEPLOYING))


def _assumed(graph: AccessExecutionGraph, options: SimulationOptions) -> Iterator[str]:
    """Yield of how many tasks a run says nothing, and how long they take in a simulation instead."""
    told = options.task_ms_by_name.keys()
    asked = [vertex for one in graph.job_vertices if told.isdisjoint(one.job_vertex.names) for vertex in one.vertices]
    of = f"of {count(graph.n_vertices, 'task')}"
    unknown = sum(vertex not in (options.measured_ms or {}) for vertex in asked)
    if unknown:
        each = f"about {duration(options.task_ms)} is assumed of each"
        yield f"{unknown:,} {of} did not finish in that run, so their times are not known: {each}"
    executions = [graph.current_execution(vertex).timestamps for vertex in asked]
    reused = sum(_FINISHED in times and _start_ms(times) is None for times in executions)
    if reused:
        yield f"{reused:,} {of} did not run, because their results were there: here, too, they take no time"
