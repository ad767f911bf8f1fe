"""Decides what starts when, how a failure is handled, and how a job ends (Flink's `DefaultScheduler`, and its base)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from flinkmagic.amounts import count
from flinkmagic.errors.scheduling import ExecutorRecoveryError, TaskCanceledError
from flinkmagic.graph.execution_config import InputDependencyConstraint
from flinkmagic.graph.execution_graph import ExecutionGraph
from flinkmagic.graph.execution_state import ExecutionState
from flinkmagic.scheduling.clock import Clock
from flinkmagic.scheduling.deployment_descriptors import TaskDeploymentDescriptorFactory
from flinkmagic.scheduling.execution_deployer import DefaultExecutionDeployer
from flinkmagic.scheduling.execution_graph_info import ExecutionGraphInfo
from flinkmagic.scheduling.execution_operations import ON_EXECUTOR, ExecutionOperations
from flinkmagic.scheduling.execution_vertex_versioner import ExecutionVertexVersioner
from flinkmagic.scheduling.executions import Executions
from flinkmagic.scheduling.failover.exception_history import ExceptionHistoryEntry
from flinkmagic.scheduling.failover.execution_failure_handler import ExecutionFailureHandler
from flinkmagic.scheduling.failover.restart_strategy import (
    HELD_MS,
    NoRestartBackoffTimeStrategy,
    RestartBackoffTimeStrategy,
)
from flinkmagic.scheduling.job_event_log import JobEventLog
from flinkmagic.scheduling.job_status import JobListener, JobStatus, JobStatusMachine
from flinkmagic.scheduling.main_thread import ComponentMainThreadExecutor, ask
from flinkmagic.scheduling.partition_tracker import JobMasterPartitionTracker, RegionPartitionGroupReleaseStrategy
from flinkmagic.scheduling.pipelined_region_scheduling_strategy import PipelinedRegionSchedulingStrategy
from flinkmagic.scheduling.scheduler_components import make_allocator, make_failover_strategy
from flinkmagic.scheduling.scheduling_topology import SchedulingTopology
from flinkmagic.scheduling.slots.physical_slot_provider import PhysicalSlotProvider
from flinkmagic.scheduling.task_executor_gateway import TaskExecutionStateTransition, TaskExecutorGateway

_ASK_TIMEOUT_S = 10.0
"""Flink's `akka.ask.timeout`."""

_S = ExecutionState
_ENDING = frozenset({JobStatus.CANCELLING, JobStatus.FAILING})
_GOES_ON = frozenset({JobStatus.RUNNING, JobStatus.RESTARTING})
_REPLACEABLE = frozenset({*ON_EXECUTOR, ExecutionState.FINISHED})


@dataclass(frozen=True)
class RecoveredJob:
    """The vertices of a job that earlier work has finished, and who holds their results."""

    finished: Sequence[int]
    holder: TaskExecutorGateway


