"""Describes the work of a job that earlier jobs or another process have done already, and how long that took."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

import numpy as np

from flinkmagic.graph.execution_graph import ExecutionGraph
from flinkmagic.graph.execution_state import ExecutionState
from flinkmagic.planning.stage_handles import StageHandle, stage_handle
from flinkmagic.planning.stage_results import StageResult
from flinkmagic.reuse.append_refresh import AppendRefresh, Refreshed
from flinkmagic.reuse.durable_store import KERNEL
from flinkmagic.reuse.retained_results import RetainedResult
from flinkmagic.scheduling.default_scheduler import RecoveredJob
from flinkmagic.scheduling.task_executor_gateway import TaskExecutorGateway


@dataclass(frozen=True)
class TakenUp:
    """What a job need not do."""

    finished: frozenset[int] = frozenset()
    """Indices of the job vertices that do not run."""
    results: Mapping[int, RetainedResult] = field(default_factory=dict)
    """By the index of a job vertex the result that replaces its own."""
    written: frozenset[int] = frozenset()
    """Indices of the job vertices of writes that the previous run finished."""
    refreshed: Mapping[int, Refreshed] = field(default_factory=dict)
    """By the index of a job vertex that computes only what was added what there is of its result."""
    added_files: int = 0
    """From how many added files that is done."""

    @classmethod
    def of(
        cls,
        graph: ExecutionGraph,
        found: Mapping[StageResult, RetainedResult],
        written: Iterable[StageHandle],
        refresh: AppendRefresh,
    ) -> TakenUp:
        """Return what a job need not do, by what it has found and what its refresh has decided.

        Nor does a vertex run that none which runs needs (rule 1 of `retention`). Writes may be no part of the job.
        """
        vertex_of = vertices_by_handle(graph)
        results = {vertex_of[result.handle]: entry for result, entry in found.items()}
        done = frozenset(vertex_of[handle] for handle in written if handle in vertex_of)
        needed: set[int] = set()
        for vertex in reversed(graph.job_vertices):
            if vertex.index not in results and vertex.index not in done:
                consumers = [consumer.index for consumer in vertex.consumers]
                if not consumers or needed.intersection(consumers):
                    needed.add(vertex.index)
        finished = frozenset(vertex.index for vertex in graph.job_vertices) - needed
        refreshed = {vertex_of[handle]: one for handle, one in refresh.refreshed.items() if vertex_of[handle] in needed}
        return cls(finished, results, done, refreshed, refresh.added_files)

    @property
    def saved_seconds(self) -> float:
        """How long it took to make what is used here; results are made side by side."""
        former = (one.former for one in self.refreshed.values())
        return max((result.seconds for result in (*self.results.values(), *former)), default=0.0)

    @property
    def other_kernel_at(self) -> float:
        """When another kernel computed what is used here, the last of it; 0.0 if none has."""
        return max((result.made_at for result in self.results.values() if result.kernel != KERNEL), default=0.0)

    def recovered(self, graph: ExecutionGraph, holder: TaskExecutorGateway) -> RecoveredJob | None:
        """Return the same for the scheduler; None if nothing is finished."""
        vertices = [vertex for index in sorted(self.finished) for vertex in graph.job_vertices[index].vertices]
        return RecoveredJob(vertices, holder) if vertices else None

    def partition_bytes(self, graph: ExecutionGraph) -> dict[str, tuple[int, ...]]:
        """Return the bytes of each partition by the id of the job vertex that wrote the shuffle."""
        return {
            graph.job_vertices[index].id: result.bytes_by_partition
            for index, result in self.results.items()
            if result.bytes_by_partition is not None
        }


NOTHING = TakenUp()


def vertices_by_handle(graph: ExecutionGraph) -> dict[StageHandle | None, int]:
    """Return by the handle of a stage the index of its job vertex; a vertex without one is under None."""
    return {stage_handle(vertex.job_vertex): vertex.index for vertex in graph.job_vertices}


def stage_seconds(graph: ExecutionGraph, taken_up: Mapping[int, float]) -> dict[int, float]:
    """Return by job vertex the seconds from the first deployment among it and its ancestors to its own end.

    Parameters
    ----------
    graph : ExecutionGraph
        Of a job that is over.
    taken_up : mapping of int to float
        The seconds that the results took which the job has used, by their vertices: they count, too.
    """
    began, ended = graph.timestamps(ExecutionState.DEPLOYING), graph.timestamps(ExecutionState.FINISHED)
    first, before, seconds = dict[int, float](), dict[int, float](), dict[int, float]()
    for vertex in graph.job_vertices:  # sources first
        own = vertex.slice
        starts = began[own][~np.isnan(began[own])]
        start = min([first.get(vertex.index, np.inf), *starts.tolist()])
        earlier = max(before.get(vertex.index, 0.0), taken_up.get(vertex.index, 0.0))
        end = np.nanmax(ended[own]) if vertex.index not in taken_up and not np.isnan(ended[own]).all() else start
        seconds[vertex.index] = earlier + (max(0.0, float(end - start)) / 1000 if np.isfinite(start) else 0.0)
        for consumer in vertex.consumers:
            first[consumer.index] = min(first.get(consumer.index, np.inf), start)
            before[consumer.index] = max(before.get(consumer.index, 0.0), earlier)
    return seconds
