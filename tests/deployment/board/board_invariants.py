"""What must be true of a stage board's state after every event."""

from __future__ import annotations

from collections import Counter

from flinkmagic.deployment.board.state import BoardState, RemadeRun, Run, Subtask, VertexRun
from flinkmagic.deployment.board.subtask_states import HAS_REQUEST, HELD, SubtaskState


def check_board(state: BoardState) -> None:
    """Raise AssertionError if an invariant does not hold."""
    for run in {*state.active.values(), *state.remade.values(), *state.runs.values()}:
        _check_run(run)
    waiting = [
        (request, (index, subtask))
        for index, requests in state.waiting.items()
        for subtask, request in requests.items()
    ]
    in_runs = [
        (one.request, (run.index, one.number))
        for run in state.all_runs()
        for one in run.subtasks.values()
        if one.request is not None
    ]
    assert sorted(waiting + in_runs) == sorted(state.requests.items())
    for index, run in state.active.items():
        assert run.index == index
        assert not run.is_over
    for tag, run in state.runs.items():
        assert (run.tag, run.region[0]) == (tag, run)
    assert all(run in state.runs[run.tag].region for run in state.active.values())
    assert all(state.runs[tag].outcome is None for tag in state.ended)
    assert state.launching is None


def _check_run(run: Run) -> None:
    """Check the subtasks, and what is counted of them."""
    assert +run.counts == Counter(one.state for one in run.subtasks.values()), run.counts
    for number, one in run.subtasks.items():
        _check_subtask(one)
        assert one.number == number
        assert one.state not in (SubtaskState.EXPECTED, SubtaskState.REPLACED), one
    if isinstance(run, VertexRun):
        _check_vertex_run(run)
    elif isinstance(run, RemadeRun):
        assert run.needed_by.keys() <= run.subtasks.keys()
        assert all(needing.outcome is None for needing in run.needed_by.values())


def _check_subtask(one: Subtask) -> None:
    """Check each field against the state."""
    assert (one.request is not None) == (one.state in HAS_REQUEST), one
    assert one.succeeded_ms is not None or one.state not in HELD, one
    assert one.end is not None or not one.told, one
    assert set(one.unannounced) <= set(one.attempts()), one
    assert one.told <= set(one.attempts()), one


def _check_vertex_run(run: VertexRun) -> None:
    """Check the run, and that its region agrees."""
    assert run in run.region
    for other in run.region:
        assert (other.tag, other.outcome, other.is_cancelled) == (run.tag, run.outcome, run.is_cancelled)
    assert (run.first_failed is None) == (run.last_failed is None)
    assert run.failure_to_tell is None or run.outcome is not None
    # Tasks and helpers of a job that was cancelled may still be launched when the run is over.
    is_done = run.outcome is not None and not run.helpers and run.are_all_over and not run.has_running_tasks
    assert run.is_over or not is_done, run
    assert not run.is_over or (run.outcome is not None and run.are_all_over), run
