"""Simulates executors, a resource manager and a network, all on virtual time."""

from __future__ import annotations

import random
from collections.abc import Sequence

from flinkmagic.errors.scheduling import TaskExecutorLostError
from flinkmagic.graph.execution_graph import ExecutionGraph
from flinkmagic.scheduling.clock import ManualClock
from flinkmagic.scheduling.dispatcher import Dispatcher
from flinkmagic.scheduling.execution_graph_info import ExecutionGraphInfo
from flinkmagic.scheduling.heartbeat import HeartbeatOptions
from flinkmagic.scheduling.job_event_log import JobEventLog
from flinkmagic.scheduling.job_manager_runner import OnCompletion
from flinkmagic.scheduling.job_master import JobMaster
from flinkmagic.scheduling.job_status import JobListener
from flinkmagic.scheduling.main_thread import ManualMainThreadExecutor
from flinkmagic.scheduling.slot_pool_service import (
    DefaultSlotPoolServiceSchedulerFactory,
    SchedulerNGFactory,
)
from flinkmagic.scheduling.slots.resource_gateways import JobMasterGateway
from flinkmagic.scheduling.slots.resource_manager import ResourceManager
from flinkmagic.simulation.options import SimulationOptions
from flinkmagic.simulation.rpc import Channel
from flinkmagic.simulation.shuffle_environment import ShuffleEnvironment
from flinkmagic.simulation.simulated_task_executor import SimulatedTaskExecutor
from flinkmagic.simulation.task_times import SampledTaskTimes


class VirtualCluster:
    """A session cluster: its executors exist before any job, and its resource manager knows them."""

    def __init__(self, times: SampledTaskTimes, options: SimulationOptions) -> None:
        self.clock = ManualClock()
        self.main_thread = ManualMainThreadExecutor(self.clock)
        self.event_log = JobEventLog(self.clock)
        self.dispatcher = Dispatcher()
        self.shuffle = ShuffleEnvironment()
        self.executors: dict[str, SimulatedTaskExecutor] = {}
        self.job_masters: dict[str, JobMasterGateway] = {}
        self.slot_of_allocation: dict[str, int] = {}
        """The number of the slot of each allocation that ever existed."""
        self.started_slots: dict[tuple[str, int], None] = {}
        """All slots that ever existed, as (executor, number)."""
        self._times = times
        self._options = options
        self._random = random.Random(f"network/{options.seed}")
        self._heartbeat = HeartbeatOptions(options.heartbeat_interval_ms, options.heartbeat_timeout_ms)
        self.resource_manager = ResourceManager(
            clock=self.clock,
            main_thread=self.main_thread,
            event_log=self.event_log,
            evenly_spread=options.evenly_spread,
            start_up_ms=options.slot_timeout_ms,
            heartbeat=self._heartbeat,
        )

    def add_job_master(
        self,
        execution_graph: ExecutionGraph,
        scheduler_factory: SchedulerNGFactory,
        *,
        listeners: Sequence[JobListener],
        on_over: OnCompletion,
    ) -> JobMaster:
        """Make a job's master, which executors know until the job is over."""
        options = self._options

        def over(info: ExecutionGraphInfo) -> None:
            del self.job_masters[execution_graph.job_id]
            on_over(info)

        factory = DefaultSlotPoolServiceSchedulerFactory(
            self.main_thread, self.clock, self.event_log, scheduler_factory,
            slot_request_timeout_ms=options.slot_timeout_ms, batch_slot_timeout_ms=options.slot_timeout_ms,
        )  # fmt: skip
        master = self.job_masters[execution_graph.job_id] = JobMaster(
            execution_graph,
            main_thread=self.main_thread,
            clock=self.clock,
            factory=factory,
            resource_manager=self.resource_manager,
            event_log=self.event_log,
            heartbeat=self._heartbeat,
            listeners=listeners,
            on_over=over,
        )
        return master

    def add_executor(self, resource_id: str, slots: int, *, is_old: bool = False) -> SimulatedTaskExecutor:
        """Start an executor; it registers by itself. An old one did so long ago."""
        executor = SimulatedTaskExecutor(
            resource_id,
            slots,
            main_thread=self.main_thread,
            channel=self._channel,
            shuffle=self.shuffle,
            times=self._times,
            find_job_master=self.job_masters.get,
            resource_manager=self.resource_manager,
            slot_of_allocation=self.slot_of_allocation,
        )
        self.started_slots.update(dict.fromkeys((resource_id, slot) for slot in range(slots)))
        self.executors[resource_id] = executor
        if is_old:
            self.resource_manager.register_task_executor(resource_id, executor, slots)
        else:
            executor.start()
        return executor

    def kill_executor(self, resource_id: str) -> None:
        """Kill an executor; those connected to it notice as their connections break."""
        executor = self.executors.pop(resource_id)
        executor.die()
        error = TaskExecutorLostError(resource_id, "its connection is closed")
        self._channel().send(lambda: self._notice(resource_id, executor, error))

    def _notice(self, resource_id: str, executor: SimulatedTaskExecutor, error: BaseException) -> None:
        if self.executors.get(resource_id, executor) is executor:
            self.resource_manager.disconnect_task_manager(resource_id, error)
        for master in list(self.job_masters.values()):
            master.disconnect_task_manager(resource_id, error)

    def silence_executor(self, resource_id: str) -> None:
        """Cut an executor off; only its silence reveals it."""
        self.executors.pop(resource_id).fall_silent()

    def _channel(self) -> Channel:
        return Channel(self.main_thread, self.clock.now_ms, self._options.latency_ms, self._random)
