"""Records what the scheduler does with a job, step by step, as data.

The real scheduler runs a job on slots that are always available and tasks that finish when told to: those deployed
first finish first. What it schedules, restarts and releases on the way is recorded.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from flinkmagic.errors.base import InvariantViolatedError
from flinkmagic.errors.scheduling import PartitionNotFoundError
from flinkmagic.graph.execution import ExecutionAttemptID
from flinkmagic.graph.execution_graph import ExecutionGraph
from flinkmagic.graph.execution_state import ExecutionState
from flinkmagic.graph.job_graph import JobGraph
from flinkmagic.graph.json_report import report_vertices
from flinkmagic.scheduling.clock import ManualClock
from flinkmagic.scheduling.default_scheduler import DefaultScheduler
from flinkmagic.scheduling.failover.failover_strategy import RestartPipelinedRegionFailoverStrategy
from flinkmagic.scheduling.failover.restart_strategy import FixedDelayRestartBackoffTimeStrategy
from flinkmagic.scheduling.job_status import JobStatus
from flinkmagic.scheduling.main_thread import ManualMainThreadExecutor
from flinkmagic.scheduling.scheduling_topology import SchedulingTopology
from flinkmagic.scheduling.slots.physical_slot_provider import PhysicalSlot, PhysicalSlotRequest
from flinkmagic.scheduling.task_executor_gateway import (
    ResultPartitionID,
    TaskDeploymentDescriptor,
    TaskExecutionStateTransition,
)

MAX_VERTICES_OF_FAILOVER = 60
"""Above this number of execution vertices the sections on failures are left out: their size grows with its square."""

Vertex = list[int | str]
"""`[head, subtask]`."""

_S = ExecutionState


def scheduling_sections(job_graph: JobGraph) -> dict[str, Any]:
    """Make the sections `failover`, `failover_midway`, `scheduling_trace` and both `recovery`s of a job.

    Parameters
    ----------
    job_graph : JobGraph
        Run on execution graphs of its own.

    Returns
    -------
    dict
        The sections by name, None if there is nothing to say: no failures in jobs of more than
        `MAX_VERTICES_OF_FAILOVER` vertices, and half way only where the job gets to its end.
    """
    run = _Run(job_graph)
    trace = run.trace()
    sections: dict[str, Any] = {"failover": None, "failover_midway": None, "scheduling_trace": trace}
    sections |= {"recovery": None, "recovery_partition_lost": None}
    if trace["total"] <= MAX_VERTICES_OF_FAILOVER:
        sections["failover"] = _failover(job_graph)
        if trace["finished"] == trace["total"]:
            half = int(trace["total"]) // 2
            sections["failover_midway"] = _failover_midway(_Run(job_graph), half)
            sections["recovery"] = _recovery(_Run(job_graph), half)
            sections["recovery_partition_lost"] = _recovery_partition_lost(_Run(job_graph), half)
    return sections


class _Run:
    """A job on slots that are always available; its own slot provider, gateway and listener."""

    def __init__(self, job_graph: JobGraph) -> None:
        clock = ManualClock()
        self.graph = ExecutionGraph(job_graph)
        self.resource_id = "task-manager"
        self._main_thread = ManualMainThreadExecutor(clock)
        self._submitted: deque[TaskDeploymentDescriptor] = deque()
        self._canceled: deque[ExecutionAttemptID] = deque()
        self._slots = 0
        self._running: deque[ExecutionAttemptID] = deque()
        self.scheduled: list[list[int]] = []
        self.scheduler = DefaultScheduler(
            self.graph,
            main_thread=self._main_thread,
            clock=clock,
            slot_provider=self,
            restart_strategy=FixedDelayRestartBackoffTimeStrategy(1, 0.0),
            listeners=(self,),
        )
        self._main_thread.execute(self.scheduler.start_scheduling)
        self._settle()

    # The slot provider.

    def allocate_physical_slots(self, requests: Sequence[PhysicalSlotRequest]) -> None:
        for request in requests:
            self._slots += 1
            request.slot_future.complete(PhysicalSlot(f"slot-{self._slots}", self.resource_id, self))

    def cancel_slot_request(self, slot_request_id: str) -> None:
        raise InvariantViolatedError(f"the request {slot_request_id} waits for a slot")

    def free_slot(self, allocation_id: str) -> None:
        """Do nothing: each request gets a new slot."""

    # The gateway.

    def submit_task(self, descriptor: TaskDeploymentDescriptor) -> None:
        self._submitted.append(descriptor)

    def cancel_task(self, attempt_id: ExecutionAttemptID) -> None:
        self._canceled.append(attempt_id)

    def release_partitions(self, job_id: str, partition_ids: Sequence[ResultPartitionID]) -> None:
        """Do nothing: no partitions are kept here."""

    def heartbeat_from_job_manager(self, job_id: str) -> None:
        """Do nothing: the gateway is always alive."""

    # The listener.

    def on_job_status_changed(self, old: JobStatus, new: JobStatus, at_ms: float, cause: BaseException | None) -> None:
        """Do nothing: the status is read from the scheduler at the end."""

    def on_execution_state_changed(
        self, vertices: Sequence[int], state: ExecutionState, at_ms: float, error: BaseException | None
    ) -> None:
        if state is _S.SCHEDULED:
            self.scheduled.append(list(vertices))

    def _settle(self) -> None:
        """Let the scheduler do all that it can, and start every deployed task."""
        self._main_thread.run_ready()
        while self._submitted or self._canceled:
            while self._canceled:
                self._report(self._canceled.popleft(), _S.CANCELED)
            while self._submitted:
                descriptor = self._submitted.popleft()
                self._report(descriptor.attempt_id, _S.INITIALIZING)
                if self._report(descriptor.attempt_id, _S.RUNNING):
                    self._running.append(descriptor.attempt_id)
            self._main_thread.run_ready()

    def _report(
        self, attempt_id: ExecutionAttemptID, state: ExecutionState, error: BaseException | None = None
    ) -> bool:
        return self.scheduler.update_task_execution_state(TaskExecutionStateTransition(attempt_id, state, error))

    def running(self) -> list[int]:
        """Return the running tasks' vertices, those deployed first in front."""
        running = [(a, self.scheduler.executions.vertex_of(a)) for a in self._running]
        alive = [(a, v) for a, v in running if v is not None and self.graph.state_of(v) is _S.RUNNING]
        self._running = deque(attempt_id for attempt_id, _ in alive)
        return [vertex for _, vertex in alive]

    def take_scheduled(self) -> list[list[Vertex]]:
        """Return the scheduling calls since the last look."""
        calls, self.scheduled = self.scheduled, []
        return [self.identify_all(call) for call in calls]

    def finish_next(self) -> dict[str, Any]:
        """Finish the task that has run longest."""
        vertex = self.running()[0]
        self._report(self.scheduler.executions.attempt_id(vertex), _S.FINISHED)
        self._settle()
        return {"finished": self.identify(vertex), "scheduled": self.take_scheduled()}

    def finish(self, count: int) -> None:
        """Finish this many tasks."""
        for _ in range(count):
            self.finish_next()

    def finish_all(self) -> list[dict[str, Any]]:
        """Finish task after task until none runs."""
        finishes = []
        while self.running():
            finishes.append(self.finish_next())
        return finishes

    def fail(self, vertex: int, error: BaseException) -> None:
        """Fail a task."""
        self._report(self.scheduler.executions.attempt_id(vertex), _S.FAILED, error)
        self._settle()

    def identify(self, vertex: int) -> Vertex:
        return report_vertices(self.graph, (vertex,))[0]

    def identify_all(self, vertices: Iterable[int]) -> list[Vertex]:
        return report_vertices(self.graph, vertices)

    def identify_partition(self, partition: int) -> list[Any]:
        """Return `[head, subtask, index of the data set]`."""
        topology = self.scheduler.topology
        producer = self.identify(topology.producer_of[partition])
        return [*producer, topology.results[topology.result_of[partition]].dataset.index]

    def trace(self) -> dict[str, Any]:
        start = self.take_scheduled()
        finishes = self.finish_all()
        return {
            "start": start,
            "finishes": finishes,
            "finished": self.scheduler.executions.n_finished,
            "total": self.graph.n_vertices,
            "job_status": str(self.scheduler.job_status),
        }


