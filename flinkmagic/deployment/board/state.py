"""The state of a stage board: requests, runs, subtasks, slots and losses of one job, and what holds between them.

Only the rules change it. An invariant stands beside its field, and `BoardState.validate` checks them all.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from flinkmagic.deployment.board.messages import StageEnded, StageFailure
from flinkmagic.deployment.board.stage_members import Stage, StageMembers
from flinkmagic.deployment.board.subtask_states import (
    CANCELLING,
    HAS_REQUEST,
    HELD,
    NEEDS_SLOT,
    OVER,
    TABLE,
    SubtaskAction,
    SubtaskEvent,
    SubtaskState,
)
from flinkmagic.deployment.stages.write_retries import EarlierRun
from flinkmagic.deployment.watching.lost_executors import Losses
from flinkmagic.deployment.watching.task_events import TaskEnded
from flinkmagic.deployment.watching.task_records import SlotNumbers, TaskLog
from flinkmagic.errors.deployment import IllegalSubtaskEventError
from flinkmagic.graph.execution_graph import ExecutionAttemptID, ExecutionGraph
from flinkmagic.graph.execution_job_vertex import ExecutionJobVertex
from flinkmagic.graph.execution_state import ExecutionState
from flinkmagic.scheduling.job_event_log import JobEventLog

STORY = 50
"""How many of its last events the story of a subtask holds."""


SubtaskEnd = tuple[ExecutionState, StageFailure | None, float | None]
"""How an execution is reported to have ended: its state, the cause of a failure, and the time by Spark's clocks."""


@dataclass(eq=False)
class Subtask:
    """One execution of a subtask, from its request to its end; its replacement has a record of its own."""

    number: int
    name: str
    state: SubtaskState
    """Changed only by `Run.take`."""
    story: list[str]
    """The events and the states that they led to, oldest first, since the subtask's first execution."""
    request: str | None = None
    """The request that waits here; None unless the state is one of `HAS_REQUEST`."""
    running: set[int] = field(default_factory=set)
    """Spark's task attempts that run. A replacement shares those of the execution before it."""
    attempt: ExecutionAttemptID | None = None
    """The execution that was deployed."""
    companions: list[ExecutionAttemptID] = field(default_factory=list)
    """Executions of vertices upstream that run within the same task."""
    unannounced: list[ExecutionAttemptID] = field(default_factory=list)
    """Those of all these that were not yet reported as running."""
    launched_ms: float = 0.0
    """When Spark launched its first task."""
    succeeded_ms: float | None = None
    """The end of the task that counts; never None in one of `HELD`."""
    end: SubtaskEnd | None = None
    """The last report."""
    told: set[ExecutionAttemptID] = field(default_factory=set)
    """The executions that got it; empty while there is none."""

    @property
    def is_over(self) -> bool:
        """Whether nothing more is reported about it."""
        return self.state in OVER

    @property
    def is_cancelling(self) -> bool:
        """Whether it is being cancelled, and is not over yet."""
        return self.state in CANCELLING

    def attempts(self) -> list[ExecutionAttemptID]:
        """Return the executions that share its tasks, its own last."""
        return [*self.companions, *([self.attempt] if self.attempt is not None else [])]

    def validate(self) -> None:
        """Check each field against the state."""
        assert (self.request is not None) == (self.state in HAS_REQUEST), self
        assert self.succeeded_ms is not None or self.state not in HELD, self
        assert self.end is not None or not self.told, self
        assert set(self.unannounced) <= set(self.attempts()), self
        assert self.told <= set(self.attempts()), self


