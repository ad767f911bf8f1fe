"""The critical path of a job: the chain of vertices of which each waited for the one before it.

Source: Sparklens, which also tells the driver's time, and what no number of executors makes shorter. There the path is
made of each stage's longest task; here that is `least_s`, and the path is as it was run.
"""

from __future__ import annotations

from dataclasses import dataclass

from flinkmagic.amounts import duration
from flinkmagic.graph.access_execution_graph import AccessExecutionGraph
from flinkmagic.session.findings.facts import JobFacts, VertexFacts, took_ms
from flinkmagic.session.findings.forecast import Forecast, forecast


@dataclass(frozen=True)
class CriticalPath:
    """Where the time of a job went, from its start to its end. Made by `Job.critical_path`."""

    elapsed_s: float
    """How long the job took."""
    path_s: float
    """How long the vertices of the path ran, without the time for which they waited."""
    driver_s: float
    """How long no task of the job ran: planning, listing and committing files, building broadcasts."""
    least_s: float
    """How long the longest chain of tasks took: no number of slots makes the job shorter than this, and the driver."""
    vertices: tuple[str, ...]
    """The names of the path's vertices, the first one first."""
    vertex_ids: tuple[str, ...]
    forecast: Forecast | None = None
    """How long the job would take otherwise; None of one that has not finished, and of one with thousands of tasks."""

    def __str__(self) -> str:
        path, driver = duration(1000 * self.path_s), duration(1000 * self.driver_s)
        text = f"of {duration(1000 * self.elapsed_s)}, {path} is the critical path, {driver} the driver"
        if self.forecast is not None:
            return f"{text}; {self.forecast}"
        least = self.least_s + self.driver_s
        return (
            f"{text}; more slots make it no shorter than {duration(1000 * least)}" if least < self.elapsed_s else text
        )


def critical_path(job: JobFacts, graph: AccessExecutionGraph | None = None) -> CriticalPath | None:
    """Return the critical path of a job; None if no task of it has run.

    Parameters
    ----------
    graph : AccessExecutionGraph, optional
        The job's graph, with which it is simulated for the forecast.
    """
    if not job.vertices:
        return None
    chain = [max(job.vertices, key=lambda vertex: vertex.end_ms)]
    while producers := job.producers(chain[0]):
        chain.insert(0, max(producers, key=lambda vertex: vertex.end_ms))
    path_ms, since = 0.0, job.started_ms
    for vertex in chain:
        path_ms += max(0.0, vertex.end_ms - max(vertex.start_ms, since))
        since = max(since, vertex.end_ms)
    return CriticalPath(
        elapsed_s=job.elapsed_ms / 1000,
        path_s=path_ms / 1000,
        driver_s=job.idle_ms(job.started_ms, job.ended_ms, slots=1) / 1000,
        least_s=_longest_chain_ms(job) / 1000,
        vertices=tuple(vertex.name for vertex in chain),
        vertex_ids=tuple(vertex.id for vertex in chain),
        forecast=None if graph is None else forecast(job, graph),
    )


def _longest_chain_ms(job: JobFacts) -> float:
    """Return the time of the longest chain, in which each vertex counts its longest task."""
    until: dict[str, float] = {}
    for vertex in job.vertices:
        before = max((until[one.id] for one in job.producers(vertex)), default=0.0)
        until[vertex.id] = before + _longest_ms(vertex)
    return max(until.values())


def _longest_ms(vertex: VertexFacts) -> float:
    return max(map(took_ms, vertex.attempts), default=0.0)
