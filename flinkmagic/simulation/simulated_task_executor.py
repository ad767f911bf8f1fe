"""Simulates a task executor on virtual time: slots, tasks, partitions (Flink's `TaskExecutor`)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

from flinkmagic.errors.scheduling import SlotLostError
from flinkmagic.graph.execution import ExecutionAttemptID
from flinkmagic.graph.execution_state import ExecutionState
from flinkmagic.scheduling.main_thread import ComponentMainThreadExecutor
from flinkmagic.scheduling.slots.resource_gateways import JobMasterGateway, SlotOffer
from flinkmagic.scheduling.slots.resource_manager import ResourceManager
from flinkmagic.scheduling.task_executor_gateway import (
    ResultPartitionID,
    TaskDeploymentDescriptor,
    TaskExecutionStateTransition,
)
from flinkmagic.simulation.rpc import Channel
from flinkmagic.simulation.shuffle_environment import ShuffleEnvironment
from flinkmagic.simulation.simulated_task import SimulatedTask
from flinkmagic.simulation.task_times import SampledTaskTimes


@dataclass
class _Slot:
    job_id: str
    allocation_id: str
    is_active: bool = False
    """Whether the job's master has accepted it."""


class SimulatedTaskExecutor:
    """Runs tasks for as long as their times say (a `ManagedTaskExecutorGateway`).

    All messages to and from it travel over channels with a latency. A dead executor neither receives nor sends any.

    Parameters
    ----------
    channel : callable
        Makes a new one-way connection.
    slot_of_allocation : dict of str to int
        Where it records the number of each slot that it offers.
    """

    def __init__(
        self,
        resource_id: str,
        n_slots: int,
        *,
        main_thread: ComponentMainThreadExecutor,
        channel: Callable[[], Channel],
        shuffle: ShuffleEnvironment,
        times: SampledTaskTimes,
        find_job_master: Callable[[str], JobMasterGateway | None],
        resource_manager: ResourceManager,
        slot_of_allocation: dict[str, int],
    ) -> None:
        self.resource_id = resource_id
        self.slots: list[_Slot | None] = [None] * n_slots
        self.tasks: dict[ExecutionAttemptID, SimulatedTask] = {}
        self.is_alive = True
        self._main_thread = main_thread
        self._inbox = channel()
        self._outbox = channel()
        self._shuffle = shuffle
        self._times = times
        self._find_job_master = find_job_master
        self._resource_manager = resource_manager
        self._slot_of_allocation = slot_of_allocation

    def start(self) -> None:
        """Register with the resource manager."""
        slots = len(self.slots)
        self._say(lambda: self._resource_manager.register_task_executor(self.resource_id, self, slots))

    def die(self) -> None:
        """Stop receiving, sending and working; what is stored here is gone."""
        for task in list(self.tasks.values()):
            task.vanish()
        self.tasks.clear()
        self.slots = [None] * len(self.slots)
        self.fall_silent()

    def fall_silent(self) -> None:
        """Stop receiving and sending, like an executor that is cut off from the network.

        Its tasks continue; what is stored here cannot be reached.
        """
        self.is_alive = False
        self._inbox.is_closed = self._outbox.is_closed = True
        self._shuffle.lose(self._shuffle.held_by(self.resource_id))

    # -- what it receives (the gateway) ----------------------------------------------------------------

    def submit_task(self, descriptor: TaskDeploymentDescriptor) -> None:
        self._inbox.send(lambda: self._submit(descriptor))

    def cancel_task(self, attempt_id: ExecutionAttemptID) -> None:
        self._inbox.send(lambda: self._cancel(attempt_id))

    def release_partitions(self, job_id: str, partition_ids: Sequence[ResultPartitionID]) -> None:
        partitions = list(partition_ids)
        self._inbox.send(lambda: self._shuffle.release(partitions, self.resource_id))

    def heartbeat_from_job_manager(self, job_id: str) -> None:
        self._inbox.send(lambda: self._tell_master(job_id, lambda m: m.heartbeat_from_task_manager(self.resource_id)))

    def heartbeat_from_resource_manager(self) -> None:
        answer = partial(self._resource_manager.heartbeat_from_task_manager, self.resource_id)
        self._inbox.send(lambda: self._say(answer))

    def request_slot(self, slot_index: int, job_id: str, allocation_id: str) -> None:
        self._inbox.send(lambda: self._offer(slot_index, job_id, allocation_id))

    def free_slot(self, allocation_id: str) -> None:
        self._inbox.send(lambda: self._free(allocation_id))

    # -- slots -------------------------------------------------------------------------------------------

    def _offer(self, slot_index: int, job_id: str, allocation_id: str) -> None:
        if self.slots[slot_index] is not None:
            return
        self.slots[slot_index] = _Slot(job_id, allocation_id)
        self._slot_of_allocation[allocation_id] = slot_index

        def offer(master: JobMasterGateway) -> None:
            master.register_task_manager(self.resource_id, self)
            accepted = master.offer_slots(self.resource_id, [SlotOffer(allocation_id)])
            self._inbox.send(lambda: self._offered(allocation_id, bool(accepted)))

        self._tell_master(job_id, offer, lambda: self._inbox.send(lambda: self._free(allocation_id)))

    def _offered(self, allocation_id: str, accepted: bool) -> None:
        slot = self._slot(allocation_id)
        if slot is not None and accepted:
            slot.is_active = True
        elif slot is not None:
            self._free(allocation_id)

    def _free(self, allocation_id: str) -> None:
        for slot_index, slot in enumerate(self.slots):
            if slot is not None and slot.allocation_id == allocation_id:
                self.slots[slot_index] = None
                self._fail_tasks_in(allocation_id)
                self._say(partial(self._resource_manager.notify_slot_available, self.resource_id, slot_index))

    def lose_slot(self, slot_index: int) -> bool:
        """Lose a slot by a fault, and tell the job's master; False if it was not in use."""
        slot = self.slots[slot_index]
        if slot is None or not slot.is_active:
            return False
        error = SlotLostError(slot.allocation_id, self.resource_id, "it broke")
        self._tell_master(slot.job_id, lambda m: m.fail_slot(self.resource_id, slot.allocation_id, error))
        self._free(slot.allocation_id)
        return True

    def _slot(self, allocation_id: str) -> _Slot | None:
        return next((slot for slot in self.slots if slot is not None and slot.allocation_id == allocation_id), None)

    def _fail_tasks_in(self, allocation_id: str) -> None:
        for task in list(self.tasks.values()):
            if task.descriptor.allocation_id == allocation_id:
                task.fail(SlotLostError(allocation_id, self.resource_id, "it was taken back"))

    # -- tasks -------------------------------------------------------------------------------------------

    def _submit(self, descriptor: TaskDeploymentDescriptor) -> None:
        slot = self._slot(descriptor.allocation_id)
        if slot is None:
            error = SlotLostError(descriptor.allocation_id, self.resource_id, "there is no such slot")
            self._report(descriptor, ExecutionState.FAILED, error)
            return
        slot.is_active = True
        task = SimulatedTask(
            descriptor, self.resource_id, self._main_thread, self._shuffle, self._times, self._task_changed
        )
        self.tasks[descriptor.attempt_id] = task
        task.start()

    def _cancel(self, attempt_id: ExecutionAttemptID) -> None:
        task = self.tasks.get(attempt_id)
        if task is not None:
            task.cancel()
            return
        transition = TaskExecutionStateTransition(attempt_id, ExecutionState.CANCELED)
        for job_id in dict.fromkeys(slot.job_id for slot in self.slots if slot is not None):
            self._tell_master(job_id, lambda m: m.update_task_execution_state(transition))

    def _task_changed(self, task: SimulatedTask, state: ExecutionState, error: BaseException | None) -> None:
        if state.is_terminal:
            del self.tasks[task.descriptor.attempt_id]
        self._report(task.descriptor, state, error)

    def _report(
        self,
        descriptor: TaskDeploymentDescriptor,
        state: ExecutionState,
        error: BaseException | None = None,
    ) -> None:
        transition = TaskExecutionStateTransition(descriptor.attempt_id, state, error)
        self._tell_master(descriptor.job_id, lambda m: m.update_task_execution_state(transition))

    # -- sending ---------------------------------------------------------------------------------------

    def _tell_master(
        self,
        job_id: str,
        message: Callable[[JobMasterGateway], object],
        if_gone: Callable[[], object] = lambda: None,
    ) -> None:
        def arrive() -> None:
            master = self._find_job_master(job_id)
            if master is None:
                if_gone()
            else:
                message(master)

        self._say(arrive)

    def _say(self, message: Callable[[], object]) -> None:
        if self.is_alive:
            self._outbox.send(message)
