"""Runs of vertices, told whatever Spark and the scheduler may say, in any order: each execution ends exactly once."""

from __future__ import annotations

import itertools
from types import SimpleNamespace

from fake_spark import METRICS, StageOutcome, TaskEnded, TaskStarted, graph_of
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from flinkmagic.deployment.remade_run import RemadeRun
from flinkmagic.deployment.subtask_state import SubtaskState
from flinkmagic.deployment.vertex_run import VertexRun
from flinkmagic.errors import ExecutorLostError, OutputLostError
from flinkmagic.graph.execution import ExecutionAttemptID
from flinkmagic.graph.execution_state import ExecutionState
from flinkmagic.scheduling.slots.physical_slot_provider import PhysicalSlot, PhysicalSlotRequest
from flinkmagic.scheduling.task_executor_gateway import TaskDeploymentDescriptor

MAP = graph_of({"Map": (4, []), "Write": (1, ["Map"])}).job_vertices[0]
WITHIN = "a vertex within the same task"
DONE = StageOutcome()
FAILED = StageOutcome(error=RuntimeError("aborted"))
WHICH = st.integers(0, 11)
BY_SCHEDULER = "ended by the scheduler"


class Scheduler:
    """The surroundings of a run (`RunHost`): makes requests, deploys into slots, and notes what it is told."""

    def __init__(self):
        self.run = None
        self.told = {}
        self.requests = {}
        self.deployments = {}
        self.deferred = []
        self.cancelled = set()
        self.overs = 0
        self.deploys_late = self.refuses = False
        self._numbers = itertools.count()

    def request(self, subtask):
        request = PhysicalSlotRequest(f"request-{next(self._numbers)}", (subtask,))
        self.requests[request.slot_request_id] = []
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

    def slot_on(self, executor, number):
        return PhysicalSlot(f"slot-{next(self._numbers)}", executor, number, None)

    def report(self, attempt, state, error=None, io_metrics=None, at_ms=None):
        if self.told[attempt] == [BY_SCHEDULER]:
            return
        self.told[attempt].append(state)
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


class AnyOrder(RuleBasedStateMachine):
    """What both kinds of runs are told."""

    def __init__(self):
        super().__init__()
        self.scheduler = Scheduler()
        self.tasks, self.succeeded = [], []
        self.numbers = itertools.count()

    def started(self, partition):
        task = TaskStarted(0, 0, partition, 0, next(self.numbers), "1", 1.0, False)
        self.tasks.append(task)
        return task

    def tell_end(self, task, status, loss=None):
        self.tasks.remove(task)
        if status == "SUCCESS":
            self.succeeded.append(task)
        self.run.ended(TaskEnded(task, 2.0, status, METRICS if status == "SUCCESS" else None, "", "boom"), loss)

    @rule(late=st.booleans(), refuses=st.booleans())
    def has_other_plans(self, late, refuses):
        self.scheduler.deploys_late, self.scheduler.refuses = late, refuses

    @rule()
    def goes_on(self):
        for subtask in list(self.scheduler.deployments):
            self.scheduler.deploy(subtask)
        self.scheduler.settle()

    @precondition(lambda self: self.tasks)
    @rule(which=WHICH, status=st.sampled_from(["SUCCESS", "SUCCESS", "FAILED", "KILLED"]))
    def a_task_ends(self, which, status):
        self.tell_end(pick(self.tasks, which), status)

    @precondition(lambda self: self.tasks)
    @rule(which=WHICH)
    def a_task_is_lost(self, which):
        self.tell_end(pick(self.tasks, which), "FAILED", ExecutorLostError("1", "gone"))

    @precondition(lambda self: self.succeeded)
    @rule(which=WHICH)
    def an_output_is_lost(self, which):
        self.run.output_lost(pick(self.succeeded, which), OutputLostError("Map", "1"))

    @precondition(lambda self: self.scheduler.current())
    @rule(which=WHICH)
    def an_execution_is_cancelled(self, which):
        self.scheduler.cancel(pick(self.scheduler.current(), which))

    @rule(subtask=st.integers(0, 3))
    def a_request_is_withdrawn(self, subtask):
        one = self.run.find(subtask)
        if one is not None and one.request is not None:
            self.scheduler.requests[one.request.slot_request_id].append("withdrawn")
            self.run.withdraw(subtask)

    @invariant()
    def counts_are_those_of_the_states(self):
        if self.scheduler.run is None:
            return
        states = [one.state for one in self.run.every()]
        assert {state: self.run.counts[state] for state in SubtaskState} == {
            state: states.count(state) for state in SubtaskState
        }
        assert self.run.unfinished == sum(state.needs_slot for state in states)
        assert SubtaskState.EXPECTED not in states

    @invariant()
    def nothing_is_told_twice(self):
        for news in self.scheduler.told.values():
            assert len([state for state in news if state is BY_SCHEDULER or state.is_terminal]) <= 1, news
            assert not any(state is BY_SCHEDULER or state.is_terminal for state in news[:-1]), news
        for answers in self.scheduler.requests.values():
            assert len(answers) <= 1, answers

    def all_is_over(self):
        while self.tasks:
            self.tell_end(self.tasks[0], "KILLED")
        self.goes_on()
        self.counts_are_those_of_the_states()
        self.nothing_is_told_twice()
        assert [one for one in self.run.every() if not one.is_over] == []
        assert all(ended(news) for news in self.scheduler.told.values()), self.scheduler.told
        assert all(len(answers) == 1 for answers in self.scheduler.requests.values()), self.scheduler.requests


