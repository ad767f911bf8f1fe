"""Requirements against registered executors, signs of life, and a job master between the two."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import pytest

from flinkmagic.errors.scheduling import TaskExecutorLostError
from flinkmagic.graph.execution_graph import ExecutionGraph
from flinkmagic.graph.execution_state import ExecutionState as S
from flinkmagic.scheduling.clock import ManualClock
from flinkmagic.scheduling.default_scheduler import DefaultScheduler
from flinkmagic.scheduling.heartbeat import HeartbeatManager, HeartbeatOptions
from flinkmagic.scheduling.job_event_log import JobEventLog
from flinkmagic.scheduling.job_master import JobMaster
from flinkmagic.scheduling.job_status import JobStatus
from flinkmagic.scheduling.main_thread import ManualMainThreadExecutor
from flinkmagic.scheduling.slot_pool_service import DefaultSlotPoolServiceSchedulerFactory
from flinkmagic.scheduling.slots.resource_gateways import SlotOffer
from flinkmagic.scheduling.slots.resource_manager import ResourceManager
from flinkmagic.scheduling.task_executor_gateway import TaskDeploymentDescriptor, TaskExecutionStateTransition
from tests.virtual_time import run_until


def free_slots(manager: ResourceManager) -> int:
    """How many slots of the registered executors are given to no job."""
    return sum(executor.n_free for executor in manager._executors.values())


class Master:
    """Notes what the resource manager says."""

    def __init__(self, job_id: str = "job") -> None:
        self.job_id = job_id
        self.gone: list[str] = []
        self.told: list[int] = []

    def disconnect_task_manager(self, resource_id: str, cause: BaseException) -> None:
        self.gone.append(resource_id)

    def notify_not_enough_resources(self, acquired: int) -> None:
        self.told.append(acquired)


class Executor:
    """Offers the slots that it is asked for, and answers heartbeats while it lives."""

    def __init__(self, cluster: Cluster, resource_id: str) -> None:
        self.cluster = cluster
        self.resource_id = resource_id
        self.requested: list[tuple[int, str, str]] = []
        self.freed: list[str] = []
        self.submitted: list[TaskDeploymentDescriptor] = []
        self.lives = True
        self.master: JobMaster | None = None

    def request_slot(self, slot_index: int, job_id: str, allocation_id: str) -> None:
        self.requested.append((slot_index, job_id, allocation_id))
        if self.master is not None:
            self.cluster.main_thread.execute(partial(self._offer, self.master, slot_index, allocation_id))

    def _offer(self, master: JobMaster, slot_index: int, allocation_id: str) -> None:
        master.register_task_manager(self.resource_id, self)
        master.offer_slots(self.resource_id, [SlotOffer(allocation_id)])

    def free_slot(self, allocation_id: str) -> None:
        self.freed.append(allocation_id)
        index = next(index for index, _, requested in self.requested if requested == allocation_id)
        self.cluster.manager.notify_slot_available(self.resource_id, index)

    def heartbeat_from_resource_manager(self) -> None:
        if self.lives:
            self.cluster.manager.heartbeat_from_task_manager(self.resource_id)

    def heartbeat_from_job_manager(self, job_id: str) -> None:
        if self.lives and self.master is not None:
            self.master.heartbeat_from_task_manager(self.resource_id)

    def submit_task(self, descriptor: TaskDeploymentDescriptor) -> None:
        self.submitted.append(descriptor)

    def cancel_task(self, attempt_id: object) -> None: ...

    def release_partitions(self, job_id: str, partition_ids: Sequence[object]) -> None: ...


class Cluster:
    def __init__(self, **options: object) -> None:
        self.clock = ManualClock()
        self.main_thread = ManualMainThreadExecutor(self.clock)
        self.log = JobEventLog(self.clock)
        settings = {"start_up_ms": 1_000.0, "heartbeat": HeartbeatOptions(100.0, 500.0), **options}
        self.manager = ResourceManager(
            clock=self.clock,
            main_thread=self.main_thread,
            event_log=self.log,
            **settings,  # type: ignore[arg-type]
        )

    def executor(self, resource_id: str, slots: int) -> Executor:
        executor = Executor(self, resource_id)
        self.manager.register_task_executor(resource_id, executor, slots)
        return executor


def test_executors_are_filled_in_the_order_of_registration() -> None:
    cluster = Cluster()
    first, second = cluster.executor("tm-1", 2), cluster.executor("tm-2", 2)
    cluster.manager.register_job_master(Master())
    cluster.manager.declare_required_resources("job", 3)
    assert [index for index, _, _ in first.requested] == [0, 1]
    assert [index for index, _, _ in second.requested] == [0]
    assert (free_slots(cluster.manager), cluster.manager.slots_of("job")) == (1, 3)


def test_executors_are_filled_evenly_where_that_is_wanted() -> None:
    cluster = Cluster(evenly_spread=True)
    first, second = cluster.executor("tm-1", 2), cluster.executor("tm-2", 2)
    cluster.manager.register_job_master(Master())
    cluster.manager.declare_required_resources("job", 2)
    assert (len(first.requested), len(second.requested)) == (1, 1)


def test_executors_that_come_later_get_what_is_still_required() -> None:
    cluster = Cluster()
    cluster.manager.register_job_master(Master())
    cluster.manager.declare_required_resources("job", 1)
    late = cluster.executor("tm-1", 2)
    assert len(late.requested) == 1


def test_a_free_slot_serves_the_next_job() -> None:
    cluster = Cluster()
    executor = cluster.executor("tm-1", 1)
    cluster.manager.register_job_master(Master("first"))
    cluster.manager.register_job_master(Master("second"))
    cluster.manager.declare_required_resources("first", 1)
    cluster.manager.declare_required_resources("second", 1)
    assert [job for _, job, _ in executor.requested] == ["first"]
    cluster.manager.declare_required_resources("first", 0)
    executor.free_slot(executor.requested[0][2])
    assert [job for _, job, _ in executor.requested] == ["first", "second"]


def test_a_master_is_told_once_that_there_is_not_enough_and_not_before_the_start_is_over() -> None:
    cluster = Cluster()
    cluster.executor("tm-1", 1).lives = True
    master = Master()
    cluster.manager.register_job_master(master)
    cluster.manager.declare_required_resources("job", 3)
    run_until(cluster.main_thread, 900.0)
    assert master.told == []
    run_until(cluster.main_thread, 2_000.0)
    assert master.told == [1]
    cluster.manager.declare_required_resources("job", 4)
    run_until(cluster.main_thread, 2_100.0)
    assert master.told == [1, 1]


def test_a_silent_executor_is_struck_out_and_masters_are_told() -> None:
    cluster = Cluster()
    alive, silent = cluster.executor("tm-1", 1), cluster.executor("tm-2", 1)
    master = Master()
    cluster.manager.register_job_master(master)
    cluster.manager.declare_required_resources("job", 2)
    run_until(cluster.main_thread, 450.0)
    silent.lives = False
    run_until(cluster.main_thread, 800.0)
    assert master.gone == []
    run_until(cluster.main_thread, 1_100.0)
    assert master.gone == ["tm-2"]
    assert "tm-2" not in cluster.manager._executors
    assert alive.lives


def test_an_executor_that_registers_again_replaces_itself() -> None:
    cluster = Cluster()
    cluster.executor("tm-1", 2)
    master = Master()
    cluster.manager.register_job_master(master)
    cluster.manager.declare_required_resources("job", 1)
    cluster.executor("tm-1", 3)
    assert master.gone == ["tm-1"]
    assert (free_slots(cluster.manager), cluster.manager.slots_of("job")) == (2, 1)


def test_heartbeats_are_asked_for_and_their_absence_is_noticed_once() -> None:
    clock = ManualClock()
    main_thread = ManualMainThreadExecutor(clock)
    silent: list[tuple[str, BaseException]] = []
    asked: list[float] = []
    heartbeats = HeartbeatManager(clock, main_thread, HeartbeatOptions(10.0, 35.0), lambda *lost: silent.append(lost))
    heartbeats.monitor("target", lambda: asked.append(clock.now_ms()))
    run_until(main_thread, 20.0)
    heartbeats.heard_from("target")
    run_until(main_thread, 200.0)
    assert asked == [10.0, 20.0, 30.0, 40.0, 50.0]
    assert [(target, str(cause)) for target, cause in silent] == [
        ("target", str(TaskExecutorLostError("target", "no sign of life for 35 ms")))
    ]
    heartbeats.heard_from("target")  # too late
    assert main_thread.next_due_ms == float("inf")


# The job master between scheduler and resource manager


class Job(Cluster):
    def __init__(self, job_graph: object, **options: object) -> None:
        super().__init__()
        self.ended: list[JobStatus] = []
        graph = ExecutionGraph(job_graph)  # type: ignore[arg-type]
        factory = DefaultSlotPoolServiceSchedulerFactory(
            self.main_thread, self.clock, self.log,
            lambda provider, listeners: DefaultScheduler(
                graph,
                main_thread=self.main_thread,
                clock=self.clock,
                slot_provider=provider,
                listeners=listeners,
                event_log=self.log,
            ),
            **options,  # type: ignore[arg-type]
        )  # fmt: skip
        self.master = JobMaster(
            graph,
            main_thread=self.main_thread,
            clock=self.clock,
            factory=factory,
            resource_manager=self.manager,
            event_log=self.log,
            heartbeat=HeartbeatOptions(100.0, 500.0),
            on_over=lambda info: self.ended.append(info.job_status),
        )

    def executor(self, resource_id: str, slots: int) -> Executor:
        executor = Executor(self, resource_id)
        executor.master = self.master
        self.manager.register_task_executor(resource_id, executor, slots)
        return executor

    def settle(self) -> None:
        self.main_thread.run_ready()

    def finish(self, executor: Executor) -> None:
        for descriptor in list(executor.submitted):
            for state in (S.INITIALIZING, S.RUNNING, S.FINISHED):
                self.master.update_task_execution_state(TaskExecutionStateTransition(descriptor.attempt_id, state))
        self.settle()


STAGES = [("map", 2, ()), ("sink", 2, ("map:hash",))]


def test_the_chain_from_requirement_to_deployment_is_in_the_log(job) -> None:
    j = Job(job(STAGES, batch=False))
    executor = j.executor("tm-1", 2)
    j.master.start()
    j.settle()
    assert [descriptor.task_name for descriptor in executor.submitted] == [
        "Source: map (1/2)", "Source: map (2/2)", "Sink: sink (1/2)", "Sink: sink (2/2)",
    ]  # fmt: skip
    told = [f"{event.source}: {event.text}" for event in j.log.events()]
    chain = [
        "slot pool: declare 2 required slots",
        "resource manager: asks tm-1 to offer slot 0 as allocation-0",
        "slot pool: accept 1 of 1 slots of tm-1",
        "slot pool: slot-request-0 gets allocation-0",
        "scheduler: deploy Source: map (1/2) in allocation-0 on tm-1",
    ]
    assert [told.index(line) for line in chain] == sorted(told.index(line) for line in chain)


def test_everything_is_given_back_when_the_job_is_over(job) -> None:
    j = Job(job(STAGES, batch=False))
    executor = j.executor("tm-1", 2)
    j.master.start()
    j.settle()
    j.finish(executor)
    assert j.ended == [JobStatus.FINISHED]
    assert sorted(executor.freed) == ["allocation-0", "allocation-1"]
    assert free_slots(j.manager) == 2


def test_a_silent_executor_fails_what_runs_on_it(job) -> None:
    j = Job(job(STAGES, batch=False))
    executor = j.executor("tm-1", 2)
    j.master.start()
    j.settle()
    executor.lives = False
    run_until(j.main_thread, 1_000.0)
    cause = j.master.scheduler.request_job().failure_cause
    assert cause is not None
    assert isinstance(cause.__cause__, TaskExecutorLostError)
    assert j.ended == [JobStatus.FAILED]


def test_a_lost_slot_fails_what_runs_in_it(job) -> None:
    j = Job(job(STAGES, batch=False))
    j.executor("tm-1", 2)
    j.master.start()
    j.settle()
    j.master.fail_slot("tm-1", "allocation-0", OSError("broke"))
    assert "The slot allocation-0 on tm-1 is lost: broke" in str(j.master.scheduler.request_job().failure_cause)


def test_offers_of_strangers_and_after_the_end_are_declined(job) -> None:
    j = Job(job(STAGES, batch=False))
    executor = j.executor("tm-1", 2)
    j.master.start()
    assert j.master.offer_slots("tm-9", [SlotOffer("allocation-9")]) == []
    j.settle()
    j.finish(executor)
    assert j.master.offer_slots("tm-1", [SlotOffer("allocation-9")]) == []


@pytest.mark.parametrize(("batch", "message"), [(True, "1 slot together, and 0"), (False, "2 slots together, and 0")])
def test_a_job_without_slots_fails_with_what_it_needs(job, batch: bool, message: str) -> None:
    j = Job(job(STAGES, batch=batch), slot_request_timeout_ms=2_000.0, batch_slot_timeout_ms=2_000.0)
    j.master.start()
    run_until(j.main_thread, 10_000.0)
    assert j.ended == [JobStatus.FAILED]
    assert message in str(j.master.scheduler.request_job().failure_cause)


def test_regions_that_share_slots_wait_for_all_of_them_together(job) -> None:
    # The pipelined region shares the slots of the sources, which do not need them simultaneously; it does.
    red = {"slot_sharing_group": "red"}
    stages = [("a", 3, ()), ("b", 1, ()), ("c", 3, ("b:hash",)), ("d", 3, ("c:hash/PIPELINED",))]
    j = Job(job(stages, a=red, c=red, d=red), slot_request_timeout_ms=2_000.0)
    executor = j.executor("tm-1", 1)
    j.master.start()
    j.settle()
    for _ in range(4):
        j.finish(executor)
        executor.submitted.clear()
    run_until(j.main_thread, 10_000.0)
    assert j.ended == [JobStatus.FAILED]
    assert "needs 3 slots together, and 1 became available" in str(j.master.scheduler.request_job().failure_cause)
