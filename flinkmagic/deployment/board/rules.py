"""The rules of a stage board: for each event the instructions, in the order in which they are to be carried out.

The order is part of the rules: executions that run within a task are told of before the vertex itself, and when a stage
has failed, its requests are settled before its executions, as the end of an execution may cause new requests.

An instruction is carried out before its rule goes on, and what the scheduler calls within it is another event, which is
handled before that call returns. So a rule sees what its instruction has brought about.

The table in `subtask_states` says what each event means for a subtask, with the rules 1 to 9; `submission` says what
goes to Spark. Here is decided for all subtasks of a run: when a success counts, when the stage is done or has failed,
and when nothing of it is left. What is restarted then is the scheduler's to say (`scheduling.failover`). For outputs
that Spark makes again (`RemadeRun`):

10. Spark makes only what is missing, and only when a stage needs it: these tasks belong to the run of that stage, and
    their fate depends on that run. The first task of a subtask is its next execution (rule 8); it is FINISHED as soon
    as the task has succeeded.
11. When the stage that needs it is done, so is what was made for it. When that stage has failed, what is not made yet
    is requested again, and the vertex itself is submitted (rule 9).

Whose task is it? A stage of Spark's is a vertex's own if it is the last one of a Spark job that has the vertex's tag:
for a shuffle map stage always, for others if it has as many tasks as the vertex (a command may run small jobs beside
its own). All other stages under the tag help the vertex: sampling, or what an operator hides. The exception is a stage
that writes the shuffle of a vertex that was over: Spark makes outputs again that were lost with an executor, as part of
the job that needs them; its tasks are the recovery of the vertex whose shuffle it is. In a pipelined region the job has
stages of several vertices: each is that of the vertex whose shuffle it writes.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Iterator
from typing import Any, NamedTuple

from flinkmagic.deployment.board.messages import (
    CallReturned,
    CancelRequested,
    CancelStage,
    DecisionDue,
    FailJob,
    GiveSlot,
    Instruction,
    JobSubmitted,
    Later,
    Overdue,
    RefuseSlot,
    Replace,
    Report,
    RequestCanceled,
    ResultTakenUp,
    SessionLost,
    SlotFreed,
    SlotRequested,
    StageEnded,
    StageFailure,
    TaskDeployed,
    TaskLaunched,
    TasksOver,
)
from flinkmagic.deployment.board.state import BoardState, RemadeRun, Role, Run, Subtask, SubtaskEnd, VertexRun
from flinkmagic.deployment.board.submission import decide, decide_soon
from flinkmagic.deployment.board.subtask_states import SubtaskAction, SubtaskEvent, SubtaskState
from flinkmagic.deployment.stages.write_retries import EarlierRun
from flinkmagic.deployment.watching.task_events import (
    RESUBMITTED,
    ExecutorAdded,
    ExecutorRemoved,
    JobEnded,
    Marker,
    StageRef,
    TaskEnded,
    TaskStarted,
)
from flinkmagic.errors.scheduling import ExecutorRecoveryError
from flinkmagic.graph.execution_graph import ExecutionAttemptID
from flinkmagic.graph.execution_job_vertex import ExecutionJobVertex
from flinkmagic.graph.execution_state import ExecutionState

_EXPECTED = SubtaskState.EXPECTED

NO_TASK = "no task"
"""The resource of an execution that was finished without a task of Spark's."""


class Occasion(NamedTuple):
    """What else is known about an event: where a task was launched, when it happened, and its cause."""

    executor: str = NO_TASK
    slot_number: int = 0
    at_ms: float | None = None
    failure: StageFailure | None = None
    loss: ExecutorRecoveryError | None = None


_PLAIN = Occasion()