class OneStage(AnyOrder):
    """A vertex that Spark was asked for; its fourth subtask was finished before."""

    @initialize(holds_all=st.booleans(), fails_at_once=st.booleans(), tasks=st.sampled_from([None, None, 2]))
    def submit(self, holds_all, fails_at_once, tasks):
        requests = {subtask: self.scheduler.request(subtask) for subtask in range(3)}
        self.run = self.scheduler.run = VertexRun(
            MAP, None, requests, holds_all=holds_all, fails_at_once=fails_at_once, host=self.scheduler
        )
        self.run.stage_run = SimpleNamespace(is_cancelled=False)
        self.run.stage_run.cancel = lambda: vars(self.run.stage_run).update(is_cancelled=True)
        if tasks is not None:
            self.run.merged(tasks)

    @precondition(lambda self: self.run.outcome is None)
    @rule(partition=st.sampled_from([0, 0, 1, 1, 2, 3]))
    def a_task_is_launched(self, partition):
        self.run.launched(self.started(partition), 0)

    @rule()
    def the_job_is_aborted(self):
        self.run.aborted()

    @precondition(lambda self: self.run.outcome is None)
    @rule(outcome=st.sampled_from([DONE, FAILED, FAILED]))
    def the_stage_ends(self, outcome):
        self.run.finish(outcome)

    @precondition(lambda self: self.run.outcome is not None and self.tasks)
    @rule()
    def spark_is_silent(self):
        self.tasks.clear()
        self.run.lose_tasks()
        self.run.settle()

    @invariant()
    def it_is_over_once(self):
        if self.scheduler.run is not None:
            assert self.scheduler.overs == self.run.is_over

    def teardown(self):
        if self.scheduler.run is None:
            return
        if self.run.outcome is None:
            self.run.finish(FAILED)
        self.all_is_over()
        assert self.run.is_over
        assert self.scheduler.overs == 1


class OutputsMadeAgain(AnyOrder):
    """Lost outputs of a finished vertex, which two other stages want."""

    READERS = ("a", "b")

    @initialize()
    def begin(self):
        self.run = self.scheduler.run = RemadeRun(MAP, None, self.scheduler)

    @rule(reader=st.sampled_from(READERS), partition=st.sampled_from([0, 0, 1, 2]))
    def a_task_is_launched(self, reader, partition):
        self.run.made_for(reader, self.started(partition), 0)

    @rule(reader=st.sampled_from(READERS), outcome=st.sampled_from([DONE, FAILED]))
    def a_reader_ends(self, reader, outcome):
        self.run.concluded(reader, outcome)

    def teardown(self):
        if self.scheduler.run is None:
            return
        for reader in self.READERS:
            self.run.concluded(reader, FAILED)
        self.all_is_over()


TestOneStage = OneStage.TestCase
TestOutputsMadeAgain = OutputsMadeAgain.TestCase
TestOneStage.settings = TestOutputsMadeAgain.settings = settings(
    max_examples=60, stateful_step_count=30, deadline=None, suppress_health_check=list(HealthCheck)
)