class _Available:
    """Counts partitions as available if a function says so."""

    def __init__(self, is_available: Callable[[int], bool]) -> None:
        self._is_available = is_available

    def unavailable_partitions(self, start: int, end: int) -> list[int]:
        return [partition for partition in range(start, end) if not self._is_available(partition)]


def _failover(job_graph: JobGraph) -> list[dict[str, Any]]:
    """Return restart sets with every task running: all partitions available, none, and the first input's lost."""
    graph = ExecutionGraph(job_graph)
    topology = SchedulingTopology(graph)
    everything = np.arange(graph.n_vertices)
    for state in (_S.SCHEDULED, _S.DEPLOYING, _S.INITIALIZING, _S.RUNNING):
        graph.transition(everything, state, 0.0)
    strategies = [
        RestartPipelinedRegionFailoverStrategy(topology, graph.state, _Available(is_available))
        for is_available in (lambda _partition: True, lambda _partition: False)
    ]
    failure = RuntimeError("failed")
    found = []
    for vertex in range(graph.n_vertices):
        if_all, if_none = (
            report_vertices(graph, strategy.tasks_needing_restart(vertex, failure)) for strategy in strategies
        )
        lost = None
        groups = topology.consumed_groups(vertex)
        if groups:
            partition = topology.partition_start[groups[0]]
            result = topology.results[topology.result_of[partition]]
            error = PartitionNotFoundError(result.id, partition - result.first_partition)
            restart = strategies[0].tasks_needing_restart(vertex, error)
            lost = {
                "producer": report_vertices(graph, (topology.producer_of[partition],))[0],
                "dataset_index": result.dataset.index,
                "restart": report_vertices(graph, restart),
            }
        found.append(
            {
                "vertex": report_vertices(graph, (vertex,))[0],
                "all_available": if_all,
                "none_available": if_none,
                "first_input_partition_lost": lost,
            }
        )
    return found


