"""A streaming query as the tasks of one region: what the scheduler asks of them, and what becomes of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import count
from typing import TYPE_CHECKING, Any

from flinkmagic.graph.execution_state import ExecutionState
from flinkmagic.scheduling.completable_future import CompletableFuture
from flinkmagic.scheduling.slots.physical_slot_provider import PhysicalSlot, PhysicalSlotRequest
from flinkmagic.scheduling.slots.resource_gateways import SlotOffer
from flinkmagic.scheduling.task_executor_gateway import (
    ResultPartitionID,
    TaskDeploymentDescriptor,
    TaskExecutorGateway,
)

if TYPE_CHECKING:
    from flinkmagic.deployment.streaming.query_run import QueryRun
    from flinkmagic.graph.execution import ExecutionAttemptID

SESSION = "session"
"""The one executor of a streaming job: Spark places the tasks of each batch itself."""

Report = Callable[["ExecutionAttemptID", ExecutionState, "BaseException | None"], None]


class QueryTasks:
    """The tasks of one query; on the main thread.

    They begin together, when all have been submitted: the query starts then. They end together.

    Parameters
    ----------
    vertices : sequence of int
        The execution vertices; the last one is a task of the sink, the first to fail if the query does.
    start : callable
        Starts the query; is given what to call, on the main thread, when it has started, and when it has ended.
    report : callable
        Takes an attempt's state, and the error if it failed.
    """

    def __init__(self, vertices: Sequence[int], start: Callable[[QueryTasks], QueryRun], report: Report) -> None:
        self._vertices = frozenset(vertices)
        self._start = start
        self._report = report
        self._attempts: dict[int, ExecutionAttemptID] = {}
        self._canceled: set[ExecutionAttemptID] = set()
        self._run: QueryRun | None = None

    @property
    def is_running(self) -> bool:
        """Whether the query has been started, and has not ended."""
        return self._run is not None

    def submit(self, vertex: int, attempt: ExecutionAttemptID) -> None:
        """Take a task; start the query with the last one."""
        self._attempts[vertex] = attempt
        if self._attempts.keys() == self._vertices:
            self._run = self._start(self)

    def cancel(self, attempt: ExecutionAttemptID) -> None:
        """Stop the query, or forget a task of one that has not been started."""
        known = next((vertex for vertex, other in self._attempts.items() if other == attempt), None)
        if known is not None and self._run is not None:
            self._canceled.add(attempt)
            self._run.stop()
            return
        self._attempts.pop(known if known is not None else -1, None)
        self._report(attempt, ExecutionState.CANCELED, None)

    def started(self) -> None:
        """Note that the query runs."""
        for state in (ExecutionState.INITIALIZING, ExecutionState.RUNNING):
            for attempt in self._attempts.values():
                if attempt not in self._canceled:
                    self._report(attempt, state, None)

    def ended(self, error: BaseException | None) -> None:
        """Note the end of the query."""
        attempts, canceled, self._attempts, self._canceled = self._attempts, self._canceled, {}, set()
        self._run = None
        # Where subtasks exchange nothing, a query is several regions: each must fail to be restarted with the others.
        for vertex in sorted(attempts, reverse=True):
            if attempts[vertex] in canceled:
                self._report(attempts[vertex], ExecutionState.CANCELED, None)
            elif error is not None:
                self._report(attempts[vertex], ExecutionState.FAILED, error)
            else:
                self._report(attempts[vertex], ExecutionState.FINISHED, None)


class SessionExecutor:
    """The executor that runs all tasks of a streaming job (`TaskExecutorGateway`): passes them to their queries."""

    resource_id = SESSION

    def __init__(self, query_of: Mapping[int, QueryTasks], later: Callable[[Callable[[], None]], object]) -> None:
        self._query_of = query_of
        self._later = later
        self._vertex_of: dict[ExecutionAttemptID, int] = {}

    def submit_task(self, descriptor: TaskDeploymentDescriptor, timeout_ms: float) -> None:
        vertex, attempt = descriptor.vertex, descriptor.attempt_id
        self._vertex_of[attempt] = vertex
        self._later(lambda: self._query_of[vertex].submit(vertex, attempt))

    def cancel_task(self, attempt_id: ExecutionAttemptID, timeout_ms: float) -> None:
        vertex = self._vertex_of[attempt_id]
        self._later(lambda: self._query_of[vertex].cancel(attempt_id))

    def free_slot(self, allocation_id: str, cause: BaseException | None) -> None:
        """Do nothing: Spark's cores are Spark's."""

    def release_partitions(self, job_id: str, partition_ids: Sequence[ResultPartitionID]) -> None:
        """Do nothing: what a batch has shuffled goes with the batch."""

    def heartbeat_from_job_manager(self, job_id: str) -> None:
        """Do nothing: the driver is not watched by itself."""


class SessionSlotPool:
    """Gives each task its slot immediately (`SlotPoolService`): Spark makes those wait that find no core.

    Parameters
    ----------
    executor : TaskExecutorGateway
        Runs the tasks.
    is_idle : callable
        Whether no query runs.
    """

    required = 0

    def __init__(self, executor: TaskExecutorGateway, is_idle: Callable[[], bool]) -> None:
        self._executor = executor
        self._is_idle = is_idle
        self._numbers = count()
        self._closing: CompletableFuture[None] | None = None

    def allocate_physical_slots(self, requests: Sequence[PhysicalSlotRequest]) -> None:
        for request in requests:
            number = next(self._numbers)
            request.slot_future.complete(PhysicalSlot(f"{SESSION}_{number}", SESSION, number, self._executor))

    def cancel_slot_request(self, slot_request_id: str, cause: BaseException | None) -> None:
        """Do nothing: each was fulfilled."""

    def free_slot(self, allocation_id: str, cause: BaseException | None) -> None:
        """Do nothing: no slot is given a second time."""

    def offer_slots(self, offers: Sequence[SlotOffer], resource_id: str, gateway: Any) -> list[SlotOffer]:
        """Take none."""
        return []

    def fail_allocation(self, allocation_id: str) -> bool:
        """Return False: no slot is lost before the session is."""
        return False

    def release_task_manager(self, resource_id: str, cause: BaseException) -> bool:
        """Return False: executors' losses are Spark's to mend."""
        return False

    def notify_not_enough_resources(self, acquired: int) -> None:
        """Do nothing."""

    def close_async(self) -> CompletableFuture[None]:
        """Return what is done when no query runs."""
        self._closing = CompletableFuture()
        self.query_ended()
        return self._closing

    def query_ended(self) -> None:
        """Note that one may have been the last."""
        if self._closing is not None and not self._closing.is_done and self._is_idle():
            self._closing.complete(None)
