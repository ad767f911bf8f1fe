"""Submission, leadership, and jobs that go from one dispatcher to another."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import Future
from pathlib import Path
from typing import Any

import pytest
from filelock import FileLock

from flinkmagic.errors.job_store import JobLedElsewhereError, TornJournalError
from flinkmagic.graph.execution_graph import ExecutionGraph
from flinkmagic.graph.execution_state import ExecutionState as S
from flinkmagic.graph.job_graph import JobGraph
from flinkmagic.scheduling.clock import ManualClock
from flinkmagic.scheduling.default_scheduler import DefaultScheduler
from flinkmagic.scheduling.dispatcher import Dispatcher
from flinkmagic.scheduling.execution_graph_info import ExecutionGraphInfo
from flinkmagic.scheduling.failover.restart_strategy import FixedDelayRestartBackoffTimeStrategy
from flinkmagic.scheduling.job_event_log import JobEventLog
from flinkmagic.scheduling.job_manager_runner import JobMasterServiceProcess, OnCompletion
from flinkmagic.scheduling.job_status import JobListener, JobStatus
from flinkmagic.scheduling.main_thread import MainThreadExecutor, ManualMainThreadExecutor
from flinkmagic.scheduling.recovery.job_graph_store import JobGraphStore, StoredJob
from flinkmagic.scheduling.recovery.job_journal import JobJournal
from flinkmagic.scheduling.slots.physical_slot_provider import PhysicalSlot, PhysicalSlotRequest
from flinkmagic.scheduling.task_executor_gateway import (
    ResultPartitionID,
    TaskDeploymentDescriptor,
    TaskExecutionStateTransition,
)
from tests.virtual_time import run_until

JOB_ID = "00000000000000000000000000000001"
STAGES = [("map", 2, ()), ("reduce", 2, ("map:hash",)), ("sink", 1, ("reduce:hash",))]


class Service:
    """A job's master, reduced to a scheduler; its own slots and tasks (as a `JobMaster`)."""

    resource_id = "tm-1"

    def __init__(
        self,
        kernel: Kernel,
        graph: ExecutionGraph,
        listeners: Sequence[JobListener],
        on_over: OnCompletion,
    ) -> None:
        self.kernel = kernel
        self.graph = graph
        self.on_over = on_over
        self.submitted: list[TaskDeploymentDescriptor] = []
        self.scheduler = DefaultScheduler(
            graph, main_thread=kernel.main_thread, clock=kernel.clock, slot_provider=self,
            listeners=(*listeners, self), restart_strategy=FixedDelayRestartBackoffTimeStrategy(9, 0.0),
        )  # fmt: skip

    @property
    def job_id(self) -> str:
        return self.graph.job_id

    def request_job(self) -> ExecutionGraphInfo:
        return self.scheduler.request_job()

    def recover(self) -> None: ...

    def start(self) -> None:
        self.scheduler.start_scheduling()

    def cancel(self) -> None:
        self.scheduler.cancel()

    def suspend(self, cause: BaseException) -> None:
        self.scheduler.suspend(cause)

    def on_job_status_changed(self, old: JobStatus, new: JobStatus, at_ms: float, cause: BaseException | None) -> None:
        if new.is_terminal:
            self.kernel.main_thread.execute(lambda: self.on_over(self.request_job()))

    def on_execution_state_changed(self, *_: object) -> None: ...

    def allocate_physical_slots(self, requests: Sequence[PhysicalSlotRequest]) -> None:
        for request in requests:
            request.slot_future.complete(PhysicalSlot(request.slot_request_id, self.resource_id, self))

    def cancel_slot_request(self, slot_request_id: str) -> None: ...

    def free_slot(self, allocation_id: str) -> None: ...

    def submit_task(self, descriptor: TaskDeploymentDescriptor) -> None:
        self.submitted.append(descriptor)

    def cancel_task(self, attempt_id: object) -> None: ...

    def release_partitions(self, job_id: str, partition_ids: Sequence[ResultPartitionID]) -> None: ...

    def heartbeat_from_job_manager(self, job_id: str) -> None: ...

    def finish(self, *task_names: str) -> None:
        for descriptor in list(self.submitted):
            if descriptor.task_name in task_names:
                self.submitted.remove(descriptor)
                for state in (S.INITIALIZING, S.RUNNING, S.FINISHED):
                    self.scheduler.update_task_execution_state(
                        TaskExecutionStateTransition(descriptor.attempt_id, state)
                    )
                self.kernel.main_thread.run_ready()


