"""Compares a real run with the same job on a cluster that one does not have."""

from __future__ import annotations

from dataclasses import dataclass, replace

from flinkmagic.amounts import count
from flinkmagic.graph.access_execution_graph import AccessExecutionGraph
from flinkmagic.graph.execution_state import ExecutionState
from flinkmagic.graph.job_graph import JobGraph
from flinkmagic.scheduling.scheduler_ng import ExecutionGraphInfo
from flinkmagic.simulation.gantt import gantt_svg
from flinkmagic.simulation.options import SimulationOptions
from flinkmagic.simulation.simulation import SimulationResult, simulate
from flinkmagic.simulation.timeline import Timeline, timeline_of, timeline_text

_FINISHED, _RUNNING, _DEPLOYING = ExecutionState.FINISHED, ExecutionState.RUNNING, ExecutionState.DEPLOYING


@dataclass(frozen=True)
class WhatIf:
    """Both runs: `real` as it was, `simulated` as it would be."""

    real: Timeline
    simulated: SimulationResult

    def to_svg(self) -> str:
        """Return both as SVG, one below the other on the same time scale."""
        return gantt_svg(self.real, self.simulated.timeline, titles=[self._real_title, self._simulated_title])

    def to_text(self) -> str:
        """Return both as text, one after the other."""
        parts = (self._real_title, timeline_text(self.real))
        return "\n".join([*parts, "", self._simulated_title, timeline_text(self.simulated.timeline)])

    @property
    def _real_title(self) -> str:
        return f"{self.real.name}, as it was"

    @property
    def _simulated_title(self) -> str:
        return f"{self.real.name}, simulated on {count(len(self.simulated.timeline.slots), 'slot')}"


def what_if(job_graph: JobGraph, info: ExecutionGraphInfo, options: SimulationOptions) -> WhatIf:
    """Simulate a job on another cluster, with the times that its tasks really took.

    Parameters
    ----------
    info : ExecutionGraphInfo
        The run that really happened (`scheduler.request_job()`).
    options : SimulationOptions
        The other cluster. Tasks that did not finish in the real run take `task_ms`, and those that `task_ms_by_name`
        names take its time.
    """
    measured = measured_work_ms(info.archived_execution_graph)
    return WhatIf(real_timeline(info), simulate(job_graph, replace(options, measured_ms=measured)))


def real_timeline(info: ExecutionGraphInfo) -> Timeline:
    """Return the timeline of a run; slots are numbered so that no two allocations overlap in one."""
    end_ms = info.status_timestamps[info.job_status] if info.job_status.is_terminal else info.at_ms
    return timeline_of(
        info.archived_execution_graph,
        name=info.job_name,
        job_status=str(info.job_status),
        end_ms=end_ms,
        restarts=info.number_of_restarts,
    )


def measured_work_ms(graph: AccessExecutionGraph) -> dict[int, float]:
    """Return how long each finished task ran, by execution vertex: from RUNNING, else from deployment, to its end."""
    found: dict[int, float] = {}
    for vertex in range(graph.n_vertices):
        times = graph.current_execution(vertex).timestamps
        start_ms = times.get(_RUNNING, times.get(_DEPLOYING))
        if _FINISHED in times and start_ms is not None:
            found[vertex] = max(times[_FINISHED] - start_ms, 0.0)
    return found
