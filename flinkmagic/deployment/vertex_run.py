"""One submission of a job vertex to Spark, and what it means for the vertex's executions.

The rules, numbered as the code keeps them:

1. The request of a subtask is fulfilled when Spark launches its first task; until then the execution is SCHEDULED.
   Whoever is deployed into that slot is INITIALIZING and RUNNING since the launch: the execution of the vertex, and
   those of the vertices upstream that run within the same task (`companions`), which share its fate.
2. Spark's own retries and speculative copies belong to the same execution: it stays RUNNING. Each attempt has a task
   record.
3. A subtask's execution is FINISHED when one of its attempts has succeeded. Those of a stage that counts only as a
   whole are held until the stage is done (`holds_all`: what a write's tasks did is worth nothing before the commit);
   in any other stage only the last one is held, so that no vertex is over while the driver is still at it. A task that
   succeeds after Spark has given up the stage's job counts for nothing: Spark drops what it made.
4. When the stage is done, subtasks without a task are finished too, without metrics: Spark had nothing to do for them,
   or has merged their partitions into those of others (`merged`).
5. When the stage has failed, one execution fails with the cause: that of the task which failed last, else (the driver
   failed) one that is held, running or still awaited. Requests of subtasks that were never launched are handed back;
   executions that Spark ended with the stage fail of `StageAbortedError`, when their tasks have really ended. Where
   the job may be restarted, all of this waits for the last of these tasks: it is one failure then, not several.
6. A cancelled execution is CANCELED when its tasks have really ended.
7. A task that was lost with its executor, or that could not read what was lost with one, fails its execution; so does
   one whose output was lost while its stage still ran. Spark runs it again, and that is the vertex's next execution.
   Where another copy of the task runs on, the execution does too.
8. A task for a subtask that was finished makes its output once more: that, too, is the vertex's next execution.
"""

from __future__ import annotations

from flinkmagic.deployment.failures import short_reason, vertex_failed
from flinkmagic.deployment.run_host import RunHost
from flinkmagic.deployment.stage_runner import StageOutcome, StageRun
from flinkmagic.deployment.subtask_run import SubtaskEnd, SubtaskRun
from flinkmagic.deployment.task_events import TaskEnded, TaskStarted
from flinkmagic.errors import ExecutorRecoveryError, StageAbortedError
from flinkmagic.graph.execution_graph import ExecutionAttemptID
from flinkmagic.graph.execution_job_vertex import ExecutionJobVertex
from flinkmagic.graph.execution_state import ExecutionState
from flinkmagic.planning.handles import StageHandle
from flinkmagic.scheduling.slots.physical_slot_provider import PhysicalSlot, PhysicalSlotRequest
from flinkmagic.scheduling.task_executor_gateway import TaskDeploymentDescriptor

NO_TASK = "no task"
"""The resource of an execution that was finished without a task of Spark's."""


