"""The rules, told whatever Spark and the scheduler may say, in any order: each execution ends exactly once."""

from __future__ import annotations

import itertools
from functools import partial

from fake_spark import METRICS, JobEnded, JobStarted, Marker, StageRef, TaskEnded, TaskStarted, graph_of
from hypothesis import given, settings
from hypothesis import strategies as st

from flinkmagic.deployment.board.messages import (
    CancelRequested,
    DecisionDue,
    GiveSlot,
    JobSubmitted,
    Later,
    Overdue,
    RefuseSlot,
    Replace,
    Report,
    RequestCanceled,
    ResultTakenUp,
    SlotRequested,
    StageEnded,
    TaskDeployed,
    TaskLaunched,
    TasksOver,
)
from flinkmagic.deployment.board.rules import StageBoard
from flinkmagic.deployment.board.state import BoardState
from flinkmagic.deployment.board.subtask_states import SubtaskState
from flinkmagic.deployment.watching.task_events import RESUBMITTED
from flinkmagic.graph.execution import ExecutionAttemptID
from flinkmagic.graph.execution_state import ExecutionState
from flinkmagic.scheduling.clock import ManualClock
from flinkmagic.scheduling.job_event_log import JobEventLog

GRAPH = graph_of({"Within": (4, []), "Map": (4, ["~Within"]), "A": (1, ["Map"]), "B": (1, ["Map"])})
WITHIN, MAP, *READERS = GRAPH.job_vertices
FAILED = RuntimeError("aborted")
BY_SCHEDULER = "ended by the scheduler"
SHUFFLE = 5


class Scheduler:
    """The surroundings of a board: makes requests, deploys into slots, and notes what it is told."""

    def __init__(self, *, restarts):
        self.board = StageBoard(BoardState(GRAPH, "t-", JobEventLog(ManualClock()), restarts=restarts))
        self.state = self.board.state
        self.told = {}
        self.failures = {}
        self.requests = {}
        self.pending = {}
        self.deployments = {}
        self.deferred = []
        self.cancelled = set()
        self.overs = 0
        self.deploys_late = self.refuses = False
        self._numbers = itertools.count()

    def tell(self, event):
        for instruction in self.board.handle(event):
            self.carry_out(instruction)

    def carry_out(self, instruction):
        match instruction:
            case GiveSlot(vertex):
                self.requests[self.pending.pop(vertex)].append("fulfilled")
                self.deployments[vertex] = instruction
                if not self.deploys_late:
                    self.deploy(vertex)
            case RefuseSlot(vertex):
                self.requests[self.pending.pop(vertex)].append("refused")
            case Report():
                self.report(instruction)
            case Replace():
                self.replace(instruction)
            case Later(what) if not isinstance(what, DecisionDue):
                self.deferred.append(lambda: self.carry_out(what) if isinstance(what, Report) else self.tell(what))
            case TasksOver():
                self.overs += 1

    def request(self, vertex):
        name = f"request-{next(self._numbers)}"
        self.requests[name] = []
        self.pending[vertex] = name
        self.tell(SlotRequested(name, vertex))

    def deploy(self, vertex):
        slot = self.deployments.pop(vertex)
        number, job_vertex = next(self._numbers), GRAPH.job_vertex_of(vertex)
        for each in (WITHIN, MAP) if job_vertex is MAP else (job_vertex,):
            attempt = ExecutionAttemptID(each.id, vertex - job_vertex.first, number)
            self.told[attempt] = []
            self.tell(TaskDeployed(attempt, slot.allocation_id))

    def current(self, job_vertices=GRAPH.job_vertices, subtask=None):
        """Attempts that have not ended."""
        ids = [job_vertex.id for job_vertex in job_vertices]
        return [
            attempt
            for attempt, news in self.told.items()
            if not ended(news) and attempt.job_vertex_id in ids and (subtask is None or attempt.subtask == subtask)
        ]

    def report(self, report):
        attempt = report.attempt
        if self.told[attempt] == [BY_SCHEDULER]:
            return
        self.told[attempt].append(report.state)
        if report.state is ExecutionState.FAILED:
            self.failures[attempt.subtask] = report.failure
            if attempt.job_vertex_id == MAP.id:
                for other in self.current([WITHIN], attempt.subtask):
                    self.deferred.append(partial(self.cancel, other))

    def replace(self, instruction):
        assert instruction.index == MAP.index
        subtask = instruction.subtask
        if MAP.first + subtask in self.pending:  # an execution that is SCHEDULED stays so
            return
        runs = [*self.state.active.values(), *self.state.remade.values()]
        is_expected = any(run.awaits(subtask) for run in runs if run.index == MAP.index)
        if self.refuses and is_expected:
            return
        self.deployments.pop(MAP.first + subtask, None)
        for attempt in self.current([WITHIN, MAP], subtask):
            self.told[attempt] = [BY_SCHEDULER]
        if is_expected:
            self.request(MAP.first + subtask)

    def cancel(self, attempt):
        if attempt not in self.cancelled and not ended(self.told[attempt]):
            self.cancelled.add(attempt)
            self.tell(CancelRequested(attempt))

    def settle(self):
        while self.deferred:
            self.deferred.pop(0)()

    def answers(self):
        """What became of each request; one that is handed back waits for the next run."""
        waiting = {name for requests in self.state.waiting.values() for name in requests.values()}
        return {name: answers + ["handed back"] * (name in waiting) for name, answers in self.requests.items()}


