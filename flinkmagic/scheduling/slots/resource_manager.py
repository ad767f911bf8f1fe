"""Matches what jobs require with what task executors have (Flink's `ResourceManager` and `SlotManager`)."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from functools import partial

from flinkmagic.errors.scheduling import TaskExecutorLostError
from flinkmagic.scheduling.clock import Clock
from flinkmagic.scheduling.heartbeat import HeartbeatManager, HeartbeatOptions
from flinkmagic.scheduling.job_event_log import JobEventLog
from flinkmagic.scheduling.main_thread import ComponentMainThreadExecutor
from flinkmagic.scheduling.slots.resource_gateways import JobMasterGateway, ManagedTaskExecutorGateway


@dataclass
class _TaskExecutor:
    gateway: ManagedTaskExecutorGateway
    slots: list[str | None]
    """By slot index: the job that it was given to, None if it is free."""

    @property
    def n_free(self) -> int:
        return self.slots.count(None)


@dataclass
class _Job:
    master: JobMasterGateway
    required: int = 0
    refused: int | None = None
    """The requirement for which the master was already told that it cannot be met."""


class ResourceManager:
    """Hands the slots of registered executors to jobs.

    1. A job declares a number. While it has fewer slots, free ones are given to it: the executor is asked to offer the
       slot to the job's master.
    2. Executors are filled one after the other in the order of registration, or evenly
       (`cluster.evenly-spread-out-slots`).
    3. A slot is free again when its executor says so.
    4. Once `start_up_ms` are over (`resourcemanager.standalone.start-up-time`), a master whose job cannot be
       given all that it requires is told so, once for each requirement.
    5. An executor that gives no sign of life is removed, and the masters are notified.

    Its state belongs to one thread and is not on disk: after a restart executors and masters register again.
    """

    def __init__(
        self,
        *,
        clock: Clock,
        main_thread: ComponentMainThreadExecutor,
        event_log: JobEventLog,
        evenly_spread: bool = False,
        start_up_ms: float = 300_000.0,
        heartbeat: HeartbeatOptions | None = None,
    ) -> None:
        self._main_thread = main_thread
        self._event_log = event_log
        self._evenly_spread = evenly_spread
        self._executors: dict[str, _TaskExecutor] = {}
        self._jobs: dict[str, _Job] = {}
        self._allocation_numbers = itertools.count()
        self._is_started_up = False
        self._heartbeats = HeartbeatManager(clock, main_thread, heartbeat, self.disconnect_task_manager)
        main_thread.schedule(self._started_up, start_up_ms)

    def slots_of(self, job_id: str) -> int:
        """Return how many slots a job has been given."""
        return sum(executor.slots.count(job_id) for executor in self._executors.values())

    # -- executors ---------------------------------------------------------------------------------------

    def register_task_executor(self, resource_id: str, gateway: ManagedTaskExecutorGateway, slots: int) -> None:
        """Register an executor and its free slots; replace one of the same name."""
        if resource_id in self._executors:
            self.disconnect_task_manager(resource_id, TaskExecutorLostError(resource_id, "it registered again"))
        self._event_log.add("resource manager", f"{resource_id} registers {slots} slots")
        self._executors[resource_id] = _TaskExecutor(gateway, [None] * slots)
        self._heartbeats.monitor(resource_id, gateway.heartbeat_from_resource_manager)
        self._assign()

    def heartbeat_from_task_manager(self, resource_id: str) -> None:
        """Record an executor's sign of life."""
        self._heartbeats.heard_from(resource_id)

    def notify_slot_available(self, resource_id: str, slot_index: int) -> None:
        """Record that a slot of an executor is free again."""
        executor = self._executors.get(resource_id)
        if executor is not None and executor.slots[slot_index] is not None:
            executor.slots[slot_index] = None
            self._assign()

    def disconnect_task_manager(self, resource_id: str, cause: BaseException) -> None:
        """Remove an executor."""
        executor = self._executors.pop(resource_id, None)
        if executor is None:
            return
        self._event_log.add("resource manager", f"{resource_id} is gone: {cause}")
        self._heartbeats.unmonitor(resource_id)
        for job_id in dict.fromkeys(job_id for job_id in executor.slots if job_id is not None):
            if job_id in self._jobs:
                self._jobs[job_id].master.disconnect_task_manager(resource_id, cause)
        self._assign()

    # -- jobs ----------------------------------------------------------------------------------------------

    def register_job_master(self, job_master: JobMasterGateway) -> None:
        self._event_log.add("resource manager", f"the master of job {job_master.job_id} registers")
        self._jobs[job_master.job_id] = _Job(job_master)

    def declare_required_resources(self, job_id: str, slots: int) -> None:
        job = self._jobs.get(job_id)
        if job is not None:
            job.required = slots
            if job.refused is not None and slots < job.refused:
                job.refused = None
            self._assign()

    def disconnect_job_master(self, job_id: str) -> None:
        """Forget a job; its slots become free as its master returns them."""
        self._jobs.pop(job_id, None)

    # -- matching ------------------------------------------------------------------------------------------

    def _started_up(self) -> None:
        self._is_started_up = True
        self._assign()

    def _assign(self) -> None:
        for job_id, job in list(self._jobs.items()):
            given = self.slots_of(job_id)
            while given < job.required and self._give_slot(job_id):
                given += 1
            if given < job.required and self._is_started_up and job.refused != job.required:
                job.refused = job.required
                self._event_log.add("resource manager", f"job {job_id} requires {job.required} slots and gets {given}")
                self._main_thread.execute(partial(job.master.notify_not_enough_resources, given))

    def _give_slot(self, job_id: str) -> bool:
        with_free = [resource_id for resource_id, executor in self._executors.items() if executor.n_free]
        if not with_free:
            return False
        chosen = with_free[0]
        if self._evenly_spread:
            chosen = max(with_free, key=lambda resource_id: self._executors[resource_id].n_free)
        executor = self._executors[chosen]
        slot_index = executor.slots.index(None)
        executor.slots[slot_index] = job_id
        allocation_id = f"allocation-{next(self._allocation_numbers)}"
        self._event_log.add("resource manager", f"asks {chosen} to offer slot {slot_index} as {allocation_id}")
        executor.gateway.request_slot(slot_index, job_id, allocation_id)
        return True
