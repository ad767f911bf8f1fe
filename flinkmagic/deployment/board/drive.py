"""Carries out what a board says, on the main thread: between the board, Flink's scheduler, and Spark.

What the scheduler calls is passed to the board as an event, and handled before the call returns.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple, Protocol

import numpy as np

from flinkmagic.amounts import count
from flinkmagic.deployment.board.messages import (
    CancelRequested,
    CancelStage,
    DecisionDue,
    Declare,
    FailJob,
    GiveSlot,
    JobSubmitted,
    Later,
    NothingRuns,
    Overdue,
    RefuseSlot,
    Replace,
    Report,
    RequestCanceled,
    ResultTakenUp,
    SlotFreed,
    SlotRequested,
    StageEnded,
    StageFailure,
    Submit,
    TaskDeployed,
    TaskLaunched,
    TasksOver,
)
from flinkmagic.deployment.board.rules import NO_TASK, StageBoard
from flinkmagic.deployment.failures import short_reason, vertex_failed
from flinkmagic.deployment.stages.stage_place import StagePlace
from flinkmagic.deployment.stages.stage_runner import EARLY, OnOutcome, StageOutcome, StageRun
from flinkmagic.deployment.stages.write_retries import EarlierRun
from flinkmagic.deployment.watching.session_slots import SessionSlots
from flinkmagic.deployment.watching.task_events import (
    ExecutorAdded,
    ExecutorRemoved,
    JobEnded,
    JobStarted,
    Marker,
    TaskEnded,
    TaskEvent,
    TaskStarted,
)
from flinkmagic.deployment.watching.task_monitor import TaskMonitor
from flinkmagic.errors.base import InvariantViolatedError
from flinkmagic.errors.deployment import StageAbortedError
from flinkmagic.errors.scheduling import TaskExecutorLostError
from flinkmagic.graph.execution_graph import ExecutionAttemptID, ExecutionGraph
from flinkmagic.graph.execution_job_vertex import ExecutionJobVertex
from flinkmagic.graph.execution_state import ExecutionState
from flinkmagic.planning.adaptive_stages import StageAdaptation
from flinkmagic.planning.stage_handles import StageHandle
from flinkmagic.planning.stage_metrics import StageMetrics
from flinkmagic.scheduling.clock import Clock
from flinkmagic.scheduling.completable_future import CompletableFuture
from flinkmagic.scheduling.default_scheduler import DefaultScheduler
from flinkmagic.scheduling.failover.restart_strategy import RestartBackoffTimeStrategy
from flinkmagic.scheduling.job_event_log import JobEventLog
from flinkmagic.scheduling.job_master import JobMaster
from flinkmagic.scheduling.job_status import JobListener, JobStatus
from flinkmagic.scheduling.main_thread import ComponentMainThreadExecutor
from flinkmagic.scheduling.slot_pool_service import SlotPoolService
from flinkmagic.scheduling.slots.physical_slot_provider import PhysicalSlot, PhysicalSlotRequest
from flinkmagic.scheduling.slots.resource_gateways import SlotOffer
from flinkmagic.scheduling.task_executor_gateway import (
    ResultPartitionID,
    TaskDeploymentDescriptor,
    TaskExecutionStateTransition,
    TaskExecutorGateway,
)

_LOG = logging.getLogger(__name__)
_FINISHED = ExecutionState.FINISHED.value

LONGEST_TURN_MS = 1000
"""How long a run waits until those ahead of it are with Spark: one that takes longer to prepare is overtaken."""
LONGEST_SILENCE_MS = 60_000.0
"""How long to wait for the ends of a stage's tasks after the end of the stage."""
MOST_TOLD = 200_000
"""How many events are kept of a job: all of one with some 20,000 tasks."""

MakeStage = Callable[[StageHandle, str, str, StagePlace, EarlierRun | None, OnOutcome], StageRun]
"""Makes, without starting it, the run of a handle under a tag with a description, at a place."""


class Told(NamedTuple):
    """An event that a board was told, and the number of the instruction within which it came; 0 outside of any."""

    event: Any
    within: int


