"""Runs one job on a virtual cluster, from start to end (for `flinkmagic simulate` and `%flinksim`)."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Any

import numpy as np

from flinkmagic.graph.execution_config import InputDependencyConstraint
from flinkmagic.graph.execution_graph import ExecutionGraph
from flinkmagic.graph.execution_state import ExecutionState
from flinkmagic.graph.job_graph import JobGraph
from flinkmagic.scheduling.execution_graph_info import ExecutionGraphInfo
from flinkmagic.scheduling.job_event_log import JobEvent
from flinkmagic.scheduling.job_manager_runner import OnCompletion
from flinkmagic.scheduling.job_master import JobMaster
from flinkmagic.scheduling.job_status import JobListener, JobStatus
from flinkmagic.scheduling.recovery.job_graph_store import StoredJob
from flinkmagic.scheduling.recovery.job_journal import JobJournal
from flinkmagic.scheduling.slots.physical_slot_provider import PhysicalSlotProvider
from flinkmagic.simulation.fault_injector import FaultInjector
from flinkmagic.simulation.faults import Fault
from flinkmagic.simulation.leading_scheduler import LeadingScheduler
from flinkmagic.simulation.options import SimulationOptions
from flinkmagic.simulation.task_times import SampledTaskTimes
from flinkmagic.simulation.timeline import Timeline, timeline_of
from flinkmagic.simulation.virtual_cluster import VirtualCluster

_CREATED = ExecutionState.CREATED.value
_TERMINAL = tuple(state.value for state in ExecutionState if state.is_terminal)


@dataclass(frozen=True)
class SimulationResult:
    """The outcome of the job."""

    status: JobStatus
    """RUNNING if it got stuck: regions that wait for each other, as they do in Flink."""
    timeline: Timeline
    info: ExecutionGraphInfo
    events: tuple[JobEvent, ...]
    injected: tuple[tuple[Fault, str], ...]

    @property
    def is_stuck(self) -> bool:
        """Whether nothing happened any more although the job was not over."""
        return not self.status.is_terminal

    def to_json(self) -> dict[str, Any]:
        """Return the result as plain data."""
        graph = self.info.archived_execution_graph
        states = [graph.state_of(vertex).name for vertex in range(graph.n_vertices)]
        return {
            **self.timeline.to_json(),
            "stuck": self.is_stuck,
            "failure": None if self.info.failure_cause is None else str(self.info.failure_cause),
            "faults": [what for _, what in self.injected],
            "final_states": {
                graph.execution_vertex(vertex).task_name_with_attempt: state for vertex, state in enumerate(states)
            },
        }


class Simulation:
    """Runs one job with a dispatcher, a job master, a resource manager and executors on virtual time.

    The same job with the same options yields the same events in the same order.

    Parameters
    ----------
    job_graph : JobGraph
        Gets an execution graph of its own.
    """

    STALL_MS = 60_000.0
    """A job in which nothing is under way for this long is stuck, unless the driver is busy."""

    def __init__(self, job_graph: JobGraph, options: SimulationOptions, listeners: Sequence[JobListener] = ()) -> None:
        self.options = options
        self.execution_graph = ExecutionGraph(job_graph)
        waits_for_any = options.input_dependency is InputDependencyConstraint.ANY
        times = SampledTaskTimes(self.execution_graph, options, waits_for_any=waits_for_any)
        self.cluster = VirtualCluster(times, options)
        self.injector = FaultInjector(self.cluster, options.faults)
        self.scheduler: LeadingScheduler
        self.job_master: JobMaster
        self.is_over = False
        self.main_thread = self.cluster.main_thread
        self.event_log = self.cluster.event_log
        self._listeners = (*listeners, self.injector)

    # -- JobMasterServiceFactory -------------------------------------------------------------------------

    def create_job_master_service(
        self,
        former: StoredJob | None,
        journal: JobJournal | None,
        listeners: Sequence[JobListener],
        on_over: OnCompletion,
    ) -> JobMaster:
        """Make the job's master."""
        self.job_master = self.cluster.add_job_master(
            self.execution_graph,
            self._make_scheduler,
            listeners=(*listeners, *self._listeners),
            on_over=on_over,
        )
        return self.job_master

    def _make_scheduler(
        self, slot_provider: PhysicalSlotProvider, listeners: Sequence[JobListener]
    ) -> LeadingScheduler:
        options = self.options
        self.scheduler = LeadingScheduler(
            self.execution_graph,
            lead_ms=options.lead_ms,
            main_thread=self.main_thread,
            clock=self.cluster.clock,
            slot_provider=slot_provider,
            restart_strategy=options.restart_strategy(self.cluster.clock, random.Random(f"restart/{options.seed}")),
            failover_strategy=options.failover_strategy,
            input_dependency=options.input_dependency,
            listeners=listeners,
            event_log=self.event_log,
        )
        return self.scheduler

    def run(self, after_event: Callable[[], None] = lambda: None) -> SimulationResult:
        """Run to the end, or until nothing happens any more; `after_event` is called after each event."""
        for number in range(1, self.options.task_managers + 1):
            self.cluster.add_executor(f"tm-{number}", self.options.slots, is_old=True)
        self.cluster.dispatcher.submit_job(self).add_done_callback(self._over)
        self.injector.start(self.job_master)
        if self.options.endless:
            self.main_thread.schedule(self.job_master.cancel, self.options.run_for_ms)
        while not self.is_over and not self._is_stuck() and self.main_thread.run_next():
            after_event()
        return self._result()

    def _over(self, result: Future[JobStatus]) -> None:
        self.is_over = True

    def _is_stuck(self) -> bool:
        stall_ms = self.STALL_MS + max(self.options.lead_ms.values(), default=0.0)
        if self.cluster.clock.now_ms() - self.injector.last_change_ms < stall_ms:
            return False
        states = self.execution_graph.state
        is_idle = not np.any((states != _CREATED) & ~np.isin(states, _TERMINAL))
        return is_idle and self.scheduler.job_status is JobStatus.RUNNING

    def _result(self) -> SimulationResult:
        info = self.scheduler.request_job()
        end_ms = info.ended_ms if info.job_status.is_terminal else self.injector.last_change_ms
        if info.job_status is JobStatus.FINISHED:
            end_ms += self.options.tail_ms
        return SimulationResult(
            status=info.job_status,
            timeline=timeline_of(
                info,
                end_ms=end_ms,
                slot_of_allocation=self.cluster.slot_of_allocation,
                slots=self.cluster.started_slots,
            ),
            info=info,
            events=self.event_log.events(),
            injected=tuple(self.injector.injected),
        )


def simulate(job_graph: JobGraph, options: SimulationOptions | None = None) -> SimulationResult:
    """Run a job on a virtual cluster."""
    return Simulation(job_graph, options or SimulationOptions()).run()
