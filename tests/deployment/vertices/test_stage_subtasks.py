"""Runs of vertices, told whatever Spark and the scheduler may say, in any order: each execution ends exactly once."""

from __future__ import annotations

import itertools
from types import SimpleNamespace

from fake_spark import METRICS, StageOutcome, TaskEnded, TaskStarted, graph_of
from hypothesis import given, settings
from hypothesis import strategies as st

from flinkmagic.deployment.vertices.remade_run import RemadeRun
from flinkmagic.deployment.vertices.subtask_state import NEEDS_SLOT, SubtaskState
from flinkmagic.deployment.vertices.vertex_run import VertexRun
from flinkmagic.errors.deployment import StageAbortedError, VertexFailedError
from flinkmagic.errors.scheduling import ExecutorLostError, OutputLostError
from flinkmagic.graph.execution import ExecutionAttemptID
from flinkmagic.graph.execution_state import ExecutionState
from flinkmagic.scheduling.slots.physical_slot_provider import PhysicalSlot, PhysicalSlotRequest
from flinkmagic.scheduling.task_executor_gateway import TaskDeploymentDescriptor

MAP = graph_of({"Map": (4, []), "Write": (1, ["Map"])}).job_vertices[0]
WITHIN = "a vertex within the same task"
FAILED = StageOutcome(error=RuntimeError("aborted"))
BY_SCHEDULER = "ended by the scheduler"


class Scheduler:
    """The surroundings of a run (`RunHost`): makes requests, deploys into slots, and notes what it is told."""

    def __init__(self):
        self.run = None
        self.told = {}
        self.errors = {}
        self.requests = {}
        self.pending = {}
        self.deployments = {}
        self.deferred = []
        self.cancelled = set()
        self.overs = 0
        self.deploys_late = self.refuses = False
        self._numbers = itertools.count()

    def request(self, subtask):
        request = PhysicalSlotRequest(f"request-{next(self._numbers)}", (subtask,))
        self.requests[request.slot_request_id] = []
        self.pending[subtask] = request
        request.slot_future.when_complete(lambda slot, error: self._answered(subtask, request, slot))
        return request

    def _answered(self, subtask, request, slot):
        self.requests[request.slot_request_id].append("refused" if slot is None else "fulfilled")
        if slot is not None:
            self.deployments[subtask] = slot
            if not self.deploys_late:
                self.deploy(subtask)

    def deploy(self, subtask):
        slot = self.deployments.pop(subtask)
        number = next(self._numbers)
        for vertex_id in (WITHIN, MAP.id):
            attempt = ExecutionAttemptID(vertex_id, subtask, number)
            self.told[attempt] = []
            self.run.accept(
                TaskDeploymentDescriptor("job", attempt, subtask, "Map", slot.allocation_id, slot.resource_id, 0)
            )

    def current(self, subtask=None):
        """Attempts that have not ended."""
        return [
            attempt
            for attempt, news in self.told.items()
            if not ended(news) and (subtask is None or attempt.subtask == subtask)
        ]

    def offer_slot(self, job_vertex, subtask, executor, number):
        slot = PhysicalSlot(f"slot-{next(self._numbers)}", executor, number, None)
        assert self.pending.pop(subtask).slot_future.complete(slot)

    def report(self, attempt, state, error=None, at_ms=None):
        if self.told[attempt] == [BY_SCHEDULER]:
            return
        self.told[attempt].append(state)
        if error is not None:
            self.errors[attempt.subtask] = error
        if state is ExecutionState.FAILED:
            for other in self.current(attempt.subtask):
                self.deferred.append(lambda other=other: self.cancel(other))

    def replace(self, job_vertex, subtask, loss, at_ms):
        leaves = not self.run.awaits(subtask)
        if self.refuses and not leaves:
            return False
        self.deployments.pop(subtask, None)
        for attempt in self.current(subtask):
            self.told[attempt] = [BY_SCHEDULER]
        if not self.refuses and not leaves:
            self.run.take_over(subtask, self.request(subtask))
        return not self.refuses

    def cancel(self, attempt):
        if attempt not in self.cancelled and not ended(self.told[attempt]):
            self.cancelled.add(attempt)
            self.run.cancel(attempt)

    def later(self, action):
        self.deferred.append(action)

    def hand_back(self, job_vertex, requests):
        for request in requests.values():
            self.requests[request.slot_request_id].append("handed back")

    def run_over(self, run):
        self.overs += 1

    def settle(self):
        while self.deferred:
            self.deferred.pop(0)()


def pick(some, which):
    return some[which % len(some)]


def ended(news):
    return any(one is BY_SCHEDULER or one.is_terminal for one in news)


