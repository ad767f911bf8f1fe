"""Reports how a batch ended."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from flinkmagic.graph.job_graph import JobGraph
    from flinkmagic.session.carrying_out import LineJob


class BatchGraph(Protocol):
    """What a batch needs of its compiled graph."""

    job_graph: JobGraph

    def run(self, wait: bool = True) -> LineJob: ...

    def run_apart(self) -> LineJob | None: ...

    def to_svg(self) -> str: ...

    def summary(self) -> str: ...


@dataclass(frozen=True)
class BatchReport:
    """How a batch ended."""

    query: str
    batch_id: int
    """A batch that is repeated after a failure has the same number."""
    seconds: float
    """How long the function ran, with all that it wrote."""
    status: str
    """FINISHED, FAILED or CANCELED."""
    graphs: tuple[BatchGraph, ...] = ()
    """What it wrote: one graph, or several if a line of the function needed earlier writes done.

    Empty for a batch that wrote nothing, or that plain Spark wrote.
    """
    reason: str = ""
    """Why plain Spark wrote some of it; empty if it wrote none."""