class Kernel:
    """A process, but for being one."""

    def __init__(self, folder: Path) -> None:
        self.clock = ManualClock()
        self.main_thread: Any = ManualMainThreadExecutor(self.clock)
        self.uncaught: list[BaseException] = []
        self.log = JobEventLog(self.clock)
        self.services: list[Service] = []
        self.dispatcher = Dispatcher()
        self.folder = folder

    def submit(self, job_graph: JobGraph) -> Future[JobStatus]:
        result = self.dispatcher.submit_job(Submission(self, job_graph), JobGraphStore(self.folder))
        self.settle()
        return result

    def close(self) -> None:
        self.dispatcher.close()
        self.settle()

    @property
    def stored(self) -> StoredJob:
        return JobGraphStore(self.folder).read(JOB_ID)

    @property
    def service(self) -> Service:
        return self.services[-1]

    def settle(self, ms: float = 0.0) -> None:
        run_until(self.main_thread, self.clock.now_ms() + ms)


class Submission:
    """A job with its master (a `JobMasterServiceFactory`)."""

    def __init__(self, kernel: Kernel, job_graph: JobGraph) -> None:
        self.kernel = kernel
        self.execution_graph = ExecutionGraph(job_graph)
        self.main_thread, self.event_log = kernel.main_thread, kernel.log

    def create_job_master_service(
        self, former: StoredJob | None, journal: JobJournal | None, listeners: Sequence[JobListener],
        on_over: OnCompletion,
    ) -> Service:  # fmt: skip
        service = Service(self.kernel, self.execution_graph, listeners, on_over)
        self.kernel.services.append(service)
        return service


@pytest.fixture
def job_graph(job) -> JobGraph:
    return job(STAGES)


MAP = ("Source: map (1/2)", "Source: map (2/2)")
REDUCE = ("reduce (1/2)", "reduce (2/2)")
SINK = ("Sink: sink (1/1)",)


def test_a_submitted_job_is_kept_led_and_run(tmp_path: Path, job_graph: JobGraph) -> None:
    kernel = Kernel(tmp_path)
    result = kernel.submit(job_graph)
    kernel.settle()
    kernel.service.finish(*MAP)
    kernel.service.finish(*REDUCE)
    assert kernel.stored.status is JobStatus.RUNNING
    assert [(job.status, job.finished_tasks, job.tasks) for job in kernel.dispatcher.jobs()] == [
        (JobStatus.RUNNING, 4, 5)
    ]
    kernel.service.finish(*SINK)
    assert result.result(0) is JobStatus.FINISHED
    assert kernel.stored.is_over
    assert [(job.job_id, job.status, job.finished_tasks) for job in kernel.dispatcher.jobs()] == [
        (JOB_ID, JobStatus.FINISHED, 5)
    ]
    told = [event.text.split(" (")[0] for event in kernel.log.events() if event.source in ("dispatcher", "job manager")]
    assert told == [f"job {JOB_ID}", f"leads job {JOB_ID}"]


def test_a_job_that_was_over_begins_again_when_it_is_submitted_again(tmp_path: Path, job_graph: JobGraph) -> None:
    kernel = Kernel(tmp_path)
    for _ in range(2):
        result = kernel.submit(job_graph)
        for tasks in (MAP, REDUCE, SINK):
            kernel.settle()
            kernel.service.finish(*tasks)
        assert result.result(0) is JobStatus.FINISHED
    assert len(kernel.services) == 2
    assert len(kernel.dispatcher.jobs()) == 2


def test_a_suspended_job_is_taken_up_elsewhere(tmp_path: Path, job_graph: JobGraph) -> None:
    first = Kernel(tmp_path)
    result = first.submit(job_graph)
    first.settle()
    first.service.finish(*MAP)
    first.close()
    first.settle()
    assert result.result(0) is JobStatus.SUSPENDED
    assert first.stored.status is JobStatus.SUSPENDED
    second = Kernel(tmp_path)
    result = second.submit(job_graph)
    second.settle()
    assert [event.text for event in second.log.events() if "takes" in event.text] == [f"takes job {JOB_ID} up"]
    for tasks in (MAP, REDUCE, SINK):
        second.service.finish(*tasks)
    assert result.result(0) is JobStatus.FINISHED


def test_a_job_whose_journal_is_damaged_is_not_run(tmp_path: Path, job_graph: JobGraph) -> None:
    first = Kernel(tmp_path)
    first.submit(job_graph)
    first.settle()
    first.service.finish(*MAP)
    first.close()
    path = JobGraphStore(tmp_path).journal_path(JOB_ID)
    damaged = path.read_bytes().replace(b"RUNNING", b"RUNNINK")
    path.write_bytes(damaged)
    second = Kernel(tmp_path)
    result = second.submit(job_graph)
    second.settle()
    assert isinstance(result.exception(0), TornJournalError)
    assert second.services == []
    assert path.read_bytes() == damaged


