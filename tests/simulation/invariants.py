"""What must be true of a virtual cluster after every event."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

from flinkmagic.errors.base import InvariantViolatedError
from flinkmagic.scheduling.default_scheduler import DefaultScheduler
from flinkmagic.scheduling.scheduler_validation import validate_scheduler
from flinkmagic.simulation.shuffle_environment import PartitionState
from flinkmagic.simulation.simulated_task_executor import SimulatedTaskExecutor
from flinkmagic.simulation.simulation import Simulation


class ClusterInvariants:
    """Checks a simulation; each check raises `InvariantViolatedError`.

    1. All that holds of the scheduler (`DefaultScheduler.validate`).
    2. An executor never has tasks in more slots than it has, nor in a slot that was not given to the job; a
       slot never holds two subtasks of a job vertex.
    3. No one reads a released partition but a task that the scheduler has given up.
    4. The pool requires as many slots as requests wait or are fulfilled; lent slots are exactly those of
       fulfilled requests.
    """

    def __init__(self, simulation: Simulation) -> None:
        self._simulation = simulation
        self._cluster = simulation.cluster

    def check(self) -> None:
        """Check everything that must hold at every instant."""
        scheduler = self._simulation.scheduler
        validate_scheduler(scheduler)
        for executor in self._cluster.executors.values():
            self._check_executor(executor)
            self._check_reads(executor, scheduler)
        self._check_pool()

    def check_end(self, after_event: Callable[[], None]) -> None:
        """Check that nothing is left when the job is over and the last messages have arrived, within a second."""
        main_thread, until_ms = self._simulation.main_thread, self._cluster.clock.now_ms() + 1_000.0
        while main_thread.next_due_ms <= until_ms:
            main_thread.run_next()
            after_event()
        manager = self._cluster.resource_manager
        for resource_id, executor in self._cluster.executors.items():
            _require(not executor.tasks, f"no task is left on {resource_id}")
            _require(executor.slots.count(None) == len(executor.slots), f"all slots of {resource_id} are free")
            known = manager._executors.get(resource_id)
            _require(known is None or known.n_free == len(executor.slots), f"{resource_id}'s slots are known as free")
        _require(self._simulation.job_master.slot_pool.pool.n_slots == 0, "the slot pool is empty")
        if self._simulation.scheduler.job_status.is_globally_terminal:
            self._check_nothing_lies_about()

    def _check_executor(self, executor: SimulatedTaskExecutor) -> None:
        given = {slot.allocation_id for slot in executor.slots if slot is not None}
        in_slot = Counter((t.descriptor.allocation_id, a.job_vertex_id) for a, t in executor.tasks.items())
        _require(
            given.issuperset(allocation_id for allocation_id, _ in in_slot),
            f"tasks on {executor.resource_id} are in slots that were given to the job",
        )
        _require(max(in_slot.values(), default=0) <= 1, "a slot holds at most one subtask of a job vertex")

    def _check_reads(self, executor: SimulatedTaskExecutor, scheduler: DefaultScheduler) -> None:
        for attempt_id, task in executor.tasks.items():
            if task.released_inputs_read and not scheduler.job_status.is_terminal:
                vertex = scheduler.executions.vertex_of(attempt_id)
                is_wanted = vertex is not None and scheduler.executions.state(vertex).name in (
                    "DEPLOYING",
                    "INITIALIZING",
                    "RUNNING",
                )
                _require(not is_wanted, f"{task.descriptor.task_name} reads no released partition")

    def _check_pool(self) -> None:
        bridge = self._simulation.job_master.slot_pool
        pool = bridge.pool
        _require(
            pool.required == len(bridge._pending) + len(bridge._fulfilled),
            f"{pool.required} slots are required, one for each request",
        )
        free = {slot.allocation_id for slot in pool.free_slots()}
        lent = pool._slots.keys() - free
        _require(lent.issubset(bridge._fulfilled), "lent slots belong to requests")

    def _check_nothing_lies_about(self) -> None:
        graph, shuffle = self._simulation.execution_graph, self._cluster.shuffle
        kept = {r.id for r in graph.results if r.result_type.is_persistent or r.result_type.must_be_pipelined_consumed}
        for executor in self._cluster.executors.values():
            for partition in shuffle.held_by(executor.resource_id):
                is_released_by_scheduler = partition.dataset_id not in kept
                state = shuffle.state(partition)
                _require(
                    not (is_released_by_scheduler and state is PartitionState.FINISHED), f"{partition} is released"
                )


def _require(condition: bool, rule: str) -> None:
    if not condition:
        raise InvariantViolatedError(rule)
