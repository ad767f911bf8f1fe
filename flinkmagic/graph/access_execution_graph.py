"""What can be read of an ExecutionGraph, live or archived. Mirrors ``AccessExecutionGraph``."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from flinkmagic.graph.execution import Execution, ExecutionAttemptID, ExecutionVertex
from flinkmagic.graph.execution_job_vertex import ExecutionJobVertex
from flinkmagic.graph.execution_state import STATES, ExecutionState
from flinkmagic.graph.execution_topology import ExecutionTopology

_Scalar = TypeVar("_Scalar", bound=np.generic)

NO_NAME = -1
"""In a column of names: no name."""


@dataclass(eq=False, slots=True)
class Columns:
    """The data that changes while a job runs, by global index of the execution vertex.

    ``timestamps`` has a column for each state that any vertex entered; ``names`` are the texts that the ``resource``
    and ``slot`` columns refer to. The optional columns are allocated when first written.
    """

    created_at_ms: float
    state: npt.NDArray[np.uint8]
    attempt: npt.NDArray[np.int32]
    timestamps: dict[int, npt.NDArray[np.float64]] = field(default_factory=dict)
    resource: npt.NDArray[np.int32] | None = None
    slot: npt.NDArray[np.int32] | None = None
    names: list[str] = field(default_factory=list)
    errors: dict[int, BaseException] = field(default_factory=dict)
    priors: dict[int, tuple[Execution, ...]] = field(default_factory=dict)

    def copy(self) -> Columns:
        """Return a copy that nothing writes to."""
        return Columns(
            self.created_at_ms,
            _frozen(self.state),
            _frozen(self.attempt),
            {code: _frozen(column) for code, column in self.timestamps.items()},
            None if self.resource is None else _frozen(self.resource),
            None if self.slot is None else _frozen(self.slot),
            self.names[:],
            dict(self.errors),
            dict(self.priors),
        )


class AccessExecutionGraph:
    """Reads the structure and the columns of an ExecutionGraph.

    Execution vertices have a global index: job vertices in topological order, subtasks ascending. Result partitions and
    groups have global indices of their own.
    """

    def __init__(self, topology: ExecutionTopology, columns: Columns) -> None:
        self._topology = topology
        self._columns = columns
        self.job_graph = topology.job_graph
        self.job_id = topology.job_graph.job_id
        self.job_vertices = topology.job_vertices
        """In topological order."""
        self.results = topology.results
        """In the order of their producers."""
        self.connections = topology.connections
        """The edges in the order of their consumers, input by input; it is the order of the groups."""
        self.pipelined_regions = topology.pipelined_regions
        """Which vertices must run simultaneously."""
        self.n_vertices = topology.n_vertices
        self.n_partitions = topology.n_partitions
        self.n_groups = topology.n_groups
        self.state = columns.state
        """The codes of the current executions' states."""
        self.attempt = columns.attempt
        """The numbers of the current attempts, from 0."""

    def timestamps(self, state: ExecutionState) -> npt.NDArray[np.float64]:
        """Return when the current executions entered a state, in milliseconds; NaN for those that did not."""
        column = self._columns.timestamps.get(state.value)
        if column is not None:
            return column
        initial = self._columns.created_at_ms if state is ExecutionState.CREATED else np.nan
        return np.full(self.n_vertices, initial)

    # Vertices

    def job_vertex_of(self, index: int) -> ExecutionJobVertex:
        """Return the job vertex of an execution vertex."""
        topology = self._topology
        return topology.job_vertices[bisect_right(topology.first_vertices, index) - 1]

    def job_vertex_by_id(self, job_vertex_id: str) -> ExecutionJobVertex:
        """Return the job vertex with an id."""
        return self._topology.by_id[job_vertex_id]

    def execution_vertex(self, index: int) -> ExecutionVertex:
        """Return a view of an execution vertex."""
        if not 0 <= index < self.n_vertices:
            raise IndexError(f"the graph has {self.n_vertices} execution vertices, no number {index}")
        return ExecutionVertex(self, index, self.job_vertex_of(index))

    def state_of(self, index: int) -> ExecutionState:
        """Return the state of the current execution of a vertex."""
        return STATES[int(self._columns.state[index])]

    def current_execution(self, index: int) -> Execution:
        """Return a snapshot of a vertex's current attempt."""
        columns = self._columns
        job_vertex = self.job_vertex_of(index)
        return Execution(
            ExecutionAttemptID(job_vertex.id, index - job_vertex.first, int(columns.attempt[index])),
            STATES[columns.state[index]],
            self._timestamps_of(index),
            self._name(columns.resource, index),
            self._name(columns.slot, index),
            columns.errors.get(index),
        )

    def prior_executions(self, index: int) -> tuple[Execution, ...]:
        """Return the earlier attempts of a vertex that are kept, oldest first."""
        return self._columns.priors.get(index, ())

    def _timestamps_of(self, index: int) -> Mapping[ExecutionState, float]:
        columns = self._columns
        found = {}
        if ExecutionState.CREATED.value not in columns.timestamps:
            found[ExecutionState.CREATED] = columns.created_at_ms
        for code, column in columns.timestamps.items():
            at_ms = float(column[index])
            if at_ms == at_ms:  # not NaN
                found[STATES[code]] = at_ms
        return found

    def _name(self, column: npt.NDArray[np.int32] | None, index: int) -> str | None:
        if column is None or column[index] == NO_NAME:
            return None
        return self._columns.names[int(column[index])]

    def produced_partitions(self, index: int) -> list[int]:
        """Return the partitions that a vertex makes, result by result."""
        job_vertex = self.job_vertex_of(index)
        return [result.first_partition + index - job_vertex.first for result in job_vertex.produced_results]


def _frozen(column: npt.NDArray[_Scalar]) -> npt.NDArray[_Scalar]:
    copy: npt.NDArray[_Scalar] = column.copy()
    copy.setflags(write=False)
    return copy