@dataclass(eq=False)
class Run:
    """The subtasks of one vertex, as far as Spark runs them for one purpose."""

    stage: Stage
    subtasks: dict[int, Subtask] = field(default_factory=dict)
    """The current execution of each, in the order in which the subtasks came to this run."""
    counts: Counter[SubtaskState] = field(default_factory=Counter)
    """How many of them are in each state."""

    @property
    def job_vertex(self) -> ExecutionJobVertex:
        """The vertex."""
        return self.stage.job_vertex

    @property
    def index(self) -> int:
        """Its index."""
        return self.stage.job_vertex.index

    def new(self, number: int, state: SubtaskState, before: Subtask | None = None) -> Subtask:
        """Return a subtask's next execution; it is not the current one yet."""
        story = [*(before.story if before is not None else ()), str(state)][-STORY:]
        name = self.job_vertex.task_name(number)
        return Subtask(number, name, state, story, running=before.running if before is not None else set())

    def put(self, number: int, one: Subtask | None) -> None:
        """Make an execution the current one; None removes the subtask from this run."""
        before = self.subtasks.get(number)
        if before is not None:
            self.counts[before.state] -= 1
        if one is None:
            del self.subtasks[number]
        else:
            self.subtasks[number] = one
            self.counts[one.state] += 1

    def take(self, one: Subtask, event: SubtaskEvent) -> tuple[SubtaskAction, ...]:
        """Move an execution to the state that the table names; return what to do about the event.

        Raises
        ------
        IllegalSubtaskEventError
            If the table has no such row; the message holds the story.
        """
        row = TABLE.get((one.state, event))
        if row is None:
            raise IllegalSubtaskEventError(one.name, str(one.state), str(event), tuple(one.story))
        to, actions = row
        if self.subtasks.get(one.number) is one:
            self.counts[one.state] -= 1
            self.counts[to] += 1
        one.state = to
        one.story.append(f"{event}: {to}")
        del one.story[:-STORY]
        return actions

    def every(self) -> list[Subtask]:
        """Return the current executions, for a loop in which they may change."""
        return list(self.subtasks.values())

    def count(self, states: Iterable[SubtaskState]) -> int:
        """Return how many subtasks are in one of these states."""
        return sum(self.counts[state] for state in states)

    @property
    def unfinished(self) -> int:
        """How many subtasks still need a slot."""
        return self.count(NEEDS_SLOT)

    @property
    def is_wanted(self) -> bool:
        """Whether any execution is neither over nor being cancelled."""
        return len(self.subtasks) > self.count(OVER | CANCELLING)

    @property
    def are_all_over(self) -> bool:
        """Whether every execution is over; tasks of Spark's may still run."""
        return self.count(OVER) == len(self.subtasks)

    @property
    def has_running_tasks(self) -> bool:
        """Whether any task of Spark's runs, even for an execution that is over."""
        return any(one.running for one in self.subtasks.values())

    def awaits(self, number: int) -> bool:
        """Return whether the next request for a subtask belongs to this run: its execution was replaced."""
        one = self.subtasks.get(number)
        return one is not None and one.state is SubtaskState.EXPECTED

    def lose_tasks(self) -> None:
        """Count all running tasks as ended, as no news of them will come."""
        for one in self.subtasks.values():
            one.running.clear()

    def validate(self) -> None:
        """Check the subtasks, and what is counted of them."""
        assert +self.counts == Counter(one.state for one in self.subtasks.values()), self.counts
        for number, one in self.subtasks.items():
            one.validate()
            assert one.number == number
            assert one.state not in (SubtaskState.EXPECTED, SubtaskState.REPLACED), one


