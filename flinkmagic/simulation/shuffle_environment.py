"""Keeps the partitions of a virtual cluster: who makes them, where they are, who reads them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from enum import Enum

from flinkmagic.scheduling.task_executor_gateway import ResultPartitionID


class PartitionState(Enum):
    """The state of a partition."""

    IN_PROGRESS = "in progress"
    FINISHED = "finished"
    ABANDONED = "abandoned"
    """Its task ended without finishing it."""
    RELEASED = "released"
    """Deleted, as the scheduler asked."""
    LOST = "lost"
    """Gone with its executor, or by a fault."""


class ShuffleEnvironment:
    """Holds all partitions of the cluster, including those that are gone."""

    def __init__(self) -> None:
        self._states: dict[ResultPartitionID, PartitionState] = {}
        self._holders: dict[ResultPartitionID, str] = {}
        self._waiting: dict[ResultPartitionID, list[Callable[[], None]]] = {}
        self._readers: dict[ResultPartitionID, dict[object, Callable[[ResultPartitionID], None]]] = {}

    def state(self, partition: ResultPartitionID) -> PartitionState | None:
        """Return the state of a partition; None if it was not begun."""
        return self._states.get(partition)

    def finished_partitions(self) -> list[ResultPartitionID]:
        """Return those that could be read, in the order in which they were begun."""
        return [partition for partition, state in self._states.items() if state is PartitionState.FINISHED]

    def held_by(self, resource_id: str) -> list[ResultPartitionID]:
        """Return those in progress or finished on an executor."""
        alive = (PartitionState.IN_PROGRESS, PartitionState.FINISHED)
        return [p for p, holder in self._holders.items() if holder == resource_id and self._states[p] in alive]

    def begin(self, partition: ResultPartitionID, resource_id: str) -> None:
        """Record that a task starts to make a partition."""
        self._states[partition] = PartitionState.IN_PROGRESS
        self._holders[partition] = resource_id
        self._wake(partition)

    def finish(self, partition: ResultPartitionID) -> None:
        """Record that the task has finished the partition."""
        if self._states.get(partition) is PartitionState.IN_PROGRESS:
            self._states[partition] = PartitionState.FINISHED
            self._wake(partition)

    def abandon(self, partition: ResultPartitionID) -> None:
        """Record that the task has ended without finishing the partition."""
        if self._states.get(partition) is PartitionState.IN_PROGRESS:
            self._states[partition] = PartitionState.ABANDONED
            self._wake(partition)

    def release(self, partitions: Iterable[ResultPartitionID], resource_id: str) -> None:
        """Delete partitions for the scheduler; skip those that are not on that executor."""
        for partition in partitions:
            if self._holders.get(partition) == resource_id and self._states[partition] is not PartitionState.LOST:
                self._states[partition] = PartitionState.RELEASED

    def lose(self, partitions: Iterable[ResultPartitionID]) -> None:
        """Lose partitions; those who read them find out."""
        for partition in partitions:
            self._states[partition] = PartitionState.LOST
            self._wake(partition)
            for on_loss in list(self._readers.get(partition, {}).values()):
                on_loss(partition)

    def read(
        self, reader: object, partitions: Sequence[ResultPartitionID], on_loss: Callable[[ResultPartitionID], None]
    ) -> None:
        """Add a reader; `on_loss` is called with partitions that are lost while it reads."""
        for partition in partitions:
            self._readers.setdefault(partition, {})[reader] = on_loss

    def stop_reading(self, reader: object, partitions: Sequence[ResultPartitionID]) -> None:
        """Remove a reader: it has all that it wants."""
        for partition in partitions:
            self._readers.get(partition, {}).pop(reader, None)

    def when_changed(self, partition: ResultPartitionID, action: Callable[[], None]) -> None:
        """Call `action` at the next change of a partition's state."""
        self._waiting.setdefault(partition, []).append(action)

    def _wake(self, partition: ResultPartitionID) -> None:
        for action in self._waiting.pop(partition, ()):
            action()
