"""Declares what a scheduler offers to a job master, and what it reports (Flink's `SchedulerNG` and its listeners)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from flinkmagic.scheduling.failover.exception_history import RootExceptionHistoryEntry
from flinkmagic.scheduling.job_status import JobStatus
from flinkmagic.scheduling.task_executor_gateway import TaskExecutionStateTransition, TaskExecutorGateway

if TYPE_CHECKING:
    from flinkmagic.graph.execution_graph import ArchivedExecutionGraph


@dataclass(frozen=True)
class ExecutionGraphInfo:
    """A snapshot of a job, safe to read on any thread (Flink's `ExecutionGraphInfo`)."""

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
        """When the job ended; of one that is not over the moment of the snapshot."""
        return self.status_timestamps[self.job_status] if self.job_status.is_terminal else self.at_ms


@dataclass(frozen=True)
class RecoveredJob:
    """The vertices of a job that earlier work has finished, and who holds their results."""

    finished: Sequence[int]
    holder: TaskExecutorGateway


class SchedulerNG(Protocol):
    """Schedules one job (Flink's `SchedulerNG`, as far as it is implemented here).

    All but `request_job`, `job_status` and `termination_future` must be called on the main thread.
    """

    @property
    def job_status(self) -> JobStatus:
        """The state of the job as a whole."""
        ...

    @property
    def termination_future(self) -> Future[JobStatus]:
        """Done with the status in which the job ended here."""
        ...

    def recover(self, recovered: RecoveredJob) -> None:
        """Take over what is done already; nothing is scheduled yet."""
        ...

    def start_scheduling(self) -> None:
        """Begin, or continue with what is left after `recover`."""
        ...

    def update_task_execution_state(self, transition: TaskExecutionStateTransition) -> bool:
        """Handle the news of an attempt; return False if it concerns no current attempt, or changes nothing."""
        ...

    def handle_global_failure(self, cause: BaseException) -> None:
        """Handle a failure that concerns no single task: all tasks are restarted."""
        ...

    def cancel(self) -> None:
        """End the job for good."""
        ...

    def suspend(self, cause: BaseException) -> None:
        """End the job here, so that another process may take it up."""
        ...

    def fail_slot(self, allocation_id: str, cause: BaseException) -> None:
        """Handle the loss of a slot."""
        ...

    def task_executor_lost(self, resource_id: str, cause: BaseException) -> None:
        """Handle the loss of an executor, with its slots and partitions."""
        ...

    def request_job(self) -> ExecutionGraphInfo:
        """Return a snapshot of the job."""
        ...
