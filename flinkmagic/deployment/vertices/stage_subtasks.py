"""The subtasks of a vertex that Spark runs: does what the table of their states says (`subtask_state`)."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import NamedTuple

from flinkmagic.deployment.vertices.run_host import RunHost
from flinkmagic.deployment.vertices.subtask_run import SubtaskEnd, SubtaskRun
from flinkmagic.deployment.vertices.subtask_state import (
    CANCELLING,
    NEEDS_SLOT,
    OVER,
    StateCounts,
    SubtaskAction,
    SubtaskEvent,
    SubtaskLife,
    SubtaskState,
)
from flinkmagic.deployment.watching.task_events import TaskEnded, TaskStarted
from flinkmagic.errors.scheduling import ExecutorRecoveryError
from flinkmagic.graph.execution_graph import ExecutionAttemptID
from flinkmagic.graph.execution_job_vertex import ExecutionJobVertex
from flinkmagic.graph.execution_state import ExecutionState
from flinkmagic.planning.handles import StageHandle
from flinkmagic.scheduling.slots.physical_slot_provider import PhysicalSlotRequest
from flinkmagic.scheduling.task_executor_gateway import TaskDeploymentDescriptor

NO_TASK = "no task"
"""The resource of an execution that was finished without a task of Spark's."""


class Occasion(NamedTuple):
    """What else is known about an event: where a task was launched, when it happened, and its cause."""

    executor: str = NO_TASK
    slot_number: int = 0
    at_ms: float | None = None
    error: BaseException | None = None
    loss: ExecutorRecoveryError | None = None


_PLAIN = Occasion()