class Board(Protocol):
    """The rules of a job, over their state."""

    def handle(self, event: Any) -> Iterator[Any]:
        """Return what to do about an event; each instruction is carried out before the next one is taken."""

    @property
    def required(self) -> int:
        """How many slots the job needs now."""

    @property
    def is_idle(self) -> bool:
        """Whether nothing of the job is at Spark."""


class BoardDrive:
    """Stands between the board of a job and Flink's scheduler, to which it is the slot pool (`SlotPoolService`).

    It is not Flink's `DeclarativeSlotPool` because a slot of Spark's is a launched task. It is never idle, is never
    lent a second time, and only one request can use it. So there is no pool of free slots to match requests with: the
    offer names the subtask (`SlotOffer.vertex`). What the board decides instead is which vertices go to Spark.

    It also makes the scheduler over itself (a `SlotPoolServiceSchedulerFactory`).

    Parameters
    ----------
    clock : Clock
        Dates what Spark does not.
    more : mapping
        By the types of instructions that only this board gives, how they are carried out.
    """

    scheduler: DefaultScheduler

    def __init__(
        self,
        execution_graph: ExecutionGraph,
        board: Board,
        *,
        main_thread: ComponentMainThreadExecutor,
        clock: Clock,
        event_log: JobEventLog,
        restart_strategy: RestartBackoffTimeStrategy,
        more: Mapping[type[Any], Callable[[Any], object]],
    ) -> None:
        self.told: list[Told] = []
        """The first `MOST_TOLD` events; kept with a job that has failed."""
        self._graph = execution_graph
        self._board = board
        self._main_thread = main_thread
        self._clock = clock
        self._event_log = event_log
        self._restart_strategy = restart_strategy
        self._requests: dict[int, PhysicalSlotRequest] = {}
        """By execution vertex, the last of those in its slot, the last request that was not fulfilled."""
        self._gateways: dict[str, SparkTaskExecutorGateway] = {}
        self._closed: CompletableFuture[None] | None = None
        self._instructions = self._within = 0
        """How many instructions were taken, and the number of the one that is being carried out."""
        self._carry_out: dict[type[Any], Callable[[Any], object]] = {
            GiveSlot: self._give_slot,
            Report: self._report,
            Later: lambda later: self._main_thread.execute(lambda: self._come_back_to(later.what)),
            NothingRuns: lambda _nothing: self._nothing_runs(),
            **more,
        }

    def tell(self, event: Any) -> None:
        """Tell the board of an event, and carry out what follows."""
        if len(self.told) < MOST_TOLD:
            self.told.append(Told(event, self._within))
        for instruction in self._board.handle(event):
            self._instructions += 1
            outer, self._within = self._within, self._instructions
            try:
                self._carry_out[type(instruction)](instruction)
            finally:
                self._within = outer

    def close(self) -> None:
        """Drop what is kept for a job that fails, unless it has failed."""
        if self.scheduler.job_status is not JobStatus.FAILED:
            self.told.clear()

    def gateway_of(self, executor: str) -> SparkTaskExecutorGateway:
        """Return the gateway to an executor."""
        if executor not in self._gateways:
            self._gateways[executor] = SparkTaskExecutorGateway(executor, self)
        return self._gateways[executor]

    def heartbeat(self, executor: str) -> None:
        """Answer for an executor that is asked for a sign of life."""

    # -- SlotPoolServiceSchedulerFactory ---------------------------------------------------------------

    def create_slot_pool_service(self, declare: Callable[[int], None]) -> SlotPoolService:
        """Return itself."""
        self._carry_out[Declare] = lambda instruction: declare(instruction.required)
        return self

    def create_scheduler(self, slot_pool: SlotPoolService, listeners: Sequence[JobListener]) -> DefaultScheduler:
        self.scheduler = DefaultScheduler(
            self._graph,
            main_thread=self._main_thread,
            clock=self._clock,
            slot_provider=slot_pool,
            restart_strategy=self._restart_strategy,
            event_log=self._event_log,
            slot_sharing_groups=self._slot_sharing_groups(),
            listeners=listeners,
            # A shuffle's files go as a whole, with the planned job.
            release_partitions=False,
        )
        return self.scheduler

    def _slot_sharing_groups(self) -> list[list[int]] | None:
        return None

    # -- SlotPoolService -------------------------------------------------------------------------------

    @property
    def required(self) -> int:
        return self._board.required

    def allocate_physical_slots(self, requests: Sequence[PhysicalSlotRequest]) -> None:
        """Take requests; they are fulfilled when Spark launches their subtasks."""
        for request in requests:
            self._requests[request.vertices[-1]] = request
            self.tell(SlotRequested(request.slot_request_id, request.vertices[-1]))

    def cancel_slot_request(self, slot_request_id: str) -> None:
        """Cancel a request, whether its vertex was submitted or not."""
        self.tell(RequestCanceled(slot_request_id))

    def free_slot(self, allocation_id: str) -> None:
        """Note that no execution is left in a slot."""
        self.tell(SlotFreed(allocation_id))

    def offer_slots(
        self, offers: Sequence[SlotOffer], resource_id: str, gateway: TaskExecutorGateway
    ) -> list[SlotOffer]:
        """Give each slot to the request of the subtask whose task was launched in it; return the slots taken."""
        for offer in offers:
            assert offer.vertex is not None
            name = self._requests[offer.vertex].slot_request_id
            self._event_log.add("slot pool", f"{name} gets {offer.allocation_id}")
            self._fulfil(offer.vertex, PhysicalSlot(offer.allocation_id, resource_id, gateway))
        return list(offers)

    def _fulfil(self, vertex: int, slot: PhysicalSlot) -> None:
        self._requests.pop(vertex).slot_future.complete(slot)

    def fail_allocation(self, allocation_id: str) -> bool:
        """Refuse: a slot of Spark's is lost only with its task, which Spark reports."""
        raise InvariantViolatedError(f"the slot {allocation_id} is lost only with its task or executor")

    def release_task_manager(self, resource_id: str, cause: BaseException) -> bool:
        """Do nothing: Spark itself runs again what is lost with an executor, so the scheduler need not."""
        return False

    def notify_not_enough_resources(self, acquired: int) -> None:
        """Do nothing: what does not fit waits its turn at Spark."""

    def close_async(self) -> CompletableFuture[None]:
        """Wait until Spark runs nothing of the job."""
        self._closed = CompletableFuture()
        if self._board.is_idle:
            self._closed.complete(None)
        return self._closed

    # -- instructions ----------------------------------------------------------------------------------

    def _give_slot(self, instruction: GiveSlot) -> None:
        executor = instruction.executor
        slot = PhysicalSlot(instruction.allocation_id, executor, self.gateway_of(executor))
        self._fulfil(instruction.vertex, slot)

    def _report(self, instruction: Report) -> None:
        attempt, at_ms = instruction.attempt, instruction.at_ms
        error = self._error(instruction.failure) if instruction.failure is not None else None
        if at_ms is not None:
            index = self._graph.job_vertex_by_id(attempt.job_vertex_id).first + attempt.subtask
            at_ms = self._not_before_last_move(index, at_ms)
        self.scheduler.update_task_execution_state(
            TaskExecutionStateTransition(attempt, instruction.state, error, at_ms)
        )

    def _not_before_last_move(self, vertex: int, at_ms: float) -> float:
        """Return the time of Spark's clock, unless we ourselves dated the move before it later: news takes a while."""
        return max(at_ms, float(self._graph.timestamps(self._graph.state_of(vertex))[vertex]))

    def _error(self, failure: StageFailure | BaseException) -> BaseException:
        """Return what a user is told of a failure."""
        if isinstance(failure, BaseException):
            return failure
        if not failure.is_to_blame:
            return StageAbortedError(failure.task, failure.error, short_reason(str(failure.error)))
        metadata = self._graph.job_vertices[failure.index].job_vertex.tail.metadata or {}
        return vertex_failed(failure.task, failure.error, failure.text, metadata)

    def _come_back_to(self, what: Any) -> None:
        if isinstance(what, Report):
            self._report(what)
        else:
            self.tell(what)

    def _nothing_runs(self) -> None:
        if self._closed is not None:
            self._closed.complete(None)