@dataclass(eq=False)
class VertexRun(Run):
    """One submission of a vertex to Spark, alone or as part of a pipelined region."""

    tag: str = ""
    """That of its Spark job, which the whole region shares."""
    region: list[VertexRun] = field(default_factory=list)
    """The runs of the stages in its Spark job, that whose handle runs it first; it is one of them."""
    holds_all: bool = False
    """Whether finished subtasks are held until the whole stage is done."""
    has_launched: bool = False
    """Whether Spark has launched any task of the vertex's own stage."""
    main_stage: int | None = None
    """Spark's number of that stage."""
    tasks: int | None = None
    """How many tasks it has, if fewer than subtasks: they do the work of the others, which have none."""
    helpers: set[int] = field(default_factory=set)
    """The running tasks of other stages that it needs; it is not over before they are."""
    helper_error: str = ""
    """What the last failed one said, if no task of the stage itself had failed before."""
    first_failed: TaskEnded | None = None
    last_failed: TaskEnded | None = None
    """The first and the last of its own tasks that failed; None together."""
    is_aborted: bool = False
    """Whether Spark has failed its job."""
    is_cancelled: bool = False
    """Whether Spark was asked to end it; the same in a region."""
    outcome: StageEnded | None = None
    """How the stage ended, once all that Spark reported before has arrived; the same in a region."""
    failure_to_tell: BaseException | None = None
    """With what it failed, until that is told; there is an outcome then."""
    is_over: bool = False
    """Whether nothing of it is left: it has an outcome, no helper and no task runs, and every subtask is over."""

    @property
    def is_open(self) -> bool:
        """Whether Spark runs again what is lost of the stage; in a pipelined region it runs nothing again."""
        return len(self.region) == 1 and self.outcome is None and not self.is_aborted

    @property
    def holds(self) -> bool:
        """Whether a success has to wait for the stage (rule 3 of `subtask_states`)."""
        return self.outcome is None and (self.holds_all or self.unfinished == 0)

    @property
    def has_all_successes(self) -> bool:
        """Whether every subtask succeeded; what may then still fail is the driver's part."""
        return all(one.succeeded_ms is not None or self.is_merged(one) for one in self.subtasks.values())

    def is_merged(self, one: Subtask) -> bool:
        """Return whether the stage has no task for a subtask."""
        return self.tasks is not None and one.number >= self.tasks

    def lose_tasks(self) -> None:
        """Count all running tasks as ended, as no news of them will come."""
        super().lose_tasks()
        self.helpers.clear()

    def validate(self) -> None:
        """Check the run, and that its region agrees."""
        super().validate()
        assert self in self.region
        for other in self.region:
            assert (other.tag, other.outcome, other.is_cancelled) == (self.tag, self.outcome, self.is_cancelled)
        assert (self.first_failed is None) == (self.last_failed is None)
        assert self.failure_to_tell is None or self.outcome is not None
        # Tasks and helpers of a job that was cancelled may still be launched when the run is over.
        is_done = self.outcome is not None and not self.helpers and self.are_all_over and not self.has_running_tasks
        assert self.is_over or not is_done, self
        assert not self.is_over or (self.outcome is not None and self.are_all_over), self


@dataclass(eq=False)
class RemadeRun(Run):
    """The tasks that make outputs of a finished vertex again, each as part of the job of a stage that needs it."""

    needed_by: dict[int, VertexRun] = field(default_factory=dict)
    """By subtask of this run, the run that needs its output, while that has no outcome."""

    def validate(self) -> None:
        """Check the run, and what of it is needed."""
        super().validate()
        assert self.needed_by.keys() <= self.subtasks.keys()
        assert all(run.outcome is None for run in self.needed_by.values())


class Role(NamedTuple):
    """The run and the job vertex that a stage of Spark's belongs to."""

    run: VertexRun
    job_vertex: ExecutionJobVertex
    name: str
    """`task`, `helper` or `recovery`, as in a `TaskRecord`."""


