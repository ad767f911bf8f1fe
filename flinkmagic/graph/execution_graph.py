"""The ExecutionGraph: a job's subtasks, with the state of the attempts to run them in columns.

Mirrors ``DefaultExecutionGraph``. Departure: Flink has objects for vertices, executions and partitions; here state,
attempt and timestamps are numpy columns by a global index, and objects are light views made on demand. Acting on states
(deploying, cancelling, waiting) is the scheduler's task; the graph only checks and stores.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from flinkmagic.errors.scheduling import IllegalStateTransitionError
from flinkmagic.graph.access_execution_graph import NO_NAME, AccessExecutionGraph, Columns
from flinkmagic.graph.execution import Execution, ExecutionAttemptID, ExecutionVertex
from flinkmagic.graph.execution_state import ALLOWED, ALLOWED_IN_RECOVERY, ExecutionState
from flinkmagic.graph.execution_topology import ExecutionTopology
from flinkmagic.graph.job_graph import JobGraph

__all__ = [
    "ArchivedExecutionGraph",
    "Execution",
    "ExecutionAttemptID",
    "ExecutionGraph",
    "ExecutionVertex",
]

MAX_PRIOR_EXECUTIONS = 16
"""How many earlier attempts of a subtask are kept (``jobmanager.execution.attempts-history-size``)."""

_CREATED = ExecutionState.CREATED.value
_MAY: list[list[bool]] = ALLOWED.tolist()
_MAY_IN_RECOVERY: list[list[bool]] = ALLOWED_IN_RECOVERY.tolist()


class ArchivedExecutionGraph(AccessExecutionGraph):
    """An ExecutionGraph as it was at one moment, for readers on other threads. Mirrors ``ArchivedExecutionGraph``."""


class ExecutionGraph(AccessExecutionGraph):
    """The live graph. Its state is changed on the scheduler's thread only, through the methods here.

    Parameters
    ----------
    at_ms : float
        When the executions enter CREATED, in milliseconds.

    Raises
    ------
    ExecutionGraphRefusedError
        If Flink refuses the job too.
    """

    def __init__(self, job_graph: JobGraph, at_ms: float = 0.0) -> None:
        topology = ExecutionTopology(job_graph)
        n_vertices = topology.n_vertices
        columns = Columns(at_ms, np.zeros(n_vertices, dtype=np.uint8), np.zeros(n_vertices, dtype=np.int32))
        super().__init__(topology, columns)
        self._name_numbers: dict[str, int] = {}

    def transition(
        self,
        index: int | np.integer | npt.NDArray[np.integer],
        to: ExecutionState,
        at_ms: float,
        error: BaseException | None = None,
        *,
        recovering: bool = False,
    ) -> None:
        """Move the current executions of one or several vertices to a state.

        Parameters
        ----------
        recovering : bool
            Whether earlier work is taken over: then what is not over may become FINISHED immediately.

        Raises
        ------
        IllegalStateTransitionError
            If the table of transitions lacks one of them; then no transition is made.
        """
        columns = self._columns
        code = to.value
        if isinstance(index, np.integer):
            index = int(index)
        if isinstance(index, int):
            if not (_MAY_IN_RECOVERY if recovering else _MAY)[columns.state[index]][code]:
                self._refuse(index, to)
        else:
            allowed = (ALLOWED_IN_RECOVERY if recovering else ALLOWED)[columns.state[index], code]
            if not allowed.all():
                self._refuse(int(index[np.flatnonzero(~allowed)[0]]), to)
        columns.state[index] = code
        column = columns.timestamps.get(code)
        (self._column_of(code) if column is None else column)[index] = at_ms
        if error is not None:
            columns.errors.update(dict.fromkeys([index] if isinstance(index, int) else index.tolist(), error))

    def _refuse(self, index: int, to: ExecutionState) -> None:
        vertex = self.execution_vertex(index)
        execution = vertex.current_execution
        raise IllegalStateTransitionError(
            vertex.task_name_with_attempt, execution.state.name, to.name, execution.history()
        )

    def _column_of(self, code: int) -> npt.NDArray[np.float64]:
        columns = self._columns
        if code not in columns.timestamps:
            columns.timestamps[code] = self.timestamps(ExecutionState(code))
        return columns.timestamps[code]

    def reset_for_new_execution(self, index: int, at_ms: float) -> None:
        """Move a vertex's current execution to the prior ones and begin a new one, in CREATED."""
        columns = self._columns
        priors = (*columns.priors.get(index, ()), self.current_execution(index))
        columns.priors[index] = priors[-MAX_PRIOR_EXECUTIONS:]
        created = self._column_of(_CREATED)
        for column in columns.timestamps.values():
            column[index] = np.nan
        created[index] = at_ms
        columns.state[index] = _CREATED
        columns.attempt[index] += 1
        columns.errors.pop(index, None)
        for names in (columns.resource, columns.slot):
            if names is not None:
                names[index] = NO_NAME

    def assign_resource(self, index: int, resource_id: str, allocation_id: str) -> None:
        """Note the executor and slot in which the current execution of a vertex runs."""
        columns = self._columns
        if columns.resource is None or columns.slot is None:
            columns.resource = np.full(self.n_vertices, NO_NAME, dtype=np.int32)
            columns.slot = np.full(self.n_vertices, NO_NAME, dtype=np.int32)
        columns.resource[index] = self._number_of(resource_id)
        columns.slot[index] = self._number_of(allocation_id)

    def _number_of(self, name: str) -> int:
        names = self._columns.names
        number = self._name_numbers.setdefault(name, len(names))
        if number == len(names):
            names.append(name)
        return number

    def archive(self) -> ArchivedExecutionGraph:
        """Return an immutable copy for readers on other threads."""
        return ArchivedExecutionGraph(self._topology, self._columns.copy())
