"""Partitions that outlive executors and processes, as those on a remote shuffle service do."""

from __future__ import annotations

from collections.abc import Sequence

from flinkmagic.graph.execution import ExecutionAttemptID
from flinkmagic.scheduling.task_executor_gateway import ResultPartitionID, TaskDeploymentDescriptor
from flinkmagic.simulation.shuffle_environment import PartitionState, ShuffleEnvironment


class RemoteShuffleService:
    """Holds partitions of a former process (a `TaskExecutorGateway` that runs no tasks)."""

    def __init__(self, shuffle: ShuffleEnvironment) -> None:
        self._shuffle = shuffle

    @property
    def resource_id(self) -> str:
        """Its name among the executors."""
        return "remote-shuffle-service"

    def holder_of(self, partition: ResultPartitionID) -> RemoteShuffleService | None:
        """Return this service if the partition is finished and available; else None."""
        if self._shuffle.state(partition) is not PartitionState.FINISHED:
            return None
        self._shuffle.adopt(partition, self.resource_id)
        return self

    def submit_task(self, descriptor: TaskDeploymentDescriptor, timeout_ms: float) -> None:
        """Refuse: it has no slots."""
        raise RuntimeError(f"{self.resource_id} runs no tasks")

    def cancel_task(self, attempt_id: ExecutionAttemptID, timeout_ms: float) -> None:
        """Do nothing: it runs no tasks."""

    def free_slot(self, allocation_id: str, cause: BaseException | None) -> None:
        """Do nothing: it has no slots."""

    def release_partitions(self, job_id: str, partition_ids: Sequence[ResultPartitionID]) -> None:
        """Delete partitions."""
        self._shuffle.release(partition_ids, self.resource_id)

    def heartbeat_from_job_manager(self, job_id: str) -> None:
        """Do nothing: it belongs to no cluster that could lose it."""
