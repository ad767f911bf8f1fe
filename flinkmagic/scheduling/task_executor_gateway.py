"""Declares what the scheduler tells those who run tasks, and what they report.

This protocol is all that Spark's deployment and the simulator share with the scheduler. Calls go out and return
immediately; their outcome comes back later as a `TaskExecutionStateTransition`, handed to the scheduler's
`update_task_execution_state` on the main thread.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple, Protocol

if TYPE_CHECKING:
    from flinkmagic.graph.execution import ExecutionAttemptID
    from flinkmagic.graph.execution_state import ExecutionState


class ResultPartitionID(NamedTuple):
    """One partition of a result, as one attempt of its producer made it (Flink's `ResultPartitionID`)."""

    dataset_id: str
    partition: int
    producer: ExecutionAttemptID

    def __str__(self) -> str:
        return f"{self.dataset_id}#{self.partition}@{self.producer}"


@dataclass(frozen=True)
class TaskExecutionStateTransition:
    """News of an attempt (Flink's `TaskExecutionStateTransition`).

    Departure from Flink: it carries no metrics. What tasks read and wrote belongs to Spark's task attempts, several of
    which may serve one execution, and is recorded by them.
    """

    attempt_id: ExecutionAttemptID
    state: ExecutionState
    error: BaseException | None = None
    at_ms: float | None = None
    """When it happened, if that is known to be earlier than the news; None means now."""


@dataclass(frozen=True)
class TaskDeploymentDescriptor:
    """All that a task executor must know to run an attempt (Flink's `TaskDeploymentDescriptor`).

    Departure from Flink: neither code is shipped, nor what only code would read, such as subpartitions. `vertex` is the
    task's global index in the execution graph, by which a gateway in the same process finds the vertex and its
    operator's handle.
    """

    job_id: str
    attempt_id: ExecutionAttemptID
    vertex: int
    task_name: str
    allocation_id: str
    inputs: tuple[Sequence[ResultPartitionID], ...] = ()
    """For each input gate, the partitions that it reads."""
    outputs: tuple[ResultPartitionID, ...] = ()


class TaskExecutorGateway(Protocol):
    """Runs tasks (Flink's `TaskExecutorGateway`, as far as a job master uses it).

    No call may block, and none may call back into the scheduler before it returns: news goes through the
    main thread's queue.
    """

    @property
    def resource_id(self) -> str:
        """The executor's name, unique among those of a job."""

    def submit_task(self, descriptor: TaskDeploymentDescriptor) -> None:
        """Run an attempt.

        The answers are INITIALIZING, RUNNING, then a terminal state.
        """

    def cancel_task(self, attempt_id: ExecutionAttemptID) -> None:
        """Stop an attempt; the answer is CANCELED, or the terminal state that came first.

        For an attempt that the executor does not know, the answer is CANCELED as well.
        """

    def free_slot(self, allocation_id: str) -> None:
        """Take a slot back from the job that it was given to."""

    def release_partitions(self, job_id: str, partition_ids: Sequence[ResultPartitionID]) -> None:
        """Delete finished partitions; skip those that it does not hold."""

    def heartbeat_from_job_manager(self, job_id: str) -> None:
        """Ask for a sign of life; the answer goes to the job master's `heartbeat_from_task_manager`."""
