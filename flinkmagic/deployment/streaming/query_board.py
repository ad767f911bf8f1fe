"""Keeps the board of a streaming job: each query is the tasks of its region, which begin and end together.

1. Each task gets its slot immediately: Spark makes tasks wait that find no core.
2. A query is started when all of its tasks have been deployed. They run when Spark says that it does.
3. When cancelled, a task of a running query becomes CANCELED once the query has ended; one of a query that was not
   started, immediately.
4. All tasks end with the query. Where subtasks exchange nothing, a query is several regions: each must fail to be
   restarted with the others. The sink's last task is the last of all, and the first to fail.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import count
from typing import Any

from flinkmagic.deployment.board.messages import (
    CancelRequested,
    GiveSlot,
    Instruction,
    Later,
    NothingRuns,
    Report,
    RequestCanceled,
    SlotFreed,
    SlotRequested,
    TaskDeployed,
)
from flinkmagic.graph.execution_graph import ExecutionAttemptID, ExecutionGraph
from flinkmagic.graph.execution_state import ExecutionState

SESSION = "session"
"""The one executor of a streaming job: Spark places the tasks of each batch itself."""


@dataclass(frozen=True)
class QueryStarted:
    """A query runs."""

    index: int


@dataclass(frozen=True)
class QueryEnded:
    """A query has ended; by itself or because it was stopped if there is no error."""

    index: int
    error: BaseException | None = None


@dataclass(frozen=True)
class StartQuery:
    """Start a query."""

    index: int


@dataclass(frozen=True)
class StopQuery:
    """Stop a query, also one that is only about to start."""

    index: int


@dataclass(eq=False)
class QueryTasks:
    """The tasks of one query."""

    vertices: frozenset[int]
    """Its execution vertices."""
    attempts: dict[int, ExecutionAttemptID] = field(default_factory=dict)
    """By execution vertex, what was deployed; of all of them while the query runs."""
    canceled: set[ExecutionAttemptID] = field(default_factory=set)
    """The attempts that were cancelled since the query was started; empty while it does not run."""
    is_running: bool = False
    """Whether the query was started, and has not ended."""

    def validate(self) -> None:
        """Check each field against the others."""
        assert self.attempts.keys() <= self.vertices
        assert self.is_running == (self.attempts.keys() == self.vertices)
        assert self.canceled <= set(self.attempts.values()) if self.is_running else not self.canceled


class QueryBoard:
    """Applies the rules to the queries of one job.

    Parameters
    ----------
    queries : mapping of int to iterable of int
        By the index of a query's sink, its execution vertices.
    """

    required = 0

    def __init__(self, graph: ExecutionGraph, queries: Mapping[int, Iterable[int]]) -> None:
        self.queries = {index: QueryTasks(frozenset(vertices)) for index, vertices in queries.items()}
        self._graph = graph
        self._query_of = {vertex: index for index, query in self.queries.items() for vertex in query.vertices}
        self._numbers = count()
        self._rules: dict[type[Any], Callable[[Any], Iterable[Instruction | StartQuery | StopQuery]]] = {
            SlotRequested: self._slot_requested,
            RequestCanceled: lambda _event: (),  # each was fulfilled
            SlotFreed: lambda _event: (),  # no slot is given a second time
            TaskDeployed: self._task_deployed,
            CancelRequested: self._cancel_requested,
            QueryStarted: self._query_started,
            QueryEnded: self._query_ended,
        }

    @property
    def is_idle(self) -> bool:
        """Whether no query runs."""
        return not any(query.is_running for query in self.queries.values())

    def validate(self) -> None:
        """Raise AssertionError if an invariant does not hold."""
        for query in self.queries.values():
            query.validate()

    def handle(self, event: Any) -> Iterator[Instruction | StartQuery | StopQuery]:
        """Return what to do about an event; carry out each instruction before the next one is taken."""
        yield from self._rules[type(event)](event)

    def _task_of(self, attempt: ExecutionAttemptID) -> tuple[int, int]:
        vertex = self._graph.job_vertex_by_id(attempt.job_vertex_id).first + attempt.subtask
        return self._query_of[vertex], vertex

    def _slot_requested(self, event: SlotRequested) -> Iterator[Instruction]:
        yield GiveSlot(event.vertex, f"{SESSION}_{next(self._numbers)}", SESSION)

    def _task_deployed(self, event: TaskDeployed) -> Iterator[StartQuery]:
        index, vertex = self._task_of(event.attempt)
        query = self.queries[index]
        query.attempts[vertex] = event.attempt
        if query.attempts.keys() == query.vertices:
            query.is_running = True
            yield StartQuery(index)

    def _cancel_requested(self, event: CancelRequested) -> Iterator[Instruction | StopQuery]:
        index, vertex = self._task_of(event.attempt)
        query = self.queries[index]
        is_known = query.attempts.get(vertex) == event.attempt
        if is_known and query.is_running:
            query.canceled.add(event.attempt)
            yield StopQuery(index)
            return
        if is_known:
            del query.attempts[vertex]
        yield Later(Report(event.attempt, ExecutionState.CANCELED))

    def _query_started(self, event: QueryStarted) -> Iterator[Instruction]:
        query = self.queries[event.index]
        for state in (ExecutionState.INITIALIZING, ExecutionState.RUNNING):
            for attempt in list(query.attempts.values()):
                if attempt not in query.canceled:
                    yield Report(attempt, state)

    def _query_ended(self, event: QueryEnded) -> Iterator[Instruction]:
        query = self.queries[event.index]
        attempts, canceled = query.attempts, query.canceled
        query.attempts, query.canceled, query.is_running = {}, set(), False
        for vertex in sorted(attempts, reverse=True):
            if attempts[vertex] in canceled:
                yield Report(attempts[vertex], ExecutionState.CANCELED)
            elif event.error is not None:
                yield Report(attempts[vertex], ExecutionState.FAILED, event.error)
            else:
                yield Report(attempts[vertex], ExecutionState.FINISHED)
        if self.is_idle:
            yield NothingRuns()
