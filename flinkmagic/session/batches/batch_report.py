"""What became of a batch."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from flinkmagic.graph.job_graph import JobGraph
    from flinkmagic.session.carrying_out import LineJob


class BatchGraph(Protocol):
    """What a batch asks of its compiled graph."""

    job_graph: JobGraph

    def run(self, wait: bool = True) -> LineJob: ...

    def run_apart(self) -> LineJob | None: ...

    def to_svg(self) -> str: ...

    def summary(self) -> str: ...


@dataclass(frozen=True)
class BatchReport:
    """What became of a batch.

    Attributes
    ----------
    query : str
        The name of its query.
    batch_id : int
        Its number: one that is repeated after a failure has the same.
    seconds : float
        How long the function ran, with all that it wrote.
    status : str
        FINISHED, FAILED or CANCELED.
    graphs : tuple of CompiledGraph
        What it wrote: one graph, or several if a line of the function needed earlier writes done. Empty for a batch
        that wrote nothing, or that plain Spark wrote.
    reason : str
        Why plain Spark wrote some of it; empty if none.
    """

    query: str
    batch_id: int
    seconds: float
    status: str
    graphs: tuple[BatchGraph, ...] = ()
    reason: str = ""