class DefaultScheduler:
    """Schedules one job, region by region, over slots from a provider (Flink's `SchedulerNG` and `SchedulerBase`, too).

    Everything but `job_status` and `request_job` runs on the main thread. Calls of providers and gateways may complete
    futures within the call; nothing here relies on whether they do.

    Departures from Flink:

    * a task that an executor reports CANCELED without having been asked counts as failed. Flink makes such a job wait
      forever;
    * failures that come while the job is cancelling or failing are recorded and change nothing;
    * operator coordinators, checkpoints and accumulators are absent: nothing here would use them.

    Parameters
    ----------
    execution_graph : ExecutionGraph
        The job; this scheduler is the only one to change it.
    restart_strategy : RestartBackoffTimeStrategy, optional
        By default a failed job is never restarted.
    failover_strategy : {"region", "full"}
        What to restart (`jobmanager.execution.failover-strategy`).
    input_dependency : InputDependencyConstraint
        When a region's inputs are enough.
    slot_sharing_groups : sequence of sequences of int, optional
        The vertices that share a slot, if a strategy other than Flink's decided.
    release_partitions : bool
        Whether results are deleted as soon as their consumers are finished
        (`jobmanager.partition.release-during-job-execution`).
    """

    def __init__(
        self,
        execution_graph: ExecutionGraph,
        *,
        main_thread: ComponentMainThreadExecutor,
        clock: Clock,
        slot_provider: PhysicalSlotProvider,
        restart_strategy: RestartBackoffTimeStrategy | None = None,
        failover_strategy: str = "region",
        input_dependency: InputDependencyConstraint = InputDependencyConstraint.ALL,
        listeners: Sequence[JobListener] = (),
        event_log: JobEventLog | None = None,
        slot_sharing_groups: Sequence[Sequence[int]] | None = None,
        release_partitions: bool = True,
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
        self._release_partitions = release_partitions
        self.release_strategy = RegionPartitionGroupReleaseStrategy(self.topology)
        self.allocator = make_allocator(
            execution_graph, self.executions, slot_provider, slot_sharing_groups, self.topology
        )
        self._operations = ExecutionOperations(self.executions, self.allocator, self.tracker, self.topology)
        self._versioner = ExecutionVertexVersioner(self.topology.n_vertices)
        self._descriptors = TaskDeploymentDescriptorFactory(execution_graph.job_id, self.topology, self.executions)
        self._deployer = DefaultExecutionDeployer(
            self.executions,
            self.allocator,
            self._versioner,
            self.tracker,
            self._descriptors,
            self.fail_execution,
            self.event_log,
        )
        self.input_dependency = input_dependency
        self.strategy = PipelinedRegionSchedulingStrategy(self, self.topology, input_dependency)
        self._failure_handler = ExecutionFailureHandler(
            make_failover_strategy(failover_strategy, execution_graph, self.topology, self.tracker),
            restart_strategy or NoRestartBackoffTimeStrategy(),
            self.topology.n_vertices,
        )
        self._waiting_for_restart: set[int] = set()
        self._status.transition(JobStatus.CREATED)

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

    def recover(self, recovered: RecoveredJob) -> None:
        """Take over what is done already: those vertices are FINISHED, and their results are where they are held."""
        self._main_thread.assert_running_in_main_thread()
        self._status.transition(JobStatus.RECONCILING)
        holder = recovered.holder
        for vertex in recovered.finished:
            self.executions.recover_finished(vertex, holder.resource_id)
            self.release_strategy.vertex_finished(vertex)
            for partition in self.topology.produced_partitions(vertex):
                partition_id = self._descriptors.partition_id(partition)
                self.tracker.start_tracking(partition, partition_id, holder.resource_id, holder)

    def start_scheduling(self) -> None:
        """Schedule what can be scheduled: from the start, or what is left after `recover`."""
        self._main_thread.assert_running_in_main_thread()
        is_recovered = self.job_status is JobStatus.RECONCILING
        self._status.transition(JobStatus.RUNNING)
        if not is_recovered:
            self.strategy.start_scheduling()
        elif not self._finish_if_all_finished():
            self.strategy.start_scheduling(self.executions.finished_vertices())

    def allocate_slots_and_deploy(self, vertices: Sequence[int]) -> None:
        """Carry out a decision of the strategy (`SchedulerOperations`)."""
        if self.job_status is JobStatus.RUNNING or self.job_status is JobStatus.RESTARTING:
            self._deployer.allocate_slots_and_deploy(vertices)

    def update_task_execution_state(self, transition: TaskExecutionStateTransition) -> bool:
        """Handle the news of an attempt; return False if it concerns no current attempt, or changes nothing."""
        self._main_thread.assert_running_in_main_thread()
        vertex = self.executions.vertex_of(transition.attempt_id)
        if vertex is None or self.executions.is_terminal(vertex):
            return False
        state, to, at_ms = self.executions.state(vertex), transition.state, transition.at_ms
        if to is _S.INITIALIZING or to is _S.RUNNING:
            if (state, to) not in ((_S.DEPLOYING, _S.INITIALIZING), (_S.INITIALIZING, _S.RUNNING)):
                return False
            self.executions.transition(vertex, to, at_ms=at_ms)
        elif to.is_terminal and state is _S.CANCELING:
            self._end_execution(vertex, _S.CANCELED, at_ms=at_ms)
        elif to is _S.FINISHED and state in ON_EXECUTOR:
            self._finish_execution(vertex, at_ms)
        elif to is _S.FAILED or (to is _S.CANCELED and state in ON_EXECUTOR):
            error = transition.error or TaskCanceledError(self.executions.task_name(vertex))
            self._end_execution(vertex, to, error, at_ms)
            self._handle_task_failure(vertex, error)
        else:
            return False
        return True

    def _finish_execution(self, vertex: int, at_ms: float | None) -> None:
        self.executions.transition(vertex, _S.FINISHED, at_ms=at_ms)
        releasable = self.release_strategy.vertex_finished(vertex)
        if releasable and self._release_partitions:
            self.tracker.stop_tracking_and_release(releasable)
        self._operations.leave_slot(vertex)
        if not self._finish_if_all_finished():
            self.strategy.on_execution_finished(vertex)
        self._end_if_all_terminal()

    def _end_execution(
        self, vertex: int, to: ExecutionState, error: BaseException | None = None, at_ms: float | None = None
    ) -> None:
        self._operations.end(vertex, to, error, at_ms)
        self._end_if_all_terminal()

    def fail_execution(self, vertex: int, error: BaseException) -> None:
        """Fail the current execution of a vertex, for a reason that its executor does not know."""
        state = self.executions.state(vertex)
        if state.is_terminal:
            return
        if state in ON_EXECUTOR:
            self._operations.cancel_on_executor(vertex)
        if state is _S.CANCELING:
            self._end_execution(vertex, _S.CANCELED)
            return
        self._end_execution(vertex, _S.FAILED, error)
        self._handle_task_failure(vertex, error)

    def fail_slot(self, allocation_id: str, cause: BaseException) -> None:
        """Handle the loss of a slot: what runs or waits in it fails."""
        for vertex in self.allocator.lose_slot(allocation_id):
            self.fail_execution(vertex, cause)

    def task_executor_lost(self, resource_id: str, cause: BaseException) -> None:
        """Handle the loss of an executor, with its slots and partitions."""
        self.event_log.add("scheduler", str(cause))
        self.tracker.stop_tracking(self.tracker.partitions_on(resource_id))
        for allocation_id in self.allocator.allocations_on(resource_id):
            self.fail_slot(allocation_id, cause)

    def handle_global_failure(self, cause: BaseException) -> None:
        """Handle a failure that concerns no single task: all tasks are restarted."""
        self._handle_failure(ExceptionHistoryEntry(cause, self._clock.now_ms()))

    def replace_executions(
        self, vertices: Sequence[int], cause: ExecutorRecoveryError, at_ms: float | None = None
    ) -> bool:
        """Give the vertices of a region new executions, because their executor runs them again by itself.

        Flink's executors do nothing by themselves: the JobMaster restarts regions. Spark runs lost tasks and makes lost
        outputs again by itself, and only reports it. That is no restart of the job: no strategy is asked, nothing else
        is cancelled.

        1. Running executions become FAILED with `cause`; FINISHED ones stay so, as prior ones.
        2. Consumers that are not scheduled yet wait for the new executions; scheduled ones stay as they are.
        3. The new ones are scheduled without regard to their inputs: they already run.

        Returns
        -------
        bool
            False, without any change, if the job is ending or is about to restart them itself.
        """
        states = [self.executions.state(vertex) for vertex in vertices]
        if self.job_status not in _GOES_ON or not _REPLACEABLE.issuperset(states):
            return False
        if not self._waiting_for_restart.isdisjoint(vertices):
            return False
        entry = self._history_entry(vertices[-1], cause)
        self.event_log.add("scheduler", f"{str(entry).rstrip('.')}; it is run again where it was submitted")
        self._failure_handler.note_recovery(entry, vertices)
        for vertex, state in zip(vertices, states, strict=True):
            if state in ON_EXECUTOR:
                self._operations.end(vertex, _S.FAILED, cause, at_ms)
        self._versioner.record_modifications(vertices)
        self.strategy.on_vertices_reset(vertices)
        for vertex in vertices:
            self._reset(vertex)
        self.strategy.restart_immediately(vertices)
        return True

    def _handle_task_failure(self, vertex: int, error: BaseException) -> None:
        self._handle_failure(self._history_entry(vertex, error))

    def _handle_failure(self, entry: ExceptionHistoryEntry) -> None:
        self.event_log.add("scheduler", str(entry))
        if self.job_status.is_terminal or self.job_status in _ENDING:
            return
        result = self._failure_handler.handle(entry)
        self._failure_cause = result.error or entry.error
        if result.error is None:
            self._restart_with_delay(result.vertices, result.delay_ms)
        else:
            self._status.transition(JobStatus.FAILING, result.error)
            self._cancel_everything()

    def _restart_with_delay(self, vertices: list[int], delay_ms: float) -> None:
        versions = self._versioner.record_modifications(vertices)
        self._waiting_for_restart.update(vertices)
        if self.job_status is JobStatus.RUNNING:
            self._status.transition(JobStatus.RESTARTING, self._failure_cause)
        tasks = count(len(vertices), "task")
        held = f"hold {tasks} until the rest of the job is over"
        self.event_log.add("scheduler", held if delay_ms >= HELD_MS else f"restart {tasks} in {delay_ms:g} ms")
        self.strategy.on_vertices_reset(vertices)
        self._operations.cancel(vertices)
        canceled = self.executions.all_terminal(vertices)

        def restart_when_canceled() -> None:
            # in a later turn: the code that ends the last execution may be in the middle of failing others
            canceled.when_complete(
                lambda _value, _error: self._main_thread.execute(lambda: self._restart(vertices, versions))
            )

        self._main_thread.schedule(restart_when_canceled, delay_ms)

    def _restart(self, vertices: Sequence[int], versions: Sequence[int]) -> None:
        to_restart = self._versioner.unmodified(vertices, versions)
        if not to_restart:
            return
        self._waiting_for_restart.difference_update(to_restart)
        if not self._waiting_for_restart and self.job_status is JobStatus.RESTARTING:
            self._status.transition(JobStatus.RUNNING)
        for vertex in to_restart:
            self._reset(vertex)
        self.strategy.restart_tasks(to_restart)

    def _reset(self, vertex: int) -> None:
        if self.executions.reset(vertex):
            self.tracker.stop_tracking_and_release(self.topology.produced_partitions(vertex))
            self.release_strategy.vertex_unfinished(vertex)
        self._descriptors.producer_reset(vertex)

    def cancel(self) -> None:
        """End the job for good; do nothing if it is ending or over already."""
        self._main_thread.assert_running_in_main_thread()
        if self.job_status.is_terminal or self.job_status is JobStatus.CANCELLING:
            return
        self._status.transition(JobStatus.CANCELLING)
        self._cancel_everything()

    def suspend(self, cause: BaseException) -> None:
        """End the job here, without waiting for its tasks; leave what is finished for whoever takes it up."""
        self._main_thread.assert_running_in_main_thread()
        if self.job_status.is_terminal:
            return
        self._versioner.record_all()
        self._status.transition(JobStatus.SUSPENDED, cause)
        producer_of, state_of = self.topology.producer_of, self.executions.state
        tracked = self.tracker.tracked_partitions()
        self.tracker.stop_tracking(p for p in tracked if state_of(producer_of[p]) is _S.FINISHED)
        self._operations.cancel(range(self.topology.n_vertices))
        for vertex in range(self.topology.n_vertices):
            if self.executions.state(vertex) is _S.CANCELING:
                self._operations.end(vertex, _S.CANCELED)
        self._on_terminal()

    def _cancel_everything(self) -> None:
        self._versioner.record_all()
        self._waiting_for_restart.clear()
        self._operations.cancel(range(self.topology.n_vertices))
        self._end_if_all_terminal()

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
