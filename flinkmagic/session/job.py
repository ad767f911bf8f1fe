"""Runs a compiled graph on the session's SparkContext."""

from __future__ import annotations

import itertools
import random
import threading
import weakref
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from flinkmagic.amounts import count, duration
from flinkmagic.deployment import Deployment, SparkDeployment, TaskRecord
from flinkmagic.deployment.session_cluster import submitted_jobs
from flinkmagic.deployment.streaming.query_progress import BatchProgress, QuerySeen
from flinkmagic.deployment.streaming.streaming_deployment import StreamingDeployment
from flinkmagic.display import ErrorView, JobSnapshot, palette, states_by_vertex
from flinkmagic.display.findings import Finding
from flinkmagic.display.measures import VertexMeasures
from flinkmagic.display.queries import query_lines
from flinkmagic.display.report import report_page
from flinkmagic.errors.actions import FIRST_USE
from flinkmagic.errors.deployment import StageAbortedError, VertexFailedError
from flinkmagic.errors.usage import InvalidValueError
from flinkmagic.graph.execution_graph import ExecutionGraph
from flinkmagic.graph.execution_state import ExecutionState
from flinkmagic.options import NO_RESTART, REFRESH_ADDED, JobOptions
from flinkmagic.planning import PlannedJob
from flinkmagic.planning.stage_metrics import caches_in, reads_of_dropped_caches
from flinkmagic.reuse.durable_rows import durable_rows
from flinkmagic.reuse.durable_store import durable_store
from flinkmagic.reuse.retention import Retention
from flinkmagic.scheduling.clock import SystemClock
from flinkmagic.scheduling.dispatcher import JobDetails
from flinkmagic.scheduling.execution_graph_info import ExecutionGraphInfo
from flinkmagic.scheduling.failover.exception_history import ExceptionHistoryEntry, RootExceptionHistoryEntry
from flinkmagic.scheduling.failover.restart_strategy import RestartBackoffTimeStrategy, parse_restart_strategy
from flinkmagic.scheduling.job_status import JobStatus
from flinkmagic.session.edge_bytes import EdgeBytes, edges
from flinkmagic.session.findings.critical_path import CriticalPath, critical_path
from flinkmagic.session.findings.facts import JobFacts
from flinkmagic.session.findings.find import find
from flinkmagic.session.findings.forecast import measured_run
from flinkmagic.session.findings.job_facts import LastStage, job_facts
from flinkmagic.session.findings.texts import finding_lines, findings_view
from flinkmagic.session.graph_views import GraphViews
from flinkmagic.session.query_views import query_view
from flinkmagic.session.rebinding import Rebinding
from flinkmagic.session.recorded_run import RecordedRun
from flinkmagic.session.run_facts import adaptation_notes, costs, run_facts, task_views
from flinkmagic.session.stream_costs import stream_costs
from flinkmagic.session.stream_starts import StreamStarts
from flinkmagic.session.summary import sink_line, taken_up_note
from flinkmagic.session.vertex_measures import spark_ui, vertex_measures
from flinkmagic.simulation.what_if import MeasuredRun

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from flinkmagic.capturing.writes.deferred_write import DeferredWrite
    from flinkmagic.planning.sinks import PlannedSink
    from flinkmagic.reuse.durable_store import DurableStore
    from flinkmagic.reuse.retained_results import RetainedResult
    from flinkmagic.session.batch_runs import BatchReport, BatchRuns


_NUMBERS: defaultdict[str, Iterator[int]] = defaultdict(partial(itertools.count, 1))
"""By the name of a graph, the numbers of its next runs."""


class _Explained(NamedTuple):
    """Why a job took as long as it did."""

    findings: tuple[Finding, ...]
    measures: Mapping[str, VertexMeasures]
    """By the id of a job vertex."""


