"""Submits vertices to Spark, and passes news between their runs and the scheduler."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from functools import partial
from itertools import count

from flinkmagic.deployment.executor_gateways import ExecutorGateways
from flinkmagic.deployment.spark_slot_pool import SparkSlotPool
from flinkmagic.deployment.stages.stage_outcome import StageOutcome
from flinkmagic.deployment.stages.stage_runner import OnOutcome, StageRun
from flinkmagic.deployment.stages.stage_threads import StageThreads
from flinkmagic.deployment.stages.write_retries import EarlierRun
from flinkmagic.deployment.vertices.remade_run import RemadeRun
from flinkmagic.deployment.vertices.run_host import EndedRun
from flinkmagic.deployment.vertices.stage_subtasks import NO_TASK
from flinkmagic.deployment.vertices.task_tracker import TaskTracker
from flinkmagic.deployment.vertices.vertex_run import VertexRun
from flinkmagic.deployment.watching.session_slots import SessionSlots
from flinkmagic.deployment.watching.task_events import ExecutorAdded, ExecutorRemoved, TaskEvent
from flinkmagic.deployment.watching.task_monitor import TaskMonitor
from flinkmagic.deployment.watching.task_records import SlotNumbers, TaskLog
from flinkmagic.errors.scheduling import ExecutorRecoveryError, TaskExecutorLostError
from flinkmagic.graph.execution_graph import ExecutionAttemptID, ExecutionGraph
from flinkmagic.graph.execution_job_vertex import ExecutionJobVertex
from flinkmagic.graph.execution_state import ExecutionState
from flinkmagic.planning.adaptive_stages import StageAdaptation
from flinkmagic.planning.handles import (
    BoundaryStageHandle,
    ResultStageHandle,
    ShuffleMapStageHandle,
    StageHandle,
    WriteStageHandle,
)
from flinkmagic.scheduling.clock import Clock
from flinkmagic.scheduling.default_scheduler import DefaultScheduler
from flinkmagic.scheduling.job_master import JobMaster
from flinkmagic.scheduling.main_thread import ComponentMainThreadExecutor
from flinkmagic.scheduling.slots.physical_slot_provider import PhysicalSlotRequest
from flinkmagic.scheduling.slots.resource_gateways import SlotOffer
from flinkmagic.scheduling.task_executor_gateway import TaskExecutionStateTransition

_LOG = logging.getLogger(__name__)

LONGEST_TURN_MS = 1000
"""How long a run waits until those ahead of it are with Spark: one that takes longer to prepare is overtaken."""
LONGEST_SILENCE_MS = 60_000.0
"""How long to wait for the ends of a stage's tasks after the end of the stage."""

MakeStage = Callable[[StageHandle, str, str, EarlierRun | None, OnOutcome], StageRun]
"""Makes, without starting it, the run of a handle under a tag with a description."""

_KEEPS_EACH_TASK = (ShuffleMapStageHandle, ResultStageHandle, BoundaryStageHandle)
"""Stages for which Spark keeps what each task made: resubmitted, they run only what is missing."""