class StageBoard:
    """The rules, over the state of one job, which `handle` alone changes."""

    def __init__(self, state: BoardState) -> None:
        self.state = state
        self._rules: dict[type[Any], Callable[[Any], Iterable[Instruction]]] = {
            SlotRequested: self._slot_requested,
            RequestCanceled: self._request_canceled,
            SlotFreed: self._slot_freed,
            TaskDeployed: self._task_deployed,
            CancelRequested: self._cancel_requested,
            CallReturned: self._call_returned,
            DecisionDue: lambda due: decide(state, due),
            JobSubmitted: self._job_submitted,
            JobEnded: self._job_ended,
            TaskLaunched: self._task_launched,
            TaskEnded: self._task_ended,
            StageEnded: self._stage_ended,
            Marker: lambda marker: self._conclude(marker.token),
            Overdue: self._overdue,
            ExecutorAdded: self._executor_added,
            ExecutorRemoved: self._executor_removed,
            SessionLost: self._session_lost,
            ResultTakenUp: self._result_taken_up,
        }
        self._actions: dict[SubtaskAction, Callable[[Run, Subtask, Occasion], Iterable[Instruction]]] = {
            SubtaskAction.GIVE_SLOT: self._give_slot,
            SubtaskAction.GIVE_SLOT_WITHOUT_TASK: self._give_slot_without_task,
            SubtaskAction.ANNOUNCE: lambda _run, one, _occasion: self._announce(one),
            SubtaskAction.TELL_FINISHED: lambda _run, one, _occasion: self._tell(
                one, (ExecutionState.FINISHED, None, one.succeeded_ms)
            ),
            SubtaskAction.TELL_FAILED: lambda _run, one, occasion: self._tell(
                one, (ExecutionState.FAILED, occasion.failure, occasion.at_ms)
            ),
            SubtaskAction.TELL_CANCELED: lambda _run, one, _occasion: self._tell(
                one, (ExecutionState.CANCELED, None, None)
            ),
            SubtaskAction.REFUSE: self._refuse,
            SubtaskAction.HAND_BACK: self._hand_back,
            SubtaskAction.ASK_AGAIN: self._ask_again,
            SubtaskAction.ASK_TO_REPLACE: self._ask_to_replace,
            SubtaskAction.FORGET_SUCCESS: self._forget_success,
            SubtaskAction.CANCEL_STAGE: lambda run, _one, _occasion: self._cancel_stage(run),
        }

    @property
    def required(self) -> int:
        return self.state.required

    @property
    def is_idle(self) -> bool:
        return not self.state.active

    def handle(self, event: Any) -> Iterator[Instruction]:
        """Return what to do about an event; carry out each instruction before the next one is taken."""
        yield from self._rules[type(event)](event)

    # -- what the scheduler asks for -------------------------------------------------------------------

    def _slot_requested(self, event: SlotRequested) -> Iterator[Instruction]:
        """Keep a request until Spark launches its task."""
        index, subtask = self.state.members.task_of(event.vertex)
        self.state.requests[event.request_id] = (index, subtask)
        run = next((run for run in self.state.runs_of(index) if run.awaits(subtask)), None)
        if run is None:
            self.state.waiting.setdefault(index, {})[subtask] = event.request_id
        else:
            one = run.subtasks[subtask]
            one.request = event.request_id
            yield from self._fire(run, one, SubtaskEvent.REQUEST)
        yield from decide_soon(self.state)

    def _request_canceled(self, event: RequestCanceled) -> Iterator[Instruction]:
        """Take back a request. If no one wants its stage any more, end its Spark work."""
        index, subtask = self.state.requests.pop(event.request_id)
        waiting = self.state.waiting.get(index, {})
        if waiting.get(subtask) == event.request_id:
            del waiting[subtask]
        else:
            found = [(run, run.subtasks[subtask]) for run in self.state.runs_of(index) if subtask in run.subtasks]
            run, one = next((run, one) for run, one in found if one.request == event.request_id)
            one.request = None
            yield from self._fire(run, one, SubtaskEvent.WITHDRAW)
            if isinstance(run, VertexRun):
                if not any(each.is_wanted for each in run.region):
                    yield from self._cancel_stage(run)
                yield from self._end_if_over(run)
        yield from decide_soon(self.state)

    def _slot_freed(self, event: SlotFreed) -> Iterator[Instruction]:
        """Forget a slot. It is free when Spark reports that its task has ended, whatever the scheduler thinks."""
        self.state.slots.pop(event.allocation_id, None)
        yield from decide_soon(self.state)

    def _task_deployed(self, event: TaskDeployed) -> Iterator[Instruction]:
        """Take an execution to which a slot was given: the vertex's own, or one that runs within its tasks."""
        attempt = event.attempt
        run, one = self.state.slots[event.allocation_id]
        if attempt.job_vertex_id == run.job_vertex.id:
            one.attempt = attempt
        else:
            one.companions.append(attempt)
        one.unannounced.append(attempt)
        if one is not self.state.launching:
            yield from self._answer_later(run, one, attempt)

    def _cancel_requested(self, event: CancelRequested) -> Iterator[Instruction]:
        """Cancel an execution, and with it Spark's whole stage; the answer comes when its task has really ended."""
        found = self.state.subtask_of(event.attempt)
        if found is None or found[1].is_over:
            yield Later(Report(event.attempt, ExecutionState.CANCELED))
            return
        run, one = found
        yield from self._fire(run, one, SubtaskEvent.CANCEL)
        if isinstance(run, RemadeRun) and not one.running:
            yield from self._answer_later(run, one, event.attempt)

    def _answer_later(self, run: Run, one: Subtask, attempt: ExecutionAttemptID) -> Iterator[Instruction]:
        self.state.unanswered[attempt] = (run, one)
        yield Later(CallReturned(attempt))

    def _call_returned(self, event: CallReturned) -> Iterator[Instruction]:
        """Report to an execution that was deployed late what is known already; end one that nothing runs for."""
        run, one = self.state.unanswered.pop(event.attempt, (None, None))
        if run is None or one is None:  # it was called about twice
            return
        if one.end is not None:
            yield from self._tell(one, one.end)
        elif isinstance(run, RemadeRun) and one.is_cancelling and not one.running:
            yield from self._fire(run, one, SubtaskEvent.TASKS_OVER)
        elif not one.is_over and not one.is_cancelling:
            yield from self._announce(one)

    # -- what Spark reports ----------------------------------------------------------------------------

    def _job_submitted(self, event: JobSubmitted) -> Iterator[Instruction]:
        """Find out whose the stages of a job are."""
        run, job = self.state.runs.get(event.tag), event.job
        if run is None:
            return
        if run.is_cancelled:
            yield CancelStage(event.tag)
        final = job.final_stage
        is_own = final is not None and not event.is_early and self._is_own(run, final, event.tasks)
        if is_own and final is not None:
            run.main_stage = final.stage_id
            run.tasks = event.tasks
            for one in run.every():
                if run.is_merged(one):
                    yield from self._fire(run, one, SubtaskEvent.MERGE)
            self.state.main_jobs[job.job_id] = run
            if final.shuffle_id is not None:
                self.state.makers[final.shuffle_id] = run.job_vertex
        for stage in job.stages:
            if stage.stage_id not in self.state.roles:
                self.state.roles[stage.stage_id] = self._role(run, stage, event, is_own and stage == final)

    @staticmethod
    def _is_own(run: VertexRun, final: StageRef, tasks: int | None) -> bool:
        if run.main_stage is not None:
            return False
        return run.stage.handle.ends_its_job or final.tasks == (tasks or run.job_vertex.parallelism)

    def _role(self, run: VertexRun, stage: StageRef, event: JobSubmitted, is_own: bool) -> Role:
        if is_own:
            return Role(run, run.job_vertex, "task")
        shuffle = stage.shuffle_id
        if shuffle is not None and shuffle in event.pipelined:
            one = next(one for one in run.region if one.index == event.pipelined[shuffle])
            return Role(one, one.job_vertex, "task")
        maker = self.state.makers.get(shuffle) if shuffle is not None else None
        return Role(run, maker, "recovery") if maker is not None else Role(run, run.job_vertex, "helper")

    def _job_ended(self, event: JobEnded) -> Iterable[Instruction]:
        run = self.state.main_jobs.pop(event.job_id, None)
        if run is not None and not event.succeeded:
            for each in run.region:
                each.is_aborted = True
        return ()

    def _result_taken_up(self, event: ResultTakenUp) -> Iterable[Instruction]:
        self.state.makers[event.shuffle_id] = self.state.graph.job_vertices[event.index]
        return ()

    def _task_launched(self, event: TaskLaunched) -> Iterator[Instruction]:
        """Apply rules 1, 2 and 8."""
        task = event.task
        role = self.state.roles.get(task.stage_id)
        if role is None:
            return
        self.state.executor_slots[task.executor] = event.executor_slots
        slot = self.state.log.started(task, role.job_vertex.id, role.job_vertex.name, role.name)
        run: Run = role.run
        if role.name != "task":
            role.run.helpers.add(task.task_id)
        if role.name == "task":
            role.run.has_launched = True
            one = run.subtasks.get(task.partition)
            if one is None and role.run.outcome is None:
                one = yield from self._replace(run, task.partition, _PLAIN)
        elif role.name == "recovery":
            run = remade = self._remade_run(role.job_vertex)
            one = run.subtasks.get(task.partition)
            if one is None or one.is_over:
                one = yield from self._replace(run, task.partition, _PLAIN)
            if one is not None and role.run.outcome is None:
                remade.needed_by[task.partition] = role.run
        else:
            return
        if one is not None:
            one.running.add(task.task_id)
            occasion = Occasion(task.executor, slot, at_ms=task.launched_ms)
            yield from self._fire(run, one, SubtaskEvent.LAUNCHED, occasion)

    def _remade_run(self, job_vertex: ExecutionJobVertex) -> RemadeRun:
        index = job_vertex.index
        if index not in self.state.remade:
            self.state.remade[index] = RemadeRun(self.state.members.stage_of(index))
        return self.state.remade[index]

    def _task_ended(self, end: TaskEnded) -> Iterator[Instruction]:
        role = self.state.roles.get(end.started.stage_id)
        if role is None:
            return
        loss = self.state.losses.of(end, role.job_vertex)
        own: Run = self._remade_run(role.job_vertex) if role.name == "recovery" else role.run
        if end.reason == RESUBMITTED:
            self.state.log.output_lost(end.started.task_id)
            if role.name != "helper" and loss is not None:
                yield from self._output_lost(own, end.started, loss)
            return
        self.state.log.ended(_with_known_output(end, role))
        if role.name != "helper":
            if isinstance(own, RemadeRun):
                yield from self._remade_ended(own, end, loss)
            else:
                yield from self._own_ended(role.run, end, loss)
        if role.name != "task":
            role.run.helpers.discard(end.started.task_id)
            if end.status == "FAILED" and role.run.last_failed is None:
                role.run.helper_error = end.error
            yield from self._end_if_over(role.run)

    def _own_ended(self, run: VertexRun, end: TaskEnded, loss: ExecutorRecoveryError | None) -> Iterator[Instruction]:
        """Apply rules 2, 3, 5, 6 and 7; a loss matters only while Spark works on the stage."""
        one = run.subtasks.get(end.started.partition)
        if one is None:
            return
        if end.status == "FAILED":
            run.last_failed = end
            run.first_failed = run.first_failed or end
        is_loss = loss is not None and run.is_open
        occasion = Occasion(at_ms=end.finished_ms, loss=loss) if is_loss else _ended_with_stage(run, one)
        is_first = yield from self._note_end(run, one, end, occasion, is_given_up=run.is_aborted)
        if is_first and not (one.is_over or run.holds):
            yield from self._fire(run, one, SubtaskEvent.COUNTS)
        for each in run.region:
            yield from self._tell_failure(each)
        yield from self._end_if_over(run)

    def _remade_ended(
        self, run: RemadeRun, end: TaskEnded, loss: ExecutorRecoveryError | None
    ) -> Iterator[Instruction]:
        """Apply rule 10; if no stage waits for it any more, rule 11."""
        subtask = end.started.partition
        one = run.subtasks.get(subtask)
        if one is None:
            return
        is_first = yield from self._note_end(run, one, end, Occasion(at_ms=end.finished_ms, loss=loss))
        if is_first and not one.is_over:
            yield from self._fire(run, one, SubtaskEvent.COUNTS)
        if subtask not in run.needed_by:
            yield from self._reader_failed(run, run.subtasks[subtask])

    def _note_end(
        self, run: Run, one: Subtask, end: TaskEnded, occasion: Occasion, *, is_given_up: bool = False
    ) -> Generator[Instruction, None, bool]:
        """Note that a task has ended; return whether it is the first one that has succeeded.

        Where Spark has given up the stage's job, a success counts for nothing.
        """
        one.running.discard(end.started.task_id)
        if end.status == "SUCCESS" and one.succeeded_ms is None and not is_given_up:
            one.succeeded_ms = end.finished_ms
            yield from self._fire(run, one, SubtaskEvent.SUCCEEDED)
            return True
        if not one.running:
            is_lost = occasion.loss is not None and end.status == "FAILED"
            yield from self._fire(run, one, SubtaskEvent.LOST if is_lost else SubtaskEvent.TASKS_OVER, occasion)
        return False

    def _output_lost(self, run: Run, task: TaskStarted, loss: ExecutorRecoveryError) -> Iterator[Instruction]:
        """Apply rule 7: Spark has taken back a success.

        Of what was made again, readers that had it, or have failed, do not have it made once more.
        """
        one = run.subtasks.get(task.partition)
        if one is None or one.succeeded_ms is None:
            return
        if isinstance(run, RemadeRun):
            is_needed = task.partition in run.needed_by
        else:
            is_needed = isinstance(run, VertexRun) and run.is_open
        if is_needed:
            yield from self._fire(run, one, SubtaskEvent.TAKEN_BACK, Occasion(loss=loss))

    def _executor_added(self, event: ExecutorAdded) -> Iterator[Instruction]:
        self.state.removed.discard(event.executor)
        yield from decide_soon(self.state)

    def _executor_removed(self, event: ExecutorRemoved) -> Iterable[Instruction]:
        """Remember it: its tasks are told of one by one."""
        self.state.removed.add(event.executor)
        self.state.losses.executor_removed(event)
        return ()

    # -- the end of a stage ----------------------------------------------------------------------------

    def _stage_ended(self, event: StageEnded) -> Iterator[Instruction]:
        """Note the outcome of a stage; it counts once a marker says that all news of its tasks has arrived."""
        self.state.ended[event.tag] = event
        if self.state.is_lost:
            yield from self._conclude(event.tag)

    def _conclude(self, tag: str) -> Iterator[Instruction]:
        """Process the outcome of a stage whose news has all arrived."""
        outcome, run = self.state.ended.pop(tag, None), self.state.runs[tag]
        if outcome is not None and run.outcome is None:
            yield from self._finish(run, outcome)

    def _overdue(self, event: Overdue) -> Iterator[Instruction]:
        """Count tasks as ended: Spark's listener bus drops events when flooded, and no job may wait forever."""
        runs = self.state.runs[event.tag].region
        for each in (*runs, *self.state.remade.values()):
            each.lose_tasks()
        yield from self._conclude(event.tag)
        for run in runs:
            yield from self._settle_lost(run)

    def _session_lost(self, event: SessionLost) -> Iterator[Instruction]:
        self.state.is_lost = True
        self.state.ended.clear()
        for each in self.state.all_runs():
            each.lose_tasks()
        yield FailJob(event.cause)
        for run in list(self.state.active.values()):
            if run.outcome is None:
                yield from self._finish(run, StageEnded(run.tag, event.cause))
            else:
                yield from self._settle_lost(run)

    def _settle_lost(self, run: VertexRun) -> Iterator[Instruction]:
        yield from self._tell_failure(run)
        if run.outcome is not None:
            yield from self._settle_rest(run)
        yield from self._end_if_over(run)

    def _finish(self, run: VertexRun, outcome: StageEnded) -> Iterator[Instruction]:
        """End a run: the stage is done or has failed, and all that Spark reported before has arrived."""
        for each in run.region:
            each.outcome = outcome
        if outcome.error is None:
            for its, one in _subtasks_of(run.region):
                if not one.is_over:
                    yield from self._fire(its, one, SubtaskEvent.STAGE_DONE)
        elif run.is_cancelled:
            for each in run.region:
                yield from self._settle_rest(each)
        else:
            # That whose task failed first; where none did, the driver's part has failed.
            failed = [(each.first_failed.finished_ms, each) for each in run.region if each.first_failed is not None]
            to_blame = min(failed, key=lambda pair: pair[0])[1] if failed else run
            to_blame.failure_to_tell = outcome.error
            yield from self._tell_failure(to_blame)
        for each in run.region:
            yield from self._end_if_over(each)
        for remade in list(self.state.remade.values()):
            yield from self._reader_ended(remade, run, outcome)

    def _tell_failure(self, run: VertexRun) -> Iterator[Instruction]:
        """Report a failure: when the last task has ended, or immediately if there are no restarts."""
        error = run.failure_to_tell
        if error is None or (self.state.restarts and any(each.has_running_tasks for each in run.region)):
            return
        run.failure_to_tell = None
        yield from self._fail_root(run, error)
        for each in run.region:
            yield from self._settle_rest(each)
        for each in run.region:
            yield from self._end_if_over(each)

    def _fail_root(self, run: VertexRun, error: BaseException) -> Iterator[Instruction]:
        """Fail the execution to blame (rule 5)."""
        is_region = len(run.region) > 1
        last = run.first_failed if is_region else run.last_failed
        its, one = _root_of_region(run) if is_region else (run, _root(run))
        if one is None:
            return
        task = run.job_vertex.task_name(last.started.partition) if last is not None else run.job_vertex.name
        failure = StageFailure(run.index, task, error, last.error if last is not None else run.helper_error)
        occasion = Occasion(failure=failure, at_ms=last.finished_ms if last is not None else None)
        yield from self._fire(its, one, SubtaskEvent.BLAMED, occasion)

    def _settle_rest(self, run: VertexRun) -> Iterator[Instruction]:
        """Settle the others (rules 5 and 6): requests first, as the end of an execution may cause new requests."""
        for one in run.every():
            if not one.is_over and one.request is not None:
                yield from self._fire(run, one, SubtaskEvent.STAGE_FAILED)
        for one in run.every():
            if not one.is_over:
                yield from self._fire(run, one, SubtaskEvent.STAGE_FAILED)
            if not one.is_over and not one.running:
                yield from self._fire(run, one, SubtaskEvent.TASKS_OVER, _ended_with_stage(run, one))

    def _end_if_over(self, run: VertexRun) -> Iterator[Instruction]:
        if run.is_over or run.outcome is None or run.helpers or run.has_running_tasks or not run.are_all_over:
            return
        run.is_over = True
        before = self.state.earlier.get(run.index, EarlierRun(launched=False, reached_commit=False))
        succeeded = frozenset(one.number for one in run.every() if one.succeeded_ms is not None)
        self.state.earlier[run.index] = EarlierRun(
            launched=run.has_launched or before.launched,
            reached_commit=run.has_all_successes,
            counted=succeeded | before.counted,
        )
        if all(each.is_over for each in run.region):
            yield TasksOver(run.tag)
        self.state.active.pop(run.index, None)
        yield from decide_soon(self.state)

    def _reader_ended(self, remade: RemadeRun, run: VertexRun, outcome: StageEnded) -> Iterator[Instruction]:
        """Apply rule 11: `run` has come to its end."""
        for subtask in [subtask for subtask, needed_by in remade.needed_by.items() if needed_by is run]:
            del remade.needed_by[subtask]
            one = remade.subtasks[subtask]
            if one.is_over:
                continue
            if one.is_cancelling:
                if not one.running:
                    yield from self._fire(remade, one, SubtaskEvent.TASKS_OVER)
            elif outcome.error is None:
                yield from self._fire(remade, one, SubtaskEvent.STAGE_DONE)
            else:
                yield from self._reader_failed(remade, one)

    def _reader_failed(self, run: RemadeRun, one: Subtask) -> Iterator[Instruction]:
        if one.is_over or one.is_cancelling:
            return
        yield from self._fire(run, one, SubtaskEvent.READER_FAILED)
        if not one.is_over and not one.running:
            yield from self._fire(run, one, SubtaskEvent.TASKS_OVER)

    # -- what the table says ---------------------------------------------------------------------------

    def _fire(self, run: Run, one: Subtask, event: SubtaskEvent, occasion: Occasion = _PLAIN) -> Iterator[Instruction]:
        for action in run.take(one, event):
            yield from self._actions[action](run, one, occasion)

    def _replace(self, run: Run, number: int, occasion: Occasion) -> Generator[Instruction, None, Subtask | None]:
        """Have a subtask's next execution made; return None if the scheduler has other plans for it."""
        before = run.subtasks.get(number)
        fresh = run.new(number, _EXPECTED, before)
        run.put(number, fresh)
        yield Replace(run.index, number, occasion.loss, occasion.at_ms)
        if fresh.state is _EXPECTED:  # no request has come
            run.put(number, before)
            return None
        if before is not None:
            yield from self._fire(run, before, SubtaskEvent.REPLACE)
        return fresh

    def _give_slot(self, run: Run, one: Subtask, occasion: Occasion) -> Iterator[Instruction]:
        """Fulfil a request; what waits for the slot is deployed within the instruction."""
        self._take_request(one)
        if occasion.at_ms is not None:
            one.launched_ms = occasion.at_ms
        allocation_id = f"{occasion.executor}_{occasion.slot_number}#{next(self.state.slot_numbers)}"
        self.state.slots[allocation_id] = (run, one)
        self.state.launching = one
        vertex = run.job_vertex.first + one.number
        yield GiveSlot(vertex, allocation_id, occasion.executor)
        self.state.launching = None

    def _take_request(self, one: Subtask) -> None:
        request, one.request = one.request, None
        assert request is not None
        del self.state.requests[request]

    def _give_slot_without_task(self, run: Run, one: Subtask, _occasion: Occasion) -> Iterator[Instruction]:
        yield from self._give_slot(run, one, _PLAIN)
        one.unannounced.clear()

    def _announce(self, one: Subtask) -> Iterator[Instruction]:
        attempts, one.unannounced = one.unannounced, []
        for attempt in attempts:
            yield Report(attempt, ExecutionState.INITIALIZING, at_ms=one.launched_ms)
            yield Report(attempt, ExecutionState.RUNNING, at_ms=one.launched_ms)

    def _tell(self, one: Subtask, end: SubtaskEnd) -> Iterator[Instruction]:
        """Report a subtask's end, that of the upstream vertices first.

        A failure is reported for the vertex itself: its companions are in its region, so the scheduler cancels them.
        """
        one.end = end
        yield from self._announce(one)
        own = [one.attempt] if one.attempt is not None else []
        for attempt in own if end[0] is ExecutionState.FAILED else one.attempts():
            if attempt not in one.told:
                one.told.add(attempt)
                yield Report(attempt, *end)

    def _refuse(self, run: Run, one: Subtask, occasion: Occasion) -> Iterator[Instruction]:
        assert occasion.failure is not None
        self._take_request(one)
        yield RefuseSlot(run.job_vertex.first + one.number, occasion.failure)

    def _hand_back(self, run: Run, one: Subtask, _occasion: Occasion) -> Iterable[Instruction]:
        """Leave the request to a later run of the vertex."""
        assert one.request is not None
        self.state.waiting.setdefault(run.index, {})[one.number] = one.request
        one.request = None
        return ()

    def _ask_again(self, run: Run, one: Subtask, _occasion: Occasion) -> Iterator[Instruction]:
        yield Replace(run.index, one.number)

    def _ask_to_replace(self, run: Run, one: Subtask, occasion: Occasion) -> Iterator[Instruction]:
        yield from self._replace(run, one.number, occasion)

    def _forget_success(self, _run: Run, one: Subtask, _occasion: Occasion) -> Iterable[Instruction]:
        one.succeeded_ms = None
        return ()

    def _cancel_stage(self, run: Run) -> Iterator[Instruction]:
        """End a stage's Spark work, unless it has ended; what is made again is ended by the stage that needs it."""
        if isinstance(run, VertexRun) and run.outcome is None:
            for each in run.region:
                each.is_cancelled = True
            yield CancelStage(run.tag)


