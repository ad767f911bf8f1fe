"""Makes faults happen in a virtual cluster, and records which of them hit something."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from flinkmagic.errors.usage import UnknownNameError
from flinkmagic.graph.execution_state import ExecutionState
from flinkmagic.scheduling.job_master import JobMaster
from flinkmagic.scheduling.job_status import JobStatus
from flinkmagic.simulation.faults import (
    CancelJob,
    FailJob,
    FailTask,
    Fault,
    LosePartition,
    LoseSlot,
    LoseTaskManager,
    SilenceTaskManager,
    SimulatedError,
    SuspendJob,
)
from flinkmagic.simulation.virtual_cluster import VirtualCluster

_RUNNING = ExecutionState.RUNNING


class FaultInjector:
    """Injects faults at their times (a `JobListener`)."""

    def __init__(self, cluster: VirtualCluster, faults: Sequence[Fault]) -> None:
        self.injected: list[tuple[Fault, str]] = []
        """The faults that hit something, each with what it hit."""
        self.last_change_ms = 0.0
        """When an execution, or the job, last changed."""
        self._cluster = cluster
        self._faults = faults
        self._job_master: JobMaster
        self._targets: dict[int, list[FailTask]] = {}
        """By vertex, failures whose time has come, and which wait for the task to run."""

    def start(self, job_master: JobMaster) -> None:
        """Plan all faults; refuse those that name something that does not exist."""
        self._job_master = job_master
        for fault in self._faults:
            if isinstance(fault, FailTask):
                vertex = self._vertex_of(fault)
                self._cluster.main_thread.schedule(partial(self._fail_task, fault, vertex), fault.at_ms)
            else:
                if isinstance(fault, (LoseTaskManager, SilenceTaskManager, LoseSlot)):
                    self._check_executor(fault.resource_id)
                self._cluster.main_thread.schedule(partial(self._inject, fault), fault.at_ms)

    def _check_executor(self, resource_id: str) -> None:
        if resource_id not in self._cluster.executors:
            raise UnknownNameError("task manager", resource_id, self._cluster.executors)

    def _vertex_of(self, fault: FailTask) -> int:
        """Return the task that a fault names: by a name of its job vertex, else by the number that text gives that."""
        vertices = self._job_master.execution_graph.job_vertices
        named = [vertex for vertex in vertices if fault.vertex in vertex.job_vertex.names]
        numbered = [vertex for number, vertex in enumerate(vertices, 1) if fault.vertex == str(number)]
        if not (found := [*named, *numbered]):
            raise UnknownNameError("vertex", fault.vertex, [vertex.name for vertex in vertices])
        if fault.subtask >= found[0].parallelism:
            subtasks = [f"{fault.vertex}:{subtask}" for subtask in range(found[0].parallelism)]
            raise UnknownNameError("subtask", f"{fault.vertex}:{fault.subtask}", subtasks)
        return found[0].first + fault.subtask

    # -- the listener ------------------------------------------------------------------------------------

    def on_job_status_changed(self, old: JobStatus, new: JobStatus, at_ms: float, cause: BaseException | None) -> None:
        self.last_change_ms = at_ms

    def on_execution_state_changed(
        self, vertices: Sequence[int], state: ExecutionState, at_ms: float, error: BaseException | None
    ) -> None:
        self.last_change_ms = at_ms
        if state is _RUNNING:
            for vertex in vertices:
                for fault in self._targets.pop(vertex, ()):
                    self._cluster.main_thread.execute(partial(self._fail_task, fault, vertex))

    # -- faults ------------------------------------------------------------------------------------------

    def _fail_task(self, fault: FailTask, vertex: int) -> None:
        executions = self._job_master.execution_graph.execution_vertex(vertex)
        attempt_id = executions.current_execution.attempt_id
        for executor in self._cluster.executors.values():
            task = executor.tasks.get(attempt_id)
            if task is not None and task.state is _RUNNING:
                self._note(fault, executions.task_name_with_attempt)
                task.fail(SimulatedError(f"{executions.task_name_with_attempt} failed", self._cluster.clock.now_ms()))
                return
        self._targets.setdefault(vertex, []).append(fault)

    def _inject(self, fault: Fault) -> None:
        if self._job_master.scheduler.job_status.is_terminal:
            return
        if isinstance(fault, (LoseTaskManager, SilenceTaskManager)):
            self._lose_executor(fault)
        elif isinstance(fault, LoseSlot):
            executor = self._cluster.executors.get(fault.resource_id)
            if executor is not None and executor.lose_slot(fault.slot_index):
                self._note(fault, f"slot {fault.slot_index} of {fault.resource_id}")
        elif isinstance(fault, LosePartition):
            finished = self._cluster.shuffle.finished_partitions()
            if finished:
                partition = finished[min(int(fault.position * len(finished)), len(finished) - 1)]
                self._note(fault, f"partition {partition}")
                self._cluster.shuffle.lose([partition])
        elif isinstance(fault, FailJob):
            self._note(fault, "the job")
            error = SimulatedError("the job failed", self._cluster.clock.now_ms())
            self._job_master.scheduler.handle_global_failure(error)
        elif isinstance(fault, CancelJob):
            self._note(fault, "the job")
            self._job_master.cancel()
        elif isinstance(fault, SuspendJob):
            self._note(fault, "the job")
            self._cluster.dispatcher.close()

    def _lose_executor(self, fault: LoseTaskManager | SilenceTaskManager) -> None:
        executor = self._cluster.executors.get(fault.resource_id)
        if executor is None:
            return
        self._note(fault, fault.resource_id)
        if isinstance(fault, LoseTaskManager):
            self._cluster.kill_executor(fault.resource_id)
        else:
            self._cluster.silence_executor(fault.resource_id)
        if fault.back_after_ms is not None:
            slots = len(executor.slots)
            self._cluster.main_thread.schedule(
                lambda: self._cluster.add_executor(fault.resource_id, slots), fault.back_after_ms
            )

    def _note(self, fault: Fault, what: str) -> None:
        self.injected.append((fault, f"{type(fault).__name__}: {what}"))
        self._cluster.event_log.add("fault", f"{type(fault).__name__}: {what}")