class StageSubtasks(ABC):
    """The subtasks of one vertex, as far as one run at Spark makes them.

    Parameters
    ----------
    job_vertex : ExecutionJobVertex
        The vertex.
    handle : StageHandle
        How its stage is run.
    requests : mapping of int to PhysicalSlotRequest
        The subtasks that are to run, and the requests that await their launch.
    host : RunHost
        Is notified of their events.
    """

    def __init__(
        self,
        job_vertex: ExecutionJobVertex,
        handle: StageHandle,
        requests: Mapping[int, PhysicalSlotRequest],
        host: RunHost,
    ) -> None:
        self.job_vertex = job_vertex
        self.handle = handle
        self.counts = StateCounts()
        self._host = host
        self._by_number: dict[int, SubtaskRun] = {}
        self._launching: SubtaskRun | None = None
        self._carry_out = {
            SubtaskAction.GIVE_SLOT: self._give_slot,
            SubtaskAction.GIVE_SLOT_WITHOUT_TASK: self._give_slot_without_task,
            SubtaskAction.ANNOUNCE: self._announce,
            SubtaskAction.TELL_FINISHED: self._tell_finished,
            SubtaskAction.TELL_FAILED: self._tell_failed,
            SubtaskAction.TELL_CANCELED: self._tell_canceled,
            SubtaskAction.REFUSE: self._refuse,
            SubtaskAction.HAND_BACK: self._hand_back,
            SubtaskAction.ASK_AGAIN: self._ask_again,
            SubtaskAction.ASK_TO_REPLACE: self._ask_to_replace,
            SubtaskAction.FORGET_SUCCESS: self._forget_success,
            SubtaskAction.CANCEL_STAGE: self._cancel_stage,
        }
        for subtask, request in requests.items():
            life = SubtaskLife(job_vertex.task_name(subtask), SubtaskState.REQUESTED)
            self._put(subtask, SubtaskRun(subtask, life, request))

    # -- the subtasks ----------------------------------------------------------------------------------

    def every(self) -> list[SubtaskRun]:
        """Return the current executions, in the order in which their subtasks came to this run."""
        return list(self._by_number.values())

    def find(self, subtask: int) -> SubtaskRun | None:
        """Return the current execution of a subtask; None if it does not belong to this run."""
        return self._by_number.get(subtask)

    def _put(self, subtask: int, one: SubtaskRun | None) -> None:
        before = self._by_number.get(subtask)
        if before is not None:
            before.life.count_in(None)
        if one is None:
            del self._by_number[subtask]
        else:
            self._by_number[subtask] = one
            one.life.count_in(self.counts)

    @property
    def unfinished(self) -> int:
        """How many subtasks still need a slot."""
        return self.counts.of(NEEDS_SLOT)

    @property
    def is_wanted(self) -> bool:
        """Whether any execution is neither over nor being cancelled."""
        return len(self._by_number) > self.counts.of(OVER | CANCELLING)

    @property
    def are_all_over(self) -> bool:
        """Whether every execution is over; tasks of Spark's may still run."""
        return self.counts.of(OVER) == len(self._by_number)

    @property
    def has_running_tasks(self) -> bool:
        """Whether any task of Spark's runs, even for an execution that is over."""
        return any(one.running for one in self._by_number.values())

    def lose_tasks(self) -> None:
        """Count all running tasks as ended, as no news of them will come; the next event decides what follows."""
        for one in self.every():
            one.running.clear()

    # -- events ----------------------------------------------------------------------------------------

    def fire(self, one: SubtaskRun, event: SubtaskEvent, occasion: Occasion = _PLAIN) -> None:
        """Process an event as the table says."""
        for action in one.life.take(event):
            self._carry_out[action](one, occasion)

    def awaits(self, subtask: int) -> bool:
        """Return whether the next request for a subtask belongs to this run: its execution was replaced."""
        one = self.find(subtask)
        return one is not None and one.state is SubtaskState.EXPECTED

    def take_over(self, subtask: int, request: PhysicalSlotRequest) -> None:
        """Take the request of an execution that replaces another one; Spark's next task fulfils it."""
        one = self._by_number[subtask]
        one.request = request
        self.fire(one, SubtaskEvent.REQUEST)

    def has_request(self, subtask: int, slot_request_id: str) -> bool:
        """Return whether a request is waiting here."""
        one = self.find(subtask)
        return one is not None and one.request is not None and one.request.slot_request_id == slot_request_id

    def withdraw(self, subtask: int) -> None:
        """Take back a subtask's request."""
        one = self._by_number[subtask]
        one.request = None
        self.fire(one, SubtaskEvent.WITHDRAW)

    def accept(self, descriptor: TaskDeploymentDescriptor) -> None:
        """Take an execution to which a slot was given: the vertex's own, or one that runs within its tasks."""
        attempt = descriptor.attempt_id
        one = self._by_number[attempt.subtask]
        if attempt.job_vertex_id == self.job_vertex.id:
            one.attempt = attempt
        else:
            one.companions.append(attempt)
        one.unannounced.append(attempt)
        if one is not self._launching:
            self._host.later(lambda: self._catch_up(one))

    def _catch_up(self, one: SubtaskRun) -> None:
        """Report to an execution that was deployed late what is known already."""
        if one.end is not None:
            self._tell(one, one.end)
        elif not one.is_over and not one.state.is_cancelling:
            self._announce(one)

    def cancel(self, attempt: ExecutionAttemptID) -> None:
        """Cancel an execution, and with it Spark's whole stage."""
        one = self.find(attempt.subtask)
        if one is None or one.is_over or attempt not in (one.attempt, *one.companions):
            self._host.later(lambda: self._host.report(attempt, ExecutionState.CANCELED))
            return
        self.fire(one, SubtaskEvent.CANCEL)
        self.after_cancel(one)

    def task_launched(self, one: SubtaskRun, task: TaskStarted, slot_number: int) -> None:
        """Note that Spark has launched a task."""
        one.running.add(task.task_id)
        self.fire(one, SubtaskEvent.LAUNCHED, Occasion(task.executor, slot_number, at_ms=task.launched_ms))

    def task_ended(self, one: SubtaskRun, end: TaskEnded, occasion: Occasion, *, is_given_up: bool = False) -> bool:
        """Note that a task has ended; return whether it is the first one that has succeeded.

        Parameters
        ----------
        one : SubtaskRun
            Its subtask.
        end : TaskEnded
            How it ended.
        occasion : Occasion
            With the loss that caused it, if Spark runs it again by itself.
        is_given_up : bool
            Whether Spark has failed the stage's job: a success then counts for nothing.
        """
        one.running.discard(end.started.task_id)
        if end.status == "SUCCESS" and one.success is None and not is_given_up:
            one.success = end
            self.fire(one, SubtaskEvent.SUCCEEDED)
            return True
        if not one.running:
            is_lost = occasion.loss is not None and end.status == "FAILED"
            self.fire(one, SubtaskEvent.LOST if is_lost else SubtaskEvent.TASKS_OVER, occasion)
        return False

    @abstractmethod
    def after_cancel(self, one: SubtaskRun) -> None:
        """Handle the cancellation of an execution."""

    @abstractmethod
    def ended(self, end: TaskEnded, loss: ExecutorRecoveryError | None = None) -> None:
        """Note that a task has ended; `loss` is the cause of an end that is not the task's own fault."""

    @abstractmethod
    def output_lost(self, task: TaskStarted, loss: ExecutorRecoveryError) -> None:
        """Handle that Spark has taken back the success of a task."""

    @abstractmethod
    def cancel_spark(self) -> None:
        """Make Spark end the stage."""

    def replace(self, subtask: int, loss: ExecutorRecoveryError | None, at_ms: float | None) -> SubtaskRun | None:
        """Make the scheduler create a subtask's next execution; return None if it has other plans for it."""
        before = self.find(subtask)
        life = SubtaskLife(
            self.job_vertex.task_name(subtask), SubtaskState.EXPECTED, before.life if before is not None else None
        )
        fresh = SubtaskRun(subtask, life, running=before.running if before is not None else set())
        self._put(subtask, fresh)
        # The request for it comes within this call.
        if not self._host.replace(self.job_vertex, subtask, loss, at_ms):
            self._put(subtask, before)
            return None
        if before is not None:
            self.fire(before, SubtaskEvent.REPLACE)
        return fresh

    # -- actions ---------------------------------------------------------------------------------------

    def _give_slot(self, one: SubtaskRun, occasion: Occasion) -> None:
        """Fulfil a request; what waits for the slot is deployed within this call."""
        assert one.request is not None
        one.request = None
        if occasion.at_ms is not None:
            one.launched_ms = occasion.at_ms
        self._launching = one
        self._host.offer_slot(self.job_vertex, one.subtask, occasion.executor, occasion.slot_number)
        self._launching = None

    def _give_slot_without_task(self, one: SubtaskRun, _occasion: Occasion) -> None:
        self._give_slot(one, _PLAIN)
        one.unannounced.clear()

    def _announce(self, one: SubtaskRun, _occasion: Occasion = _PLAIN) -> None:
        attempts, one.unannounced = one.unannounced, []
        for attempt in attempts:
            self._host.report(attempt, ExecutionState.INITIALIZING, at_ms=one.launched_ms)
            self._host.report(attempt, ExecutionState.RUNNING, at_ms=one.launched_ms)

    def _tell_finished(self, one: SubtaskRun, _occasion: Occasion) -> None:
        at_ms = one.success.finished_ms if one.success is not None else None
        self._tell(one, SubtaskEnd(ExecutionState.FINISHED, at_ms=at_ms))

    def _tell_failed(self, one: SubtaskRun, occasion: Occasion) -> None:
        self._tell(one, SubtaskEnd(ExecutionState.FAILED, occasion.error, at_ms=occasion.at_ms))

    def _tell_canceled(self, one: SubtaskRun, _occasion: Occasion) -> None:
        self._tell(one, SubtaskEnd(ExecutionState.CANCELED))

    def _tell(self, one: SubtaskRun, end: SubtaskEnd) -> None:
        """Report a subtask's end, that of the upstream vertices first.

        A failure is reported for the vertex itself: its companions are in its region, so the scheduler cancels them.
        """
        one.end = end
        self._announce(one)
        own = [one.attempt] if one.attempt is not None else []
        for attempt in own if end.state is ExecutionState.FAILED else [*one.companions, *own]:
            if attempt not in one.told:
                one.told.add(attempt)
                self._host.report(attempt, end.state, end.error, end.at_ms)

    def _refuse(self, one: SubtaskRun, occasion: Occasion) -> None:
        request, one.request = one.request, None
        assert request is not None
        assert occasion.error is not None
        request.slot_future.complete_exceptionally(occasion.error)

    def _hand_back(self, one: SubtaskRun, _occasion: Occasion) -> None:
        request, one.request = one.request, None
        assert request is not None
        self._host.hand_back(self.job_vertex, {one.subtask: request})

    def _ask_again(self, one: SubtaskRun, _occasion: Occasion) -> None:
        self._host.replace(self.job_vertex, one.subtask, None, None)

    def _ask_to_replace(self, one: SubtaskRun, occasion: Occasion) -> None:
        self.replace(one.subtask, occasion.loss, occasion.at_ms)

    def _forget_success(self, one: SubtaskRun, _occasion: Occasion) -> None:
        one.success = None

    def _cancel_stage(self, _one: SubtaskRun, _occasion: Occasion) -> None:
        self.cancel_spark()
