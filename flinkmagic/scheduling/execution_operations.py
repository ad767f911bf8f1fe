"""Ends executions: their state, their slot, their unfinished results (Flink's `DefaultExecutionOperations`)."""

from __future__ import annotations

from collections.abc import Iterable

from flinkmagic.errors.scheduling import SlotRequestCanceledError
from flinkmagic.graph.execution_state import ExecutionState
from flinkmagic.scheduling.executions import Executions
from flinkmagic.scheduling.partition_tracker import JobMasterPartitionTracker
from flinkmagic.scheduling.scheduling_topology import SchedulingTopology
from flinkmagic.scheduling.slots.execution_slot_allocator import SlotSharingExecutionSlotAllocator

_S = ExecutionState
ON_EXECUTOR = frozenset({_S.DEPLOYING, _S.INITIALIZING, _S.RUNNING})
"""States in which an executor works on the execution and has not been told to stop."""


class ExecutionOperations:
    """Cancels executions, and cleans up after those that are over.

    An execution that is over releases its results first (unless it is FINISHED), then its slot, and last it notifies
    those who wait for its end: they may schedule the vertex again within the call.
    """

    def __init__(
        self,
        executions: Executions,
        allocator: SlotSharingExecutionSlotAllocator,
        tracker: JobMasterPartitionTracker,
        topology: SchedulingTopology,
    ) -> None:
        self._executions = executions
        self._allocator = allocator
        self._tracker = tracker
        self._topology = topology

    def end(
        self, vertex: int, to: ExecutionState, error: BaseException | None = None, at_ms: float | None = None
    ) -> None:
        """Move an execution to CANCELED or FAILED."""
        self._executions.transition(vertex, to, error, at_ms)
        self._tracker.stop_tracking_and_release(self._topology.produced_partitions(vertex))
        self.leave_slot(vertex)

    def leave_slot(self, vertex: int) -> None:
        """Return the slot of an execution that is over."""
        self._executions.slots.pop(vertex, None)
        self._allocator.release(vertex)
        self._executions.notify_terminal(vertex)

    def cancel_on_executor(self, vertex: int) -> None:
        """Tell an executor to stop an execution; the executor reports how it ends."""
        slot = self._executions.slots[vertex]
        slot.gateway.cancel_task(self._executions.attempt_id(vertex))

    def cancel(self, vertices: Iterable[int]) -> None:
        """Cancel executions; requests for slots go first, so that no returned slot fulfils one of them."""
        vertices = [vertex for vertex in vertices if not self._executions.is_terminal(vertex)]
        for vertex in vertices:
            if self._executions.state(vertex) is _S.SCHEDULED and vertex not in self._executions.slots:
                self._allocator.release(vertex, SlotRequestCanceledError())
        for vertex in vertices:
            state = self._executions.state(vertex)
            if state is _S.CREATED or state is _S.SCHEDULED:
                self._executions.transition(vertex, _S.CANCELING)
                self.end(vertex, _S.CANCELED)
            elif state in ON_EXECUTOR:
                self._executions.transition(vertex, _S.CANCELING)
                self.cancel_on_executor(vertex)