class Job:
    """A run of a compiled graph on the session's SparkContext. Made by `CompiledGraph.run`.

    Attributes
    ----------
    name : str
        The graph's name.
    number : int
        Counted from 1 over all runs of that name in the process.
    execution_graph : ExecutionGraph
        The states of this run; changed by the job's own thread while it runs.
    streams : tuple of BatchRuns
        What runs the functions of `foreachBatch`, query by query.
    """

    def __init__(
        self,
        name: str,
        planned: PlannedJob,
        execution_graph: ExecutionGraph,
        spark: SparkSession,
        options: JobOptions,
        names: Rebinding | None,
        *,
        views: GraphViews,
        notes: Sequence[str],
        full: bool,
        starts: StreamStarts,
        unused: Mapping[str, str],
        first_kept: Iterable[str],
    ) -> None:
        self.name = name
        self.number = next(_NUMBERS[name])
        self._spark, self._views = spark, views
        self._own_notes = (*notes, *starts.notes)
        self._unused = dict(unused)
        self._first_kept = dict.fromkeys(first_kept, FIRST_USE)
        self.execution_graph = execution_graph
        self.sinks = planned.sinks
        self._is_line = planned.origin.is_line
        self._planning_ms = 1000 * planned.planning_s
        self.streams = tuple(start.batches for start in starts.made.values() if start.batches is not None)
        self._start_errors = tuple(starts.errors.values())
        self._deployment = _deployment(name, planned, execution_graph, spark, options, starts, full=full)
        # Kept rows and shuffle files live as long as this job is reachable.
        self._names = names
        self._last: LastStage | None = None
        self._path: CriticalPath | None = None
        self._are_names_bound = threading.Event()
        self._explained: _Explained | None = None
        weakref.finalize(self, _release_when_over, self._deployment, names)

    @property
    def status(self) -> JobStatus:
        """The state of the job as a whole."""
        return self._deployment.status

    def wait(self, timeout: float | None = None) -> JobStatus:
        """Wait until the job is over, or for `timeout` seconds at most; return its status."""
        status = self._deployment.wait(timeout)
        if self._deployment.termination_future.done():
            self._are_names_bound.wait()
        return status

    def check_starts(self) -> None:
        """Raise Spark's error for a query that could not start; the others run."""
        if self._start_errors:
            raise self._start_errors[0]

    def is_ending(self) -> bool:
        """Return whether all streaming queries of this job have ended, and none will be restarted."""
        return isinstance(self._deployment, StreamingDeployment) and not self._deployment.has_active_queries()

    def cancel(self) -> None:
        """End all of this job's Spark work, and nothing else of the session's; return immediately."""
        self._deployment.cancel()

    @property
    def group(self) -> str:
        """The Spark job group of its stages; empty where it has none."""
        return self._deployment.group

    def tasks(self) -> list[TaskRecord]:
        """Return one record for each attempt of each task, in the order in which Spark launched them."""
        return self._deployment.tasks()

    def finished_writes(self) -> list[DeferredWrite]:
        """Return the writes that are done."""
        return [sink.write for sink in self.finished_sinks() if sink.write is not None]

    def finished_sinks(self) -> list[PlannedSink]:
        """Return the sinks that are done: written, or with their rows kept."""
        return self._deployment.finished_sinks()

    def left_out(self) -> list[PlannedSink]:
        """Return the sinks of the graph that are not part of this run."""
        operators = self._operators(range(len(self.execution_graph.job_vertices)))
        return [sink for sink in self.sinks if sink.transformation_id not in operators]

    def part(self) -> str:
        """Return how much of its graph it ran: ``"1 of 3 sinks"``; empty if that is all."""
        run = len(self.sinks) - len(self.left_out())
        return f"{run} of {count(len(self.sinks), 'sink')}" if run < len(self.sinks) else ""

    def _operators(self, vertices: Iterable[int]) -> set[int]:
        """Return the ids of the operators of the job vertices with these indices."""
        job_vertices = self.execution_graph.job_vertices
        return {node.id for index in vertices for node in job_vertices[index].job_vertex.operators}

    def exceptions(self) -> tuple[RootExceptionHistoryEntry, ...]:
        """Return what failed, oldest first, each with the vertex, subtask, attempt and executor."""
        return self._deployment.exceptions()

    def result(self, name: str) -> DataFrame:
        """Return the rows of a result, as a DataFrame of the user's session; reading it computes nothing again.

        Parameters
        ----------
        name : str
            Of the DataFrame in the program.

        Raises
        ------
        UnknownNameError
            If the job keeps no result of that name.
        ResultNotReadyError
            If it has not been computed (yet).
        ResultLeftOutError
            If this run leaves it out.
        ResultReleasedError
            After `release`.
        """
        return self._deployment.result(name)

    def local_result(self, name: str, most_rows: int, most_bytes: int) -> DataFrame | None:
        """Return a DataFrame over a copy of a result's rows that the driver holds; None if there are more of them.

        Of a job in mode batch it raises what `result` raises. Spark reads such a DataFrame without a job, and sends its
        rows to the tasks with their code.
        """
        return self._deployment.local_result(name, most_rows, most_bytes)

    def release(self) -> None:
        """Release kept rows and shuffle files; `result` then raises.

        Raises
        ------
        JobRunningError
            If the job is not over.
        """
        self.restore_names()
        self._deployment.release()

    def restore_names(self) -> None:
        """Bind names that refer to kept rows to their definitions again."""
        if self._names is not None:
            self._names.restore()

    def info(self) -> ExecutionGraphInfo:
        """Return the scheduler's own snapshot of the job (Flink's `ExecutionGraphInfo`)."""
        return self._deployment.snapshot().job

    def details(self) -> JobDetails:
        """Return what an overview shows of the job (Flink's `JobDetails`)."""
        return JobDetails.of(self.info())

    def log(self) -> list[str]:
        """Return the job's events, oldest first, by time since its start: slots, deployments, failures, restarts."""
        events = self._deployment.event_log.events()
        return [event.since(events[0].at_ms) for event in events]

    def snapshot(self, *, closely: bool = False) -> JobSnapshot:
        """Return the job's progress, for pictures and progress lines.

        Parameters
        ----------
        closely : bool
            Look for what has lost time, and where the time of each vertex went, too. While the job runs this is done
            anew each time, and takes some milliseconds for each thousand tasks. Of a stream the bytes of its
            checkpoints are counted, on a thread of their own: a later snapshot has them.
        """
        explained = self._explain() if closely and not self._is_stream else None
        queries = self._queries(closely=closely)
        state = self._deployment.snapshot()
        info = state.job
        tasks = task_views([*state.tasks, *(() if self._last is None else self._last.tasks)])
        notes = [*self._own_notes, taken_up_note(self._deployment.taken_up), state.waiting_for]
        return JobSnapshot(
            self.name,
            info.job_status.value,
            states=states_by_vertex(info.archived_execution_graph),
            elapsed_ms=info.ended_ms - info.started_ms,
            # Spark reports a task's launch before the end of the core's last task.
            slots_used=min(state.slots_used, state.slots_total),
            slots_total=state.slots_total,
            started_at_ms=info.started_ms,
            tasks=tasks,
            errors=_error_views(info),
            note="; ".join(filter(None, notes)),
            reused=frozenset(self.reused()),
            facts=run_facts(self.execution_graph, self.edges(), self._deployment.adaptations()),
            costs={
                **costs(tasks),
                **(stream_costs(self.execution_graph, self._by_vertex(queries)) if queries else {}),
            },
            queries=[query_view(self.sinks[index].name, seen) for index, seen in queries.items()],
            findings=findings_view(explained.findings, self.critical_path()) if explained is not None else None,
            measures=explained.measures if explained is not None else {},
        )

    def record(self) -> RecordedRun:
        """Return the run as plain values, which hold nothing of Spark's."""
        return RecordedRun(self.number, self.part(), self.details(), self._views.all, self.snapshot(closely=True))

    def progress(self) -> dict[str, tuple[BatchProgress, ...]]:
        """Return the last 100 batches of each streaming query by its name, oldest first; nothing in mode batch."""
        return {self.sinks[index].name: seen.batches for index, seen in self._queries().items()}

    def reused(self) -> list[str]:
        """Return the ids of the job vertices that did not run because their results, or later ones, existed."""
        return [self.execution_graph.job_vertices[index].id for index in sorted(self._deployment.taken_up.finished)]

    @property
    def saved_seconds(self) -> float:
        """How long the results that this job did not compute again once took."""
        return self._deployment.taken_up.saved_seconds

    def found_durable(self) -> list[RetainedResult]:
        """Return the results that this job has found in a durable store."""
        return [one for one in self._deployment.taken_up.results.values() if one.is_from_store]

    @property
    def other_kernel_at(self) -> float:
        """When another kernel computed what this job has not computed again; 0.0 if none has."""
        return self._deployment.taken_up.other_kernel_at

    def failed_to_keep(self) -> list[str]:
        """Return the names of the shared DataFrames if the job has failed only because of their rows."""
        return [boundary.name for boundary in self._deployment.failed_to_keep()]

    def not_retained(self) -> dict[str, str]:
        """Return, by the name of a stage, why no later run can use its result."""
        retention = self._deployment.retention
        return dict(retention.reasons) if retention is not None else {}

    def not_used(self) -> dict[str, str]:
        """Return, by the name of a DataFrame, why rows that were kept of it are not used."""
        retention = self._deployment.retention
        return {**self._unused, **(retention.not_used if retention is not None else {})}

    @property
    def added_files(self) -> int:
        """From how many added files this job has brought earlier results up to date; 0 if it has brought none."""
        return self._deployment.taken_up.added_files

    def not_refreshed(self) -> dict[str, str]:
        """Return, by the name of a stage, why it is computed in full, although an earlier job has done so before."""
        retention = self._deployment.retention
        return dict(retention.not_refreshed) if retention is not None else {}

    @property
    def elapsed_ms(self) -> float:
        """How long the job has taken, with the stage that an action has run itself after it."""
        details = self.details()
        return details.duration_ms if self._last is None else self._last.ended_ms - details.start_ms

    def add_last_stage(self, last: LastStage) -> None:
        """Take what an action has run itself, when the job was over, for the job's last stage, in all that is told."""
        self._last = last
        self._path = self._explained = None

    def findings(self) -> tuple[Finding, ...]:
        """Return what lost time in the job, as far as it is, the most expensive first.

        What cost less than 200 ms of a slot, or 2 % of the slots' time, is left out. Streams have no findings.
        """
        return self._explain().findings

    def critical_path(self) -> CriticalPath | None:
        """Return the chain of vertices that decided how long the job took, and how long it would take otherwise.

        None of a stream, and before any task.
        """
        if self._is_stream:
            return None
        is_over = self._deployment.termination_future.done()
        graph = self.execution_graph if self._last is None else ExecutionGraph(self._last.graph)
        path = self._path or critical_path(self._facts(), graph)
        self._path = path if is_over else None  # the simulations take a while
        return path

    def measured(self) -> MeasuredRun | None:
        """Return how long the tasks and the driver took, for simulations; None of a stream."""
        return None if self._is_stream else measured_run(self._facts(), self.execution_graph)

    @property
    def _is_stream(self) -> bool:
        return isinstance(self._deployment, StreamingDeployment)

    def _explain(self) -> _Explained:
        """Return why the job took as long as it did; once it is over that is found out only once."""
        if self._explained is not None:
            return self._explained
        is_over = self._deployment.termination_future.done()
        if self._is_stream:
            explained = _Explained((), {})
        else:
            facts, ui_url = self._facts(), spark_ui(self._spark)
            measures = {vertex.id: vertex_measures(vertex, ui_url) for vertex in facts.vertices}
            explained = _Explained(find(facts), measures)
            # Whether a later cell reads a cache is not known before it is dropped.
            is_over = is_over and facts.caches <= facts.reads_of_dropped_caches.keys()
        if is_over:
            self._explained = explained
        return explained

    def _facts(self) -> JobFacts:
        started_ms = self.details().start_ms
        before = {one.name for one in submitted_jobs() if one.start_ms < started_ms}
        metrics = self._deployment.metrics()
        return replace(
            job_facts(
                self.execution_graph,
                self._deployment.snapshot(),
                partition_bytes=self._deployment.partition_bytes(),
                metrics=metrics,
                last=self._last,
            ),
            name=self.name,
            reads_of_dropped_caches=reads_of_dropped_caches(self._spark, caches_in(metrics.values())),
            not_retained=self.not_retained(),
            not_used={**self._first_kept, **self.not_used()},
            is_first=not before,
            planning_ms=self._planning_ms,
            # The jobs of lines are called by what is done: `count`.
            has_run_before=self.name in before and not self._is_line,
        )

    def report(self) -> list[str]:
        """Return the job's outcome, sink by sink; what ran differently from the plan; queries; its first findings."""
        snapshot = self.snapshot()
        told = [*query_lines(snapshot.queries), *finding_lines(self.findings())]
        return [*self._outcome(snapshot), *(f"  {line}" for line in told)]

    def save_report(self, path: str | Path) -> Path:
        """Write a report of the job to a file, to be sent: one HTML page with all tabs, that loads and runs nothing.

        Parameters
        ----------
        path : str or Path
            Its name ends in ``.html``.

        Raises
        ------
        InvalidValueError
            If it does not.
        LayoutEngineNotFoundError
            If nothing is installed that lays out pictures.
        """
        target = Path(path)
        if target.suffix != ".html":
            raise InvalidValueError(str(path), "a file name that ends in .html")
        snapshot = self.snapshot(closely=True)
        views = [view.paint(snapshot) for view in self._views.all]
        page = report_page(views, snapshot, notes=self._outcome(snapshot), events=self.log())
        target.write_text(page, encoding="utf-8")
        return target

    def _outcome(self, snapshot: JobSnapshot) -> list[str]:
        """Return how the job ended, sink by sink, and what ran differently from the plan."""
        finished = {sink.index for sink in self._deployment.finished_sinks()}
        left_out = {sink.index for sink in self.left_out()}
        counts = ", ".join(f"{number} {state}" for state, number in snapshot.task_counts.items())
        with_stage = self._ended_with_their_stage()
        ended = f"; Spark ended {with_stage} of these with the stage of the failed one" if with_stage else ""
        lines = [f"{snapshot.status} after {duration(snapshot.elapsed_ms or 0.0)} ({counts}{ended})"]
        if snapshot.note:
            lines.append(f"  {snapshot.note}")
        kept = self._operators(self._deployment.taken_up.written)
        ended_as = "CANCELED" if self.status is JobStatus.CANCELED else "FAILED"
        not_finished = palette.JOB_GLYPHS[ended_as] if self.status.is_terminal else "…"
        for sink in self.sinks:
            mark = palette.JOB_GLYPHS["FINISHED"] if sink.index in finished else not_finished
            is_left_out = sink.index in left_out
            line = sink_line(sink) + (", kept of the failed run" if sink.transformation_id in kept else "")
            lines.append(f"  - not run: {line}" if is_left_out else f"  {mark} {line}")
        notes = adaptation_notes(self.execution_graph, self._deployment.adaptations())
        return [*lines, *(f"  {note}" for note in notes)]

    def _ended_with_their_stage(self) -> int:
        """Return how many tasks failed only because Spark ended them together with a failed one."""
        graph = self.execution_graph
        failures = [failure for entry in self.exceptions() for failure in (entry.root, *entry.concurrent)]
        last = {failure.vertex: failure.error for failure in failures if failure.vertex is not None}
        aborted = [vertex for vertex, error in last.items() if isinstance(error, StageAbortedError)]
        return sum(graph.state[vertex] == ExecutionState.FAILED.value for vertex in aborted)

    def batches(self) -> list[BatchReport]:
        """Return how the last batches of `foreachBatch` ended, oldest first, query by query.

        Only the newest one of each query has its `graphs`.
        """
        return [report for stream in self.streams for report in stream.reports()]

    def edges(self) -> list[EdgeBytes]:
        """Return the real sizes of the exchanges that are written so far, partition by partition."""
        return edges(self.execution_graph, self._deployment.partition_bytes())

    def _queries(self, *, closely: bool = False) -> dict[int, QuerySeen]:
        """Return what is known of each query by the index of its sink. This asks Spark, which never calls by itself."""
        own = self._deployment
        return own.queries(closely=closely) if isinstance(own, StreamingDeployment) else {}

    def _by_vertex(self, queries: Mapping[int, QuerySeen]) -> dict[str, QuerySeen]:
        """Return what is known of each query by the id of the job vertex in which it ends."""
        ends = self.execution_graph.job_graph.vertices_by_operator()
        return {ends[self.sinks[index].transformation_id].id: seen for index, seen in queries.items()}

    def __repr__(self) -> str:
        return f"<Job {self.name}: {self.status}>"

    def _start(self) -> None:
        self._deployment.start()
        for stream in self.streams:
            self._deployment.termination_future.add_done_callback(partial(_close, stream))
        self._deployment.termination_future.add_done_callback(
            partial(_bind_names, self._deployment, self._names, self._are_names_bound)
        )