def _failover_midway(run: _Run, after: int) -> dict[str, Any]:
    """Return restart sets of what runs after `after` tasks have finished."""
    run.finish(after)
    graph, topology = run.graph, run.scheduler.topology
    is_finished = _Available(lambda partition: graph.state_of(topology.producer_of[partition]) is _S.FINISHED)
    by_producer = RestartPipelinedRegionFailoverStrategy(topology, graph.state, is_finished)
    by_tracker = RestartPipelinedRegionFailoverStrategy(topology, graph.state, run.scheduler.tracker)
    failure = RuntimeError("failed")
    return {
        "after_finishes": after,
        "states": [[*run.identify(v), graph.state_of(v).name] for v in range(graph.n_vertices)],
        "tracked_partitions": [run.identify_partition(p) for p in run.scheduler.tracker.tracked_partitions()],
        "restarts": [
            {
                "vertex": run.identify(v),
                "finished_producers_available": run.identify_all(by_producer.tasks_needing_restart(v, failure)),
                "tracked_partitions_available": run.identify_all(by_tracker.tasks_needing_restart(v, failure)),
            }
            for v in range(graph.n_vertices)
            if graph.state_of(v) is _S.RUNNING
        ],
    }


def _recovery(run: _Run, after: int) -> dict[str, Any]:
    """Return the rest of the run after the task that has run longest has failed."""
    run.finish(after)
    failed = run.running()[0]
    return {"after_finishes": after, **_rest_after_failure(run, failed, RuntimeError("failed"))}


def _recovery_partition_lost(run: _Run, after: int) -> dict[str, Any] | None:
    """Return the same for a finished result that turns out to be lost and that a running task reads.

    This happens as soon after `after` as there is such a task. None if there is none until the end.
    """
    run.finish(after)
    while run.running():
        found = _first_finished_input(run)
        if found is not None:
            vertex, partition = found
            topology = run.scheduler.topology
            result = topology.results[topology.result_of[partition]]
            error = PartitionNotFoundError(result.id, partition - result.first_partition)
            lost = run.identify_partition(partition)
            rest = _rest_after_failure(run, vertex, error)
            return {"after_finishes": after, "lost_partition": lost, **rest}
        run.finish(1)
        after += 1
    return None


def _first_finished_input(run: _Run) -> tuple[int, int] | None:
    """Return a running task, and a finished partition that it reads and that could be read again."""
    topology = run.scheduler.topology
    for vertex in run.running():
        for group in topology.consumed_groups(vertex):
            if topology.is_reconsumable_group[group]:
                for partition in range(topology.partition_start[group], topology.partition_end[group]):
                    producer = topology.producer_of[partition]
                    if run.scheduler.tracker.is_tracked(partition) and run.graph.state_of(producer) is _S.FINISHED:
                        return vertex, partition
    return None


def _rest_after_failure(run: _Run, failed: int, error: BaseException) -> dict[str, Any]:
    run.take_scheduled()
    run.fail(failed, error)
    restart_set = run.scheduler.request_job().exception_history[-1].restarted
    return {
        "failed": run.identify(failed),
        "restart_set": run.identify_all(restart_set),
        "scheduled": run.take_scheduled(),
        "finishes": run.finish_all(),
        "job_status": str(run.scheduler.job_status),
    }
