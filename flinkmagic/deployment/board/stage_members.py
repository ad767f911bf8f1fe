"""Which job vertices run within one Spark stage.

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
from flinkmagic.planning.handles import StageHandle


class Stage(NamedTuple):
    """A stage of a job, by the vertex that represents it; what its rules depend on is taken from its handle."""

    job_vertex: ExecutionJobVertex
    is_last_of_its_job: bool
    """Whether the last stage of its Spark job is it, however many tasks that has."""
    keeps_each_task: bool
    """Whether Spark keeps what each task made: submitted again, the stage runs only what is missing."""
    counts_output: bool
    """Whether Spark counts what its tasks write: files and shuffles."""
    returns_output: bool
    """Whether what its tasks make is handed to the driver."""


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
            if isinstance(job_vertex.job_vertex.operator_factory, StageHandle):
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
        index_of = {id(one.job_vertex.operator_factory): one.index for one in self._graph.job_vertices}
        for job_vertex in self._graph.job_vertices:
            handle = job_vertex.job_vertex.operator_factory
            if isinstance(handle, StageHandle) and handle.upstream:
                region = (job_vertex.index, *(index_of[id(one)] for one in handle.upstream))
                self._regions.update(dict.fromkeys(region, region))

    def stage_of(self, index: int) -> Stage:
        """Return the stage that a vertex represents, which has its handle."""
        job_vertex = self._graph.job_vertices[index]
        handle = job_vertex.job_vertex.operator_factory
        assert isinstance(handle, StageHandle)
        return Stage(
            job_vertex,
            is_last_of_its_job=handle.is_map_stage or not handle.exact,
            keeps_each_task=handle.keeps_each_task,
            counts_output=handle.counts_output,
            returns_output=handle.returns_output,
        )

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
