"""Moves the executions of a job from state to state by the table; counts and dates them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from flinkmagic.graph.execution import ExecutionAttemptID
from flinkmagic.graph.execution_graph import ExecutionGraph
from flinkmagic.graph.execution_state import STATES, ExecutionState
from flinkmagic.scheduling.clock import Clock
from flinkmagic.scheduling.completable_future import CompletableFuture, all_done
from flinkmagic.scheduling.job_status import JobListener
from flinkmagic.scheduling.slots.physical_slot_provider import PhysicalSlot

IS_TERMINAL = tuple(state.is_terminal for state in STATES)
"""Whether a state is terminal, by its code."""

_CREATED, _FINISHED = ExecutionState.CREATED, ExecutionState.FINISHED


class Executions:
    """Moves the executions of an execution graph, and counts them by state.

    Parameters
    ----------
    clock : Clock
        Dates transitions for which no earlier instant is given.
    """

    def __init__(self, graph: ExecutionGraph, clock: Clock, listeners: Sequence[JobListener]) -> None:
        self.graph = graph
        self._clock = clock
        self._listeners = listeners
        self._states = graph.state
        self._first_of = {jv.id: (jv.first, jv.parallelism) for jv in graph.job_vertices}
        self.slots: dict[int, PhysicalSlot] = {}
        """The slot of each vertex whose current execution has one and is not terminal."""
        self.last_resource: dict[int, str] = {}
        """The executor of each vertex that ever had one: where it ran, and where its results are."""
        self._terminal_futures: dict[int, CompletableFuture[None]] = {}
        self.n_finished = 0
        self.n_terminal = 0

    def state(self, vertex: int) -> ExecutionState:
        """Return the state of a vertex's current execution."""
        return STATES[int(self._states[vertex])]

    def is_terminal(self, vertex: int) -> bool:
        """Return whether a vertex's current execution is over."""
        return IS_TERMINAL[int(self._states[vertex])]

    def finished_vertices(self) -> list[int]:
        """Return all vertices whose current execution is FINISHED, ascending."""
        finished: list[int] = np.flatnonzero(self._states == _FINISHED.value).tolist()
        return finished

    def vertex_of(self, attempt_id: ExecutionAttemptID) -> int | None:
        """Return the vertex that has `attempt_id` as its current execution; None if none has."""
        first, parallelism = self._first_of.get(attempt_id.job_vertex_id, (0, 0))
        if not 0 <= attempt_id.subtask < parallelism:
            return None
        vertex = first + attempt_id.subtask
        return vertex if self.graph.attempt[vertex] == attempt_id.attempt else None

    def transition(
        self, vertex: int, to: ExecutionState, error: BaseException | None = None, at_ms: float | None = None
    ) -> None:
        """Move the current execution of a vertex."""
        at_ms = self._clock.now_ms() if at_ms is None else at_ms
        self.graph.transition(vertex, to, at_ms, error)
        if to.is_terminal:
            self.n_terminal += 1
            if to is _FINISHED:
                self.n_finished += 1
        self._tell((vertex,), to, at_ms, error)

    def assign(self, vertex: int, slot: PhysicalSlot) -> None:
        """Record the slot of a vertex's current execution."""
        self.slots[vertex] = slot
        self.last_resource[vertex] = slot.resource_id
        self.graph.assign_resource(vertex, slot.resource_id, slot.allocation_id)

    def transition_all(self, vertices: Sequence[int], to: ExecutionState) -> None:
        """Move the current executions of several vertices to a state that is not terminal."""
        if len(vertices) == 1:
            self.transition(vertices[0], to)
            return
        at_ms = self._clock.now_ms()
        self.graph.transition(np.asarray(vertices, dtype=np.int64), to, at_ms)
        self._tell(vertices, to, at_ms, None)

    def recover_finished(self, vertex: int, resource_id: str) -> None:
        """Mark a vertex as finished before, with its results on this executor."""
        at_ms = self._clock.now_ms()
        self.graph.assign_resource(vertex, resource_id, "")
        self.last_resource[vertex] = resource_id
        self.graph.transition(vertex, _FINISHED, at_ms, recovering=True)
        self.n_terminal += 1
        self.n_finished += 1
        self._tell((vertex,), _FINISHED, at_ms, None)

    def notify_terminal(self, vertex: int) -> None:
        """Notify those who wait for a vertex's execution to be over; its slot has been returned by now."""
        future = self._terminal_futures.pop(vertex, None)
        if future is not None:
            future.complete(None)

    def all_terminal(self, vertices: Iterable[int]) -> CompletableFuture[None]:
        """Return a future that is done once the current executions of all these vertices are over."""
        futures = [
            self._terminal_futures.setdefault(vertex, CompletableFuture())
            for vertex in vertices
            if not self.is_terminal(vertex)
        ]
        return all_done(futures)

    def reset(self, vertex: int) -> bool:
        """Give a vertex a new execution, in CREATED; return whether the old one was FINISHED."""
        was_finished = self.state(vertex) is _FINISHED
        at_ms = self._clock.now_ms()
        self.graph.reset_for_new_execution(vertex, at_ms)
        self.n_terminal -= 1
        if was_finished:
            self.n_finished -= 1
        self._tell((vertex,), _CREATED, at_ms, None)
        return was_finished

    def attempt_id(self, vertex: int) -> ExecutionAttemptID:
        """Return the id of a vertex's current execution."""
        job_vertex = self.graph.job_vertex_of(vertex)
        return ExecutionAttemptID(job_vertex.id, vertex - job_vertex.first, int(self.graph.attempt[vertex]))

    def task_name(self, vertex: int) -> str:
        """Return a vertex's display name: `Map (3/8)`."""
        job_vertex = self.graph.job_vertex_of(vertex)
        return job_vertex.task_name(vertex - job_vertex.first)

    def _tell(self, vertices: Sequence[int], state: ExecutionState, at_ms: float, error: BaseException | None) -> None:
        for listener in self._listeners:
            listener.on_execution_state_changed(vertices, state, at_ms, error)
