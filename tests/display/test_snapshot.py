from __future__ import annotations

from collections.abc import Callable

import pytest

from flinkmagic.display.palette import ATTENTION, STATES
from flinkmagic.display.snapshot import (
    STATE_NAMES,
    GraphView,
    JobSnapshot,
    leading_state,
    state_counts,
)
from flinkmagic.graph.execution_state import ExecutionState
from tests.display.states import state_codes


def test_state_codes_are_those_of_the_execution_graph() -> None:
    assert dict(enumerate(STATE_NAMES)) == {state.value: state.name for state in ExecutionState}
    assert set(ATTENTION) == set(STATES)


@pytest.mark.parametrize(
    ("states", "speaker"),
    [
        ("", "CREATED"),
        ("CREATED CREATED", "CREATED"),
        ("FINISHED FINISHED", "FINISHED"),
        ("FINISHED CREATED", "RUNNING"),
        ("FINISHED SCHEDULED", "RUNNING"),
        ("RUNNING FAILED FINISHED", "FAILED"),
        ("FINISHED CANCELED", "CANCELED"),
        ("SCHEDULED DEPLOYING", "DEPLOYING"),
        ("CANCELING RUNNING", "CANCELING"),
    ],
)
def test_one_state_speaks_for_a_vertex(states: str, speaker: str) -> None:
    assert leading_state(state_codes(states.split())) == speaker


def test_painting_gives_nodes_the_states_of_their_vertex(view: Callable[..., GraphView], snapshot: JobSnapshot) -> None:
    plain = view()
    painted = plain.paint(snapshot)
    assert painted.nodes[0].state_counts == {"SCHEDULED": 1, "RUNNING": 1, "FINISHED": 2}
    assert painted.status == "RUNNING"
    assert painted.elapsed_ms == 4210.0
    assert plain.nodes[0].states == b""


def test_task_counts(snapshot: JobSnapshot) -> None:
    assert snapshot.n_tasks == 17
    assert snapshot.task_counts == {
        "CREATED": 8, "SCHEDULED": 1, "DEPLOYING": 1, "RUNNING": 1, "FINISHED": 3, "CANCELING": 1, "CANCELED": 1,
        "FAILED": 1,
    }  # fmt: skip
    assert state_counts(b"") == {}