def pick(some, which):
    return some[which % len(some)]


def ended(news):
    return any(one is BY_SCHEDULER or one.is_terminal for one in news)


class Story:
    """What a board is told; a move that is not possible now is passed over."""

    def __init__(self, *, restarts):
        self.scheduler = Scheduler(restarts=restarts)
        self.state, self.tell = self.scheduler.state, self.scheduler.tell
        self.tasks, self.succeeded = [], []
        self.numbers = itertools.count()

    def submit(self, vertices, finished):
        for vertex in vertices:
            self.scheduler.request(vertex)
        self.tell(DecisionDue(9, finished))

    def play(self, moves):
        for name, which in moves:
            getattr(self, name)(which)
            self.check()

    def start(self, stage, partition):
        task = TaskStarted(stage, 0, partition, 0, next(self.numbers), "1", 1.0, False)
        self.tasks.append(task)
        self.tell(TaskLaunched(task, 4))

    def tell_end(self, which, status, reason=""):
        if self.tasks:
            task = self.tasks.pop(which % len(self.tasks))
            if status == "SUCCESS":
                self.succeeded.append(task)
            metrics = METRICS if status == "SUCCESS" else None
            self.tell(TaskEnded(task, 2.0, status, metrics, reason, "boom"))

    def succeed(self, which):
        self.tell_end(which, "SUCCESS")

    def fail(self, which):
        self.tell_end(which, "FAILED")

    def kill(self, which):
        self.tell_end(which, "KILLED")

    def lose(self, which):
        self.tell_end(which, "FAILED", "ExecutorLostFailure")

    def lose_output(self, which):
        if self.succeeded:
            self.tell(TaskEnded(pick(self.succeeded, which), 2.0, "SUCCESS", None, RESUBMITTED, "gone"))

    def cancel(self, which):
        if current := self.scheduler.current():
            self.scheduler.cancel(pick(current, which))

    def withdraw(self, which):
        for one in [
            run.subtasks[which % 4] for run in self.runs() if run.index == MAP.index and which % 4 in run.subtasks
        ]:
            if one.request is not None:
                self.scheduler.requests[one.request].append("withdrawn")
                del self.scheduler.pending[MAP.first + one.number]
                self.tell(RequestCanceled(one.request))

    def change_plans(self, which):
        self.scheduler.deploys_late, self.scheduler.refuses = bool(which & 1), bool(which & 2)

    def go_on(self, which=0):
        for vertex in list(self.scheduler.deployments):
            self.scheduler.deploy(vertex)
        self.scheduler.settle()

    def end_stage(self, run, error):
        if run.outcome is None:
            self.tell(StageEnded(run.tag, error))
            self.tell(Marker(run.tag))

    def check(self):
        self.state.validate()
        for news in self.scheduler.told.values():
            assert not ended(news[:-1]), news
        for answers in self.scheduler.answers().values():
            assert len(answers) <= 1, answers

    def end(self):
        while self.tasks:
            self.kill(0)
        self.go_on()
        self.check()
        assert [str(one.state) for run in self.runs() for one in run.every() if not one.is_over] == []
        assert all(ended(news) for news in self.scheduler.told.values()), self.scheduler.told
        assert all(len(answers) == 1 for answers in self.scheduler.answers().values()), self.scheduler.requests