class SparkTaskExecutorGateway:
    """A Spark executor as the scheduler sees it (Flink's `TaskExecutorGateway`).

    Departures from Flink, all because Spark places tasks and keeps their outputs:

    * `submit_task` starts nothing: the slot was given because Spark had launched the task;
    * `cancel_task` ends the Spark stage of the whole vertex: Spark cannot take one task out of a stage;
    * `free_slot` frees nothing: a slot ends with its task;
    * `release_partitions` releases nothing: a shuffle's files go when the planned job is released, as a whole;
    * the executor itself is not asked for a sign of life: Spark receives its heartbeats, and says whether it still has
      it.
    """

    def __init__(self, resource_id: str, drive: BoardDrive) -> None:
        self.resource_id = resource_id
        """Spark's id of the executor."""
        self._drive = drive

    def submit_task(self, descriptor: TaskDeploymentDescriptor) -> None:
        """Bind an execution to the task that Spark has launched."""
        self._drive.tell(TaskDeployed(descriptor.attempt_id, descriptor.allocation_id))

    def cancel_task(self, attempt_id: ExecutionAttemptID) -> None:
        """End the stage of the attempt's vertex; the answer comes when the attempt's task has really ended."""
        self._drive.tell(CancelRequested(attempt_id))

    def free_slot(self, allocation_id: str) -> None:
        """Do nothing: a slot ends with the task that was launched in it."""

    def release_partitions(self, job_id: str, partition_ids: Sequence[ResultPartitionID]) -> None:
        """Do nothing: see the class."""

    def heartbeat_from_job_manager(self, job_id: str) -> None:
        """Answer with a sign of life if Spark still has the executor."""
        self._drive.heartbeat(self.resource_id)


