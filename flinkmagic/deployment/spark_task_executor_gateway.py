"""A Spark executor as the scheduler sees it (Flink's `TaskExecutorGateway`)."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from flinkmagic.deployment.vertices.stage_subtasks import StageSubtasks
from flinkmagic.graph.execution_graph import ExecutionAttemptID
from flinkmagic.scheduling.task_executor_gateway import ResultPartitionID, TaskDeploymentDescriptor


class SparkTaskExecutorGateway:
    """Assigns executions to tasks that Spark has launched on one executor.

    Departures from Flink, all because Spark places tasks and keeps their outputs:

    * `submit_task` starts nothing: the slot was given because Spark had launched the task;
    * `cancel_task` ends the Spark stage of the whole vertex: Spark cannot take one task out of a stage;
    * `free_slot` frees nothing: a slot ends with its task;
    * `release_partitions` releases nothing: a shuffle's files go when the planned job is released, as a whole;
    * the executor itself is not asked for a sign of life: Spark receives its heartbeats, and says whether it still has
      it.

    Parameters
    ----------
    resource_id : str
        Spark's id of the executor.
    run_of : callable
        Returns the active run of a job vertex, by its id; None if there is none.
    unknown_task : callable
        Called with an attempt to cancel that belongs to no active run.
    answer_heartbeat : callable
        Gives a sign of life if Spark still has the executor.
    """

    def __init__(
        self,
        resource_id: str,
        run_of: Callable[[str], StageSubtasks | None],
        unknown_task: Callable[[ExecutionAttemptID], None],
        answer_heartbeat: Callable[[], None],
    ) -> None:
        self._resource_id = resource_id
        self._run_of = run_of
        self._unknown_task = unknown_task
        self._answer_heartbeat = answer_heartbeat

    @property
    def resource_id(self) -> str:
        """Spark's id of the executor."""
        return self._resource_id

    def submit_task(self, descriptor: TaskDeploymentDescriptor, timeout_ms: float) -> None:
        """Bind an execution to the task that Spark has launched."""
        run = self._run_of(descriptor.attempt_id.job_vertex_id)
        if run is None:
            raise RuntimeError(f"{descriptor.task_name} was deployed, but Spark runs nothing of its vertex")
        run.accept(descriptor)

    def cancel_task(self, attempt_id: ExecutionAttemptID, timeout_ms: float) -> None:
        """End the stage of the attempt's vertex; the answer comes when the attempt's task has really ended."""
        run = self._run_of(attempt_id.job_vertex_id)
        if run is None:
            self._unknown_task(attempt_id)
        else:
            run.cancel(attempt_id)

    def free_slot(self, allocation_id: str, cause: BaseException | None) -> None:
        """Do nothing: a slot ends with the task that was launched in it."""

    def release_partitions(self, job_id: str, partition_ids: Sequence[ResultPartitionID]) -> None:
        """Do nothing: see the class."""

    def heartbeat_from_job_manager(self, job_id: str) -> None:
        """Answer with a sign of life if Spark still has the executor."""
        self._answer_heartbeat()
