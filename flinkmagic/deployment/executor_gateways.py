"""The gateways to Spark's executors, one for each that runs tasks of a job."""

from __future__ import annotations

from collections.abc import Callable

from flinkmagic.deployment.spark_task_executor_gateway import SparkTaskExecutorGateway
from flinkmagic.deployment.vertices.stage_subtasks import NO_TASK, StageSubtasks
from flinkmagic.graph.execution import ExecutionAttemptID


class ExecutorGateways:
    """Makes the gateways and holds them; on the main thread.

    Parameters
    ----------
    run_of : callable
        Returns the active run of a job vertex, by its id; None if there is none.
    unknown_task : callable
        Called with an attempt to cancel that belongs to no active run.
    is_active : callable
        Returns whether Spark still has an executor, by its id.
    answer_heartbeat : callable
        Called with the id of an executor that gives a sign of life.
    """

    def __init__(
        self,
        *,
        run_of: Callable[[str], StageSubtasks | None],
        unknown_task: Callable[[ExecutionAttemptID], None],
        is_active: Callable[[str], bool],
        answer_heartbeat: Callable[[str], None],
    ) -> None:
        self._run_of = run_of
        self._unknown_task = unknown_task
        self._is_active = is_active
        self._answer_heartbeat = answer_heartbeat
        self._gateways: dict[str, SparkTaskExecutorGateway] = {}

    def of(self, executor: str) -> SparkTaskExecutorGateway:
        """Return the gateway to an executor."""
        gateway = self._gateways.get(executor)
        if gateway is None:
            gateway = self._gateways[executor] = SparkTaskExecutorGateway(
                executor, self._run_of, self._unknown_task, lambda: self._heartbeat(executor)
            )
        return gateway

    def _heartbeat(self, executor: str) -> None:
        """Ask Spark for an executor: its listener bus drops events when flooded, the loss of an executor too."""
        if executor == NO_TASK or self._is_active(executor):
            self._answer_heartbeat(executor)