class Story:
    """What is told of a run; a move that is not possible now is passed over."""

    def __init__(self, scheduler, run):
        self.scheduler, self.run = scheduler, run
        scheduler.run = run
        self.tasks, self.succeeded = [], []
        self.numbers = itertools.count()

    def play(self, moves):
        for name, which in moves:
            getattr(self, name)(which)
            self.check()

    def started(self, partition):
        task = TaskStarted(0, 0, partition, 0, next(self.numbers), "1", 1.0, False)
        self.tasks.append(task)
        return task

    def tell_end(self, which, status, loss=None):
        if self.tasks:
            task = self.tasks.pop(which % len(self.tasks))
            if status == "SUCCESS":
                self.succeeded.append(task)
            metrics = METRICS if status == "SUCCESS" else None
            self.run.ended(TaskEnded(task, 2.0, status, metrics, "", "boom"), loss)

    def succeed(self, which):
        self.tell_end(which, "SUCCESS")

    def fail(self, which):
        self.tell_end(which, "FAILED")

    def kill(self, which):
        self.tell_end(which, "KILLED")

    def lose(self, which):
        self.tell_end(which, "FAILED", ExecutorLostError("1", "gone"))

    def lose_output(self, which):
        if self.succeeded:
            self.run.output_lost(pick(self.succeeded, which), OutputLostError("Map", "1"))

    def cancel(self, which):
        if current := self.scheduler.current():
            self.scheduler.cancel(pick(current, which))

    def withdraw(self, which):
        one = self.run.find(which % 4)
        if one is not None and one.request is not None:
            self.scheduler.requests[one.request.slot_request_id].append("withdrawn")
            self.run.withdraw(one.subtask)

    def change_plans(self, which):
        self.scheduler.deploys_late, self.scheduler.refuses = bool(which & 1), bool(which & 2)

    def go_on(self, which=0):
        for subtask in list(self.scheduler.deployments):
            self.scheduler.deploy(subtask)
        self.scheduler.settle()

    def check(self):
        states = [one.state for one in self.run.every()]
        assert {state: self.run.counts[state] for state in SubtaskState} == {
            state: states.count(state) for state in SubtaskState
        }
        assert self.run.unfinished == sum(state in NEEDS_SLOT for state in states)
        assert SubtaskState.EXPECTED not in states
        for news in self.scheduler.told.values():
            assert not ended(news[:-1]), news
        for answers in self.scheduler.requests.values():
            assert len(answers) <= 1, answers

    def end(self):
        while self.tasks:
            self.kill(0)
        self.go_on()
        self.check()
        assert [str(one.state) for one in self.run.every() if not one.is_over] == []
        assert all(ended(news) for news in self.scheduler.told.values()), self.scheduler.told
        assert all(len(answers) == 1 for answers in self.scheduler.requests.values()), self.scheduler.requests


class OneStage(Story):
    """A vertex that Spark was asked for; its fourth subtask was finished before."""

    def __init__(self, tasks, **how):
        scheduler = Scheduler()
        requests = {subtask: scheduler.request(subtask) for subtask in range(3)}
        super().__init__(scheduler, VertexRun(MAP, None, requests, host=scheduler, **how))
        self.run.stage_run = SimpleNamespace(is_cancelled=False)
        self.run.stage_run.cancel = lambda: vars(self.run.stage_run).update(is_cancelled=True)
        if tasks is not None:
            self.run.merged(tasks)

    def launch(self, which):
        if not self.run.is_over:
            self.run.launched(self.started(pick((0, 0, 0, 1, 1, 2, 3), which)), 0)

    def abort(self, which):
        self.run.aborted()

    def stage_done(self, which):
        self.stage_failed(which, StageOutcome())

    def stage_failed(self, which, outcome=FAILED):
        if self.run.outcome is None:
            self.run.finish(outcome)

    def fall_silent(self, which):
        if self.run.outcome is not None:
            self.tasks.clear()
            self.run.lose_tasks()
            self.run.settle()

    def check(self):
        super().check()
        assert self.scheduler.overs == self.run.is_over

    def end(self):
        self.stage_failed(0)
        super().end()
        assert self.scheduler.overs == 1


class OutputsMadeAgain(Story):
    """Lost outputs of a finished vertex, which two other stages want."""

    READERS = ("a", "b")

    def __init__(self):
        scheduler = Scheduler()
        super().__init__(scheduler, RemadeRun(MAP, None, scheduler))

    def launch(self, which):
        self.run.made_for(pick(self.READERS, which), self.started(pick((0, 0, 1), which // 2)), 0)

    def reader_done(self, which):
        self.run.concluded(pick(self.READERS, which), StageOutcome())

    def reader_failed(self, which):
        self.run.concluded(pick(self.READERS, which), FAILED)

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
    story = OneStage([None, None, 2][how % 3], holds_all=bool(how & 1), fails_immediately=bool(how & 2))
    story.play(moves)
    story.end()


def test_the_cause_of_a_failure_is_told_though_the_task_that_failed_is_being_cancelled():
    story = OneStage(None, holds_all=False, fails_immediately=False)
    story.play([("launch", 0), ("launch", 3), ("launch", 5), ("fail", 1), ("stage_failed", 0)])
    story.cancel([attempt.subtask for attempt in story.scheduler.current()].index(1))
    story.play([("kill", 0), ("kill", 0), ("go_on", 0)])
    errors = story.scheduler.errors
    assert {subtask: type(error) for subtask, error in errors.items()} == {0: VertexFailedError, 2: StageAbortedError}
    assert (errors[0].vertex, errors[0].cause) == ("Source: Map (2/4)", "boom")
    assert story.run.find(1).state is SubtaskState.CANCELED
    story.end()


@settings(max_examples=200, deadline=None)
@given(moves_of("reader_done", "reader_failed"))
def test_outputs_that_are_made_again_are_over_once(moves):
    story = OutputsMadeAgain()
    story.play(moves)
    story.end()
