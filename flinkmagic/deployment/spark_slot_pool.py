"""The slots of a job on Spark: when a vertex is submitted, and which launched task fulfils which request."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from flinkmagic.deployment.vertices.remade_run import RemadeRun
from flinkmagic.deployment.vertices.run_host import EndedRun
from flinkmagic.deployment.vertices.stage_members import StageMembers
from flinkmagic.deployment.vertices.stage_subtasks import StageSubtasks
from flinkmagic.deployment.vertices.vertex_run import VertexRun
from flinkmagic.graph.execution_graph import ExecutionGraph
from flinkmagic.graph.execution_job_vertex import ExecutionJobVertex
from flinkmagic.graph.execution_state import ExecutionState
from flinkmagic.scheduling.completable_future import CompletableFuture
from flinkmagic.scheduling.job_event_log import JobEventLog
from flinkmagic.scheduling.main_thread import ComponentMainThreadExecutor
from flinkmagic.scheduling.slots.physical_slot_provider import PhysicalSlot, PhysicalSlotRequest
from flinkmagic.scheduling.slots.resource_gateways import SlotOffer
from flinkmagic.scheduling.task_executor_gateway import TaskExecutorGateway

_FINISHED = ExecutionState.FINISHED.value


StartRegion = Callable[[dict[int, dict[int, PhysicalSlotRequest]]], list[VertexRun]]


class SparkSlotPool:
    """Asks Spark for tasks, and takes each launched task as a slot for the request of its subtask (`SlotPoolService`).

    It is not Flink's `DeclarativeSlotPool` because a slot of Spark's is a launched task. It is never idle, is never
    lent a second time, and only one request can use it. So there is no pool of free slots to match requests with: the
    offer names the subtask (`SlotOffer.vertex`). What is decided here instead is which vertices go to Spark:

    1. A request is for the execution vertices that run within one Spark task (`StageMembers`), and is fulfilled when
       Spark launches that task; `VertexRun` offers it then. "Vertex" below is the one that represents the stage.
    2. A vertex goes to Spark as one stage, and only when all of its unfinished subtasks are requested: Spark would run
       the others too.
    3. It goes when it is promised its first slot. Without a limit the session's slots are promised twice (at least
       `LEAST_PROMISES` of them), so that Spark always has tasks to launch next; with `slots` a vertex goes only if all
       of its tasks fit beside those already there, or if it is alone (a wider one runs in waves, and Spark may exceed
       the limit).
    4. Of several vertices that could go, the one with the longest remaining path goes first, then the first in program
       order. If the session is FIFO, Spark keeps this order among those that find the slots promised (`StageHost`):
       what fits simultaneously runs simultaneously anyway.
    5. A write that must run after an earlier one waits until that one is finished.
    6. The vertices of a pipelined region go to Spark together, as one job, and only when all slots that they need are
       free: Spark runs them simultaneously, and no two of their tasks in one slot. What is ready waits meanwhile,
       unless the session has too few slots for the region anyway: then the region waits until there are more.
    7. A request for an execution that replaces a lost one goes to the run in which Spark runs it again.

    Parameters
    ----------
    execution_graph : ExecutionGraph
        The job.
    main_thread : ComponentMainThreadExecutor
        The thread of decisions: after the call that asks, so that all that one event sets free is compared.
    start_run : callable
        Submits a vertex (by its index) with its requests.
    start_region : callable
        Submits the vertices of a pipelined region, that by whose handle it runs first, with their requests.
    session_slots : callable
        Returns how many slots the session has now.
    event_log : JobEventLog
        Where it logs what is required, and what goes to Spark.
    declare : callable
        Called with the number of slots that the job needs in all, when that has changed.
    slots : int, optional
        The limit.
    after : mapping of int to sequence of int
        By the index of a job vertex, those that must be finished before it is submitted.
    """

    LEAST_PROMISES = 16
    """Tasks of a small stage take some 10 ms, and it takes some 50 ms until the stage after it is with Spark."""

    def __init__(
        self,
        execution_graph: ExecutionGraph,
        *,
        main_thread: ComponentMainThreadExecutor,
        start_run: Callable[[int, dict[int, PhysicalSlotRequest]], VertexRun],
        start_region: StartRegion | None = None,
        session_slots: Callable[[], int],
        event_log: JobEventLog,
        declare: Callable[[int], None] = lambda _required: None,
        slots: int | None = None,
        after: Mapping[int, Sequence[int]] | None = None,
    ) -> None:
        self._graph = execution_graph
        self._main_thread = main_thread
        self._start_run = start_run
        self._start_region = start_region
        self._session_slots = session_slots
        self._event_log = event_log
        self._declare = declare
        self._slots = slots
        self._after = dict(after or {})
        self._stages = StageMembers(execution_graph)
        self.on_idle: Callable[[], None] = lambda: None
        """Called after a decision that leaves nothing running."""
        self.on_lost: Callable[[str], None] = lambda _executor: None
        """Called with an executor that gives no sign of life."""
        self.waiting_for = ""
        """Which pipelined region waits for how many slots; empty if none does."""
        self._path = remaining_paths(execution_graph)
        self._pending: dict[int, PhysicalSlotRequest] = {}
        """By the execution vertex that represents the task."""
        self._fulfilled: set[str] = set()
        self._waiting: dict[int, dict[int, PhysicalSlotRequest]] = {}
        self._active: dict[int, VertexRun] = {}
        self._remade: dict[int, RemadeRun] = {}
        self._where: dict[str, tuple[int, int]] = {}
        self._declared: set[int] = set()
        self._told_required = 0
        self._told_waiting = ""
        self._is_decision_due = False
        self._closed: CompletableFuture[None] | None = None

    def run_of(self, job_vertex_id: str) -> StageSubtasks | None:
        """Return the active run of a job vertex's stage, else the one that makes its lost outputs again."""
        index = self._stages.lead_of(self._graph.job_vertex_by_id(job_vertex_id).index)
        return self._active.get(index) or self._remade.get(index)

    def remade_run(self, index: int, make: Callable[[], RemadeRun]) -> RemadeRun:
        """Return the run that makes lost outputs of a vertex again, and make it when it is first needed."""
        if index not in self._remade:
            self._remade[index] = make()
        return self._remade[index]

    def remade_runs(self) -> list[RemadeRun]:
        """Return all runs that make, or made, lost outputs again."""
        return list(self._remade.values())

    def active_runs(self) -> list[VertexRun]:
        """Return all runs that are active at Spark."""
        return list(self._active.values())

    # -- PhysicalSlotProvider --------------------------------------------------------------------------

    def allocate_physical_slots(self, requests: Sequence[PhysicalSlotRequest]) -> None:
        """Take requests; they are fulfilled when Spark launches their subtasks."""
        for request in requests:
            index, subtask = self._stages.task_of(request.vertices[-1])
            self._keep_pending(self._graph.job_vertices[index].first + subtask, request)
            runs = [run for run in self._runs(index) if run.awaits(subtask)]
            if runs:
                self._where[request.slot_request_id] = (index, subtask)
                runs[0].take_over(subtask, request)
            else:
                self._wait(index, subtask, request)
        self._decide_soon()

    def _keep_pending(self, vertex: int, request: PhysicalSlotRequest) -> None:
        self._pending[vertex] = request

        def done(_slot: PhysicalSlot | None, _error: BaseException | None) -> None:
            if self._pending.get(vertex) is request:
                del self._pending[vertex]

        request.slot_future.when_complete(done)

    def cancel_slot_request(self, slot_request_id: str, cause: BaseException | None) -> None:
        """Cancel a request, whether its vertex was submitted or not."""
        index, subtask = self._where.pop(slot_request_id)
        vertex = self._graph.job_vertices[index].first + subtask
        if vertex in self._pending and self._pending[vertex].slot_request_id == slot_request_id:
            del self._pending[vertex]
        waiting = self._waiting.get(index, {})
        if subtask in waiting and waiting[subtask].slot_request_id == slot_request_id:
            del waiting[subtask]
        else:
            run = next(run for run in self._runs(index) if run.has_request(subtask, slot_request_id))
            run.withdraw(subtask)
        self._decide_soon()

    def free_slot(self, allocation_id: str, cause: BaseException | None) -> None:
        """Do nothing: a slot is free when Spark reports that its task has ended, whatever the scheduler thinks."""
        self._fulfilled.discard(allocation_id)
        self._decide_soon()

    # -- SlotPoolService -------------------------------------------------------------------------------

    @property
    def required(self) -> int:
        """How many slots the job needs now: one for each request that waits, and for each that has its slot."""
        return len(self._pending) + len(self._fulfilled)

    def offer_slots(
        self, offers: Sequence[SlotOffer], resource_id: str, gateway: TaskExecutorGateway
    ) -> list[SlotOffer]:
        """Give each slot to the request of the subtask whose task was launched in it; return the slots taken."""
        accepted = []
        for offer in offers:
            request = self._pending.get(offer.vertex) if offer.vertex is not None else None
            if request is None:
                continue
            accepted.append(offer)
            self._fulfilled.add(offer.allocation_id)
            self._event_log.add("slot pool", f"{request.slot_request_id} gets {offer.allocation_id}")
            request.slot_future.complete(PhysicalSlot(offer.allocation_id, resource_id, offer.slot_index, gateway))
        return accepted

    def fail_allocation(self, allocation_id: str) -> bool:
        """Refuse: a slot of Spark's is lost only with its task, which Spark reports."""
        raise NotImplementedError(f"Spark loses tasks and executors, but no slot alone ({allocation_id})")

    def release_task_manager(self, resource_id: str, cause: BaseException) -> bool:
        """Handle the loss of an executor; Spark itself runs again what is lost with it, so the scheduler need not."""
        self.on_lost(resource_id)
        return False

    def notify_not_enough_resources(self, acquired: int) -> None:
        """Do nothing: what does not fit waits its turn at Spark."""

    def close_async(self) -> CompletableFuture[None]:
        """Wait until Spark runs nothing of the job."""
        self._closed = CompletableFuture()
        if not self._active:
            self._closed.complete(None)
        return self._closed

    # -- what runs report ------------------------------------------------------------------------------

    def hand_back(self, job_vertex: ExecutionJobVertex, requests: Mapping[int, PhysicalSlotRequest]) -> None:
        """Take back requests that a failed run did not fulfil; a later run of the vertex will."""
        for subtask, request in requests.items():
            self._wait(job_vertex.index, subtask, request)

    def run_over(self, run: EndedRun) -> None:
        """Note that a run has ended."""
        self._active.pop(run.job_vertex.index, None)
        self._decide_soon()

    def _runs(self, index: int) -> list[StageSubtasks]:
        runs: tuple[StageSubtasks | None, ...] = (self._active.get(index), self._remade.get(index))
        return [run for run in runs if run is not None]

    # -- decisions -------------------------------------------------------------------------------------

    def _wait(self, index: int, subtask: int, request: PhysicalSlotRequest) -> None:
        self._waiting.setdefault(index, {})[subtask] = request
        self._where[request.slot_request_id] = (index, subtask)

    def _decide_soon(self) -> None:
        if not self._is_decision_due:
            self._is_decision_due = True
            self._main_thread.execute(self._decide)

    def _decide(self) -> None:
        self._is_decision_due = False
        if self.required != self._told_required:
            self._told_required = self.required
            self._event_log.add("slot pool", f"declare {self.required} required slots")
            self._declare(self.required)
        self.waiting_for = ""
        ready = [self._stages.region_of(index) for index in self._waiting if self._is_region_ready(index)]
        for region in sorted(ready, key=lambda region: (-max(self._path[one] for one in region), region[0])):
            index = region[0]
            name, tasks = self._graph.job_vertices[index].name, sum(len(self._waiting[one]) for one in region)
            if index not in self._declared:
                self._declared.add(index)
                self._event_log.add("slots", f"{name} requires {tasks} slots")
            if len(region) == 1:
                if not self._fits(tasks):
                    break
            elif not self._fits_simultaneously(tasks):
                self._wait_for_slots(name, len(region), tasks)
                if tasks > self._available:
                    continue
                break
            self._declared.discard(index)
            self._event_log.add("slots", f"{name} goes to Spark, {tasks} tasks")
            self._submit(region)
        if not self._active:
            if self._closed is not None:
                self._closed.complete(None)
            self.on_idle()

    def _submit(self, region: tuple[int, ...]) -> None:
        if len(region) == 1:
            self._active[region[0]] = self._start_run(region[0], self._waiting.pop(region[0]))
            return
        assert self._start_region is not None
        runs = self._start_region({index: self._waiting.pop(index) for index in region})
        self._active.update(zip(region, runs, strict=True))

    def session_changed(self) -> None:
        """Decide again: executors came."""
        self._decide_soon()

    @property
    def _busy(self) -> int:
        return sum(run.unfinished for run in self._active.values())

    @property
    def _available(self) -> int:
        session = self._session_slots()
        return session if self._slots is None else min(session, self._slots)

    def _fits_simultaneously(self, tasks: int) -> bool:
        return self._busy + tasks <= self._available

    def _wait_for_slots(self, name: str, vertices: int, tasks: int) -> None:
        free = max(0, self._available - self._busy)
        of = f"the region of {name} ({vertices} vertices) waits for {tasks} slots, which it needs simultaneously"
        self.waiting_for = f"{of}; {free} of {self._available} are free"
        if self.waiting_for != self._told_waiting:
            self._told_waiting = self.waiting_for
            self._event_log.add("slots", self.waiting_for)

    def _is_region_ready(self, index: int) -> bool:
        region = self._stages.region_of(index)
        return index == region[0] and all(self._is_ready(one) for one in region)

    def _is_ready(self, index: int) -> bool:
        waiting = self._waiting.get(index)
        if not waiting or index in self._active:
            return False
        if len(waiting) + self._finished(index) < self._graph.job_vertices[index].parallelism:
            return False
        return all(
            self._finished(earlier) == self._graph.job_vertices[earlier].parallelism
            for earlier in self._after.get(index, ())
        )

    def _finished(self, index: int) -> int:
        vertices = self._graph.job_vertices[index].vertices
        return int(np.count_nonzero(self._graph.state[vertices.start : vertices.stop] == _FINISHED))

    def _fits(self, tasks: int) -> bool:
        if not self._active:
            return True
        if self._slots is not None:
            return self._busy + tasks <= self._slots
        return self._busy < max(2 * self._session_slots(), self.LEAST_PROMISES)


def remaining_paths(graph: ExecutionGraph) -> list[int]:
    """Return, by job vertex index, how many vertices the longest path from it to an end of the job has."""
    path = [1] * len(graph.job_vertices)
    for job_vertex in reversed(graph.job_vertices):
        for result in job_vertex.produced_results:
            for connection in result.consumers:
                path[job_vertex.index] = max(path[job_vertex.index], 1 + path[connection.consumer.index])
    return path