class OneStage(Story):
    """A vertex that Spark was asked for; its fourth subtask was finished before."""

    def __init__(self, tasks, *, restarts, holds_all=False):
        super().__init__(restarts=restarts)
        self.submit([MAP.first + subtask for subtask in range(3)], {MAP.index: 1})
        self.run = self.state.active[MAP.index]
        self.run.holds_all = holds_all
        job = JobStarted(1, self.run.tag, (StageRef(0, SHUFFLE, 4),))
        self.tell(JobSubmitted(self.run.tag, job, False, tasks, {}))

    def runs(self):
        return [self.run]

    def launch(self, which):
        if not self.run.is_over:
            self.start(0, pick((0, 0, 0, 1, 1, 2, 3), which))

    def abort(self, which):
        self.tell(JobEnded(1, False))

    def stage_done(self, which):
        self.end_stage(self.run, None)

    def stage_failed(self, which):
        self.end_stage(self.run, FAILED)

    def fall_silent(self, which):
        if self.run.outcome is not None:
            self.tasks.clear()
            self.tell(Overdue(self.run.tag))

    def check(self):
        super().check()
        assert self.scheduler.overs == self.run.is_over

    def end(self):
        self.stage_failed(0)
        super().end()
        assert self.scheduler.overs == 1


class OutputsMadeAgain(Story):
    """Lost outputs of a finished vertex, which two other stages want."""

    def __init__(self, *, restarts):
        super().__init__(restarts=restarts)
        self.tell(ResultTakenUp(MAP.index, SHUFFLE))
        self.submit([each.first for each in READERS], {each.index: 0 for each in READERS})
        self.readers = [self.state.active[each.index] for each in READERS]
        for number, run in enumerate(self.readers):
            stages = (StageRef(10 * number, SHUFFLE, 4), StageRef(10 * number + 1, None, 1))
            self.tell(JobSubmitted(run.tag, JobStarted(number, run.tag, stages), False, None, {}))

    def runs(self):
        return [*self.state.remade.values(), *self.readers]

    def launch(self, which):
        self.start(10 * (which % 2), pick((0, 0, 1), which // 2))

    def reader_done(self, which):
        self.end_stage(pick(self.readers, which), None)

    def reader_failed(self, which):
        self.end_stage(pick(self.readers, which), FAILED)

    def end(self):
        self.reader_failed(0)
        self.reader_failed(1)
        super().end()


OFTEN = ["launch", "launch", "launch", "launch", "succeed", "succeed", "fail", "kill", "lose", "lose_output"]
SELDOM = ["cancel", "withdraw", "change_plans", "go_on"]


def moves_of(*names):
    """Bytes, two for a move: much faster to draw than a list of pairs."""
    every = [*OFTEN, *OFTEN, *SELDOM, *names]
    return st.binary(min_size=60, max_size=120).map(
        lambda drawn: [(pick(every, name), which) for name, which in zip(drawn[::2], drawn[1::2], strict=False)]
    )


@settings(max_examples=400, deadline=None)
@given(moves_of("abort", "stage_done", "stage_failed", "fall_silent"), st.integers(0, 11))
def test_a_stage_is_over_once_and_so_are_its_executions(moves, how):
    story = OneStage([None, None, 2][how % 3], holds_all=bool(how & 1), restarts=bool(how & 2))
    story.play(moves)
    story.end()


def test_the_cause_of_a_failure_is_told_though_the_task_that_failed_is_being_cancelled():
    story = OneStage(None, restarts=True)
    story.play([("launch", 0), ("launch", 3), ("launch", 5), ("fail", 1), ("stage_failed", 0)])
    (cancelled,) = story.scheduler.current([MAP], 1)
    story.scheduler.cancel(cancelled)
    story.play([("kill", 0), ("kill", 0), ("go_on", 0)])
    failures = story.scheduler.failures
    assert {subtask: failure.is_to_blame for subtask, failure in failures.items()} == {0: True, 2: False}
    assert (failures[0].task, failures[0].text, failures[0].error) == ("Map (2/4)", "boom", FAILED)
    assert story.run.subtasks[1].state is SubtaskState.CANCELED
    story.end()


@settings(max_examples=200, deadline=None)
@given(moves_of("reader_done", "reader_failed"), st.booleans())
def test_outputs_that_are_made_again_are_over_once(moves, restarts):
    story = OutputsMadeAgain(restarts=restarts)
    story.play(moves)
    story.end()
