"""The table of a job's moves is exactly Flink's."""

from __future__ import annotations

import itertools

import pytest

from flinkmagic.errors.scheduling import IllegalStateTransitionError
from flinkmagic.scheduling.clock import ManualClock
from flinkmagic.scheduling.job_status import TRANSITIONS, JobStatus, JobStatusMachine

ARROWS = """
INITIALIZING CREATED FAILED SUSPENDED CANCELLING
CREATED RUNNING RECONCILING CANCELLING FAILING SUSPENDED
RECONCILING RUNNING FAILING SUSPENDED
RUNNING RESTARTING FINISHED CANCELLING FAILING SUSPENDED
RESTARTING RUNNING CANCELLING FAILING SUSPENDED
FAILING FAILED CANCELLING SUSPENDED
CANCELLING CANCELED FAILED FAILING SUSPENDED
"""


def arrows() -> set[tuple[JobStatus, JobStatus]]:
    rows = [line.split() for line in ARROWS.split("\n") if line]
    return {(JobStatus[source], JobStatus[target]) for source, *targets in rows for target in targets}


def test_the_table() -> None:
    assert set(TRANSITIONS) == arrows()


@pytest.mark.parametrize(("source", "target"), sorted(itertools.product(JobStatus, JobStatus), key=str))
def test_a_move_is_made_or_refused_as_the_table_says(source: JobStatus, target: JobStatus) -> None:
    machine = JobStatusMachine("job", ManualClock(), ())
    machine.status = source
    if (source, target) in arrows():
        machine.transition(target)
        assert machine.status is target
    else:
        with pytest.raises(IllegalStateTransitionError, match=f"{source} to {target}"):
            machine.transition(target)
        assert machine.status is source


def test_nothing_leaves_a_terminal_status() -> None:
    terminal = {status for status in JobStatus if status.is_terminal}
    assert terminal == {JobStatus.FINISHED, JobStatus.CANCELED, JobStatus.FAILED, JobStatus.SUSPENDED}
    assert not {source for source, _ in TRANSITIONS} & terminal
    assert not JobStatus.SUSPENDED.is_globally_terminal


def test_moves_are_dated_and_a_refusal_tells_the_story() -> None:
    clock = ManualClock()
    machine = JobStatusMachine("my job", clock, ())
    clock.advance_to(5.0)
    machine.transition(JobStatus.CREATED)
    assert machine.timestamps == {JobStatus.INITIALIZING: 0.0, JobStatus.CREATED: 5.0}
    with pytest.raises(IllegalStateTransitionError) as refusal:
        machine.transition(JobStatus.FINISHED)
    assert refusal.value.history == ("0 ms INITIALIZING", "5 ms CREATED")
    assert "'my job'" in str(refusal.value)
