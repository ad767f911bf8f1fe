"""Keeps the partitions of a virtual cluster: who makes them, where they are, who reads them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from enum import Enum

from flinkmagic.scheduling.task_executor_gateway import ResultPartitionID

_Gate = Sequence[ResultPartitionID]
"""The partitions that a task reads by one input."""


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
        self._readers: dict[object, tuple[Sequence[_Gate], Callable[[ResultPartitionID], None]]] = {}
        # All consumers of a group share one gate: what is known of it need not be found out by each of them.
        self._finished_gates: dict[int, tuple[_Gate, int]] = {}
        self._members: dict[int, tuple[_Gate, frozenset[ResultPartitionID]]] = {}
        self._retractions = 0
        """How often a partition was deleted or lost."""

    def state(self, partition: ResultPartitionID) -> PartitionState | None:
        """Return the state of a partition; None if it was not begun."""
        return self._states.get(partition)

    def are_finished(self, gate: _Gate) -> bool:
        """Return whether all partitions of a gate can be read."""
        known = self._finished_gates.get(id(gate))
        if known is not None and known[1] == self._retractions:
            return True
        if any(self._states.get(partition) is not PartitionState.FINISHED for partition in gate):
            return False
        self._finished_gates[id(gate)] = gate, self._retractions
        return True

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
        self._retractions += 1
        for partition in partitions:
            if self._holders.get(partition) == resource_id and self._states[partition] is not PartitionState.LOST:
                self._states[partition] = PartitionState.RELEASED

    def lose(self, partitions: Iterable[ResultPartitionID]) -> None:
        """Lose partitions; those who read them find out."""
        self._retractions += 1
        for partition in partitions:
            self._states[partition] = PartitionState.LOST
            self._wake(partition)
            for gates, on_loss in list(self._readers.values()):
                if any(partition in self._members_of(gate) for gate in gates):
                    on_loss(partition)

    def read(self, reader: object, gates: Sequence[_Gate], on_loss: Callable[[ResultPartitionID], None]) -> None:
        """Add a reader; `on_loss` is called with partitions that are lost while it reads."""
        self._readers[reader] = gates, on_loss

    def stop_reading(self, reader: object) -> None:
        """Remove a reader: it has all that it wants."""
        self._readers.pop(reader, None)

    def _members_of(self, gate: _Gate) -> frozenset[ResultPartitionID]:
        known = self._members.get(id(gate))
        if known is None:
            known = self._members[id(gate)] = gate, frozenset(gate)
        return known[1]

    def when_changed(self, partition: ResultPartitionID, action: Callable[[], None]) -> None:
        """Call `action` at the next change of a partition's state."""
        self._waiting.setdefault(partition, []).append(action)

    def _wake(self, partition: ResultPartitionID) -> None:
        for action in self._waiting.pop(partition, ()):
            action()
