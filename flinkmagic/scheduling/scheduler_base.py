"""Manages the life of a job as a whole: its states, its end, its snapshot for others (Flink's `SchedulerBase`)."""

from __future__ import annotations

from collections.abc import Sequence

from flinkmagic.graph.execution_graph import ExecutionGraph
from flinkmagic.scheduling.clock import Clock
from flinkmagic.scheduling.execution_graph_info import ExecutionGraphInfo
from flinkmagic.scheduling.executions import Executions
from flinkmagic.scheduling.failover.exception_history import ExceptionHistoryEntry
from flinkmagic.scheduling.failover.execution_failure_handler import ExecutionFailureHandler
from flinkmagic.scheduling.job_event_log import JobEventLog
from flinkmagic.scheduling.job_status import JobListener, JobStatus, JobStatusMachine
from flinkmagic.scheduling.main_thread import ComponentMainThreadExecutor, ask
from flinkmagic.scheduling.partition_tracker import JobMasterPartitionTracker
from flinkmagic.scheduling.scheduling_topology import SchedulingTopology

_ASK_TIMEOUT_S = 10.0
"""Flink's `akka.ask.timeout`."""


class SchedulerBase:
    """Holds what every scheduler knows about its job. For the parameters see `DefaultScheduler`."""

    _failure_handler: ExecutionFailureHandler
    """Made by the derived scheduler."""

    def __init__(
        self,
        execution_graph: ExecutionGraph,
        *,
        main_thread: ComponentMainThreadExecutor,
        clock: Clock,
        listeners: Sequence[JobListener],
        event_log: JobEventLog | None,
    ) -> None:
        self.execution_graph = execution_graph
        self.topology = SchedulingTopology(execution_graph)
        self.event_log = event_log if event_log is not None else JobEventLog(clock)
        self.executions = Executions(execution_graph, clock, listeners)
        self.tracker = JobMasterPartitionTracker(execution_graph.job_id, self.topology)
        self._main_thread = main_thread
        self._clock = clock
        self._status = JobStatusMachine(execution_graph.job_graph.name, clock, listeners)
        self._failure_cause: BaseException | None = None
        self._is_over = False

    @property
    def job_status(self) -> JobStatus:
        """The state of the job as a whole."""
        return self._status.status

    def request_job(self) -> ExecutionGraphInfo:
        """Return a snapshot of the job; callable from any thread."""
        if self._is_over:
            return self._picture()
        return ask(self._main_thread, self._picture, _ASK_TIMEOUT_S)

    def _picture(self) -> ExecutionGraphInfo:
        return ExecutionGraphInfo(
            job_id=self.execution_graph.job_id,
            job_name=self.execution_graph.job_graph.name,
            job_status=self.job_status,
            status_timestamps=dict(self._status.timestamps),
            archived_execution_graph=self.execution_graph.archive(),
            exception_history=self._failure_handler.history.entries(),
            failure_cause=self._failure_cause,
            number_of_restarts=self._failure_handler.number_of_restarts,
            at_ms=self._clock.now_ms(),
        )

    def _finish_if_all_finished(self) -> bool:
        if self.executions.n_finished < self.topology.n_vertices:
            return False
        if self.job_status is JobStatus.RUNNING:
            self._status.transition(JobStatus.FINISHED)
            self._on_terminal()
        return True

    def _end_if_all_terminal(self) -> None:
        if self.executions.n_terminal == self.topology.n_vertices:
            if self.job_status is JobStatus.CANCELLING:
                self._status.transition(JobStatus.CANCELED)
                self._on_terminal()
            elif self.job_status is JobStatus.FAILING:
                self._status.transition(JobStatus.FAILED, self._failure_cause)
                self._on_terminal()

    def _on_terminal(self) -> None:
        status = self.job_status
        is_finished = status is JobStatus.FINISHED
        self.tracker.end(keep_all=status is JobStatus.SUSPENDED, keep_persistent=is_finished)
        self.event_log.add("scheduler", f"the job is {status}")
        self._is_over = True

    def _history_entry(self, vertex: int, error: BaseException) -> ExceptionHistoryEntry:
        execution = self.execution_graph.execution_vertex(vertex).current_execution
        name, attempt = self.executions.task_name(vertex), execution.attempt_id.attempt
        return ExceptionHistoryEntry(error, self._clock.now_ms(), vertex, name, attempt, execution.resource_id)