class StageDrive(BoardDrive):
    """Drives the board of a job whose vertices run as Spark stages.

    Parameters
    ----------
    job_name : str
        For descriptions in Spark's UI.
    monitor : TaskMonitor
        Is asked what Spark has received, and to mark that all was reported.
    on_idle : callable
        Called after a decision that leaves nothing at Spark.
    """

    _board: StageBoard

    def __init__(
        self,
        job_master: JobMaster,
        execution_graph: ExecutionGraph,
        board: StageBoard,
        *,
        job_name: str,
        main_thread: ComponentMainThreadExecutor,
        clock: Clock,
        event_log: JobEventLog,
        monitor: TaskMonitor,
        session_slots: SessionSlots,
        make_stage: MakeStage,
        restart_strategy: RestartBackoffTimeStrategy,
        on_idle: Callable[[], None],
    ) -> None:
        super().__init__(
            execution_graph,
            board,
            main_thread=main_thread,
            clock=clock,
            event_log=event_log,
            restart_strategy=restart_strategy,
            more={
                Submit: self._submit,
                CancelStage: lambda instruction: self._stages[instruction.tag].cancel(),
                TasksOver: lambda instruction: self._stages[instruction.tag].tasks_over(),
                RefuseSlot: self._refuse_slot,
                Replace: self._replace,
                FailJob: lambda instruction: self.scheduler.handle_global_failure(instruction.cause),
            },
        )
        self.state = board.state
        self.partition_bytes: dict[str, tuple[int, ...]] = {}
        """By the id of a vertex, the bytes of each partition of the shuffle that it wrote."""
        self.adaptations: dict[str, StageAdaptation] = {}
        """By the id of a vertex, how its stage's run differed from its plan."""
        self.metrics: dict[str, StageMetrics] = {}
        """By the id of a vertex whose stage is done, what its operators have measured."""
        self.committed: set[int] = set()
        """The writes (job vertices, by index) that are done, whatever was asked of their executions meanwhile."""
        self._job_master = job_master
        self._job_name = job_name
        self._monitor = monitor
        self._session_slots = session_slots
        self._make_stage: MakeStage | None = make_stage
        self._on_idle = on_idle
        self._stages: dict[str, StageRun] = {}
        """By tag; empty once the job is over."""

    # -- what Spark reports ----------------------------------------------------------------------------

    def handle(self, events: Sequence[TaskEvent]) -> None:
        """Pass on what Spark reports."""
        for event in events:
            if isinstance(event, TaskStarted):
                self.tell(TaskLaunched(event, self._session_slots.of(event.executor)))
            elif isinstance(event, JobStarted):
                self._job_started(event)
            elif isinstance(event, ExecutorAdded | ExecutorRemoved):
                self._session_slots.take(event)
                self.tell(event)
            elif isinstance(event, TaskEnded | JobEnded | Marker):
                self.tell(event)
        for event in events:
            if isinstance(event, ExecutorRemoved):
                # Its tasks were told of one by one (`Losses`): this ends its registration alone.
                error = TaskExecutorLostError(event.executor, event.reason)
                self._job_master.disconnect_task_manager(event.executor, error)

    def _job_started(self, job: JobStarted) -> None:
        tag = job.tag.removesuffix(EARLY)
        stage = self._stages.get(tag)
        if stage is None:
            return
        is_early = tag != job.tag
        tasks = None if is_early else stage.handle.adaptation.tasks
        run = self.state.runs[tag]
        upstream = zip(stage.handle.upstream, run.region[1:], strict=True)
        pipelined = {handle.shuffle_id: each.index for handle, each in upstream if handle.shuffle_id is not None}
        self.tell(JobSubmitted(tag, job, is_early, tasks, pipelined))

    def take_up(self, job_vertex: ExecutionJobVertex) -> None:
        """Note a vertex whose result exists already; it does not run, but lost parts of it are made again."""
        handle = self.state.members.stage_of(job_vertex.index).handle
        if handle.is_map_stage:
            self.tell(ResultTakenUp(job_vertex.index, handle.make().shuffleId()))

    def _outcome(self, stage: StageRun, outcome: StageOutcome) -> None:
        """Take an outcome, on the stage's thread: a marker follows all that Spark has reported about its tasks."""
        self._main_thread.execute(lambda: self._stage_ended(stage, outcome))
        try:
            self._monitor.flush(stage.tag)
        except Exception as gone:  # noqa: BLE001 - without a session there is no more news to wait for
            _LOG.debug("the session was gone at the end of %s: %s", stage.tag, gone)
            self._main_thread.execute(lambda: self.tell(Marker(stage.tag)))

    def _stage_ended(self, stage: StageRun, outcome: StageOutcome) -> None:
        job_vertex = self.state.runs[stage.tag].job_vertex
        if outcome.error is None and stage.handle.is_committed:
            self.committed.add(job_vertex.index)
        if outcome.bytes_by_partition is not None:
            self.partition_bytes[job_vertex.id] = outcome.bytes_by_partition
        if outcome.adaptation:
            self._adapted(job_vertex, outcome.adaptation)
        if outcome.metrics:
            region = self.state.runs[stage.tag].region
            self.metrics |= {run.job_vertex.id: one for run, one in zip(region, outcome.metrics, strict=True)}
        self.tell(StageEnded(stage.tag, outcome.error))
        if not self.state.is_lost:
            self._main_thread.schedule(lambda: self._overdue(stage.tag), LONGEST_SILENCE_MS)

    def _adapted(self, job_vertex: ExecutionJobVertex, how: StageAdaptation) -> None:
        self.adaptations[job_vertex.id] = how
        for choice in how.joins:
            self._event_log.add("stages", f"{job_vertex.name}: {choice}")
        if how.added_files:
            self._event_log.add("stages", f"{job_vertex.name}: reads {count(how.added_files, 'added file')} alone")
        elif how.tasks is not None:
            merged = f"{how.tasks} of {job_vertex.parallelism} tasks read all partitions, as these are small"
            self._event_log.add("stages", f"{job_vertex.name}: {merged}")

    def _overdue(self, tag: str) -> None:
        run = self.state.runs[tag]
        if all(each.is_over for each in run.region):
            return
        _LOG.warning(
            "Spark did not report the end of some tasks of %r for %g s; they count as ended.",
            run.job_vertex.name,
            LONGEST_SILENCE_MS / 1000.0,
        )
        self.tell(Overdue(tag))

    # -- what the scheduler asks for -------------------------------------------------------------------

    def tell(self, event: Any) -> None:
        """Tell the board of an event; a decision is told what it depends on now."""
        if isinstance(event, DecisionDue):
            event = DecisionDue(
                self._session_slots.total, {index: self._finished(index) for index in self.state.undecided()}
            )
        super().tell(event)

    def _finished(self, index: int) -> int:
        return int(np.count_nonzero(self._graph.state[self._graph.job_vertices[index].slice] == _FINISHED))

    def _slot_sharing_groups(self) -> list[list[int]]:
        return self.state.members.slot_sharing_groups()

    def release_task_manager(self, resource_id: str, cause: BaseException) -> bool:
        """Handle an executor that gives no sign of life, and whose loss Spark did not report."""
        if resource_id not in self.state.removed:
            self._event_log.add("executors", f"{resource_id} is gone: Spark no longer has it, and did not report it")
            self.handle([ExecutorRemoved(resource_id, "it gave no sign of life")])
        return False

    def heartbeat(self, executor: str) -> None:
        """Ask Spark for an executor: its listener bus drops events when flooded, the loss of an executor too."""
        if executor == NO_TASK or self._session_slots.is_active(executor):
            self._main_thread.execute(lambda: self._job_master.heartbeat_from_task_manager(executor))

    # -- instructions ----------------------------------------------------------------------------------

    def _submit(self, instruction: Submit) -> None:
        assert self._make_stage is not None
        (job_vertex, handle), tag = self.state.members.stage_of(instruction.index), instruction.tag
        self.committed.discard(instruction.index)
        description = f"{self._job_name}: {job_vertex.name}"
        place = StagePlace.of(self.state.prefix.rstrip("-"), job_vertex.job_vertex, handle.kind)
        stage = self._make_stage(handle, tag, description, place, instruction.earlier, self._outcome)
        self._stages[tag] = stage
        ahead = list(instruction.after)
        turn = partial(self._monitor.await_submission, ahead, LONGEST_TURN_MS) if ahead else None
        stage.start(turn)

    def _give_slot(self, instruction: GiveSlot) -> None:
        """Offer a slot that no other execution ever had."""
        executor, allocation_id = instruction.executor, instruction.allocation_id
        offers = [SlotOffer(allocation_id, instruction.vertex)]
        if executor == NO_TASK:
            self.offer_slots(offers, executor, self.gateway_of(executor))
            return
        self._event_log.add("slots", f"{executor} offers {allocation_id}, where Spark has launched a task")
        self._job_master.register_task_manager(executor, self.gateway_of(executor))
        self._job_master.offer_slots(executor, offers)

    def _refuse_slot(self, instruction: RefuseSlot) -> None:
        request = self._requests.pop(instruction.vertex)
        request.slot_future.complete_exceptionally(self._error(instruction.failure))

    def _replace(self, instruction: Replace) -> None:
        """Have new executions made, and for what runs within the same task too."""
        job_vertex, loss, at_ms = self._graph.job_vertices[instruction.index], instruction.loss, instruction.at_ms
        vertex = job_vertex.first + instruction.subtask
        if loss is None:
            executor = self.scheduler.executions.last_resource.get(vertex)
            loss = self.state.losses.of_output(job_vertex.task_name(instruction.subtask), executor)
        if at_ms is not None:
            at_ms = self._not_before_last_move(vertex, at_ms)
        topology = self.scheduler.topology
        self.scheduler.replace_executions(topology.vertices_of(topology.region_of[vertex]), loss, at_ms)

    def _nothing_runs(self) -> None:
        super()._nothing_runs()
        self._on_idle()

    # -- ends ------------------------------------------------------------------------------------------

    def close(self) -> None:
        """Wait for the stages' threads, which have said all that they had to say."""
        super().close()
        for stage in self._stages.values():
            stage.join(1.0)
        self._stages = {}

    @property
    def waiting_for(self) -> str:
        """Which pipelined region waits for how many slots: of the session, or of those that other jobs hold."""
        if self.scheduler.job_status.is_terminal:
            return ""
        stages = list(self._stages.values())
        return self.state.waiting_for or next((one.waiting_for for one in stages if one.waiting_for), "")

    def release(self) -> None:
        """Release what refers to the JVM."""
        self._make_stage = None
