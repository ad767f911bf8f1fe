"""Finds which job vertices run within one Spark stage.

A job vertex is one Spark stage, unless the user broke an operator chain (`flinkmagic.with_options`). Then pipelined
edges join, subtask by subtask, the vertices into which a stage was broken. Their subtasks of one number run within one
Spark task, and the last of them, which has the stage's handle, represents the stage.

If exchanges are pipelined, the stages of a region run in one Spark job, which the handle of the last one runs.
"""

from __future__ import annotations

from typing import NamedTuple

from flinkmagic.errors.base import InvariantViolatedError
from flinkmagic.graph.execution_graph import ExecutionGraph
from flinkmagic.graph.execution_job_vertex import ExecutionJobVertex
from flinkmagic.planning.stage_handles import StageHandle, stage_handle


class Stage(NamedTuple):
    """A stage of a job."""

    job_vertex: ExecutionJobVertex
    """The vertex that represents it."""
    handle: StageHandle
    """The rules ask it for facts alone."""


class StageMembers:
    """The stages of a job, by the vertices that run in them.

    Raises
    ------
    TypeError
        If a vertex without a handle feeds no vertex of its stage: the job was not planned for Spark.
    """

    def __init__(self, graph: ExecutionGraph) -> None:
        self._graph = graph
        self._lead: dict[int, int] = {}
        self._regions: dict[int, tuple[int, ...]] = {}
        for job_vertex in reversed(graph.job_vertices):
            if stage_handle(job_vertex.job_vertex) is not None:
                self._lead[job_vertex.index] = job_vertex.index
                continue
            leads = {
                self._lead[connection.consumer.index]
                for result in job_vertex.produced_results
                if result.result_type.must_be_pipelined_consumed
                for connection in result.consumers
            }
            if len(leads) != 1:
                raise InvariantViolatedError(
                    f"the vertex {job_vertex.name!r}, which has no stage handle, is in one stage, not in {len(leads)}"
                )
            self._lead[job_vertex.index] = leads.pop()
        self._find_regions()

    def _find_regions(self) -> None:
        index_of = {stage_handle(one.job_vertex): one.index for one in self._graph.job_vertices}
        for job_vertex in self._graph.job_vertices:
            handle = stage_handle(job_vertex.job_vertex)
            if handle is not None and handle.upstream:
                region = (job_vertex.index, *(index_of[one] for one in handle.upstream))
                self._regions.update(dict.fromkeys(region, region))

    def stage_of(self, index: int) -> Stage:
        """Return the stage that a vertex represents, which has its handle."""
        job_vertex = self._graph.job_vertices[index]
        handle = stage_handle(job_vertex.job_vertex)
        assert handle is not None
        return Stage(job_vertex, handle)

    def region_of(self, index: int) -> tuple[int, ...]:
        """Return the stages that run in one Spark job with a stage; the one whose handle runs it is the first."""
        return self._regions.get(index, (index,))

    def lead_of(self, index: int) -> int:
        """Return the vertex that represents the stage in which a vertex runs (indices of job vertices)."""
        return self._lead[index]

    def task_of(self, vertex: int) -> tuple[int, int]:
        """Return the stage (the vertex that represents it) and the partition in which an execution vertex runs."""
        job_vertex = self._graph.job_vertex_of(vertex)
        return self._lead[job_vertex.index], vertex - job_vertex.first

    def slot_sharing_groups(self) -> list[list[int]]:
        """Return the execution vertices that share a slot on Spark: those of one task, which has its own core."""
        groups: dict[tuple[int, int], list[int]] = {}
        for vertex in range(self._graph.n_vertices):
            groups.setdefault(self.task_of(vertex), []).append(vertex)
        return list(groups.values())
