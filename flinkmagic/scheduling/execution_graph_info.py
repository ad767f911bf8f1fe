"""Holds what a job looked like at one instant (Flink's `ExecutionGraphInfo`)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from flinkmagic.scheduling.failover.exception_history import RootExceptionHistoryEntry
from flinkmagic.scheduling.job_status import JobStatus

if TYPE_CHECKING:
    from flinkmagic.graph.execution_graph import ArchivedExecutionGraph


@dataclass(frozen=True)
class ExecutionGraphInfo:
    """A snapshot of a job, safe to read on any thread."""

    job_id: str
    job_name: str
    job_status: JobStatus
    status_timestamps: Mapping[JobStatus, float]
    """When each status was last entered."""
    archived_execution_graph: ArchivedExecutionGraph
    exception_history: tuple[RootExceptionHistoryEntry, ...]
    failure_cause: BaseException | None
    number_of_restarts: int
    at_ms: float

    @property
    def started_ms(self) -> float:
        """When the job began."""
        return min(self.status_timestamps.values())

    @property
    def ended_ms(self) -> float:
        """When the job ended; when the snapshot was taken, while it is not over."""
        return self.status_timestamps[self.job_status] if self.job_status.is_terminal else self.at_ms
