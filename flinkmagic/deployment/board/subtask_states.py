"""Defines the states of a subtask of a Spark stage, its events, and one table of what an event means in a state.

The states are those of one execution (`state.Subtask`), from the request of its slot to its end. What Spark and the
scheduler report about it comes as events. (state, event) is looked up in `TABLE`, which gives the next state and the
actions. A pair that is not there is a bug. The rules are numbered; each row is below the rule that it implements.

How many of Spark's tasks run for a subtask is no part of its state. Two events report it: `TASKS_OVER`, that none runs
(any more), and `LOST`, the same if the last one was lost with an executor.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import Enum


class SubtaskState(Enum):
    """The progress of a subtask's execution on Spark."""

    EXPECTED = "EXPECTED"
    """It replaces an execution that was lost; its request comes within the call that replaces it."""
    REQUESTED = "REQUESTED"
    """Its request waits for the launch of a task."""
    MERGED = "MERGED"
    """The same, but another subtask's task does its work."""
    UNCLAIMED = "UNCLAIMED"
    """Its request waits, and a task that was launched for the execution before it has succeeded."""
    RUNNING = "RUNNING"
    """Spark has launched a task, and has yet to make one succeed."""
    HELD = "HELD"
    """A task has succeeded; whether that counts depends on the stage."""
    ABORTING = "ABORTING"
    """The stage has failed, and that was reported; Spark is ending the subtask's tasks."""
    GIVEN_UP = "GIVEN_UP"
    """A lost output is being made for a stage that has failed; Spark is ending the tasks that make it."""
    CANCELLING = "CANCELLING"
    """It is being cancelled."""
    CANCELLING_HELD = "CANCELLING_HELD"
    """It is being cancelled, and a task has succeeded."""
    FINISHED = "FINISHED"
    FAILED = "FAILED"
    CANCELED = "CANCELED"
    RETURNED = "RETURNED"
    """Its request was taken back, or waits for another run; or another run is asked to make its output."""
    REPLACED = "REPLACED"
    """Spark runs it again, as another execution."""

    def __str__(self) -> str:
        return self.value


class SubtaskEvent(Enum):
    """What happens to a subtask."""

    REQUEST = "REQUEST"
    """The scheduler asks for a slot."""
    WITHDRAW = "WITHDRAW"
    """The scheduler takes the request back."""
    CANCEL = "CANCEL"
    """The scheduler cancels the execution."""
    MERGE = "MERGE"
    """The stage has fewer tasks than subtasks, and none for this one."""
    LAUNCHED = "LAUNCHED"
    """Spark has launched a task."""
    SUCCEEDED = "SUCCEEDED"
    """A task has succeeded, and Spark had not given the stage up."""
    COUNTS = "COUNTS"
    """Such a success counts now, whatever happens to the stage."""
    TASKS_OVER = "TASKS_OVER"
    """No task of the subtask runs."""
    LOST = "LOST"
    """The last task that ran was lost with its executor, or could not read what was lost with one."""
    TAKEN_BACK = "TAKEN_BACK"
    """The output of the task that succeeded is lost, and Spark makes it again within the same stage."""
    REPLACE = "REPLACE"
    """The scheduler has made the subtask's next execution."""
    STAGE_DONE = "STAGE_DONE"
    """The stage is done; for a lost output, the stage that needs it."""
    STAGE_FAILED = "STAGE_FAILED"
    """The stage has failed or was cancelled, and nothing more is expected."""
    BLAMED = "BLAMED"
    """The stage has failed, and this subtask is the one that fails with the cause."""
    READER_FAILED = "READER_FAILED"
    """The stage that needs a lost output has failed."""

    def __str__(self) -> str:
        return self.value


class SubtaskAction(Enum):
    """What to do about an event."""

    GIVE_SLOT = "GIVE_SLOT"
    """Fulfil the request with a slot on the executor where Spark has launched the task."""
    GIVE_SLOT_WITHOUT_TASK = "GIVE_SLOT_WITHOUT_TASK"
    """Fulfil the request although no task was launched for it."""
    ANNOUNCE = "ANNOUNCE"
    """Report that the execution runs."""
    TELL_FINISHED = "TELL_FINISHED"
    TELL_FAILED = "TELL_FAILED"
    TELL_CANCELED = "TELL_CANCELED"
    REFUSE = "REFUSE"
    """Fail the request."""
    HAND_BACK = "HAND_BACK"
    """Leave the request to a later run of the vertex."""
    ASK_AGAIN = "ASK_AGAIN"
    """Make the vertex itself produce the output."""
    ASK_TO_REPLACE = "ASK_TO_REPLACE"
    """Ask the scheduler for the subtask's next execution; it may have other plans."""
    FORGET_SUCCESS = "FORGET_SUCCESS"
    CANCEL_STAGE = "CANCEL_STAGE"
    """Make Spark end the stage."""


