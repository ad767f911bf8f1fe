from __future__ import annotations

import numpy as np
import pytest

from flinkmagic.graph.execution_state import (
    ALLOWED,
    ALLOWED_IN_RECOVERY,
    RECOVERY_TRANSITIONS,
    STATES,
    TRANSITIONS,
    ExecutionState,
)


def test_codes_are_the_places_in_states() -> None:
    assert [state.value for state in STATES] == list(range(len(STATES)))


def test_the_terminal_states_are_those_that_nothing_leaves() -> None:
    stuck = {state for state, targets in TRANSITIONS.items() if not targets}
    assert stuck == {state for state in ExecutionState if state.is_terminal}
    assert stuck == {ExecutionState.FINISHED, ExecutionState.CANCELED, ExecutionState.FAILED}


@pytest.mark.parametrize("table", [TRANSITIONS, RECOVERY_TRANSITIONS])
def test_every_state_is_in_the_table_and_reachable(table: dict[ExecutionState, frozenset[ExecutionState]]) -> None:
    assert set(table) == set(ExecutionState)
    reached, frontier = {ExecutionState.CREATED}, [ExecutionState.CREATED]
    while frontier:
        for target in table[frontier.pop()] - reached:
            reached.add(target)
            frontier.append(target)
    assert reached == set(ExecutionState)


def test_a_failure_while_cancelling_ends_cancelled() -> None:
    assert TRANSITIONS[ExecutionState.CANCELING] == {ExecutionState.CANCELED}


def test_only_recovery_finishes_what_has_not_been_deployed() -> None:
    for state in (ExecutionState.CREATED, ExecutionState.SCHEDULED, ExecutionState.CANCELING):
        assert ExecutionState.FINISHED not in TRANSITIONS[state]
        assert ExecutionState.FINISHED in RECOVERY_TRANSITIONS[state]


def test_the_matrices_say_what_the_tables_say() -> None:
    for matrix, table in ((ALLOWED, TRANSITIONS), (ALLOWED_IN_RECOVERY, RECOVERY_TRANSITIONS)):
        assert int(np.count_nonzero(matrix)) == sum(map(len, table.values()))
        assert all(matrix[source.value, target.value] for source, targets in table.items() for target in targets)
        assert not matrix.flags.writeable
