"""The states of an execution and the transitions between them, as data.

Mirrors ``org.apache.flink.runtime.execution.ExecutionState``. Departures: the codes are part of the interface
(columns of them are kept in numpy arrays), the transitions are one table, and ``RECONCILING`` is absent (nothing here
reconnects to running tasks).
"""

from __future__ import annotations

from enum import Enum

import numpy as np
import numpy.typing as npt


class ExecutionState(Enum):
    """State of one execution (an attempt to run one subtask); the value is its code in columns."""

    CREATED = 0
    SCHEDULED = 1
    DEPLOYING = 2
    INITIALIZING = 3
    RUNNING = 4
    FINISHED = 5
    CANCELING = 6
    CANCELED = 7
    FAILED = 8

    @property
    def is_terminal(self) -> bool:
        """Whether no further transition leaves this state."""
        return self in TERMINAL_STATES


TERMINAL_STATES = frozenset({ExecutionState.FINISHED, ExecutionState.CANCELED, ExecutionState.FAILED})

_S = ExecutionState

TRANSITIONS: dict[ExecutionState, frozenset[ExecutionState]] = {
    _S.CREATED: frozenset({_S.SCHEDULED, _S.CANCELING, _S.FAILED}),
    _S.SCHEDULED: frozenset({_S.DEPLOYING, _S.CANCELING, _S.FAILED}),
    _S.DEPLOYING: frozenset({_S.INITIALIZING, _S.FINISHED, _S.CANCELING, _S.CANCELED, _S.FAILED}),
    _S.INITIALIZING: frozenset({_S.RUNNING, _S.FINISHED, _S.CANCELING, _S.CANCELED, _S.FAILED}),
    _S.RUNNING: frozenset({_S.FINISHED, _S.CANCELING, _S.CANCELED, _S.FAILED}),
    # A failure while cancelling ends in CANCELED: cancelling was what the user wanted.
    _S.CANCELING: frozenset({_S.CANCELED}),
    _S.FINISHED: frozenset(),
    _S.CANCELED: frozenset(),
    _S.FAILED: frozenset(),
}
"""Every transition of a job's normal course. A restart is not a transition: it is a new execution."""

RECOVERY_TRANSITIONS: dict[ExecutionState, frozenset[ExecutionState]] = {
    state: frozenset() if state.is_terminal else targets | {_S.FINISHED} for state, targets in TRANSITIONS.items()
}
"""The same before a job starts: what earlier work has finished becomes FINISHED immediately."""


def _matrix(table: dict[ExecutionState, frozenset[ExecutionState]]) -> npt.NDArray[np.bool_]:
    matrix = np.zeros((len(ExecutionState), len(ExecutionState)), dtype=np.bool_)
    for source, targets in table.items():
        for target in targets:
            matrix[source.value, target.value] = True
    matrix.setflags(write=False)
    return matrix


ALLOWED = _matrix(TRANSITIONS)
ALLOWED_IN_RECOVERY = _matrix(RECOVERY_TRANSITIONS)
STATES: tuple[ExecutionState, ...] = tuple(ExecutionState)
"""The states by code."""
