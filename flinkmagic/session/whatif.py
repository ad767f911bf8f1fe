"""What a compiled graph would do on another cluster: `%flinksim`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from flinkmagic.graph.access_execution_graph import AccessExecutionGraph
from flinkmagic.graph.execution_state import ExecutionState
from flinkmagic.scheduling.scheduler_ng import ExecutionGraphInfo
from flinkmagic.session.compiled_graph import CompiledGraph
from flinkmagic.session.summary import counted
from flinkmagic.simulation.faults import Fault, parse_task_failure, parse_task_manager_loss
from flinkmagic.simulation.gantt import gantt_svg
from flinkmagic.simulation.simulation import SimulationOptions, SimulationResult, simulate
from flinkmagic.simulation.timeline import Timeline, timeline_of, timeline_text


@dataclass(frozen=True)
class WhatIf:
    """A graph on a virtual cluster, beside the run that really happened.

    Attributes
    ----------
    title : str
        The cluster, for people.
    result : SimulationResult
        What became of the job there.
    real : Timeline or None
        The graph's last run; None where it has not been run to its end.
    """

    title: str
    result: SimulationResult
    real: Timeline | None

    def text(self) -> str:
        """The simulated timeline, and both makespans."""
        lines = [timeline_text(self.result.timeline)]
        if self.real is not None:
            simulated, really = self.result.timeline.makespan_ms / 1000, self.real.makespan_ms / 1000
            lines.append(f"{self.title}: {simulated:.2f} s; the run that really happened: {really:.2f} s")
        return "\n".join(lines)

    def svg(self) -> str:
        """Gantt charts by slot, the real run's above where there is one."""
        if self.real is None:
            return gantt_svg(self.result.timeline, titles=[self.title])
        return gantt_svg(self.real, self.result.timeline, titles=["The run that really happened", self.title])


def what_if(
    graph: CompiledGraph,
    *,
    task_managers: int = 1,
    slots: int = 4,
    seed: int = 0,
    fail: Sequence[str] = (),
    lose_task_manager: Sequence[str] = (),
) -> WhatIf:
    """Run a compiled graph on a virtual cluster, on virtual time.

    After a real run tasks take as long as they took there; before it about a second each.

    Parameters
    ----------
    graph : CompiledGraph
        What to run.
    task_managers, slots : int
        How many executors there are, and how many slots each has.
    seed : int
        What chance follows: the same seed gives the same run.
    fail : sequence of str
        Failures, such as ``"Map:2@1.5s"``.
    lose_task_manager : sequence of str
        Losses, such as ``"tm-1@2s"``.

    Raises
    ------
    UserError
        Where a fault cannot be read, or names what the job has not.
    """
    faults: list[Fault] = [parse_task_failure(text) for text in fail]
    faults += [parse_task_manager_loss(text) for text in lose_task_manager]
    info = graph.jobs[-1].info() if graph.jobs and graph.jobs[-1].status.is_terminal else None
    options = SimulationOptions(
        task_managers=task_managers,
        slots=slots,
        seed=seed,
        measured_ms=None if info is None else _measured(info.archived_execution_graph),
        faults=faults,
    )
    title = f"{counted(task_managers, 'task manager')} with {counted(slots, 'slot')}"
    return WhatIf(title, simulate(graph.job_graph, options), None if info is None else _timeline(info))


def _measured(graph: AccessExecutionGraph) -> dict[int, float]:
    took_ms = graph.timestamps(ExecutionState.FINISHED) - graph.timestamps(ExecutionState.RUNNING)
    return {int(vertex): float(took_ms[vertex]) for vertex in np.flatnonzero(~np.isnan(took_ms))}


def _timeline(info: ExecutionGraphInfo) -> Timeline:
    return timeline_of(
        info.archived_execution_graph,
        name=info.job_name,
        job_status=info.job_status.value,
        end_ms=info.status_timestamps[info.job_status],
        restarts=info.number_of_restarts,
    )
