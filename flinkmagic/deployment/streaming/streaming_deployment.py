"""Runs a planned streaming job on the session's own Spark: its queries under Flink's scheduler."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

from flinkmagic.deployment.board.drive import BoardDrive
from flinkmagic.deployment.deployment import Deployment, DeploymentSnapshot
from flinkmagic.deployment.failures import vertex_failed
from flinkmagic.deployment.streaming.query_board import QueryBoard, QueryEnded, QueryStarted, StartQuery, StopQuery
from flinkmagic.deployment.streaming.query_progress import QueryProgress, QuerySeen
from flinkmagic.deployment.streaming.query_restarts import QueryStarter, SessionRestarts
from flinkmagic.deployment.streaming.query_run import QueryRun
from flinkmagic.deployment.watching.task_records import TaskRecord
from flinkmagic.errors.deployment import SessionLostError
from flinkmagic.errors.usage import UnknownNameError
from flinkmagic.graph.ancestors import with_inputs
from flinkmagic.graph.execution_graph import ExecutionGraph
from flinkmagic.graph.execution_state import ExecutionState
from flinkmagic.jvm.java import is_gone
from flinkmagic.planning.planner import PlannedJob
from flinkmagic.planning.sinks import PlannedSink
from flinkmagic.scheduling.execution_graph_info import ExecutionGraphInfo
from flinkmagic.scheduling.failover.restart_strategy import NoRestartBackoffTimeStrategy, RestartBackoffTimeStrategy
from flinkmagic.scheduling.job_manager_runner import OnCompletion
from flinkmagic.scheduling.job_master import JobMaster
from flinkmagic.scheduling.job_status import JobListener, JobStatus
from flinkmagic.scheduling.recovery.job_graph_store import StoredJob
from flinkmagic.scheduling.recovery.job_journal import JobJournal

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


_PROGRESS = "=== Streaming Query ==="
"""From here on, the text of a StreamingQueryException says how far the query had come (on 3.5.9 and 4.3.0)."""


@dataclass(frozen=True)
class StartedQuery:
    """A query that has started before the job that takes it over."""

    java_query: Any
    """Spark's query."""
    starter: QueryStarter
    """Has started it, and starts it again."""


