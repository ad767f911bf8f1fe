"""The graph of an action's query."""

from __future__ import annotations

from typing import TYPE_CHECKING

from flinkmagic.graph.ancestors import with_ancestors
from flinkmagic.graph.job_graph import JobGraph, JobVertex
from flinkmagic.planning.handles import ResultStageHandle
from flinkmagic.session.compiled_graph import CompiledGraph

if TYPE_CHECKING:
    from flinkmagic.session.job import Job


class ActionGraph(CompiledGraph):
    """A query whose last stage is run by the action itself, which takes its rows: a run leaves that vertex out."""

    _collected = True

    @property
    def is_single_stage(self) -> bool:
        """Whether Spark runs the query as one stage."""
        return len(self.job_graph.vertices) == 1

    @property
    def last_stage(self) -> ResultStageHandle:
        """The stage that the action runs itself."""
        handle = self._last_vertex.operator_factory
        assert isinstance(handle, ResultStageHandle)
        return handle

    @property
    def last_vertex_name(self) -> str:
        """What the vertex of that stage is called."""
        return self._last_vertex.name

    def run_stages(self) -> Job:
        """Run all stages except the last, and return when they have ended; an interrupt cancels them."""
        job = self.run(wait=False)
        try:
            job.wait()
        except BaseException:
            job.cancel()
            job.wait()
            raise
        return job

    @property
    def _last_vertex(self) -> JobVertex:
        last = self.sinks[0].transformation_id
        return next(
            vertex for vertex in self.job_graph.vertices.values() if any(node.id == last for node in vertex.operators)
        )

    def _part(self, run: frozenset[int]) -> JobGraph:
        return with_ancestors(self.job_graph, [edge.producer.id for edge in self._last_vertex.inputs])
