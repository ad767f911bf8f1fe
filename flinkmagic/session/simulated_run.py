"""Simulates a compiled graph on another cluster (`%flinksim`)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from flinkmagic.session.compiled_graph import CompiledGraph
from flinkmagic.simulation.gantt import gantt_svg
from flinkmagic.simulation.options import simulation_options
from flinkmagic.simulation.simulation import simulate
from flinkmagic.simulation.timeline import Timeline, timeline_text
from flinkmagic.simulation.what_if import what_if


@dataclass(frozen=True)
class SimulatedRun:
    """A run on a virtual cluster, ready to be shown: as text, and as Gantt charts by slot."""

    timeline: Timeline
    text: str
    svg: str
    """Shows the simulated run, as `text` does, beside a real run if there was one."""


def simulate_graph(graph: CompiledGraph, *, task_seconds: Sequence[str] = (), **asked: Any) -> SimulatedRun:
    """Run a compiled graph on a virtual cluster, on virtual time.

    After a real run tasks and driver take as long as they did there, and that run is shown beside the simulated one,
    with how well the simulation repeats it, unless `task_seconds` gives a time for all tasks. Before a real run tasks
    take about a second each, and so do those that did not finish in it, which is told.

    Parameters
    ----------
    task_seconds : sequence of str
        ``"2"`` for all tasks, ``"Map=2"`` for those of a vertex or operator.
    **asked
        Other arguments of `simulation_options`.

    Raises
    ------
    UserError
        If a fault cannot be read, or names something that the job does not have.
    """
    options = simulation_options(graph.job_graph, task_seconds=task_seconds, **asked)
    # A run of some sinks says nothing about the tasks of the others.
    whole = [job for job in graph.jobs if not job.left_out()]
    if whole and whole[-1].status.is_terminal and all("=" in text for text in task_seconds):
        both = what_if(graph.job_graph, whole[-1].info(), options, whole[-1].measured())
        return SimulatedRun(both.simulated.timeline, both.to_text(), both.to_svg())
    alone = simulate(graph.job_graph, options).timeline
    return SimulatedRun(alone, timeline_text(alone), gantt_svg(alone))
