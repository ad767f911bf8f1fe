"""Makes the views of the graphs of one plan."""

from __future__ import annotations

from functools import cached_property

from flinkmagic.display import GraphView, execution_view, job_view, regions_view, stream_view
from flinkmagic.graph.execution_graph import ExecutionGraph
from flinkmagic.graph.job_graph import JobGraph
from flinkmagic.graph.stream_graph import StreamGraph
from flinkmagic.session.known_loops import with_loops


class GraphViews:
    """The views of the graphs of one plan, without states; made when somebody looks.

    A graph plans again for each run, so that each run has views of its own.
    """

    def __init__(self, stream_graph: StreamGraph, job_graph: JobGraph, compiled: ExecutionGraph) -> None:
        self._stream_graph, self._job_graph, self._compiled = stream_graph, job_graph, compiled

    @cached_property
    def all(self) -> tuple[GraphView, ...]:
        """The stream, job and execution graphs, and the regions."""
        return (
            with_loops(stream_view(self._stream_graph, self._job_graph), self._stream_graph),
            job_view(self._job_graph),
            execution_view(self._compiled),
            regions_view(self._compiled),
        )