def test_who_does_not_wait_is_told_that_the_job_is_led_elsewhere(tmp_path: Path, job_graph: JobGraph) -> None:
    first, second = Kernel(tmp_path), Kernel(tmp_path)
    first.submit(job_graph)
    result = second.submit(job_graph)
    assert isinstance(result.exception(0), JobLedElsewhereError)
    first.close()
    second.submit(job_graph)
    assert len(second.services) == 1
    second.close()


def test_a_second_submission_is_refused_and_leaves_the_first_one_listed(tmp_path: Path, job_graph: JobGraph) -> None:
    kernel = Kernel(tmp_path)
    first = kernel.submit(job_graph)
    assert isinstance(kernel.submit(job_graph).exception(0), JobLedElsewhereError)
    assert [job.status for job in kernel.dispatcher.jobs()] == [JobStatus.RUNNING]
    kernel.close()
    assert first.result(0) is JobStatus.SUSPENDED


def test_a_job_whose_journal_cannot_be_published_never_starts(
    tmp_path: Path, job_graph: JobGraph, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise OSError("no space left on device")

    kernel = Kernel(tmp_path)
    with monkeypatch.context() as full:
        full.setattr(JobJournal, "publish", refuse)
        assert isinstance(kernel.submit(job_graph).exception(0), OSError)
    assert kernel.service.scheduler.job_status is JobStatus.CREATED
    assert kernel.service.submitted == []
    kernel.submit(job_graph)
    assert len(kernel.service.submitted) == 2
    kernel.close()


def test_no_other_leads_before_the_master_has_ended(tmp_path: Path, job_graph: JobGraph) -> None:
    first, second = Kernel(tmp_path), Kernel(tmp_path)
    first.submit(job_graph)
    first.dispatcher.close()
    assert isinstance(second.submit(job_graph).exception(0), JobLedElsewhereError)
    first.settle()
    second.submit(job_graph)
    assert len(second.services) == 1
    second.close()


def test_a_job_on_a_thread_of_its_own_is_suspended_from_another(tmp_path: Path, job_graph: JobGraph) -> None:
    kernel = Kernel(tmp_path)
    kernel.main_thread = MainThreadExecutor("job", kernel.clock, kernel.uncaught.append)
    result = kernel.dispatcher.submit_job(Submission(kernel, job_graph), JobGraphStore(tmp_path))
    kernel.dispatcher.close()
    assert result.result(10) is JobStatus.SUSPENDED
    kernel.main_thread.stop()
    after = Kernel(tmp_path)
    after.submit(job_graph)
    assert len(after.services) == 1
    after.close()


def test_a_master_that_cannot_be_made_leaves_the_journal_as_it_was(
    tmp_path: Path, job_graph: JobGraph, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = Kernel(tmp_path)
    first.submit(job_graph)
    first.service.finish(*MAP)
    first.close()
    before = first.stored

    def fail(*_: object) -> None:
        raise OSError("no session")

    monkeypatch.setattr(Service, "__init__", fail)
    second = Kernel(tmp_path)
    assert isinstance(second.submit(job_graph).exception(0), OSError)
    assert second.stored == before
    with FileLock(tmp_path / f"{JOB_ID}.lock", timeout=0):
        pass


def test_an_interrupt_while_a_job_is_submitted_leaves_it_to_others(
    tmp_path: Path, job_graph: JobGraph, monkeypatch: pytest.MonkeyPatch
) -> None:
    kernel = Kernel(tmp_path)

    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as first:
        first.setattr(Service, "__init__", interrupt)
        with pytest.raises(KeyboardInterrupt):
            kernel.submit(job_graph)
    assert list(tmp_path.glob("*.journal")) == []
    kernel.submit(job_graph)
    assert len(kernel.services) == 1
    kernel.close()


def test_an_interrupt_after_the_master_was_started_suspends_it_first(
    tmp_path: Path, job_graph: JobGraph, monkeypatch: pytest.MonkeyPatch
) -> None:
    started = JobMasterServiceProcess.start

    def interrupted(process: JobMasterServiceProcess) -> None:
        started(process)
        raise KeyboardInterrupt

    monkeypatch.setattr(JobMasterServiceProcess, "start", interrupted)
    kernel = Kernel(tmp_path)
    kernel.main_thread = MainThreadExecutor("job", kernel.clock, kernel.uncaught.append)
    with pytest.raises(KeyboardInterrupt):
        kernel.dispatcher.submit_job(Submission(kernel, job_graph), JobGraphStore(tmp_path))
    assert kernel.service.scheduler.job_status is JobStatus.SUSPENDED
    assert [job.status for job in kernel.dispatcher.jobs()] == [JobStatus.SUSPENDED]
    kernel.main_thread.stop()