_S, _E, _A = SubtaskState, SubtaskEvent, SubtaskAction

OVER = frozenset({_S.FINISHED, _S.FAILED, _S.CANCELED, _S.RETURNED, _S.REPLACED})
CANCELLING = frozenset({_S.CANCELLING, _S.CANCELLING_HELD})
HELD = frozenset({_S.HELD, _S.UNCLAIMED, _S.CANCELLING_HELD})
"""A task has succeeded, and its execution is not yet reported as finished."""
_AWAITED = (_S.REQUESTED, _S.MERGED, _S.UNCLAIMED)
HAS_REQUEST = frozenset(_AWAITED)
"""Its request waits."""
NEEDS_SLOT = frozenset(_S) - OVER - HELD - {_S.MERGED}
"""A task is still to succeed for it."""

Row = tuple[SubtaskState, SubtaskEvent, SubtaskState, tuple[SubtaskAction, ...]]


def _stays(event: SubtaskEvent, *states: SubtaskState) -> list[Row]:
    """Return an event that changes nothing in these states."""
    return [(state, event, state, ()) for state in states]


def _go(event: SubtaskEvent, to: SubtaskState, *actions: SubtaskAction, of: Iterable[SubtaskState]) -> list[Row]:
    """Return an event that has the same effect in several states."""
    return [(state, event, to, actions) for state in of]


_ENDED = (_S.FINISHED, _S.FAILED, _S.CANCELED, _S.RETURNED)
"""Spark may still report tasks of an execution that is over, unless another one has replaced it."""

