"""Finished vertices whose lost outputs Spark makes once more, as part of the jobs of their consumers."""

from __future__ import annotations

from flinkmagic.deployment.run_host import RunHost
from flinkmagic.deployment.stage_runner import StageOutcome
from flinkmagic.deployment.task_events import TaskEnded, TaskStarted
from flinkmagic.deployment.vertex_run import VertexRun
from flinkmagic.errors import ExecutorRecoveryError
from flinkmagic.graph.execution_graph import ExecutionAttemptID
from flinkmagic.graph.execution_job_vertex import ExecutionJobVertex
from flinkmagic.planning.handles import StageHandle


class RemadeRun(VertexRun):
    """The tasks that make outputs of a finished vertex once more.

    Spark makes only what is missing, and only when a stage needs it: these tasks belong to the run of that stage, and
    it depends on that run what becomes of them.

    1. The first task of a subtask is its next execution (rule 8 of `vertex_run`); it is FINISHED as soon as the task
       has succeeded.
    2. When the stage that needs it is done, so is what was made for it. When that stage has failed, what is not made
       yet is asked for anew, and the vertex is submitted itself.

    Parameters
    ----------
    job_vertex : ExecutionJobVertex
        The vertex.
    handle : StageHandle
        Of its stage.
    host : RunHost
        Who hears of it.
    """

    def __init__(self, job_vertex: ExecutionJobVertex, handle: StageHandle, host: RunHost) -> None:
        super().__init__(job_vertex, handle, {}, holds_all=False, fails_at_once=False, host=host)
        self._needed_by: dict[int, VertexRun] = {}
        self._given_up: set[int] = set()

    def made_for(self, run: VertexRun, task: TaskStarted, slot_number: int) -> None:
        """Spark has launched a task that `run` needs."""
        one = self._subtasks.get(task.partition)
        if one is not None and one.over and self._replace(task.partition, None, None) is None:
            return
        self._needed_by[task.partition] = run
        self._given_up.discard(task.partition)
        self.launched(task, slot_number)

    def ended(self, end: TaskEnded, loss: ExecutorRecoveryError | None = None) -> None:
        super().ended(end, loss)
        if end.started.partition in self._given_up:
            self._ask_anew_where_nothing_runs(end.started.partition)

    def cancel(self, attempt: ExecutionAttemptID) -> None:
        """Answered when the task has ended, or at once where none runs; Spark's work is ended by who needs it."""
        super().cancel(attempt)
        one = self._subtasks[attempt.subtask]
        if one.cancel_requested and not one.over and not one.running:
            self._host.later(lambda: self._settle_failed(one))

    def concluded(self, run: VertexRun, outcome: StageOutcome) -> None:
        """Rule 2: `run` has come to its end."""
        for subtask in [subtask for subtask, needed_by in self._needed_by.items() if needed_by is run]:
            del self._needed_by[subtask]
            one = self._subtasks[subtask]
            if one.over:
                continue
            if one.cancel_requested:
                if not one.running:
                    self._settle_failed(one)
            elif outcome.error is None:
                self._finish(one)
            else:
                self._given_up.add(subtask)
                self._ask_anew_where_nothing_runs(subtask)

    def _ask_anew_where_nothing_runs(self, subtask: int) -> None:
        one = self._subtasks[subtask]
        if one.over or one.running or one.cancel_requested:
            return
        self._given_up.discard(subtask)
        self._end(one)
        if one.request is not None:
            request, one.request = one.request, None
            self._host.hand_back(self, {subtask: request})
        else:
            self._host.replace(self.job_vertex, subtask, None, None)

    def _holds(self) -> bool:
        return False
