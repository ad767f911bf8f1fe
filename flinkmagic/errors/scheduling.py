"""What goes wrong with tasks, slots, executors and restarts, and wrong requests to the scheduler."""

from __future__ import annotations

from flinkmagic.amounts import count, duration
from flinkmagic.errors.base import FlinkMagicError


class IllegalStateTransitionError(FlinkMagicError):
    """A transition that is not in the table of states: a mistake of ours."""

    what: str
    source: str
    target: str
    history: tuple[str, ...] = ()

    def __str__(self) -> str:
        story = f" Its history: {'; '.join(self.history)}." if self.history else ""
        step = f"{self.what} cannot go from {self.source} to {self.target}"
        return f"{step}.{story} This is a bug of flinkmagic: please report it."


class MainThreadStoppedError(FlinkMagicError):
    """A call for a job's main thread that came after the job was over."""

    thread: str

    template = "The main thread {thread!r} has been stopped: its job is over. Run the graph again."


class PartitionNotFoundError(FlinkMagicError):
    """A task could not read a partition of a result that it consumes (Flink's `PartitionNotFoundException`)."""

    dataset_id: str
    partition: int
    detail: str = ""

    def __str__(self) -> str:
        why = f": {self.detail}" if self.detail else ""
        return f"Partition {self.partition} of result {self.dataset_id} is gone{why}. The task that made it runs again."


class SuppressRestartsError(FlinkMagicError):
    """Wraps a failure that no restart can mend (Flink's `SuppressRestartsException`)."""

    cause: BaseException

    template = "The failure is not recoverable: {cause}"

    def __post_init__(self) -> None:
        self.__cause__ = self.cause


class RecoverySuppressedError(FlinkMagicError):
    """A job failed for good: its restart strategy allows no further restart."""

    strategy: str
    cause: BaseException

    template = "Recovery is suppressed by {strategy}: {cause}"

    def __post_init__(self) -> None:
        self.__cause__ = self.cause


class NoResourceAvailableError(FlinkMagicError):
    """A region cannot get the slots that it needs (Flink's `NoResourceAvailableException`)."""

    needed: int
    available: int
    groups: list[str]
    waited_ms: float | None = None

    def __str__(self) -> str:
        waited = f" within {duration(self.waited_ms)}" if self.waited_ms is not None else ""
        return (
            f"A region needs {count(self.needed, 'slot')} together, and {self.available} became available{waited}. "
            f"It requests: {', '.join(self.groups)}. Give the job more slots, or lower the parallelism of these groups."
        )


class TaskExecutorLostError(FlinkMagicError):
    """A task executor is gone, and so is what ran or was stored there.

    The simulator's. On Spark it only ends the executor's registration with the job's master: Spark runs again itself
    what was lost, and each such task is told of with an `ExecutorRecoveryError`.
    """

    resource_id: str
    reason: str

    template = "The task executor {resource_id} is lost: {reason}"


class ExecutorRecoveryError(FlinkMagicError):
    """A loss that the executors' own scheduler repairs: the job continues and asks no restart strategy."""

    resource_id: str | None
    """The executor that is lost, if known."""

    def belongs_with(self, other: ExecutorRecoveryError) -> bool:
        """Return whether two losses have the same cause."""
        return self.resource_id == other.resource_id or other.resource_id is None


class ExecutorLostError(ExecutorRecoveryError):
    """An executor is gone, and the tasks that ran on it run again elsewhere."""

    resource_id: str
    reason: str

    template = "The executor {resource_id} is lost: {reason}"


class OutputLostError(ExecutorRecoveryError):
    """The output of a finished task is gone with its executor, and is made again."""

    task: str

    def __str__(self) -> str:
        where = f" with the executor {self.resource_id}" if self.resource_id is not None else ""
        return f"The output of {self.task} is lost{where}, and is made again."


class SlotLostError(FlinkMagicError):
    """The slot that a task ran in was taken away."""

    allocation_id: str
    resource_id: str
    reason: str

    template = "The slot {allocation_id} on {resource_id} is lost: {reason}"


class JobSuspendedError(FlinkMagicError):
    """A job was suspended here; another process may take it up."""

    job_id: str
    reason: str

    template = "The job {job_id} is suspended: {reason}"


class TaskCanceledError(FlinkMagicError):
    """A task was cancelled although no one asked for that."""

    task_name: str

    template = "{task_name} was cancelled by its executor, without a request"


class SlotRequestCanceledError(FlinkMagicError):
    """A slot is no longer needed: its task was cancelled before the slot came."""

    template = "The slot is no longer needed: its task was cancelled."
