"""Defines the events that a stage board is told, and the instructions that it gives.

These are plain values, so that what a run was told can be told again (`BoardDrive.told`).

What Spark reports comes as it is: `TaskEnded`, `JobEnded`, `ExecutorAdded`, `ExecutorRemoved` and `Marker` are events,
too (`watching.task_events`). A vertex is named by its index, a submission by its tag, an execution by its attempt.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from flinkmagic.deployment.stages.write_retries import EarlierRun
from flinkmagic.deployment.watching.task_events import JobStarted, TaskStarted
from flinkmagic.errors.scheduling import ExecutorRecoveryError
from flinkmagic.graph.execution_graph import ExecutionAttemptID
from flinkmagic.graph.execution_state import ExecutionState

# -- events: what the scheduler asks for ---------------------------------------------------------------


@dataclass(frozen=True)
class SlotRequested:
    """A slot is wanted for the execution vertices of one task."""

    request_id: str
    vertex: int
    """The last of them."""


@dataclass(frozen=True)
class RequestCanceled:
    """A request is taken back before it was fulfilled."""

    request_id: str


@dataclass(frozen=True)
class SlotFreed:
    """No execution is left in a slot."""

    allocation_id: str


@dataclass(frozen=True)
class TaskDeployed:
    """An execution was deployed into a slot."""

    attempt: ExecutionAttemptID
    allocation_id: str


@dataclass(frozen=True)
class CancelRequested:
    """An execution is to be cancelled."""

    attempt: ExecutionAttemptID


@dataclass(frozen=True)
class CallReturned:
    """The scheduler's call about an execution has returned: it can be answered."""

    attempt: ExecutionAttemptID


@dataclass(frozen=True)
class DecisionDue:
    """Something has changed since the last decision about what goes to Spark."""

    session_slots: int = 0
    finished: Mapping[int, int] = field(default_factory=dict)
    """By vertex, how many of its executions are FINISHED; of those that the decision concerns."""


# -- events: what Spark and the stages' threads report -------------------------------------------------


@dataclass(frozen=True)
class JobSubmitted:
    """A Spark job of a submission has started."""

    tag: str
    job: JobStarted
    is_early: bool
    """Whether it belongs to what runs before the vertex's own stage."""
    tasks: int | None
    """How many tasks the vertex's own stage has, if fewer than planned."""
    pipelined: Mapping[int, int]
    """By the shuffles that are read while they are written, the vertex of the region that writes it."""


@dataclass(frozen=True)
class TaskLaunched:
    """Spark has launched a task on an executor, which runs so many tasks simultaneously."""

    task: TaskStarted
    executor_slots: int


@dataclass(frozen=True)
class StageEnded:
    """A submission's stage is done or has failed; news of its tasks may still be on its way, up to the marker."""

    tag: str
    error: BaseException | None = None


@dataclass(frozen=True)
class Overdue:
    """Spark has not reported the ends of some tasks of a stage that has ended; they count as ended."""

    tag: str


@dataclass(frozen=True)
class SessionLost:
    """Spark is gone: nothing runs any more, and no news will come."""

    cause: BaseException


@dataclass(frozen=True)
class ResultTakenUp:
    """The shuffle of a vertex exists already: the vertex does not run, but lost outputs of it are made again."""

    index: int
    shuffle_id: int


# -- instructions --------------------------------------------------------------------------------------


@dataclass(frozen=True)
class StageFailure:
    """Why an execution fails with its stage."""

    index: int
    task: str
    """The name of the task that fails, or of the vertex if no task does."""
    error: BaseException
    """The error with which Spark's job ended."""
    text: str = ""
    """What the task to blame said; empty if none did."""
    is_to_blame: bool = True
    """False for a task that Spark ended with the stage."""


@dataclass(frozen=True)
class Submit:
    """Submit a vertex, or the pipelined region that its handle runs, to Spark under a tag."""

    index: int
    tag: str
    earlier: EarlierRun | None
    after: tuple[str, ...] = ()
    """The tags of submissions that Spark should have before: it ranks jobs by the order in which it gets them."""


@dataclass(frozen=True)
class CancelStage:
    """End the Spark jobs of a submission."""

    tag: str


@dataclass(frozen=True)
class TasksOver:
    """Note that no task of a submission is left."""

    tag: str


@dataclass(frozen=True)
class GiveSlot:
    """Fulfil the request of a vertex; what waits for the slot is deployed within this instruction."""

    vertex: int
    allocation_id: str
    executor: str


@dataclass(frozen=True)
class RefuseSlot:
    """Fail the request of a vertex."""

    vertex: int
    failure: StageFailure


@dataclass(frozen=True)
class Report:
    """Report the state of an execution to the scheduler; `at_ms` by Spark's clocks, now if it is None."""

    attempt: ExecutionAttemptID
    state: ExecutionState
    failure: StageFailure | BaseException | None = None
    at_ms: float | None = None


@dataclass(frozen=True)
class Replace:
    """Make the scheduler create the next execution of what runs in a task, unless it has other plans for it.

    The request for it comes within this instruction. Without a `loss`, what it had made is lost.
    """

    index: int
    subtask: int
    loss: ExecutorRecoveryError | None = None
    at_ms: float | None = None


@dataclass(frozen=True)
class FailJob:
    """End the job for a reason that concerns no single task."""

    cause: BaseException


@dataclass(frozen=True)
class Declare:
    """Declare how many slots the job needs in all."""

    required: int


@dataclass(frozen=True)
class Later:
    """Hand in the event, or report, after the scheduler's running call: nothing may answer a call before it returns."""

    what: CallReturned | DecisionDue | Report


@dataclass(frozen=True)
class NothingRuns:
    """Note that a decision has left nothing at Spark."""


Instruction = (
    Submit
    | CancelStage
    | TasksOver
    | GiveSlot
    | RefuseSlot
    | Report
    | Replace
    | FailJob
    | Declare
    | Later
    | NothingRuns
)
