"""Finished vertices whose lost outputs Spark makes again, as part of the jobs of their consumers."""

from __future__ import annotations

from flinkmagic.deployment.stages.stage_outcome import StageOutcome
from flinkmagic.deployment.vertices.run_host import RunHost
from flinkmagic.deployment.vertices.stage_subtasks import Occasion, StageSubtasks
from flinkmagic.deployment.vertices.subtask_run import SubtaskRun
from flinkmagic.deployment.vertices.subtask_state import SubtaskEvent
from flinkmagic.deployment.vertices.vertex_run import VertexRun
from flinkmagic.deployment.watching.task_events import TaskEnded, TaskStarted
from flinkmagic.errors.scheduling import ExecutorRecoveryError
from flinkmagic.graph.execution_job_vertex import ExecutionJobVertex
from flinkmagic.planning.handles import StageHandle


class RemadeRun(StageSubtasks):
    """The tasks that make outputs of a finished vertex again.

    Spark makes only what is missing, and only when a stage needs it: these tasks belong to the run of that stage, and
    their fate depends on that run.

    1. The first task of a subtask is its next execution (rule 8 of `subtask_state`); it is FINISHED as soon as the
       task has succeeded.
    2. When the stage that needs it is done, so is what was made for it. When that stage has failed, what is not made
       yet is requested again, and the vertex itself is submitted (rule 9).

    Parameters
    ----------
    job_vertex : ExecutionJobVertex
        The vertex.
    handle : StageHandle
        The handle of its stage.
    host : RunHost
        Is notified of its events.
    """

    def __init__(self, job_vertex: ExecutionJobVertex, handle: StageHandle, host: RunHost) -> None:
        super().__init__(job_vertex, handle, {}, host)
        self._needed_by: dict[int, VertexRun] = {}

    def made_for(self, run: VertexRun, task: TaskStarted, slot_number: int) -> None:
        """Note that Spark has launched a task that `run` needs."""
        one = self.find(task.partition)
        if one is None or one.is_over:
            one = self.replace(task.partition, None, None)
        if one is not None:
            self._needed_by[task.partition] = run
            self.task_launched(one, task, slot_number)

    def ended(self, end: TaskEnded, loss: ExecutorRecoveryError | None = None) -> None:
        """Apply rule 1; if no stage waits for it any more, rule 2."""
        subtask = end.started.partition
        one = self.find(subtask)
        if one is None:
            return
        occasion = Occasion(at_ms=end.finished_ms, loss=loss)
        if self.task_ended(one, end, occasion) and not one.is_over:
            self.fire(one, SubtaskEvent.COUNTS)
        one = self.find(subtask)
        if one is not None and subtask not in self._needed_by:
            self._reader_failed(one)

    def output_lost(self, task: TaskStarted, loss: ExecutorRecoveryError) -> None:
        """Handle the loss of what was made again; readers that had it, or have failed, do not have it made again."""
        one = self.find(task.partition)
        if one is not None and one.success is not None and task.partition in self._needed_by:
            self.fire(one, SubtaskEvent.TAKEN_BACK, Occasion(loss=loss))

    def after_cancel(self, one: SubtaskRun) -> None:
        """Answer when the task has ended; immediately if none runs."""
        if not one.running:
            self._host.later(lambda: self._end_cancelled(one))

    def cancel_spark(self) -> None:
        """Do nothing: the stage that needs Spark's work ends it."""

    def concluded(self, run: VertexRun, outcome: StageOutcome) -> None:
        """Apply rule 2: `run` has come to its end."""
        for subtask in [subtask for subtask, needed_by in self._needed_by.items() if needed_by is run]:
            del self._needed_by[subtask]
            one = self.find(subtask)
            if one is None or one.is_over:
                continue
            if one.state.is_cancelling:
                self._end_cancelled(one)
            elif outcome.error is None:
                self.fire(one, SubtaskEvent.STAGE_DONE)
            else:
                self._reader_failed(one)

    def _end_cancelled(self, one: SubtaskRun) -> None:
        if one.state.is_cancelling and not one.running:
            self.fire(one, SubtaskEvent.TASKS_OVER)

    def _reader_failed(self, one: SubtaskRun) -> None:
        if one.is_over or one.state.is_cancelling:
            return
        self.fire(one, SubtaskEvent.READER_FAILED)
        if not one.is_over and not one.running:
            self.fire(one, SubtaskEvent.TASKS_OVER)