def _ended_with_stage(run: VertexRun, one: Subtask) -> Occasion:
    """Return the occasion of an execution that Spark ends together with its stage (rule 5)."""
    error = run.outcome.error if run.outcome is not None else None
    if error is None:
        return _PLAIN
    return Occasion(failure=StageFailure(run.index, one.name, error, is_to_blame=False))


def _subtasks_of(region: Iterable[VertexRun]) -> list[tuple[VertexRun, Subtask]]:
    return [(run, one) for run in region for one in run.every()]


def _root(run: VertexRun) -> Subtask | None:
    """Return the execution to blame; not one that is being cancelled, of which only its end is reported."""
    waiting = [one for one in run.every() if not one.is_over and not one.is_cancelling]
    last = run.subtasks.get(run.last_failed.started.partition) if run.last_failed is not None else None
    if last in waiting:
        return last
    deployed = [one for one in waiting if one.attempt is not None]
    held = [one for one in deployed if one.succeeded_ms is not None]
    return next(iter([*held, *deployed, *waiting]), None)


def _root_of_region(run: VertexRun) -> tuple[VertexRun, Subtask | None]:
    """Return the execution to blame in a region; before it is deployed, one that waits for its slot.

    A region is deployed as a whole: as long as any task of it was not launched, no execution can be told.
    """
    for each in (run, *run.region):
        one = _root(each)
        if one is not None and one.attempt is not None:
            return each, one
    waiting = [(each, one) for each, one in _subtasks_of(run.region) if one.request is not None]
    return waiting[0] if waiting else (run, _root(run))


def _with_known_output(end: TaskEnded, role: Role) -> TaskEnded:
    """Complete the output of a task: Spark counts files and shuffles; the bytes handed to the driver are known here."""
    is_counted = role.name == "recovery" or (role.name == "task" and role.run.stage.handle.counts_output)
    if end.metrics is None or is_counted:
        return end
    is_returned = role.name == "task" and role.run.stage.handle.returns_output
    return end._replace(metrics=end.metrics.without_output(end.metrics.result_bytes if is_returned else None))
