"""What goes wrong with tasks, slots, executors and restarts, and wrong requests to the scheduler."""

from __future__ import annotations

from flinkmagic.amounts import count, duration
from flinkmagic.errors.base import FlinkMagicError


class IllegalStateTransitionError(FlinkMagicError):
    """A transition that is not in the table of states: a mistake of ours."""

    def __init__(self, what: str, source: str, target: str, history: tuple[str, ...] = ()) -> None:
        self.what, self.source, self.target, self.history = what, source, target, history
        story = f" Its history: {'; '.join(history)}." if history else ""
        super().__init__(
            f"{what} cannot go from {source} to {target}.{story} This is a bug of flinkmagic: please report it."
        )


class PartitionNotFoundError(FlinkMagicError):
    """A task could not read a partition of a result that it consumes (Flink's `PartitionNotFoundException`)."""

    def __init__(self, dataset_id: str, partition: int, detail: str = "") -> None:
        self.dataset_id, self.partition = dataset_id, partition
        super().__init__(
            f"Partition {partition} of result {dataset_id} is gone{': ' + detail if detail else ''}. "
            "The task that made it runs again."
        )


class SuppressRestartsError(FlinkMagicError):
    """Wraps a failure that no restart can mend (Flink's `SuppressRestartsException`)."""

    def __init__(self, cause: BaseException) -> None:
        super().__init__(f"The failure is not recoverable: {cause}")
        self.__cause__ = cause


class RecoverySuppressedError(FlinkMagicError):
    """A job failed for good: its restart strategy allows no further restart."""

    def __init__(self, strategy: str, cause: BaseException) -> None:
        self.strategy = strategy
        super().__init__(f"Recovery is suppressed by {strategy}: {cause}")
        self.__cause__ = cause


class NoResourceAvailableError(FlinkMagicError):
    """A region cannot get the slots that it needs (Flink's `NoResourceAvailableException`)."""

    def __init__(self, needed: int, available: int, groups: list[str], waited_ms: float | None = None) -> None:
        self.needed, self.available, self.groups = needed, available, groups
        waited = f" within {duration(waited_ms)}" if waited_ms is not None else ""
        super().__init__(
            f"A region needs {count(needed, 'slot')} together, and {available} became available{waited}. It requests: "
            f"{', '.join(groups)}. Give the job more slots, or lower the parallelism of these groups."
        )


class TaskExecutorLostError(FlinkMagicError):
    """A task executor is gone, and so is what ran or was stored there.

    The simulator's. On Spark it only ends the executor's registration with the job's master: Spark runs again itself
    what was lost, and each such task is told of with an `ExecutorRecoveryError`.
    """

    def __init__(self, resource_id: str, reason: str) -> None:
        self.resource_id, self.reason = resource_id, reason
        super().__init__(f"The task executor {resource_id} is lost: {reason}")


class ExecutorRecoveryError(FlinkMagicError):
    """A loss that the executors' own scheduler repairs: the job continues and asks no restart strategy.

    Attributes
    ----------
    resource_id : str or None
        The executor that is lost, if known.
    """

    def __init__(self, text: str, resource_id: str | None) -> None:
        self.resource_id = resource_id
        super().__init__(text)

    def belongs_with(self, other: ExecutorRecoveryError) -> bool:
        """Return whether two losses have the same cause."""
        return self.resource_id == other.resource_id or other.resource_id is None


class ExecutorLostError(ExecutorRecoveryError):
    """An executor is gone, and the tasks that ran on it run again elsewhere."""

    def __init__(self, resource_id: str, reason: str) -> None:
        self.reason = reason
        super().__init__(f"The executor {resource_id} is lost: {reason}", resource_id)


class OutputLostError(ExecutorRecoveryError):
    """The output of a finished task is gone with its executor, and is made again."""

    def __init__(self, task: str, resource_id: str | None) -> None:
        self.task = task
        where = f" with the executor {resource_id}" if resource_id is not None else ""
        super().__init__(f"The output of {task} is lost{where}, and is made again.", resource_id)


class SlotLostError(FlinkMagicError):
    """The slot that a task ran in was taken away."""

    def __init__(self, allocation_id: str, resource_id: str, reason: str) -> None:
        self.allocation_id, self.resource_id = allocation_id, resource_id
        super().__init__(f"The slot {allocation_id} on {resource_id} is lost: {reason}")


class JobSuspendedError(FlinkMagicError):
    """A job was suspended here; another process may take it up."""

    def __init__(self, job_id: str, reason: str) -> None:
        self.job_id, self.reason = job_id, reason
        super().__init__(f"The job {job_id} is suspended: {reason}")


class TaskCanceledError(FlinkMagicError):
    """A task was cancelled although no one asked for that."""

    def __init__(self, task_name: str) -> None:
        self.task_name = task_name
        super().__init__(f"{task_name} was cancelled by its executor, without a request")


class SlotRequestCanceledError(FlinkMagicError):
    """A slot is no longer needed: its task was cancelled before the slot came."""

    def __init__(self) -> None:
        super().__init__("The slot is no longer needed: its task was cancelled.")


class InvariantViolatedError(FlinkMagicError):
    """Something that must always be true of a scheduler is not: a mistake of ours."""

    def __init__(self, rule: str) -> None:
        self.rule = rule
        super().__init__(f"It does not hold that {rule}. This is a bug of flinkmagic: please report it.")