class VertexRun:
    """See the module.

    Parameters
    ----------
    job_vertex : ExecutionJobVertex
        The vertex.
    handle : StageHandle
        How its stage is run.
    requests : dict of int to PhysicalSlotRequest
        The subtasks that are to run, and the requests that await their launch.
    holds_all : bool
        Whether finished subtasks are held until the whole stage is done.
    fails_at_once : bool
        Whether a failure is told while other tasks of the stage are still being ended.
    host : RunHost
        Who hears of it.
    """

    def __init__(
        self,
        job_vertex: ExecutionJobVertex,
        handle: StageHandle,
        requests: dict[int, PhysicalSlotRequest],
        *,
        holds_all: bool,
        fails_at_once: bool,
        host: RunHost,
    ) -> None:
        self.job_vertex = job_vertex
        self.handle = handle
        self.stage_run: StageRun | None = None
        self.outcome: StageOutcome | None = None
        self.main_stage: int | None = None
        self._is_aborted = False
        self._is_over = False
        self._holds_all = holds_all
        self._fails_at_once = fails_at_once
        self._failure_to_tell: BaseException | None = None
        self._host = host
        self._subtasks = {subtask: SubtaskRun(request) for subtask, request in requests.items()}
        self._unsuccessful = len(requests)
        self._last_failed: TaskEnded | None = None
        self._helpers: set[int] = set()
        self._helper_error = ""
        self._launching: SubtaskRun | None = None
        self._has_launched = False

    # -- what the scheduler asks for -------------------------------------------------------------------

    @property
    def unfinished(self) -> int:
        """How many subtasks still need a slot."""
        return self._unsuccessful

    @property
    def has_launched(self) -> bool:
        """Whether Spark launched any task of the vertex's own stage."""
        return self._has_launched

    @property
    def has_all_successes(self) -> bool:
        """Whether every subtask succeeded; what may then still fail is the driver's part."""
        return all(one.success is not None or one.is_merged for one in self._subtasks.values())

    def accept(self, descriptor: TaskDeploymentDescriptor) -> None:
        """Take an execution for which a slot was given: the vertex's own, or one that runs within its tasks."""
        attempt = descriptor.attempt_id
        one = self._subtasks[attempt.subtask]
        if attempt.job_vertex_id == self.job_vertex.id:
            one.attempt = attempt
        else:
            one.companions.append(attempt)
        one.unannounced.append(attempt)
        if one is not self._launching:
            self._host.later(lambda: self._catch_up(one))

    def _catch_up(self, one: SubtaskRun) -> None:
        """Tell an execution that was deployed late what is known already."""
        if one.end is not None:
            self._tell(one, one.end)
        elif not one.cancel_requested:
            self._announce(one)

    def _announce(self, one: SubtaskRun) -> None:
        """Rule 1."""
        attempts, one.unannounced = one.unannounced, []
        for attempt in attempts:
            self._host.report(attempt, ExecutionState.INITIALIZING, at_ms=one.launched_ms)
            self._host.report(attempt, ExecutionState.RUNNING, at_ms=one.launched_ms)

    def _tell(self, one: SubtaskRun, end: SubtaskEnd) -> None:
        """Tell a subtask's end, of the vertices upstream first.

        A failure is told of the vertex itself: its companions are in its region, so the scheduler cancels them.
        """
        one.end = end
        self._announce(one)
        own = [one.attempt] if one.attempt is not None else []
        for attempt in own if end.state is ExecutionState.FAILED else [*one.companions, *own]:
            if attempt not in one.told:
                one.told.add(attempt)
                metrics = end.io_metrics if attempt is one.attempt else None
                self._host.report(attempt, end.state, end.error, metrics, end.at_ms)

    def _give_slot(self, one: SubtaskRun, slot: PhysicalSlot) -> None:
        """Fulfil a request; whoever waits for the slot is deployed within this call."""
        request, one.request = one.request, None
        if request is not None:
            self._launching = one
            request.slot_future.complete(slot)
            self._launching = None

    def awaits(self, subtask: int) -> bool:
        """Whether the next request for a subtask is this run's: its execution was replaced."""
        one = self._subtasks.get(subtask)
        return one is not None and one.is_awaited

    def take_over(self, subtask: int, request: PhysicalSlotRequest) -> None:
        """Take the request of an execution that replaces another one; Spark's next task fulfils it."""
        one = self._subtasks[subtask]
        one.request, one.is_awaited = request, False

    def has_request(self, subtask: int, slot_request_id: str) -> bool:
        """Whether a request is waiting here."""
        one = self._subtasks.get(subtask)
        return one is not None and one.request is not None and one.request.slot_request_id == slot_request_id

    def withdraw(self, subtask: int) -> None:
        """Take back a subtask's request. Without anyone left who wants the stage, its Spark work ends."""
        one = self._subtasks[subtask]
        one.request = None
        self._end(one)
        if all(other.over or other.cancel_requested for other in self._subtasks.values()):
            self._cancel_spark()
        self._end_if_over()

    def cancel(self, attempt: ExecutionAttemptID) -> None:
        """Cancel an execution; with it Spark's whole stage."""
        one = self._subtasks.get(attempt.subtask)
        if one is None or one.over or attempt not in (one.attempt, *one.companions):
            self._host.later(lambda: self._host.report(attempt, ExecutionState.CANCELED))
            return
        one.cancel_requested = True
        self._cancel_spark()

    def _cancel_spark(self) -> None:
        if self.outcome is None and self.stage_run is not None:
            self.stage_run.cancel()

    # -- what Spark tells ------------------------------------------------------------------------------

    def merged(self, tasks: int) -> None:
        """Rule 4: the stage has that many tasks, which do the work of the other subtasks too."""
        for subtask, one in self._subtasks.items():
            if subtask >= tasks and not one.is_merged:
                one.is_merged = True
                if not one.over and one.success is None:
                    self._unsuccessful -= 1

    def launched(self, task: TaskStarted, slot_number: int) -> None:
        """Rules 1, 2 and 8."""
        self._has_launched = True
        one = self._subtasks.get(task.partition) or self._replace(task.partition, None, None)
        if one is None:
            return
        one.running.add(task.task_id)
        if one.request is None:
            return
        one.launched_ms = task.launched_ms
        self._give_slot(one, self._host.slot_on(task.executor, slot_number))
        self._announce(one)

    def helper_launched(self, task: TaskStarted) -> None:
        """A task of another stage that this run needs: the run is not over before it is."""
        self._helpers.add(task.task_id)

    def helper_ended(self, end: TaskEnded) -> None:
        """The end of such a task."""
        self._helpers.discard(end.started.task_id)
        if end.status == "FAILED" and self._last_failed is None:
            self._helper_error = end.error
        self._end_if_over()

    def ended(self, end: TaskEnded, loss: ExecutorRecoveryError | None = None) -> None:
        """Rules 2, 3, 5, 6 and 7; `loss` says what an end by no fault of the task's own is due to."""
        one = self._subtasks.get(end.started.partition)
        if one is None:
            return
        one.running.discard(end.started.task_id)
        if end.status == "FAILED":
            self._last_failed = end
        is_lost = loss is not None and end.status == "FAILED" and self._is_ended(one)
        if is_lost and not one.cancel_requested and not self._is_aborted:
            self._replace(end.started.partition, loss, end.finished_ms)
        elif end.status == "SUCCESS" and one.success is None and not self._is_aborted:
            one.success = end
            self._unsuccessful -= 1
            if not self._holds():
                self._finish(one)
        elif self._is_ended(one) and (one.cancel_requested or self._is_settled):
            self._settle_failed(one)
        self._tell_failure()
        self._end_if_over()

    def output_lost(self, task: TaskStarted, loss: ExecutorRecoveryError) -> None:
        """Rule 7: Spark has taken back the success of a task of this stage."""
        one = self._subtasks.get(task.partition)
        if one is not None and one.success is not None and not one.cancel_requested and not self._is_aborted:
            self._replace(task.partition, loss, None)

    def _replace(self, subtask: int, loss: ExecutorRecoveryError | None, at_ms: float | None) -> SubtaskRun | None:
        """Rules 7 and 8: the subtask's next execution; None where the scheduler has other plans for it."""
        before = self._subtasks.get(subtask)
        fresh = SubtaskRun(None, is_awaited=True, running=before.running if before else set())
        self._subtasks[subtask] = fresh
        # The request for it comes within this call.
        if self.outcome is None and self._host.replace(self.job_vertex, subtask, loss, at_ms):
            if before is None or before.over or before.success is not None:
                self._unsuccessful += 1
            return fresh
        if before is None:
            del self._subtasks[subtask]
        else:
            self._subtasks[subtask] = before
        return None

    @staticmethod
    def _is_ended(one: SubtaskRun) -> bool:
        return not one.over and one.success is None and not one.running

    def _holds(self) -> bool:
        return self.outcome is None and (self._holds_all or self._unsuccessful == 0)

    def aborted(self) -> None:
        """Spark has failed the job of the vertex's own stage."""
        self._is_aborted = True

    def finish(self, outcome: StageOutcome) -> None:
        """The stage is done or has failed, and all that Spark said before has been heard."""
        self.outcome = outcome
        if outcome.error is None:
            for one in self._subtasks.values():
                if not one.over:
                    self._finish(one)
        elif self.stage_run is not None and self.stage_run.is_cancelled:
            self._settle_rest()
        else:
            self._failure_to_tell = outcome.error
            self._tell_failure()
        self._end_if_over()

    @property
    def is_over(self) -> bool:
        """Whether nothing of this run is left."""
        return self._is_over

    def lose_tasks(self) -> None:
        """Take all running tasks for ended, as nobody will tell of them."""
        for one in self._subtasks.values():
            one.running.clear()
        self._helpers.clear()

    def settle(self) -> None:
        """After `lose_tasks`: draw the consequences."""
        self._tell_failure()
        if self.outcome is not None:
            self._settle_rest()
        self._end_if_over()

    # -- what that means -------------------------------------------------------------------------------

    def _finish(self, one: SubtaskRun) -> None:
        """Rules 3 and 4."""
        if one.request is not None:
            self._give_slot(one, self._host.slot_on(NO_TASK, 0))
            one.unannounced.clear()
        end = one.success
        self._end(one)
        if end is None:
            self._tell(one, SubtaskEnd(ExecutionState.FINISHED))
            return
        duration = end.finished_ms - end.started.launched_ms
        metrics = end.metrics.as_io_metrics(duration) if end.metrics is not None else None
        self._tell(one, SubtaskEnd(ExecutionState.FINISHED, io_metrics=metrics, at_ms=end.finished_ms))

    @property
    def _is_settled(self) -> bool:
        return self.outcome is not None and self._failure_to_tell is None

    def _tell_failure(self) -> None:
        error = self._failure_to_tell
        if error is None:
            return
        if self._fails_at_once or not any(one.running for one in self._subtasks.values()):
            self._failure_to_tell = None
            self._fail_root(error)
            self._settle_rest()

    def _fail_root(self, error: BaseException) -> None:
        """Rule 5, the cause."""
        subtask = self._root_subtask()
        if subtask is None:
            return
        one, last = self._subtasks[subtask], self._last_failed
        cause = vertex_failed(
            self.job_vertex.task_name(subtask) if last is not None else self.job_vertex.name,
            error,
            last.error if last is not None else self._helper_error,
            self.job_vertex.job_vertex.tail.metadata or {},
        )
        request, one.request = one.request, None
        self._end(one)
        if request is not None:
            request.slot_future.complete_exceptionally(cause)
        else:
            at_ms = last.finished_ms if last is not None else None
            self._tell(one, SubtaskEnd(ExecutionState.FAILED, cause, at_ms=at_ms))

    def _root_subtask(self) -> int | None:
        waiting = {subtask: one for subtask, one in self._subtasks.items() if not one.over}
        if self._last_failed is not None and self._last_failed.started.partition in waiting:
            return self._last_failed.started.partition
        deployed = [subtask for subtask, one in waiting.items() if one.attempt is not None]
        held = [subtask for subtask in deployed if waiting[subtask].success is not None]
        return next(iter([*held, *deployed, *waiting]), None)

    def _settle_rest(self) -> None:
        """Rule 5, the others, and rule 6."""
        unlaunched = {}
        for subtask, one in self._subtasks.items():
            if not one.over and one.request is not None:
                unlaunched[subtask], one.request = one.request, None
                self._end(one)
        if unlaunched:
            self._host.hand_back(self, unlaunched)
        for one in self._subtasks.values():
            if not one.over and not one.running:
                self._settle_failed(one)

    def _settle_failed(self, one: SubtaskRun) -> None:
        self._end(one)
        if one.cancel_requested:
            self._tell(one, SubtaskEnd(ExecutionState.CANCELED))
        elif one.attempt is not None:
            cause = self.outcome.error if self.outcome is not None else None
            cause = cause or RuntimeError("cancelled")
            name = self.job_vertex.task_name(one.attempt.subtask)
            error = StageAbortedError(name, cause, short_reason(str(cause)))
            self._tell(one, SubtaskEnd(ExecutionState.FAILED, error))

    def _end(self, one: SubtaskRun) -> None:
        if not one.over:
            one.over = True
            if one.success is None and not one.is_merged:
                self._unsuccessful -= 1

    def _end_if_over(self) -> None:
        if self._is_over or self.outcome is None or self._helpers:
            return
        if all(one.over and not one.running for one in self._subtasks.values()):
            self._is_over = True
            self._host.run_over(self)
