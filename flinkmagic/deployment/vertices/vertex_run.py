"""One submission of a job vertex to Spark, and what it means for the vertex's executions.

The table in `subtask_state` says what each event means for a subtask, with the rules (1 to 8). This module decides for
all of them: when a success counts, when the stage is done or has failed, and when nothing of it is left.
"""

from __future__ import annotations

from collections.abc import Sequence

from flinkmagic.deployment.stages.stage_outcome import StageOutcome
from flinkmagic.deployment.stages.stage_runner import StageRun
from flinkmagic.deployment.vertices.failures import short_reason, vertex_failed
from flinkmagic.deployment.vertices.run_host import RunHost
from flinkmagic.deployment.vertices.stage_subtasks import Occasion, StageSubtasks
from flinkmagic.deployment.vertices.subtask_run import SubtaskRun
from flinkmagic.deployment.vertices.subtask_state import SubtaskEvent
from flinkmagic.deployment.watching.task_events import TaskEnded, TaskStarted
from flinkmagic.errors.deployment import StageAbortedError
from flinkmagic.errors.scheduling import ExecutorRecoveryError
from flinkmagic.graph.execution_job_vertex import ExecutionJobVertex
from flinkmagic.planning.handles import StageHandle
from flinkmagic.scheduling.slots.physical_slot_provider import PhysicalSlotRequest