class BoardState:
    """What a stage board holds.

    Parameters
    ----------
    graph : ExecutionGraph
        Is read for its shape alone.
    prefix : str
        How the tags of its submissions begin.
    event_log : JobEventLog
        Where the rules log what is required, and what goes to Spark.
    limit : int, optional
        How many slots the job may use; by default all of the session's.
    after : mapping of int to sequence of int
        By vertex, those that must be finished before it is submitted.
    """

    def __init__(
        self,
        graph: ExecutionGraph,
        prefix: str,
        event_log: JobEventLog,
        *,
        limit: int | None = None,
        after: Mapping[int, Sequence[int]] | None = None,
        restarts: bool = False,
    ) -> None:
        self.graph = graph
        self.prefix = prefix
        self.event_log = event_log
        self.limit = limit
        self.after = dict(after or {})
        self.restarts = restarts
        self.members = StageMembers(graph)
        self.path = remaining_paths(graph)
        """By vertex, how many vertices the longest path from it to an end of the job has."""

        self.requests: dict[str, tuple[int, int]] = {}
        """By its id, the stage and subtask of each request that waits: in `waiting`, or in one run."""
        self.waiting: dict[int, dict[int, str]] = {}
        """By stage and subtask, the requests for which nothing was submitted yet."""
        self.slots: dict[str, tuple[Run, Subtask]] = {}
        """The slots that the scheduler holds, and for which task each was given."""

        self.active: dict[int, VertexRun] = {}
        """By stage, the run that is not over; one that is being cancelled too."""
        self.remade: dict[int, RemadeRun] = {}
        """By stage, the run that makes its lost outputs again, once that was needed."""
        self.runs: dict[str, VertexRun] = {}
        """By tag, the run whose handle runs the job; also if it is over."""
        self.launching: Subtask | None = None
        """Whose slot is being given; None outside of that instruction."""
        self.unanswered: dict[ExecutionAttemptID, tuple[Run, Subtask]] = {}
        """The executions about which the scheduler has called, and is answered when the call has returned."""
        self.earlier: dict[int, EarlierRun] = {}
        """By stage, how far its runs have come that are over."""
        self.ended: dict[str, StageEnded] = {}
        """By tag, how a stage has ended, until all news of it has arrived."""

        self.roles: dict[int, Role] = {}
        """By Spark's number of a stage."""
        self.main_jobs: dict[int, VertexRun] = {}
        """By Spark's number, the jobs that run and whose last stage is a vertex's own."""
        self.makers: dict[int, ExecutionJobVertex] = {}
        """By the id of a shuffle, the vertex that writes it."""
        self.losses = Losses(self.makers)
        self.removed: set[str] = set()
        """The executors that are gone."""
        self.is_lost = False
        """Whether Spark is gone."""

        self.executor_slots: dict[str, int] = {}
        """How many tasks each executor runs simultaneously, as its last launch said."""
        self.log = TaskLog(SlotNumbers(self.executor_slots.__getitem__))

        self.is_decision_due = False
        self.waiting_for = ""
        """Which pipelined region waits for how many slots; empty if none does."""
        self.declared = 0
        """How many slots the job was last said to need."""
        self.told_required: set[int] = set()
        """The stages of whose slots the log has a line, until they go to Spark."""
        self.told_waiting = ""
        """The last line of the log about a region that waits."""
        self.run_numbers = itertools.count()
        self.slot_numbers = itertools.count()

    @property
    def required(self) -> int:
        """How many slots the job needs now: one for each request that waits, and for each that has its slot."""
        return len(self.requests) + len(self.slots)

    @property
    def busy(self) -> int:
        """How many slots the active runs need."""
        return sum(run.unfinished for run in self.active.values())

    def undecided(self) -> set[int]:
        """Return the stages whose progress the next decision depends on."""
        return {*self.waiting, *(earlier for index in self.waiting for earlier in self.after.get(index, ()))}

    def all_runs(self) -> Iterator[Run]:
        """Return the active runs, and all that make, or made, lost outputs again."""
        yield from list(self.active.values())
        yield from list(self.remade.values())

    def runs_of(self, index: int) -> list[Run]:
        """Return the run of a stage that is active, and the one that makes its outputs again, as far as there are."""
        runs: tuple[Run | None, ...] = (self.active.get(index), self.remade.get(index))
        return [run for run in runs if run is not None]

    def subtask_of(self, attempt: ExecutionAttemptID) -> tuple[Run, Subtask] | None:
        """Return where an execution that is current belongs; None if it is not known."""
        lead = self.members.lead_of(self.graph.job_vertex_by_id(attempt.job_vertex_id).index)
        found = [(run, run.subtasks[attempt.subtask]) for run in self.runs_of(lead) if attempt.subtask in run.subtasks]
        return next(((run, one) for run, one in found if attempt in one.attempts()), None)

    def validate(self) -> None:
        """Raise AssertionError if an invariant does not hold. For tests: it looks at everything."""
        for run in {*self.active.values(), *self.remade.values(), *self.runs.values()}:
            run.validate()
        waiting = [
            (request, (index, subtask))
            for index, requests in self.waiting.items()
            for subtask, request in requests.items()
        ]
        in_runs = [
            (one.request, (run.index, one.number))
            for run in self.all_runs()
            for one in run.subtasks.values()
            if one.request is not None
        ]
        assert sorted(waiting + in_runs) == sorted(self.requests.items())
        for index, run in self.active.items():
            assert run.index == index
            assert not run.is_over
        for tag, run in self.runs.items():
            assert (run.tag, run.region[0]) == (tag, run)
        assert all(run in self.runs[run.tag].region for run in self.active.values())
        assert all(self.runs[tag].outcome is None for tag in self.ended)
        assert self.launching is None


def remaining_paths(graph: ExecutionGraph) -> list[int]:
    """Return, by job vertex index, how many vertices the longest path from it to an end of the job has."""
    path = [1] * len(graph.job_vertices)
    for job_vertex in reversed(graph.job_vertices):
        path[job_vertex.index] = 1 + max((path[consumer.index] for consumer in job_vertex.consumers), default=0)
    return path
