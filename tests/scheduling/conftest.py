"""Jobs of a few lines, and a scheduler whose slots and tasks the test itself holds in hand."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest

from flinkmagic.graph.execution import ExecutionAttemptID
from flinkmagic.graph.execution_graph import ExecutionGraph
from flinkmagic.graph.execution_state import ExecutionState
from flinkmagic.graph.job_graph import JobGraph
from flinkmagic.graph.job_graph_generator import create_job_graph
from flinkmagic.graph.topology import make_environment
from flinkmagic.scheduling.clock import ManualClock
from flinkmagic.scheduling.default_scheduler import DefaultScheduler
from flinkmagic.scheduling.job_status import JobStatus
from flinkmagic.scheduling.main_thread import ManualMainThreadExecutor
from flinkmagic.scheduling.scheduler_validation import validate_scheduler
from flinkmagic.scheduling.slots.physical_slot_provider import PhysicalSlot, PhysicalSlotRequest
from flinkmagic.scheduling.task_executor_gateway import (
    ResultPartitionID,
    TaskDeploymentDescriptor,
    TaskExecutionStateTransition,
)
from tests.virtual_time import run_until

JOB_ID = "00000000000000000000000000000001"
S = ExecutionState


Stage = tuple[str, int, Sequence[str]]


def make_job(
    stages: Sequence[Stage], *, batch: bool = True, shuffle_mode: str | None = None, **extra: dict[str, Any]
) -> JobGraph:
    """Make a job of stages `(name, parallelism, inputs)`, unchained.

    An input is `name` (forward or rebalance, as Flink chooses), `name:hash` and the like, or `name:hash/PIPELINED`
    with an exchange mode. `extra` holds more fields for stages, by name.
    """
    transformations: list[dict[str, Any]] = []
    ids: dict[str, int] = {}
    used = {text.split(":")[0] for _, _, inputs in stages for text in inputs}
    for name, parallelism, inputs in stages:
        sources = []
        for text in inputs:
            source, _, exchange = text.partition(":")
            if not exchange:
                sources.append(ids[source])
                continue
            partitioner, _, mode = exchange.partition("/")
            number = len(transformations) + 1
            entry = {"id": number, "kind": "partition", "name": partitioner, "inputs": [ids[source]]}
            transformations.append({**entry, "partitioner": partitioner, "exchange_mode": mode or "UNDEFINED"})
            sources.append(number)
        kind = "source" if not inputs else "two_input" if len(inputs) == 2 else "one_input" if name in used else "sink"
        number = ids[name] = len(transformations) + 1
        entry = {"id": number, "kind": kind, "name": name, "inputs": sources, "parallelism": parallelism}
        transformations.append({**entry, **extra.get(name, {})})
    document = {
        "name": "job",
        "runtime_mode": "BATCH" if batch else "STREAMING",
        "chaining": False,
        "batch_shuffle_mode": shuffle_mode,
        "transformations": transformations,
    }
    return create_job_graph(make_environment(document).get_stream_graph(), JOB_ID)


class Bench:
    """A scheduler, its slot provider, its one task executor and its listener in one.

    With `auto_slots` requests are fulfilled immediately, else by `give_slot`. Tasks go nowhere unless told to.
    """

    def __init__(self, job_graph: JobGraph, *, auto_slots: bool = True, **options: Any) -> None:
        self.clock = ManualClock()
        self.main_thread = ManualMainThreadExecutor(self.clock)
        self.graph = ExecutionGraph(job_graph)
        self.resource_id = "tm-1"
        self.auto_slots = auto_slots
        self.requests: dict[str, PhysicalSlotRequest] = {}
        self.freed: list[str] = []
        self.submitted: list[TaskDeploymentDescriptor] = []
        self.canceled: list[ExecutionAttemptID] = []
        self.released: list[ResultPartitionID] = []
        self.calls: list[list[int]] = []
        self.statuses: list[JobStatus] = []
        self.refuse: Exception | None = None
        self.scheduler = DefaultScheduler(
            self.graph, main_thread=self.main_thread, clock=self.clock, slot_provider=self, listeners=(self,), **options
        )

    # The slot provider.

    def allocate_physical_slots(self, requests: Sequence[PhysicalSlotRequest]) -> None:
        for request in requests:
            self.requests[request.slot_request_id] = request
        if self.auto_slots:
            for request in requests:
                self.give_slot(request.slot_request_id)

    def give_slot(self, slot_request_id: str, resource_id: str | None = None) -> None:
        request = self.requests.pop(slot_request_id)
        name = f"slot-of-{slot_request_id}"
        request.slot_future.complete(PhysicalSlot(name, resource_id or self.resource_id, self))

    def cancel_slot_request(self, slot_request_id: str) -> None:
        del self.requests[slot_request_id]

    def free_slot(self, allocation_id: str) -> None:
        self.freed.append(allocation_id)

    # The gateway.

    def submit_task(self, descriptor: TaskDeploymentDescriptor) -> None:
        if self.refuse is not None:
            raise self.refuse
        self.submitted.append(descriptor)

    def cancel_task(self, attempt_id: ExecutionAttemptID) -> None:
        self.canceled.append(attempt_id)

    def release_partitions(self, job_id: str, partition_ids: Sequence[ResultPartitionID]) -> None:
        self.released += partition_ids

    def heartbeat_from_job_manager(self, job_id: str) -> None: ...

    # The listener.

    def on_job_status_changed(self, old: JobStatus, new: JobStatus, at_ms: float, cause: BaseException | None) -> None:
        self.statuses.append(new)

    def on_execution_state_changed(
        self, vertices: Sequence[int], state: ExecutionState, at_ms: float, error: BaseException | None
    ) -> None:
        if state is S.SCHEDULED:
            self.calls.append(list(vertices))

    # What a test does.

    def start(self) -> Bench:
        self.scheduler.start_scheduling()
        validate_scheduler(self.scheduler)
        return self

    def transition(
        self, vertex: int, state: ExecutionState, error: BaseException | None = None
    ) -> TaskExecutionStateTransition:
        return TaskExecutionStateTransition(self.scheduler.executions.attempt_id(vertex), state, error)

    def report(self, vertex: int, state: ExecutionState, error: BaseException | None = None) -> bool:
        taken = self.scheduler.update_task_execution_state(self.transition(vertex, state, error))
        validate_scheduler(self.scheduler)
        return taken

    def run(self, *vertices: int) -> None:
        for vertex in vertices:
            self.report(vertex, S.INITIALIZING)
            self.report(vertex, S.RUNNING)

    def finish(self, *vertices: int) -> None:
        for vertex in vertices:
            if self.state(vertex) is S.DEPLOYING:
                self.run(vertex)
            assert self.report(vertex, S.FINISHED)

    def fail(self, vertex: int, error: BaseException | None = None) -> None:
        self.report(vertex, S.FAILED, error or ValueError("broken"))

    def confirm_cancellations(self) -> None:
        """Let the executor stop all that it was told to stop."""
        while self.canceled:
            transition = TaskExecutionStateTransition(self.canceled.pop(0), S.CANCELED)
            self.scheduler.update_task_execution_state(transition)
            validate_scheduler(self.scheduler)

    def settle(self, ms: float = 0.0) -> None:
        """Run what is due, and what will be within so many milliseconds."""
        run_until(self.main_thread, self.clock.now_ms() + ms)
        validate_scheduler(self.scheduler)

    def take_calls(self) -> list[list[int]]:
        calls, self.calls = self.calls, []
        return calls

    def state(self, vertex: int) -> ExecutionState:
        return self.graph.state_of(vertex)

    def states(self) -> str:
        """One letter for each vertex: the first of its state's name, `x` for FAILED, `c` for CANCELED."""
        letters = {S.CREATED: ".", S.CANCELED: "c", S.CANCELING: "C", S.FAILED: "x", S.FINISHED: "F"}
        return "".join(letters.get(self.state(v), self.state(v).name[0]) for v in range(self.graph.n_vertices))

    @property
    def status(self) -> JobStatus:
        return self.scheduler.job_status


@pytest.fixture
def job() -> Callable[..., JobGraph]:
    return make_job


@pytest.fixture
def bench() -> Callable[..., Bench]:
    return Bench