def _deployment(
    name: str,
    planned: PlannedJob,
    execution_graph: ExecutionGraph,
    spark: SparkSession,
    options: JobOptions,
    starts: StreamStarts,
    *,
    full: bool,
) -> Deployment:
    restart_strategy = _restart_strategy(options.restart)
    if planned.streams:
        return StreamingDeployment(
            planned,
            execution_graph,
            spark=spark,
            started={index: start.query for index, start in starts.made.items()},
            slots=options.slots,
            restart_strategy=restart_strategy,
        )
    return SparkDeployment(
        planned,
        execution_graph,
        spark=spark,
        slots=options.slots,
        restart_strategy=restart_strategy,
        retention=Retention(
            spark.sparkContext,
            name,
            options.retain,
            options.retain_bytes,
            full=full,
            refreshes=options.refresh == REFRESH_ADDED,
            durable=durable_rows(spark.sparkContext, store_for(options)),
        ),
        checkpoint_dir=Path(options.checkpoint_dir) if options.checkpoint_dir is not None else None,
    )


def store_for(options: JobOptions) -> DurableStore | None:
    """Return where results are stored for later kernels; None if nowhere."""
    return durable_store(options.durable, options.durable_bytes) if options.durable else None


def _restart_strategy(text: str) -> RestartBackoffTimeStrategy | None:
    if text == NO_RESTART:
        return None
    return parse_restart_strategy(text)(SystemClock(), random.Random())


