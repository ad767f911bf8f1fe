"""What became of a batch."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from flinkmagic.graph.job_graph import JobGraph
    from flinkmagic.scheduling.failover.exception_history import RootExceptionHistoryEntry
    from flinkmagic.scheduling.job_status import JobStatus


class BatchJob(Protocol):
    """What a batch asks of the job that writes it."""

    @property
    def status(self) -> JobStatus: ...

    def wait(self, timeout: float | None = None) -> JobStatus: ...

    def cancel(self) -> None: ...

    def release(self) -> None: ...

    def tasks(self) -> Sequence[object]: ...

    def exceptions(self) -> Sequence[RootExceptionHistoryEntry]: ...


class BatchGraph(Protocol):
    """What a batch asks of its compiled graph."""

    job_graph: JobGraph

    def run(self, wait: bool = True) -> BatchJob: ...

    def run_apart(self) -> BatchJob | None: ...

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
