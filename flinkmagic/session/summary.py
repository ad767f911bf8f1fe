"""The lines that sum a graph up."""

from __future__ import annotations

from collections.abc import Sequence

from flinkmagic.graph.execution_graph import ExecutionGraph
from flinkmagic.graph.job_graph import JobGraph
from flinkmagic.graph.stream_graph import StreamGraph
from flinkmagic.planning import SharedResult


def counted(number: int, one: str, many: str | None = None) -> str:
    """A number with its noun: ``1 task``, ``17 tasks``."""
    return f"{number:,} {one if number == 1 else many or one + 's'}"


def graph_summary(
    stream_graph: StreamGraph, job_graph: JobGraph, execution_graph: ExecutionGraph, slots: int | None
) -> str:
    """Such as ``9 operators in 5 job vertices, 17 tasks, 17 regions; 4 slots``."""
    text = (
        f"{counted(len(stream_graph.nodes), 'operator')} in "
        f"{counted(len(job_graph.vertices), 'job vertex', 'job vertices')}, "
        f"{counted(execution_graph.n_vertices, 'task')}, "
        f"{counted(execution_graph.pipelined_regions.count, 'region')}"
    )
    return f"{text}; {counted(slots, 'slot')}" if slots is not None else text


def sharing_notes(shared: Sequence[SharedResult]) -> list[str]:
    """One line for each result that several sinks read."""
    return [str(result) for result in shared]
