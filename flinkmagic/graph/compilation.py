"""All three graphs of a program, as far as they can be made."""

from __future__ import annotations

from dataclasses import dataclass

from flinkmagic.errors.graph import GraphRefusedError
from flinkmagic.graph.execution_graph import ExecutionGraph
from flinkmagic.graph.job_graph import JobGraph
from flinkmagic.graph.job_graph_generator import create_job_graph
from flinkmagic.graph.stream_graph import StreamGraph
from flinkmagic.graph.topology import read_topology


@dataclass(frozen=True)
class Compilation:
    """The graphs of one program; if one was refused, those before it and why."""

    stream_graph: StreamGraph | None = None
    job_graph: JobGraph | None = None
    execution_graph: ExecutionGraph | None = None
    refusal: GraphRefusedError | None = None


def compile_topology(text: str) -> Compilation:
    """Compile a program from a topology's text.

    Raises
    ------
    TopologyError
        If the text is no topology. A refusal of the program itself is part of the returned value.
    """
    stream_graph: StreamGraph | None = None
    job_graph: JobGraph | None = None
    try:
        stream_graph = read_topology(text).get_stream_graph()
        job_graph = create_job_graph(stream_graph)
        return Compilation(stream_graph, job_graph, ExecutionGraph(job_graph))
    except GraphRefusedError as refusal:
        return Compilation(stream_graph, job_graph, None, refusal)