_ROWS: list[Row] = [
    # 1. The request of a subtask is fulfilled when Spark launches its first task; until then the execution is
    #    SCHEDULED. What is deployed into that slot is INITIALIZING and RUNNING since the launch: the execution of the
    #    vertex, and those of the vertices upstream that run within the same task (`companions`), which share its
    #    fate. A request may be taken back until then.
    (_S.EXPECTED, _E.REQUEST, _S.REQUESTED, ()),
    (_S.REQUESTED, _E.LAUNCHED, _S.RUNNING, (_A.GIVE_SLOT, _A.ANNOUNCE)),
    (_S.UNCLAIMED, _E.LAUNCHED, _S.HELD, (_A.GIVE_SLOT, _A.ANNOUNCE)),
    *_go(_E.WITHDRAW, _S.RETURNED, of=_AWAITED),
    # 2. Spark's own retries and speculative copies belong to the same execution: it stays RUNNING. Each attempt has a
    #    task record. Copies may outlive the execution.
    *_stays(_E.LAUNCHED, _S.RUNNING, _S.HELD, _S.ABORTING, _S.CANCELLING, _S.CANCELLING_HELD, *_ENDED),
    *_stays(_E.TASKS_OVER, _S.RUNNING, _S.REQUESTED, _S.UNCLAIMED, _S.HELD, _S.CANCELLING_HELD, *_ENDED),
    # 3. A subtask's execution is FINISHED when one of its attempts has succeeded. Those of a stage that counts only as
    #    a whole are held until the stage is done (what a write's tasks did is worth nothing before the commit); in any
    #    other stage only the last one is held, so that no vertex is over while the driver is still at it. A task that
    #    succeeds after Spark has given up the stage's job counts for nothing: Spark drops what it made. (Such an end is
    #    no `SUCCEEDED`.)
    *_go(_E.SUCCEEDED, _S.HELD, of=(_S.RUNNING, _S.ABORTING, _S.GIVEN_UP)),
    (_S.REQUESTED, _E.SUCCEEDED, _S.UNCLAIMED, ()),
    (_S.CANCELLING, _E.SUCCEEDED, _S.CANCELLING_HELD, ()),
    *_stays(_E.SUCCEEDED, *_ENDED),
    *_go(_E.COUNTS, _S.FINISHED, _A.TELL_FINISHED, of=(_S.HELD, _S.CANCELLING_HELD)),
    (_S.UNCLAIMED, _E.COUNTS, _S.FINISHED, (_A.GIVE_SLOT_WITHOUT_TASK, _A.TELL_FINISHED)),
    # 4. When the stage is done, subtasks without a task are finished too: Spark had nothing to do for them, or has
    #    merged their partitions into those of others.
    (_S.REQUESTED, _E.MERGE, _S.MERGED, ()),
    *_stays(_E.MERGE, *_ENDED),
    (_S.MERGED, _E.LAUNCHED, _S.RUNNING, (_A.GIVE_SLOT, _A.ANNOUNCE)),
    *_go(_E.STAGE_DONE, _S.FINISHED, _A.GIVE_SLOT_WITHOUT_TASK, _A.TELL_FINISHED, of=_AWAITED),
    *_go(_E.STAGE_DONE, _S.FINISHED, _A.TELL_FINISHED, of=(_S.RUNNING, _S.HELD, _S.CANCELLING, _S.CANCELLING_HELD)),
    # 5. When the stage has failed, one execution fails with the cause: that of the task which failed last, else (the
    #    driver failed, or that one is being cancelled) one that is held, running or still awaited. Requests of subtasks
    #    that were never launched are handed back; executions that Spark ended with the stage fail of
    #    `StageAbortedError`, when their tasks have really ended. Where the job may be restarted, all of this waits for
    #    the last of these tasks: it is one failure then, not several.
    *_go(_E.BLAMED, _S.FAILED, _A.REFUSE, of=_AWAITED),
    *_go(_E.BLAMED, _S.FAILED, _A.TELL_FAILED, of=(_S.RUNNING, _S.HELD)),
    *_go(_E.STAGE_FAILED, _S.RETURNED, _A.HAND_BACK, of=_AWAITED),
    *_go(_E.STAGE_FAILED, _S.ABORTING, of=(_S.RUNNING, _S.HELD)),
    (_S.CANCELLING_HELD, _E.STAGE_FAILED, _S.CANCELLING, ()),
    *_stays(_E.STAGE_FAILED, _S.ABORTING, _S.CANCELLING),
    (_S.ABORTING, _E.TASKS_OVER, _S.FAILED, (_A.TELL_FAILED,)),
    # 6. A cancelled execution is CANCELED when its tasks have really ended, also where the stage has failed: the
    #    companions of one that is told as FAILED would wait for their end.
    *_go(_E.CANCEL, _S.CANCELLING, _A.CANCEL_STAGE, of=(_S.RUNNING, _S.ABORTING, _S.GIVEN_UP, _S.CANCELLING)),
    *_go(_E.CANCEL, _S.CANCELLING_HELD, _A.CANCEL_STAGE, of=(_S.HELD, _S.CANCELLING_HELD)),
    (_S.CANCELLING, _E.TASKS_OVER, _S.CANCELED, (_A.TELL_CANCELED,)),
    # 7. A task that was lost with its executor, or that could not read what was lost with one, fails its execution; so
    #    does one whose output was lost while its stage still ran. Spark runs it again, and that is the vertex's next
    #    execution. Where another copy of the task runs on, the execution does too.
    (_S.RUNNING, _E.LOST, _S.RUNNING, (_A.ASK_TO_REPLACE,)),
    (_S.CANCELLING, _E.LOST, _S.CANCELED, (_A.TELL_CANCELED,)),
    *_stays(_E.LOST, _S.REQUESTED, _S.UNCLAIMED, _S.HELD, _S.CANCELLING_HELD, *_ENDED),
    (_S.HELD, _E.TAKEN_BACK, _S.HELD, (_A.ASK_TO_REPLACE,)),
    (_S.FINISHED, _E.TAKEN_BACK, _S.FINISHED, (_A.ASK_TO_REPLACE,)),
    (_S.UNCLAIMED, _E.TAKEN_BACK, _S.REQUESTED, (_A.FORGET_SUCCESS,)),
    *_stays(_E.TAKEN_BACK, _S.CANCELLING_HELD, _S.FAILED, _S.CANCELED, _S.RETURNED),
    *_go(_E.REPLACE, _S.REPLACED, of=(_S.RUNNING, _S.HELD)),
    # 8. A task for a subtask that was finished makes its output once more: that, too, is the vertex's next execution.
    *_stays(_E.REPLACE, *_ENDED),
    # 9. Where the stage that a lost output is made for has failed, what is not made yet is asked for again, and the
    #    vertex is submitted itself: as soon as none of the tasks that make it runs. Another stage may want it first.
    (_S.REQUESTED, _E.READER_FAILED, _S.RETURNED, (_A.HAND_BACK,)),
    (_S.RUNNING, _E.READER_FAILED, _S.GIVEN_UP, ()),
    *_stays(_E.READER_FAILED, _S.GIVEN_UP),
    (_S.GIVEN_UP, _E.LAUNCHED, _S.RUNNING, ()),
    (_S.GIVEN_UP, _E.TASKS_OVER, _S.RETURNED, (_A.ASK_AGAIN,)),
    (_S.GIVEN_UP, _E.LOST, _S.GIVEN_UP, (_A.ASK_TO_REPLACE,)),
    (_S.GIVEN_UP, _E.REPLACE, _S.REPLACED, ()),
]


def _table(
    rows: Iterable[Row],
) -> dict[tuple[SubtaskState, SubtaskEvent], tuple[SubtaskState, tuple[SubtaskAction, ...]]]:
    table = {}
    for state, event, to, actions in rows:
        assert (state, event) not in table, f"{event} in {state} has two rows"
        table[state, event] = (to, actions)
    return table


TABLE = _table(_ROWS)
"""By (state, event), the next state and the actions."""
