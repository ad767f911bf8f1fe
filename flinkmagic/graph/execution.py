"""Executions and execution vertices: light views of an ExecutionGraph's columns."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from flinkmagic.graph.execution_state import ExecutionState

if TYPE_CHECKING:
    from flinkmagic.graph.access_execution_graph import AccessExecutionGraph
    from flinkmagic.graph.execution_job_vertex import ExecutionJobVertex


class ExecutionAttemptID(NamedTuple):
    """One attempt to run a subtask, counted from 0. Mirrors ``ExecutionAttemptID``."""

    job_vertex_id: str
    subtask: int
    attempt: int

    def __str__(self) -> str:
        return f"{self.job_vertex_id}_{self.subtask}_{self.attempt}"


@dataclass(frozen=True)
class Execution:
    """A snapshot of an attempt to run a subtask. Mirrors ``Execution`` and ``ArchivedExecution``."""

    attempt_id: ExecutionAttemptID
    state: ExecutionState
    timestamps: Mapping[ExecutionState, float]
    """When the execution came into each state, in milliseconds."""
    resource_id: str | None = None
    slot: str | None = None
    """The executor and the slot's allocation id."""
    error: BaseException | None = None
    """Why it failed."""

    @property
    def attempt(self) -> int:
        """The number of the attempt, from 0."""
        return self.attempt_id.attempt

    def history(self) -> tuple[str, ...]:
        """Return the states that it went through, as readable text."""
        ordered = sorted(self.timestamps.items(), key=lambda item: (item[1], item[0].value))
        return tuple(f"{state.name} at {at_ms:.0f} ms" for state, at_ms in ordered)


class ExecutionVertex:
    """A subtask: an index into the graph's columns. Mirrors ``ExecutionVertex``."""

    __slots__ = ("graph", "index", "job_vertex", "subtask")

    def __init__(self, graph: AccessExecutionGraph, index: int, job_vertex: ExecutionJobVertex) -> None:
        self.graph = graph
        self.index = index
        self.job_vertex = job_vertex
        self.subtask = index - job_vertex.first

    @property
    def task_name(self) -> str:
        """Its display name: ``Map (3/8)``."""
        return self.job_vertex.task_name(self.subtask)

    @property
    def task_name_with_attempt(self) -> str:
        """The same with the attempt: ``Map (3/8)#1``."""
        return f"{self.task_name}#{self.graph.attempt[self.index]}"

    @property
    def state(self) -> ExecutionState:
        """The state of the current execution."""
        return self.graph.state_of(self.index)

    @property
    def current_execution(self) -> Execution:
        """The current attempt."""
        return self.graph.current_execution(self.index)

    @property
    def prior_executions(self) -> tuple[Execution, ...]:
        """The attempts before it that are kept, oldest first."""
        return self.graph.prior_executions(self.index)

    def __repr__(self) -> str:
        return f"ExecutionVertex({self.task_name_with_attempt}, {self.state.name})"