class VertexRun(StageSubtasks):
    """One submission of a job vertex; see the module.

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
    fails_immediately : bool
        Whether a failure is reported while other tasks of the stage are still being ended.
    host : RunHost
        Is notified of its events.
    """

    def __init__(
        self,
        job_vertex: ExecutionJobVertex,
        handle: StageHandle,
        requests: dict[int, PhysicalSlotRequest],
        *,
        holds_all: bool,
        fails_immediately: bool,
        host: RunHost,
    ) -> None:
        super().__init__(job_vertex, handle, requests, host)
        self.stage_run: StageRun | None = None
        self.outcome: StageOutcome | None = None
        self.main_stage: int | None = None
        self.has_launched = False
        """Whether Spark launched any task of the vertex's own stage."""
        self.region: Sequence[VertexRun] = (self,)
        """The runs of the stages that run in its Spark job: one, unless exchanges are pipelined."""
        self._is_aborted = False
        self._is_over = False
        self._holds_all = holds_all
        self._fails_immediately = fails_immediately
        self._failure_to_tell: BaseException | None = None
        self._tasks: int | None = None
        self._first_failed: TaskEnded | None = None
        self._last_failed: TaskEnded | None = None
        self._helpers: set[int] = set()
        self._helper_error = ""

    @property
    def is_over(self) -> bool:
        """Whether nothing of this run is left."""
        return self._is_over

    @property
    def is_region_over(self) -> bool:
        """Whether nothing is left of it, nor of those in its Spark job."""
        return all(run.is_over for run in self.region)

    @property
    def has_all_successes(self) -> bool:
        """Whether every subtask succeeded; what may then still fail is the driver's part."""
        return all(one.success is not None or self._is_merged(one) for one in self.every())

    @property
    def counted(self) -> frozenset[int]:
        """The subtasks of which a task has succeeded before Spark gave the stage up."""
        return frozenset(one.subtask for one in self.every() if one.success is not None)

    def _is_merged(self, one: SubtaskRun) -> bool:
        return self._tasks is not None and one.subtask >= self._tasks

    # -- what the scheduler asks for -------------------------------------------------------------------

    def withdraw(self, subtask: int) -> None:
        """Take back a subtask's request. If no one wants the stage any more, end its Spark work."""
        super().withdraw(subtask)
        if not any(run.is_wanted for run in self.region):
            self.cancel_spark()
        self._end_if_over()

    def after_cancel(self, one: SubtaskRun) -> None:
        """Do nothing: the end of its tasks, or of the stage, is awaited."""

    def cancel_spark(self) -> None:
        """End the stage's Spark work, unless the stage has ended."""
        if self.outcome is None and self.stage_run is not None:
            self.stage_run.cancel()

    # -- what Spark reports ----------------------------------------------------------------------------

    def merged(self, tasks: int) -> None:
        """Apply rule 4: the stage has this many tasks, which do the work of the other subtasks too."""
        self._tasks = tasks
        for one in self.every():
            if self._is_merged(one):
                self.fire(one, SubtaskEvent.MERGE)

    def launched(self, task: TaskStarted, slot_number: int) -> None:
        """Apply rules 1, 2 and 8: a task of the vertex's own stage was launched."""
        self.has_launched = True
        one = self.find(task.partition)
        if one is None and self.outcome is None:
            one = self.replace(task.partition, None, None)
        if one is not None:
            self.task_launched(one, task, slot_number)

    def helper_launched(self, task: TaskStarted) -> None:
        """Note a task of another stage that this run needs: the run is not over before the task is."""
        self._helpers.add(task.task_id)

    def helper_ended(self, end: TaskEnded) -> None:
        """Note the end of such a task."""
        self._helpers.discard(end.started.task_id)
        if end.status == "FAILED" and self._last_failed is None:
            self._helper_error = end.error
        self._end_if_over()

    def ended(self, end: TaskEnded, loss: ExecutorRecoveryError | None = None) -> None:
        """Apply rules 2, 3, 5, 6 and 7; a loss matters only while Spark works on the stage."""
        one = self.find(end.started.partition)
        if one is None:
            return
        if end.status == "FAILED":
            self._last_failed = end
            self._first_failed = self._first_failed or end
        occasion = (
            Occasion(at_ms=end.finished_ms, loss=loss) if loss is not None and self._is_open else self._abort(one)
        )
        if self.task_ended(one, end, occasion, is_given_up=self._is_aborted) and not (one.is_over or self._holds):
            self.fire(one, SubtaskEvent.COUNTS)
        for run in self.region:
            run._tell_failure()
        self._end_if_over()

    def output_lost(self, task: TaskStarted, loss: ExecutorRecoveryError) -> None:
        """Apply rule 7: Spark has taken back the success of a task of this stage."""
        one = self.find(task.partition)
        if one is not None and one.success is not None and self._is_open:
            self.fire(one, SubtaskEvent.TAKEN_BACK, Occasion(loss=loss))

    def aborted(self) -> None:
        """Note that Spark has failed the job of the vertex's own stage."""
        for run in self.region:
            run._is_aborted = True

    def finish(self, outcome: StageOutcome) -> None:
        """End the run: the stage is done or has failed, and all that Spark reported before has arrived."""
        for run in self.region:
            run.outcome = outcome
        if outcome.error is None:
            for one in self._subtasks_of_region():
                if not one[1].is_over:
                    one[0].fire(one[1], SubtaskEvent.STAGE_DONE)
        elif self.stage_run is not None and self.stage_run.is_cancelled:
            self._settle_region()
        else:
            blamed = self._to_blame()
            blamed._failure_to_tell = outcome.error
            blamed._tell_failure()
        for run in self.region:
            run._end_if_over()

    def _subtasks_of_region(self) -> list[tuple[VertexRun, SubtaskRun]]:
        return [(run, one) for run in self.region for one in run.every()]

    def _to_blame(self) -> VertexRun:
        """Return the run of the region whose task failed first; where none did, the driver's part has failed."""
        failed = [(run._first_failed.finished_ms, run) for run in self.region if run._first_failed is not None]
        return min(failed, key=lambda each: each[0])[1] if failed else self

    def lose_tasks(self) -> None:
        """Count all running tasks as ended, as no news of them will come."""
        super().lose_tasks()
        self._helpers.clear()

    def settle(self) -> None:
        """Settle all subtasks after `lose_tasks`."""
        self._tell_failure()
        if self.outcome is not None:
            self._settle_rest()
        self._end_if_over()

    def _settle_region(self) -> None:
        for run in self.region:
            run._settle_rest()

    # -- what that means -------------------------------------------------------------------------------

    @property
    def _is_open(self) -> bool:
        """Whether Spark runs again what is lost of the stage; in a pipelined region it runs nothing again."""
        return len(self.region) == 1 and self.outcome is None and not self._is_aborted

    @property
    def _holds(self) -> bool:
        """Whether a success has to wait for the stage (rule 3)."""
        return self.outcome is None and (self._holds_all or self.unfinished == 0)

    def _abort(self, one: SubtaskRun) -> Occasion:
        """Return the error of an execution that Spark ends together with its stage (rule 5)."""
        cause = self.outcome.error if self.outcome is not None else None
        if cause is None:
            return Occasion()
        return Occasion(error=StageAbortedError(one.life.name, cause, short_reason(str(cause))))

    def _tell_failure(self) -> None:
        error = self._failure_to_tell
        if error is not None and (self._fails_immediately or not any(run.has_running_tasks for run in self.region)):
            self._failure_to_tell = None
            self._fail_root(error)
            self._settle_region()
            for run in self.region:
                run._end_if_over()

    def _fail_root(self, error: BaseException) -> None:
        """Fail the execution to blame (rule 5)."""
        last = self._last_failed
        if len(self.region) > 1:
            run, one = self._root_of_region()
            last = self._first_failed
        else:
            run, one = self, self._root()
        if one is None:
            return
        cause = vertex_failed(
            self.job_vertex.task_name(last.started.partition) if last is not None else self.job_vertex.name,
            error,
            last.error if last is not None else self._helper_error,
            self.job_vertex.job_vertex.tail.metadata or {},
        )
        run.fire(one, SubtaskEvent.BLAMED, Occasion(error=cause, at_ms=last.finished_ms if last is not None else None))

    def _root(self) -> SubtaskRun | None:
        """Return the execution to blame; not one that is being cancelled, of which only its end is reported."""
        waiting = [one for one in self.every() if not one.is_over and not one.state.is_cancelling]
        last = self.find(self._last_failed.started.partition) if self._last_failed is not None else None
        if last in waiting:
            return last
        deployed = [one for one in waiting if one.attempt is not None]
        held = [one for one in deployed if one.success is not None]
        return next(iter([*held, *deployed, *waiting]), None)

    def _root_of_region(self) -> tuple[VertexRun, SubtaskRun | None]:
        """Return the execution to blame in a region; before it is deployed, one that waits for its slot.

        A region is deployed as a whole: as long as any task of it was not launched, no execution can be told.
        """
        for run in (self, *self.region):
            one = run._root()
            if one is not None and one.attempt is not None:
                return run, one
        waiting = [(run, one) for run, one in self._subtasks_of_region() if one.request is not None]
        return waiting[0] if waiting else (self, self._root())

    def _settle_rest(self) -> None:
        """Settle the others (rules 5 and 6): requests first, as the end of an execution may cause new requests."""
        for one in self.every():
            if not one.is_over and one.request is not None:
                self.fire(one, SubtaskEvent.STAGE_FAILED)
        for one in self.every():
            if not one.is_over:
                self.fire(one, SubtaskEvent.STAGE_FAILED)
            if not one.is_over and not one.running:
                self.fire(one, SubtaskEvent.TASKS_OVER, self._abort(one))

    def _end_if_over(self) -> None:
        if self._is_over or self.outcome is None or self._helpers:
            return
        if self.are_all_over and not self.has_running_tasks:
            self._is_over = True
            self._host.run_over(self)
