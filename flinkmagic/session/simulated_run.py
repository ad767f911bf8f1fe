"""What a compiled graph would do on another cluster: `%flinksim`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from flinkmagic.session.compiled_graph import CompiledGraph
from flinkmagic.simulation.faults import Fault, parse_task_failure, parse_task_manager_loss
from flinkmagic.simulation.gantt import gantt_svg
from flinkmagic.simulation.simulation import SimulationOptions, simulate
from flinkmagic.simulation.timeline import Timeline, timeline_text
from flinkmagic.simulation.what_if import what_if


@dataclass(frozen=True)
class SimulatedRun:
    """A run on a virtual cluster, ready to be shown: as text, and as Gantt charts by slot.

    Attributes
    ----------
    timeline : Timeline
        What ran when, and in which slot.
    text, svg : str
        The same for people; beside a run that really happened, where there was one.
    """

    timeline: Timeline
    text: str
    svg: str


def simulate_graph(
    graph: CompiledGraph,
    *,
    task_managers: int = 1,
    slots: int = 4,
    seed: int = 0,
    fail: Sequence[str] = (),
    lose_task_manager: Sequence[str] = (),
) -> SimulatedRun:
    """Run a compiled graph on a virtual cluster, on virtual time.

    After a real run tasks take as long as they took there, and that run is shown beside; before it they take about a
    second each.

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
    options = SimulationOptions(task_managers=task_managers, slots=slots, seed=seed, faults=faults)
    if graph.jobs and graph.jobs[-1].status.is_terminal:
        both = what_if(graph.job_graph, graph.jobs[-1].info(), options)
        return SimulatedRun(both.simulated.timeline, both.to_text(), both.to_svg())
    alone = simulate(graph.job_graph, options).timeline
    return SimulatedRun(alone, timeline_text(alone), gantt_svg(alone))
