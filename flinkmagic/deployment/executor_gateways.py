"""The gateways to Spark's executors, and whether Spark still has them."""

from __future__ import annotations

from collections.abc import Callable

from flinkmagic.deployment.spark_task_executor_gateway import SparkTaskExecutorGateway
from flinkmagic.deployment.vertices.stage_subtasks import NO_TASK, StageSubtasks
from flinkmagic.graph.execution import ExecutionAttemptID
from flinkmagic.scheduling.clock import Clock
from flinkmagic.scheduling.heartbeat import HeartbeatManager
from flinkmagic.scheduling.main_thread import ComponentMainThreadExecutor

INTERVAL_MS, TIMEOUT_MS = 10_000.0, 50_000.0
"""Flink's defaults of ``heartbeat.interval`` and ``heartbeat.timeout``."""


class ExecutorGateways:
    """One gateway for each executor that runs tasks of a job, each asked for signs of life; on the main thread.

    Spark says when an executor is lost, but its listener bus drops events when it is flooded. One that is silent for
    too long is reported as lost, too.

    Parameters
    ----------
    job_id : str
        In whose name they are asked.
    main_thread : ComponentMainThreadExecutor
        The job's.
    clock : Clock
        What silence is measured by.
    is_active : callable
        Whether Spark still has an executor, by its id.
    on_silent : callable
        Told the id of an executor that gives no sign of life; it is no longer asked then.
    """

    def __init__(
        self,
        job_id: str,
        main_thread: ComponentMainThreadExecutor,
        clock: Clock,
        *,
        is_active: Callable[[str], bool],
        on_silent: Callable[[str], None],
    ) -> None:
        self._job_id = job_id
        self._main_thread = main_thread
        self._is_active = is_active
        self._heartbeats = HeartbeatManager(clock, main_thread, INTERVAL_MS, TIMEOUT_MS, on_silent)
        self._gateways: dict[str, SparkTaskExecutorGateway] = {}

    def connect(
        self,
        run_of: Callable[[str], StageSubtasks | None],
        unknown_task: Callable[[ExecutionAttemptID], None],
    ) -> None:
        """Name what the gateways ask: the active run of a job vertex; who is told of an attempt that none knows."""
        self._run_of = run_of
        self._unknown_task = unknown_task

    def of(self, executor: str) -> SparkTaskExecutorGateway:
        """The gateway to an executor."""
        gateway = self._gateways.get(executor)
        if gateway is None:
            gateway = SparkTaskExecutorGateway(
                executor, self._run_of, self._unknown_task, lambda: self._answer_heartbeat(executor)
            )
            self._gateways[executor] = gateway
            if executor != NO_TASK:
                self._heartbeats.monitor(executor, lambda: gateway.heartbeat_from_job_manager(self._job_id))
        return gateway

    def heartbeat_from_task_manager(self, executor: str) -> None:
        """Take a sign of life."""
        self._heartbeats.heard_from(executor)

    def stop(self) -> None:
        """Stop asking."""
        self._heartbeats.stop()

    def _answer_heartbeat(self, executor: str) -> None:
        if self._is_active(executor):
            self._main_thread.execute(lambda: self.heartbeat_from_task_manager(executor))
