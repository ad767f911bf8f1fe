"""The table of a subtask's states keeps its promises, whatever is said of a subtask, and in whichever order."""

from __future__ import annotations

import pytest
from fake_spark import graph_of
from hypothesis import given, settings
from hypothesis import strategies as st

from flinkmagic.deployment.board.stage_members import StageMembers
from flinkmagic.deployment.board.state import STORY, Run
from flinkmagic.deployment.board.subtask_states import (
    HAS_REQUEST,
    NEEDS_SLOT,
    OVER,
    TABLE,
    SubtaskAction,
    SubtaskEvent,
    SubtaskState,
)
from flinkmagic.errors.deployment import IllegalSubtaskEventError

STAGE = StageMembers(graph_of({"Map": (3, []), "Write": (1, ["Map"])})).stage_of(0)
SETTLES_REQUEST = {
    SubtaskAction.GIVE_SLOT,
    SubtaskAction.GIVE_SLOT_WITHOUT_TASK,
    SubtaskAction.REFUSE,
    SubtaskAction.HAND_BACK,
}
ENDS = {
    SubtaskAction.TELL_FINISHED,
    SubtaskAction.TELL_FAILED,
    SubtaskAction.TELL_CANCELED,
    SubtaskAction.REFUSE,
    SubtaskAction.HAND_BACK,
    SubtaskAction.ASK_AGAIN,
}
"""The actions by which others hear of the end of a life; `WITHDRAW` and `REPLACE` come from those who know it."""
ENDED_BY_WHO_KNOWS = {SubtaskEvent.WITHDRAW, SubtaskEvent.REPLACE}


def reached_from(*first):
    reached, frontier = set(first), list(first)
    while frontier:
        state = frontier.pop()
        for to in {to for (source, _), (to, _) in TABLE.items() if source is state} - reached:
            reached.add(to)
            frontier.append(to)
    return reached


def test_every_state_is_reached_and_every_life_can_end():
    assert reached_from(SubtaskState.EXPECTED) == set(SubtaskState)
    assert all(reached_from(state) & OVER for state in SubtaskState)


def test_every_event_and_every_action_is_in_the_table():
    assert {event for _, event in TABLE} == set(SubtaskEvent)
    assert {action for _, actions in TABLE.values() for action in actions} == set(SubtaskAction)


@pytest.mark.parametrize(("state", "event"), TABLE, ids=str)
def test_a_row_ends_a_life_once_and_settles_a_request_once(state, event):
    to, actions = TABLE[state, event]
    ends = [action for action in actions if action in ENDS]
    if state in OVER:
        assert to is state
        assert set(actions) <= {SubtaskAction.ASK_TO_REPLACE}
    else:
        assert len(ends) == (to in OVER and event not in ENDED_BY_WHO_KNOWS)
    settled = [action for action in actions if action in SETTLES_REQUEST]
    leaves = state in HAS_REQUEST and to not in HAS_REQUEST
    assert len(settled) == (leaves and event is not SubtaskEvent.WITHDRAW)


def test_what_needs_a_slot_is_what_has_neither_ended_nor_succeeded():
    assert {state.name for state in NEEDS_SLOT} == {
        "EXPECTED", "REQUESTED", "RUNNING", "ABORTING", "GIVEN_UP", "CANCELLING"
    }  # fmt: skip


@settings(max_examples=300, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 2), st.sampled_from(SubtaskEvent)), max_size=60))
def test_whatever_is_said_counts_are_right_and_a_life_ends_once(said):
    run = Run(STAGE)
    for number in range(3):
        run.put(number, run.new(number, SubtaskState.REQUESTED))
    lives = run.every()
    ends = [0, 0, 0]
    for number, event in said:
        life = lives[number]
        before, story = life.state, tuple(life.story)
        if (before, event) not in TABLE:
            with pytest.raises(IllegalSubtaskEventError) as refused:
                run.take(life, event)
            assert (refused.value.story, life.state, tuple(life.story)) == (story, before, story)
        else:
            actions = run.take(life, event)
            assert (life.state, actions) == TABLE[before, event]
            ends[number] += sum(action in ENDS for action in actions)
            ends[number] += event in ENDED_BY_WHO_KNOWS and before not in OVER
        assert {state: run.counts[state] for state in SubtaskState} == {
            state: sum(life.state is state for life in lives) for state in SubtaskState
        }
        assert run.unfinished == sum(life.state in NEEDS_SLOT for life in lives)
        assert ends == [int(life.is_over) for life in lives]


def test_an_illegal_event_tells_the_story_over_all_executions_of_the_subtask():
    run = Run(STAGE)
    first = run.new(0, SubtaskState.REQUESTED)
    run.take(first, SubtaskEvent.LAUNCHED)
    second = run.new(0, SubtaskState.EXPECTED, first)
    with pytest.raises(IllegalSubtaskEventError) as refused:
        run.take(second, SubtaskEvent.LAUNCHED)
    assert str(refused.value) == (
        "Source: Map (1/3) cannot take LAUNCHED in EXPECTED. Its story: REQUESTED; LAUNCHED: RUNNING; EXPECTED. "
        "This is a bug of flinkmagic: please report it."
    )


def test_a_story_keeps_its_end():
    run = Run(STAGE)
    life = run.new(0, SubtaskState.REQUESTED)
    for _ in range(STORY + 5):
        run.take(life, SubtaskEvent.LAUNCHED)
    assert life.story == ["LAUNCHED: RUNNING"] * STORY
