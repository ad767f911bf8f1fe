"""Which Spark task belongs to which subtask: passes Spark's events to the runs of vertices and to the task log."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from flinkmagic.deployment.stages.stage_outcome import StageOutcome
from flinkmagic.deployment.stages.stage_runner import EARLY
from flinkmagic.deployment.vertices.remade_run import RemadeRun
from flinkmagic.deployment.vertices.stage_subtasks import StageSubtasks
from flinkmagic.deployment.vertices.vertex_run import VertexRun
from flinkmagic.deployment.watching.losses import RESUBMITTED, Losses
from flinkmagic.deployment.watching.session_slots import SessionSlots
from flinkmagic.deployment.watching.task_events import (
    ExecutorAdded,
    ExecutorRemoved,
    JobEnded,
    JobStarted,
    Marker,
    StageRef,
    TaskEnded,
    TaskEvent,
    TaskStarted,
)
from flinkmagic.deployment.watching.task_records import TaskLog
from flinkmagic.graph.execution_job_vertex import ExecutionJobVertex
from flinkmagic.planning.handles import (
    BroadcastStageHandle,
    PipelinedStageHandle,
    ShuffleMapStageHandle,
    SubqueryStageHandle,
    WriteStageHandle,
)


class _Role(NamedTuple):
    """The role of a stage in the job."""

    run: VertexRun
    job_vertex: ExecutionJobVertex
    name: str


class TaskTracker:
    """Follows the stages of a job's Spark jobs; on the main thread.

    A stage is a vertex's own if it is the last one of a Spark job that has the vertex's tag: for a shuffle map stage
    always, for others if it has as many tasks as the vertex (a command may run small jobs beside its own). All other
    stages under the tag help the vertex: sampling, or what an operator hides. The exception is a stage that writes the
    shuffle of a vertex that was over: Spark makes outputs again that were lost with an executor, as part of the job
    that needs them; its tasks are the recovery of the vertex whose shuffle it is (`remade_run`). In a pipelined region
    the job has stages of several vertices: each is that of the vertex whose shuffle it writes.

    Parameters
    ----------
    log : TaskLog
        Where attempts are recorded.
    slots : SessionSlots
        Is notified of executors.
    remade_run : callable
        Returns the run that makes lost outputs of a vertex again.
    remade_runs : callable
        Returns all of these.
    """

    def __init__(
        self,
        log: TaskLog,
        slots: SessionSlots,
        remade_run: Callable[[ExecutionJobVertex], RemadeRun],
        remade_runs: Callable[[], Sequence[RemadeRun]],
    ) -> None:
        self._log = log
        self._slots = slots
        self._remade_run = remade_run
        self._remade_runs = remade_runs
        self._runs: dict[str, VertexRun] = {}
        self._outcomes: dict[str, StageOutcome] = {}
        self._roles: dict[int, _Role] = {}
        self._makers: dict[int, ExecutionJobVertex] = {}
        self.losses = Losses(self._makers)
        self._main_jobs: dict[int, VertexRun] = {}

    def take_up(self, job_vertex: ExecutionJobVertex) -> None:
        """Note a vertex whose result exists already; it does not run, but lost parts of it are made again."""
        handle = job_vertex.job_vertex.operator_factory
        if isinstance(handle, ShuffleMapStageHandle):
            self._makers[handle.shuffle_dependency.shuffleId()] = job_vertex

    def watch(self, tag: str, run: VertexRun) -> None:
        """Assign jobs under `tag` to `run`."""
        self._runs[tag] = run
        self._runs[tag + EARLY] = run

    def expect(self, tag: str, outcome: StageOutcome) -> VertexRun:
        """Note the outcome of a stage; it counts once a marker with the tag says that all news has arrived."""
        self._outcomes[tag] = outcome
        return self._runs[tag]

    def conclude(self, tag: str) -> None:
        """Process the outcome of a stage whose news has all arrived."""
        outcome = self._outcomes.pop(tag, None)
        run = self._runs[tag]
        if outcome is not None and run.outcome is None:
            run.finish(outcome)
            for remade in self._remade_runs():
                remade.concluded(run, outcome)

    def release(self) -> None:
        """Release the runs, and with them the JVM's objects."""
        self._runs.clear()
        self._roles.clear()
        self._makers.clear()

    def handle(self, events: Sequence[TaskEvent]) -> None:
        """Process events."""
        for event in events:
            if isinstance(event, TaskEnded):
                self._task_ended(event)
            elif isinstance(event, TaskStarted):
                self._task_started(event)
            elif isinstance(event, JobStarted):
                self._job_started(event)
            elif isinstance(event, JobEnded):
                self._job_ended(event)
            elif isinstance(event, ExecutorAdded | ExecutorRemoved):
                self._slots.take(event)
                if isinstance(event, ExecutorRemoved):
                    self.losses.executor_removed(event)
            elif isinstance(event, Marker):
                self.conclude(event.token)

    def _job_started(self, job: JobStarted) -> None:
        run = self._runs.get(job.tag)
        if run is None:
            return
        if run.stage_run is not None and run.stage_run.is_cancelled:
            run.stage_run.cancel()
        final = job.final_stage
        is_own = final is not None and not job.tag.endswith(EARLY) and self._is_own(run, final)
        if is_own and final is not None:
            run.main_stage = final.stage_id
            tasks = run.handle.adaptation.tasks
            if tasks is not None:
                run.merged(tasks)
            self._main_jobs[job.job_id] = run
            if final.shuffle_id is not None:
                self._makers[final.shuffle_id] = run.job_vertex
        for stage in job.stages:
            if stage.stage_id not in self._roles:
                self._roles[stage.stage_id] = self._role(run, stage, is_own and stage == final)

    def _job_ended(self, job: JobEnded) -> None:
        run = self._main_jobs.pop(job.job_id, None)
        if run is not None and not job.succeeded:
            run.aborted()

    @staticmethod
    def _is_own(run: VertexRun, final: StageRef) -> bool:
        if run.main_stage is not None:
            return False
        if isinstance(run.handle, ShuffleMapStageHandle) or not run.handle.exact:
            return True
        return final.tasks == (run.handle.adaptation.tasks or run.job_vertex.parallelism)

    def _role(self, run: VertexRun, stage: StageRef, is_own: bool) -> _Role:
        if is_own:
            return _Role(run, run.job_vertex, "task")
        for one in run.region:
            if isinstance(one.handle, PipelinedStageHandle) and one.handle.shuffle_id == stage.shuffle_id is not None:
                return _Role(one, one.job_vertex, "task")
        maker = self._makers.get(stage.shuffle_id) if stage.shuffle_id is not None else None
        return _Role(run, maker, "recovery") if maker is not None else _Role(run, run.job_vertex, "helper")

    def _task_started(self, task: TaskStarted) -> None:
        role = self._roles.get(task.stage_id)
        if role is None:
            return
        slot = self._log.started(task, role.job_vertex.id, role.job_vertex.name, role.name)
        if role.name == "task":
            role.run.launched(task, slot)
        else:
            role.run.helper_launched(task)
        if role.name == "recovery":
            self._remade_run(role.job_vertex).made_for(role.run, task, slot)

    def _task_ended(self, end: TaskEnded) -> None:
        role = self._roles.get(end.started.stage_id)
        if role is None:
            return
        loss = self.losses.of(end, role.job_vertex)
        own: StageSubtasks = self._remade_run(role.job_vertex) if role.name == "recovery" else role.run
        if end.reason == RESUBMITTED:
            self._log.output_lost(end.started.task_id)
            if role.name != "helper" and loss is not None:
                own.output_lost(end.started, loss)
            return
        end = _with_known_output(end, role)
        self._log.ended(end)
        if role.name != "helper":
            own.ended(end, loss)
        if role.name != "task":
            role.run.helper_ended(end)


def _with_known_output(end: TaskEnded, role: _Role) -> TaskEnded:
    """Complete the output of a task: Spark counts files and shuffles; the bytes handed to the driver are known here."""
    handle = role.run.handle
    if end.metrics is None or role.name == "recovery":
        return end
    if role.name == "task" and isinstance(handle, ShuffleMapStageHandle | PipelinedStageHandle | WriteStageHandle):
        return end
    to_driver = role.name == "task" and isinstance(handle, BroadcastStageHandle | SubqueryStageHandle)
    return end._replace(metrics=end.metrics.without_output(end.metrics.result_bytes if to_driver else None))