class StageHost:
    """The environment of the runs of one deployment (`RunHost`); on the main thread.

    Parameters
    ----------
    execution_graph : ExecutionGraph
        The job.
    prefix : str
        How the tags of this deployment begin.
    monitor : TaskMonitor
        Reports tasks.
    main_thread : ComponentMainThreadExecutor
        The thread to which stages' threads bring their outcomes.
    job_name : str
        For descriptions in Spark's UI.
    slots : SessionSlots
        The slots of the session.
    clock : Clock
        Dates what Spark does not.
    """

    def __init__(
        self,
        execution_graph: ExecutionGraph,
        prefix: str,
        monitor: TaskMonitor,
        main_thread: ComponentMainThreadExecutor,
        job_name: str,
        slots: SessionSlots,
        clock: Clock,
    ) -> None:
        self.log = TaskLog(SlotNumbers(slots.of))
        self.tracker = TaskTracker(self.log, slots, self._remade_run, lambda: self._pool.remade_runs())
        self.make_stage: MakeStage | None = None
        self.partition_bytes: dict[str, tuple[int, ...]] = {}
        self.adaptations: dict[str, StageAdaptation] = {}
        self.committed: set[int] = set()
        """The writes (job vertices, by index) that are done, whatever was asked of their executions meanwhile."""
        self._graph = execution_graph
        self._prefix = prefix
        self._monitor = monitor
        self._main_thread = main_thread
        self._job_name = job_name
        self._slots = slots
        self._clock = clock
        self._removed: set[str] = set()
        self._stages: list[StageRun] = []
        self._threads = StageThreads()
        self._earlier: dict[int, EarlierRun] = {}
        self._run_numbers = count()
        self._slot_numbers = count()
        self._lost: BaseException | None = None

    def connect(
        self, job_master: JobMaster, scheduler: DefaultScheduler, pool: SparkSlotPool, *, restarts: bool
    ) -> None:
        """Set the objects to notify; they need this object before they can be made."""
        self._job_master = job_master
        self._scheduler = scheduler
        self._pool = pool
        self._restarts = restarts
        self.gateways = ExecutorGateways(
            run_of=pool.run_of,
            unknown_task=self._answer_canceled,
            is_active=self._slots.is_active,
            answer_heartbeat=lambda executor: self._main_thread.execute(
                lambda: job_master.heartbeat_from_task_manager(executor)
            ),
        )
        pool.on_lost = self._executor_lost

    # -- executors -------------------------------------------------------------------------------------

    def handle(self, events: Sequence[TaskEvent]) -> None:
        """Handle Spark's events."""
        self.tracker.handle(events)
        for event in events:
            if isinstance(event, ExecutorAdded):
                self._removed.discard(event.executor)
                self._pool.session_changed()
            elif isinstance(event, ExecutorRemoved):
                self._removed.add(event.executor)
                # Its tasks were told of by the tracker, one by one (`Losses`): this ends its registration alone.
                error = TaskExecutorLostError(event.executor, event.reason)
                self._job_master.disconnect_task_manager(event.executor, error)

    def _executor_lost(self, executor: str) -> None:
        """Handle an executor whose loss Spark did not report."""
        if executor in self._removed:
            return
        self._job_master.event_log.add(
            "executors", f"{executor} is gone: Spark no longer has it, and did not report it"
        )
        self._removed.add(executor)
        self.tracker.handle([ExecutorRemoved(self._clock.now_ms(), executor, "it gave no sign of life")])

    # -- submission ------------------------------------------------------------------------------------

    def start_run(self, index: int, requests: dict[int, PhysicalSlotRequest]) -> VertexRun:
        """Submit a vertex to Spark."""
        run = self._made_run(index, requests)
        self._start(run, self._turn())
        return run

    def start_region(self, requests: dict[int, dict[int, PhysicalSlotRequest]]) -> list[VertexRun]:
        """Submit the vertices of a pipelined region to Spark, as one job; the first one's handle runs it."""
        runs = [self._made_run(index, requests[index]) for index in requests]
        for run in runs:
            run.region = runs
        first = runs[0]
        self._start(first, None)
        for run in runs:
            run.stage_run = first.stage_run
        return runs

    def _made_run(self, index: int, requests: dict[int, PhysicalSlotRequest]) -> VertexRun:
        job_vertex = self._graph.job_vertices[index]
        handle = job_vertex.job_vertex.operator_factory
        if not isinstance(handle, StageHandle):
            raise TypeError(f"the vertex {job_vertex.name!r} has no stage handle, but {handle!r}")
        holds_all = self._restarts and not isinstance(handle, _KEEPS_EACH_TASK)
        return VertexRun(
            job_vertex, handle, requests, holds_all=holds_all, fails_immediately=not self._restarts, host=self
        )

    def _start(self, run: VertexRun, turn: Callable[[], None] | None) -> None:
        assert self.make_stage is not None
        index = run.job_vertex.index
        tag = f"{self._prefix}v{index}r{next(self._run_numbers)}"
        description = f"{self._job_name}: {run.job_vertex.name}"
        self.committed.discard(index)
        run.stage_run = self.make_stage(run.handle, tag, description, self._earlier.get(index), self._on_outcome)
        self.tracker.watch(tag, run)
        self._stages.append(run.stage_run)
        run.stage_run.start(self._threads, turn)

    def _turn(self) -> Callable[[], None] | None:
        """Return what a run waits for if the slots are promised: Spark ranks jobs by the order of submission.

        Each run is prepared on its own thread, and they take different times. If slots are free, none waits: that would
        keep them empty.
        """
        ahead = self._pool.active_runs()
        if sum(run.unfinished for run in ahead) < self._slots.total:
            return None
        tags = [run.stage_run.tag for run in ahead if run.stage_run is not None and not run.has_launched]
        return partial(self._monitor.await_submission, tags, LONGEST_TURN_MS) if tags else None

    def _on_outcome(self, stage_run: StageRun, outcome: StageOutcome) -> None:
        """Take an outcome, on the stage's thread: a marker follows all that Spark has reported about its tasks."""
        self._main_thread.execute(lambda: self._expect(stage_run.tag, outcome))
        try:
            self._monitor.flush(stage_run.tag)
        except Exception as gone:  # noqa: BLE001 - without a session there is no more news to wait for
            _LOG.debug("the session was gone at the end of %s: %s", stage_run.tag, gone)
            self._main_thread.execute(lambda: self.tracker.conclude(stage_run.tag))

    def _expect(self, tag: str, outcome: StageOutcome) -> None:
        run = self.tracker.expect(tag, outcome)
        if outcome.error is None and isinstance(run.handle, WriteStageHandle):
            self.committed.add(run.job_vertex.index)
        if outcome.bytes_by_partition is not None:
            self.partition_bytes[run.job_vertex.id] = outcome.bytes_by_partition
        if outcome.adaptation:
            self._adapted(run.job_vertex, outcome.adaptation)
        if self._lost is not None:
            self.tracker.conclude(tag)
            return
        self._main_thread.schedule(lambda: self._overdue(tag, run), LONGEST_SILENCE_MS)

    def _adapted(self, job_vertex: ExecutionJobVertex, how: StageAdaptation) -> None:
        self.adaptations[job_vertex.id] = how
        for choice in how.joins:
            self._job_master.event_log.add("stages", f"{job_vertex.name}: {choice}")
        if how.tasks is not None:
            merged = f"{how.tasks} of {job_vertex.parallelism} tasks read all partitions, as these are small"
            self._job_master.event_log.add("stages", f"{job_vertex.name}: {merged}")

    def _overdue(self, tag: str, run: VertexRun) -> None:
        """Check a stage for overdue events: Spark's listener bus drops some when flooded; no job may wait forever."""
        if run.is_over:
            return
        _LOG.warning(
            "Spark did not report the end of some tasks of %r for %g s; they count as ended.",
            run.job_vertex.name,
            LONGEST_SILENCE_MS / 1000.0,
        )
        run.lose_tasks()
        for remade in self._pool.remade_runs():
            remade.lose_tasks()
        self.tracker.conclude(tag)
        run.settle()

    # -- RunHost ---------------------------------------------------------------------------------------

    def offer_slot(self, job_vertex: ExecutionJobVertex, subtask: int, executor: str, number: int) -> None:
        """Offer a slot that no other execution ever had."""
        allocation_id = f"{executor}_{number}#{next(self._slot_numbers)}"
        offer, gateway = SlotOffer(allocation_id, number, job_vertex.first + subtask), self.gateways.of(executor)
        if executor == NO_TASK:
            self._pool.offer_slots([offer], executor, gateway)
            return
        text = f"{executor} offers {allocation_id}, where Spark has launched a task"
        self._job_master.event_log.add("slots", text)
        self._job_master.register_task_manager(executor, gateway)
        self._job_master.offer_slots(executor, [offer])

    def report(
        self,
        attempt: ExecutionAttemptID,
        state: ExecutionState,
        error: BaseException | None = None,
        at_ms: float | None = None,
    ) -> None:
        """Report an execution's state to the scheduler."""
        if at_ms is not None:
            at_ms = self._not_before_last_move(attempt, at_ms)
        self._job_master.update_task_execution_state(TaskExecutionStateTransition(attempt, state, error, at_ms))

    def _not_before_last_move(self, attempt: ExecutionAttemptID, at_ms: float) -> float:
        """Return the time of Spark's clock, unless we ourselves dated the move before it later: news takes a while."""
        index = self._graph.job_vertex_by_id(attempt.job_vertex_id).first + attempt.subtask
        last = self._graph.timestamps(self._graph.state_of(index))[index]
        return max(at_ms, float(last))

    def replace(
        self, job_vertex: ExecutionJobVertex, subtask: int, loss: ExecutorRecoveryError | None, at_ms: float | None
    ) -> bool:
        """Return a new execution, and for what runs within the same task too."""
        vertex = job_vertex.first + subtask
        if loss is None:
            executor = self._scheduler.executions.last_resource.get(vertex)
            loss = self.tracker.losses.of_output(job_vertex.task_name(subtask), executor)
        if at_ms is not None:
            at_ms = max(at_ms, float(self._graph.timestamps(self._graph.state_of(vertex))[vertex]))
        topology = self._scheduler.topology
        return self._scheduler.replace_executions(topology.vertices_of(topology.region_of[vertex]), loss, at_ms)

    def _remade_run(self, job_vertex: ExecutionJobVertex) -> RemadeRun:
        handle = job_vertex.job_vertex.operator_factory
        assert isinstance(handle, StageHandle)
        return self._pool.remade_run(job_vertex.index, lambda: RemadeRun(job_vertex, handle, self))

    def hand_back(self, job_vertex: ExecutionJobVertex, requests: dict[int, PhysicalSlotRequest]) -> None:
        """Keep requests for the vertex's next run."""
        self._pool.hand_back(job_vertex, requests)

    def run_over(self, run: EndedRun) -> None:
        """Note that a run has ended."""
        index, before = run.job_vertex.index, self._earlier.get(run.job_vertex.index)
        launched = run.has_launched or (before is not None and before.launched)
        counted = run.counted | (before.counted if before is not None else frozenset())
        self._earlier[index] = EarlierRun(launched, reached_commit=run.has_all_successes, counted=counted)
        if run.stage_run is not None and run.is_region_over:
            run.stage_run.tasks_over()
        self._pool.run_over(run)

    def later(self, action: Callable[[], None]) -> None:
        """Run an action after the running call."""
        self._main_thread.execute(action)

    def _answer_canceled(self, attempt: ExecutionAttemptID) -> None:
        self._main_thread.execute(lambda: self.report(attempt, ExecutionState.CANCELED))

    # -- ends ------------------------------------------------------------------------------------------

    def lose_session(self, cause: BaseException) -> None:
        """Handle the end of Spark: nothing runs any more, and no news will come."""
        self._lost = cause
        for run in (*self._pool.active_runs(), *self._pool.remade_runs()):
            run.lose_tasks()
        self._scheduler.handle_global_failure(cause)
        for run in self._pool.active_runs():
            if run.outcome is None:
                run.finish(StageOutcome(error=cause))
            else:
                run.settle()

    def close(self) -> None:
        """Wait for the stages' threads, which have said all that they had to say."""
        for stage in self._stages:
            stage.join(1.0)
        self._stages.clear()
        self._threads.close()

    @property
    def waiting_for(self) -> str:
        """Which pipelined region waits for how many slots: of the session, or of those that other jobs hold."""
        if self._scheduler.job_status.is_terminal:
            return ""
        return self._pool.waiting_for or next((one.waiting_for for one in self._stages if one.waiting_for), "")

    @property
    def is_lost(self) -> bool:
        """Whether Spark is gone."""
        return self._lost is not None

    def release(self) -> None:
        """Release what refers to the JVM."""
        self.make_stage = None
        self.tracker.release()