def _release_when_over(deployment: Deployment, names: Rebinding | None) -> None:
    if names is not None:
        names.restore()
    deployment.termination_future.add_done_callback(lambda _: deployment.release())


def _bind_names(
    deployment: Deployment,
    names: Rebinding | None,
    are_bound: threading.Event,
    _: Future[JobStatus],
) -> None:
    """Bind the names when the job ends, on its thread."""
    try:
        if names is not None:
            names.bind(deployment)
    finally:
        are_bound.set()


def _close(stream: BatchRuns, _: Future[JobStatus]) -> None:
    stream.close()


def _error_views(info: ExecutionGraphInfo) -> list[ErrorView]:
    return [_error_view(entry.root, info) for entry in info.exception_history]


def _error_view(entry: ExceptionHistoryEntry, info: ExecutionGraphInfo) -> ErrorView:
    error = entry.error
    message, where, trace = str(error), entry.task_name or "", ""
    if isinstance(error, VertexFailedError):
        message, trace = error.cause, error.python_traceback
        where = ", ".join(part for part in (error.vertex, error.where) if part)
    if entry.vertex is None:
        return ErrorView(message, where, traceback=trace)
    vertex = info.archived_execution_graph.execution_vertex(entry.vertex)
    return ErrorView(message, where, vertex.job_vertex.id, trace)