class StreamingDeployment(Deployment):
    """Runs the queries of a compiled job, which have started: whoever starts them is told by Spark what it refuses.

    Spark runs each query as a whole, batch by batch; for the scheduler it is the tasks of one pipelined region, which
    start, fail and restart together.

    Parameters
    ----------
    started : mapping of int to StartedQuery
        The queries of this run, by the index of their sink.
    slots : int, optional
        How many slots the job is said to have; by default all of the session's.
    restart_strategy : RestartBackoffTimeStrategy, optional
        Whether a failed query is restarted, from its checkpoint; by default never.
    """

    def __init__(
        self,
        planned_job: PlannedJob,
        execution_graph: ExecutionGraph,
        *,
        spark: SparkSession,
        started: Mapping[int, StartedQuery],
        slots: int | None = None,
        restart_strategy: RestartBackoffTimeStrategy | None = None,
    ) -> None:
        super().__init__(planned_job, execution_graph, spark, slots)
        self._own = {
            stream.index: (stream, vertex)
            for stream, vertex in zip(planned_job.streams, self._vertices, strict=True)
            if vertex is not None
        }
        """The streams of this run, each with its sink's vertex, by the index of the sink."""
        self._starters = {index: one.starter for index, one in started.items()}
        self._queries = {index: one.java_query for index, one in started.items()}
        """Spark's queries, by the index of their sink: at first those to take over."""
        self._to_take_over = set(started)
        self._restart_strategy = SessionRestarts(restart_strategy or NoRestartBackoffTimeStrategy())
        self._failures: dict[int, BaseException] = {}
        self._runs: dict[int, QueryRun] = {}
        self._progress = {index: QueryProgress(spark) for index in self._own}

    # -- the course of the job -------------------------------------------------------------------------

    def start(self) -> None:
        """Begin, and return immediately."""
        for stream, _ in self._own.values():
            stream.query.taken_over()
        try:
            self._submit()
        except BaseException:
            self.main_thread.stop()
            for stream, _ in self._own.values():
                stream.query.taken_over(has_job=False)
            raise

    def create_job_master_service(
        self,
        former: StoredJob | None,
        journal: JobJournal | None,
        listeners: Sequence[JobListener],
        on_over: OnCompletion,
    ) -> JobMaster:
        """Make the job's master (`JobMasterServiceFactory`)."""
        # Job vertices are in topological order: the last execution vertex of a query is its sink's last task.
        queries = {
            index: [vertex for one in with_inputs(sink) for vertex in one.vertices]
            for index, (_, sink) in self._own.items()
        }
        self._drive = BoardDrive(
            self.execution_graph,
            QueryBoard(self.execution_graph, queries),
            main_thread=self.main_thread,
            clock=self._clock,
            event_log=self.event_log,
            restart_strategy=self._restart_strategy,
            more={
                StartQuery: lambda instruction: self._start_query(instruction.index),
                StopQuery: lambda instruction: self._runs[instruction.index].stop(),
            },
        )
        self._job_master = JobMaster(
            self.execution_graph,
            main_thread=self.main_thread,
            clock=self._clock,
            factory=self._drive,
            resource_manager=self._cluster.resource_manager,
            event_log=self.event_log,
            listeners=listeners,
            on_over=partial(self._over, on_over),
        )
        return self._job_master

    def release(self) -> None:
        """Do nothing: a query keeps nothing after its end."""

    # -- what others read ------------------------------------------------------------------------------

    def tasks(self) -> list[TaskRecord]:
        """Return no records: Spark's tasks are those of batches."""
        return []

    def finished_sinks(self) -> list[PlannedSink]:
        """Return the sinks whose queries have ended by themselves."""
        pairs = zip(self._sinks, self._vertices, strict=True)
        return [sink for sink, vertex in pairs if vertex is not None and self._is_finished(vertex)]

    def result(self, name: str) -> DataFrame:
        """Return no result: a job of streams has none.

        Raises
        ------
        UnknownNameError
            Always.
        """
        raise UnknownNameError("result", name, [])

    def has_active_queries(self) -> bool:
        """Return whether a query runs in Spark, or has failed and may be started again."""
        return any(query.isActive() or query.exception().isDefined() for query in self._queries.values())

    def queries(self, *, closely: bool = False) -> dict[int, QuerySeen]:
        """Return the last batches of each query, and the tasks of the running one, by the index of its sink."""
        return {index: one.seen(closely=closely) for index, one in self._progress.items()}

    def snapshot(self) -> DeploymentSnapshot:
        """Return the job's progress. A task of a stream holds its slot as long as it runs."""
        total = self._slots or self._cluster.resource_manager.slots.total
        made = DeploymentSnapshot.of(self._job_master.request_job(), [], total)
        running = made.job.archived_execution_graph.state == ExecutionState.RUNNING.value
        widths = [int(running[one.slice].sum()) for one in self.execution_graph.job_vertices]
        return replace(made, slots_used=min(total, max(widths, default=0)))

    # -- inside ----------------------------------------------------------------------------------------

    def _start_query(self, index: int) -> None:
        (stream, _), starter = self._own[index], self._starters[index]

        def start() -> Any:
            if index in self._to_take_over:
                self._to_take_over.remove(index)
            else:
                self._queries[index] = starter.start()
                stream.query.started(self._queries[index])
            return self._queries[index]

        def started(java_query: Any) -> None:
            self._progress[index].follow(java_query)
            self._run(lambda: self._started(index))

        def ended(error: BaseException | None) -> None:
            self._progress[index].end()
            self._run(lambda: self._query_ended(index, error))

        self._runs[index] = QueryRun(stream.name, start, on_started=started, on_ended=ended)
        self.event_log.add("queries", f"{stream.name} goes to Spark")
        self._runs[index].start()

    def _started(self, index: int) -> None:
        self.event_log.add("queries", f"{self._own[index][0].name} has started")
        self._drive.tell(QueryStarted(index))

    def _query_ended(self, index: int, error: BaseException | None) -> None:
        stream, sink = self._own[index]
        self.event_log.add("queries", f"{stream.name} has ended" + ("" if error is None else " with an error"))
        failure: BaseException | None = None
        if error is not None:
            self._failures[index] = error
            facts = sink.job_vertex.operators[0].metadata or {}  # the sink is the last of its chain, listed first
            failure = vertex_failed(stream.name, error, str(error).partition(_PROGRESS)[0], facts)
            if is_gone(self._spark):
                failure = SessionLostError(self._name, type(error).__name__)
        else:
            self._failures.pop(index, None)
        self._drive.tell(QueryEnded(index, failure))

    def _give_up(self, error: BaseException) -> None:
        self._restart_strategy.is_session_gone = True
        self._job_master.scheduler.handle_global_failure(error)

    def _over(self, on_over: OnCompletion, info: ExecutionGraphInfo) -> None:
        """Record, on the job's thread, that the job is over and no query runs."""
        try:
            for index in self._to_take_over:  # the job was over before it came to them
                self._queries[index].stop()
            self._drive.close()
            for starter in self._starters.values():
                starter.close()
            for stream, _ in self._own.values():
                is_failed = info.job_status is JobStatus.FAILED
                stream.query.ended(self._failures.get(stream.index) if is_failed else None)
        finally:  # whoever waits for the job hears of its end, whatever fails here
            on_over(info)
            self.main_thread.stop()
