"""Compiles programs to Flink's graphs, and runs them (`flinkmagic.compile`)."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from flinkmagic.capturing.merging import check_runnable, spanning
from flinkmagic.capturing.program import Program
from flinkmagic.capturing.writes.listed_inputs import check_inputs
from flinkmagic.capturing.writes.sparks_errors import is_cancelled
from flinkmagic.display import (
    GraphView,
    JobSnapshot,
    longest_line,
    mime_bundle,
    to_dot,
    to_svg,
    to_text,
)
from flinkmagic.display.printable import lines_visible
from flinkmagic.errors.deployment import computed_unshared
from flinkmagic.errors.usage import InvalidValueError, JobRunningError, UnknownNameError
from flinkmagic.graph.ancestors import with_ancestors
from flinkmagic.graph.execution_graph import ExecutionGraph
from flinkmagic.graph.job_graph import JobGraph, JobVertex
from flinkmagic.graph.job_graph_generator import create_job_graph
from flinkmagic.graph.json_report import report_execution_graph, report_job_graph, report_stream_graph
from flinkmagic.graph.stream_graph import StreamGraph
from flinkmagic.options import JobOptions, with_job_options
from flinkmagic.planning import PlannedJob
from flinkmagic.planning.run_origin import GRAPH, RunOrigin
from flinkmagic.reuse.checkpoints import checkpointed_job_id
from flinkmagic.scheduling.clock import SystemClock
from flinkmagic.session.comparison import Comparison, compare_numbered
from flinkmagic.session.findings.texts import finding_lines
from flinkmagic.session.graph_names import DEFAULT_NAME, FORMATS, VIEWS, WHOLE, check_name
from flinkmagic.session.graph_views import GraphViews
from flinkmagic.session.job import Job
from flinkmagic.session.job_planning import planned_job, program_of
from flinkmagic.session.line_as_job import root_error
from flinkmagic.session.rebinding import rebinding
from flinkmagic.session.recorded_run import RecordedRun
from flinkmagic.session.selected_sinks import SelectedSinks, select_sinks, selected_notes, sink_words
from flinkmagic.session.staleness.graph_marks import NO_MARKS
from flinkmagic.session.stream_starts import StreamStarts, begin_stream, begin_streams
from flinkmagic.session.summary import (
    graph_summary,
    left_out_note,
    not_run_note,
    region_notes,
    sharing_notes,
    sink_line,
    slots_notes,
    use_notes,
)

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from flinkmagic.capturing.source_code.source_location import CellSource
    from flinkmagic.capturing.streams.deferred_stream import DeferredStream
    from flinkmagic.capturing.writes.deferred_write import DeferredWrite
    from flinkmagic.planning.sinks import PlannedSink


@with_job_options
def compile(
    program: Program | DataFrame | Sequence[Program] | Sequence[DataFrame] | Mapping[str, DataFrame],
    name: str | None = None,
    parallelism: int | None = None,
    *,
    on_progress: Callable[[int, int], None] | None = None,
    **options: Any,
) -> CompiledGraph:
    """Compile what was captured, or DataFrames, through Flink's graphs. No Spark job is started.

    Parameters
    ----------
    program : Program, DataFrame, sequence of Program, sequence or mapping of DataFrame
        What `capture` returned: its writes are the sinks, or its results if it has no writes. Several programs become
        one graph. Each DataFrame is a result; a mapping names them.
    name : str, optional
        The graph's name, a Python identifier. The program's own name by default.
    on_progress : callable, optional
        Called after each sink is planned, with the number of planned sinks and of all.
    **options
        The options of a graph; each has its entry here when the module is loaded.

    Raises
    ------
    UserError
        If something cannot be compiled: one of its subclasses, whose text says what and where.
    """
    if name is not None:
        check_name(name)
    chosen = JobOptions(parallelism=parallelism, **options)
    return CompiledGraph(program_of(program, chosen.mode), name, chosen, on_progress=on_progress)


def start_stream(stream: DeferredStream, spark: SparkSession, cell: CellSource | None, **options: Any) -> None:
    """Start a query of a program that is still being captured: the run of its graph takes it over.

    `options` are those with which the graph will be compiled.
    """
    begin_stream(stream, spark, cell, JobOptions(**options), CompiledGraph)


class CompiledGraph:
    """A program compiled to Flink's three graphs, ready to run. Made by `compile`.

    Attributes
    ----------
    name : str
        The name under which the session knows it.
    stream_graph : StreamGraph
        Operators and the edges between them.
    job_graph : JobGraph
        Chained operators: one job vertex for each Spark stage.
    sinks : tuple of PlannedSink
        What a run writes or keeps.
    options : JobOptions
        How it is compiled and run.
    jobs : list of Job
        The runs of this graph, oldest first.
    earlier : list of RecordedRun
        The recorded runs of graphs that had this name before, oldest first.
    started : list of callable
        Called with each job that has started, by the thread that started it.
    """

    unused: Mapping[str, str] = MappingProxyType({})
    """By the name of a DataFrame, why the rows that earlier lines have kept of it are not used."""
    first_kept: Collection[str] = ()
    """The names of the DataFrames that an earlier line has computed, and that this graph is the first to keep."""

    def __init__(
        self,
        program: Program,
        name: str | None,
        options: JobOptions,
        origin: RunOrigin = GRAPH,
        on_progress: Callable[[int, int], None] | None = None,
    ) -> None:
        self.name = name or program.name or DEFAULT_NAME
        self.program = program
        self.spark = program.spark
        self.options = options
        self.jobs: list[Job] = []
        self.marks = NO_MARKS  # of stale cells, set where it is shown
        self.started: list[Callable[[Job], object]] = []
        self._starting = threading.Lock()
        self.earlier: list[RecordedRun] = []
        self._unused_plan: PlannedJob | None = None
        self._unshared_note = ""
        self._is_full = False
        self._origin = origin
        self.stream_graph: StreamGraph
        self.job_graph: JobGraph
        self._compiled: ExecutionGraph
        self._compile(on_progress)

    @property
    def execution_graph(self) -> ExecutionGraph:
        """One vertex for each parallel subtask: from the last run, or as compiled if there is none."""
        return self.jobs[-1].execution_graph if self.jobs else self._compiled

    def run(self, wait: bool = True, *, only: Iterable[str] | None = None, full: bool = False) -> Job:
        """Deploy the graph on the session's SparkContext.

        The streaming queries of a graph have started when this returns. If Spark refuses to start one, the others run,
        and then Spark's error is raised.

        The first run uses the compiled plan. A later one plans again, because a finished plan's shuffles represent its
        inputs as they were then.

        Parameters
        ----------
        wait : bool
            Return when the job has ended, successfully or not; else immediately.
        only : iterable of str, optional
            Run these sinks only, and what they are computed from: names of results, last parts of paths, tables. An
            earlier write that one of them must follow runs too, unless a run of this graph has written it. The others
            stay as they are.
        full : bool
            Compute and write all of it, even what earlier runs or a checkpoint folder hold.

        Returns
        -------
        Job
            Ask its `status`; what went wrong is in `exceptions()`.

        Raises
        ------
        JobRunningError
            If the last run is not over: two runs would write to the same targets.
        InputChangedError
            If files that a write reads have changed since its line.
        UnknownNameError, AmbiguousSinkError
            If a name of `only` fits no sink, or several.
        """
        job = self.launch(only=only, full=full)
        job.check_starts()
        if not wait:
            return job
        job.wait()
        unshared = self.run_unshared()
        if unshared is not None:
            unshared.wait()
        return unshared or job

    def launch(self, *, only: Iterable[str] | None = None, full: bool = False) -> Job:
        """Run the graph and return immediately, even if some of its queries could not start: the job knows that."""
        with self._starting:
            if self.jobs and not self.jobs[-1].status.is_terminal:
                raise JobRunningError(self.name)
            selected = None if only is None else self._select(only)
            run = frozenset(sink.index for sink in self.sinks) if selected is None else selected.run
            check_runnable(self.program)
            check_inputs(self._writes(run))
            if self.jobs:
                self.jobs[-1].restore_names()
            planned = self._unused_plan or self._compile()
            self._unused_plan = None
            names = rebinding(self.program, self.options)
            starts = self._begin_streams(planned, run)
            try:
                run -= starts.errors.keys()
                graph = ExecutionGraph(self._part(run), SystemClock().now_ms())
                notes = selected_notes(self.sinks, selected) if selected is not None else []
                notes += [self._unshared_note] if self._unshared_note else []
                job = Job(
                    self.name, planned, graph, self.spark, self.options, names,
                    views=self._views, notes=notes, full=full, starts=starts, unused=self.unused,
                    first_kept=self.first_kept,
                )  # fmt: skip
                # A job that could not be started does not belong to the graph, where it would count as running forever.
                job._start()
            except BaseException:
                starts.stop()
                raise
            self.jobs.append(job)
            self._is_full = full
            self.program.release_metrics(self._writes(run))
        for tell in tuple(self.started):
            tell(job)
        return job

    def run_unshared(self) -> Job | None:
        """Run the rest of the last run without sharing, if it has failed only because of what it shared.

        Plain Spark computes nothing for several sinks, so no shared result may make them fail. Returns immediately.

        Returns
        -------
        Job, optional
            None if the last run has not failed, or for another reason.
        """
        last = self.jobs[-1]
        names = last.failed_to_keep()
        if not names or self.program.lineage.selections:  # they must share
            return None
        error = root_error(last)
        if error is None or is_cancelled(error):  # by the user, at Spark
            return None
        self._unshared_note = computed_unshared(", ".join(names), error)
        self.options = replace(self.options, share="never")
        done = {sink.index for sink in (*last.finished_sinks(), *last.left_out())}
        left = [word for word, sink in zip(self.sink_names(), self.sinks, strict=True) if sink.index not in done]
        return self.launch(only=left if done else None, full=self._is_full)

    def _begin_streams(self, planned: PlannedJob, run: frozenset[int]) -> StreamStarts:
        """Start the queries of a run, or raise why none of them could start."""
        if not planned.streams:
            return StreamStarts()
        streams = [stream for stream in planned.streams if stream.index in run]
        starts = begin_streams(streams, self.spark, self.program.cell, self.options, CompiledGraph)
        if not starts.made:
            raise next(iter(starts.errors.values()))
        return starts

    def sink_names(self) -> list[str]:
        """Return the name of each sink in `run(only=...)`."""
        return sink_words(self.sinks)

    def _select(self, only: Iterable[str]) -> SelectedSinks:
        written = {sink.index for job in self.jobs for sink in job.finished_sinks()}
        return select_sinks(self.name, self.sinks, only, written)

    def _writes(self, run: frozenset[int]) -> list[DeferredWrite]:
        return [sink.write for sink in self.sinks if sink.index in run and sink.write is not None]

    def _part(self, run: frozenset[int]) -> JobGraph:
        """Return the part of the job graph that the sinks of a run need."""
        if len(run) == len(self.sinks):
            return self.job_graph
        return with_ancestors(self.job_graph, [self._vertex_of(self.sinks[index]).id for index in run])

    def _vertex_of(self, sink: PlannedSink) -> JobVertex:
        """Return the job vertex in which a sink ends."""
        return self.job_graph.vertices_by_operator()[sink.transformation_id]

    def only_shown(self) -> tuple[str, ...]:
        """Return the results that only read, filter and project: a cell shows them without computing them."""
        shared = {name for stage in self.shared for name in stage.sinks}
        return tuple(sink.name for sink in self.sinks if sink.only_reads and sink.name not in shared)

    def summary(self) -> str:
        """Return what the graph holds in one line, and after a run its outcome, sink by sink."""
        lines = [f"{self.name}: {self._headline()}", *self._notes()]
        if self.jobs:
            lines += self.jobs[-1].report()
        else:
            lines += [f"  {sink_line(sink)}" for sink in self.sinks]
        return lines_visible("\n".join(lines))

    def views(self) -> tuple[GraphView, ...]:
        """Return the stream, job and execution graphs as readers see them, without states."""
        return self.marks.on(self._views.all)

    def view(self, kind: str = "job") -> GraphView:
        """Return one of the graphs with the states of the last run.

        Parameters
        ----------
        kind : {"stream", "job", "execution", "regions"}

        Raises
        ------
        UnknownNameError
            If there is no such kind.
        """
        for view in self.views():
            if view.kind == kind:
                return view.paint(self._last_snapshot()) if self.jobs else view
        raise UnknownNameError("view", kind, VIEWS)

    def runs(self) -> list[RecordedRun]:
        """Return all runs under the graph's name, oldest first, as plain values; one that runs as far as it is."""
        own = {job.number for job in self.jobs}
        runs = [*(run for run in self.earlier if run.number not in own), *(job.record() for job in self.jobs)]
        return sorted(runs, key=lambda run: run.number)

    def compare(self, a: int | None = None, b: int | None = None) -> Comparison:
        """Return the measures of two runs side by side, by vertex and line, the largest difference first.

        Parameters
        ----------
        a, b : int, optional
            The numbers of the runs, as `%flinkjobs` lists them; by default the last one as `b`, and as `a` the one
            before it.

        Raises
        ------
        NoSuchRunError, NothingToCompareError
            If there is no run of that number, or only one run.
        """
        return compare_numbered(self.name, self.runs(), a, b)

    def to_dot(self, view: str = "job") -> str:
        """Return one of the graphs in Graphviz' language."""
        return to_dot(self.view(view))

    def to_svg(self, path: str | Path | None = None, view: str = "job") -> str:
        """Return one of the graphs as an SVG picture, and also write it to `path` if given."""
        picture = to_svg(self.view(view))
        if path is not None:
            Path(path).write_text(picture, encoding="utf-8")
        return picture

    def to_json(self) -> str:
        """Return all graphs as JSON, in the format that `flinkmagic compile` prints."""
        sections = {
            "name": self.name,
            "stream_graph": report_stream_graph(self.stream_graph, self.job_graph),
            "job_graph": report_job_graph(self.job_graph, self.stream_graph),
            "execution_graph": report_execution_graph(self.execution_graph),
        }
        return json.dumps(sections, indent=1, ensure_ascii=False)

    def save(self, path: str | Path, view: str = "job") -> Path:
        """Write one of the graphs to a file, by its suffix: ``.svg``, ``.dot``, ``.txt``, ``.json`` (all graphs).

        Raises
        ------
        InvalidValueError
            If the suffix is another one.
        """
        writers: dict[str, Callable[[], str]] = {
            ".svg": lambda: self.to_svg(view=view),
            ".dot": lambda: self.to_dot(view),
            ".txt": lambda: to_text(self.view(view)),
            ".json": self.to_json,
        }
        target = Path(path)
        if target.suffix not in writers:
            raise InvalidValueError(str(path), f"a file name that ends in one of {', '.join(FORMATS)}")
        target.write_text(writers[target.suffix](), encoding="utf-8")
        return target

    def mime_bundle(
        self, snapshot: JobSnapshot | None = None, kind: str | None = None, *, notes: Sequence[str] = ()
    ) -> Mapping[str, str]:
        """Return pictures and text for a notebook's output, with the states of a job if a snapshot is given.

        `kind` names the only graph to show; by default all are shown, with the job graph open. `notes` come first.
        """
        views = [view for view in self.views() if kind is None or view.kind == kind]
        if not views:
            raise UnknownNameError("view", str(kind), VIEWS)
        if snapshot is not None:
            views = [view.paint(snapshot) for view in views]
        longest = longest_line(self.views()[1], snapshot) if snapshot is not None else ""
        told = [*notes, *self._notes(), *([longest] if longest else [])]
        if not self.jobs:
            told.append(not_run_note(self.program, self._next_step()))
        elif self.jobs[-1].left_out():
            told.append(left_out_note(self.jobs[-1].left_out(), self._next_step()))
        if self.jobs and self.jobs[-1].status.is_terminal:
            told += finding_lines(self.jobs[-1].findings())
        return mime_bundle(views, summary=self._headline(), snapshot=snapshot, notes=told)

    def _notes(self) -> list[str]:
        uses, shared = use_notes(self.program), sharing_notes(self.shared)
        return [*self.marks.notes, *uses, *shared, *self._slots_notes, *self.warnings]

    def _next_step(self) -> str:
        if self.name == WHOLE and self.program.parts:
            return "Name it to run all of it as one job: %flinkgraph --name NAME"
        return f"Run it: %flinkrun {self.name}"

    def _headline(self) -> str:
        return graph_summary(self.stream_graph, self.job_graph, self._compiled, self.slots_planned_for)

    def _compile(self, on_progress: Callable[[int, int], None] | None = None) -> PlannedJob:
        """Plan the next run, and make the graphs, which show its plan."""
        planned = planned_job(spanning(self.program), self.name, self.options, self._origin, on_progress)
        self._unused_plan = planned
        self.sinks = planned.sinks
        self.shared = planned.shared
        self.warnings = planned.warnings
        self.slots_planned_for = planned.slots
        self.stream_graph = planned.environment.get_stream_graph()
        has_checkpoints = self.options.checkpoint_dir is not None
        self.job_graph = create_job_graph(
            self.stream_graph, checkpointed_job_id(self.name) if has_checkpoints else None
        )
        self._compiled = ExecutionGraph(self.job_graph)
        slots = self.options.slots
        cores = self.spark.sparkContext.defaultParallelism
        is_told = slots is None or bool(planned.streams)
        self._slots_notes = region_notes(
            self.job_graph, min(slots or cores, cores), str(self.spark.sparkContext.master)
        )
        self._slots_notes += [] if slots is None or is_told else slots_notes(self.job_graph, slots, cores)
        self._views = GraphViews(self.stream_graph, self.job_graph, self._compiled)
        return planned

    def __repr__(self) -> str:
        return f"<CompiledGraph {self.name}: {self._headline()}>"

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> Mapping[str, str]:
        return self.mime_bundle(self._last_snapshot() if self.jobs else None)

    def _last_snapshot(self) -> JobSnapshot:
        last = self.jobs[-1]
        return last.snapshot(closely=last.status.is_terminal)
