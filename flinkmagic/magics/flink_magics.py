"""Defines `%%flinkgraph` and the line magics."""

from __future__ import annotations

import builtins
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from IPython.core.error import UsageError
from IPython.core.magic import Magics, cell_magic, line_magic, magics_class
from IPython.core.magic_arguments import argument
from IPython.display import display as show
from pyspark.sql import DataFrame
from traitlets import Bool, Enum

from flinkmagic import session
from flinkmagic.capturing.hooks.current_capture import outside_captures
from flinkmagic.capturing.merging import over_frames
from flinkmagic.capturing.results import last_frames
from flinkmagic.display import to_table
from flinkmagic.display.printable import lines_visible
from flinkmagic.errors.capturing import TopLevelAwaitError
from flinkmagic.errors.usage import (
    InvalidValueError,
    JobRunningError,
    NeverRunError,
    NoGraphError,
    NoSuchRunError,
    ReservedNameError,
    UnknownNameError,
)
from flinkmagic.free_names import free_name
from flinkmagic.magics.captured_cell import CapturedCell
from flinkmagic.magics.cell import is_blank
from flinkmagic.magics.cell_recorder import CellRecorder
from flinkmagic.magics.graphs import NotebookGraphs, cell_id
from flinkmagic.magics.jobs import cancelled, errors_text, findings_of, jobs_table, retained_table
from flinkmagic.magics.line_jobs import LineJobs
from flinkmagic.magics.magic_line_parser import parsed, with_arguments
from flinkmagic.magics.option_arguments import ConfiguredOptions, job_arguments, job_options, simulation_arguments
from flinkmagic.magics.spark_session import running_session
from flinkmagic.magics.stale_runs import check_stale_words, run_or_list_stale
from flinkmagic.magics.tracebacks import plainly_interrupted
from flinkmagic.options import COUNT, STREAMING, typed
from flinkmagic.session.graph_names import DEFAULT_NAME, FORMATS, ON, RESERVED, VIEWS, WHOLE, check_name
from flinkmagic.session.staleness.graph_marks import stale_marks
from flinkmagic.simulation.arguments import asked_for

RUN_HELP = "run a cell's graph as soon as it is compiled"
SHOWN_INLINE = 5
"""So many jobs of an event log are stored in a notebook with their pictures."""
MOST_RETAINED = 20
"""So many results have a line each where those of all graphs are listed."""
DEFAULT_RESULT = "result"
"""The name of a DataFrame that is given by an expression."""

if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Callable, Sequence

    from IPython.display import DisplayHandle
    from pyspark import SparkContext

    from flinkmagic.capturing.program import Program
    from flinkmagic.display.snapshot import GraphView, JobSnapshot
    from flinkmagic.magics.compile_progress import CompileProgress
    from flinkmagic.session import CompiledGraph, Job
    from flinkmagic.session.recorded_run import RecordedRun


@magics_class
class FlinkMagics(ConfiguredOptions, Magics):
    """The magics of flinkmagic; `%config FlinkMagics` lists and sets their defaults."""

    run = Bool(False, help=f"{RUN_HELP[0].upper()}{RUN_HELP[1:]}.").tag(config=True)
    session = Bool(False, help="Drive each cell, without a magic in it (%flinkgraph on).").tag(config=True)
    progress = Enum(
        ["widget", "line"],
        "widget",
        help="How a notebook shows a running job: the live view, or a line of text.",
    ).tag(config=True)
    class_archive = Bool(
        True, help="Keep the JVM's classes for later kernels, so that they start faster (200 MB in the cache folder)."
    ).tag(config=True)

    def __init__(self, shell: Any) -> None:
        super().__init__(shell)
        self.graphs = NotebookGraphs()
        self.line_jobs = LineJobs()
        self.cells = CellRecorder(shell)
        self.session_programs: Callable[[SparkContext], list[Program]] = lambda context: []

    @with_arguments("%flinkgraph")
    @argument("name", nargs="?", help="the graph's name; a variable of this name holds it (cell_N)")
    @job_arguments
    @argument("--run", action="store_true", help=RUN_HELP)
    @cell_magic("flinkgraph")
    def flinkgraph_cell(self, line: str, cell: str) -> Any:
        """Capture the cell's DataFrame operations, compile them, and show their graphs.

        The cell is ordinary PySpark. Its sinks are its writes, which are deferred until the graph runs; if the cell
        writes nothing, they are the DataFrames that it names and does nothing else with. %flinkrun NAME deploys the
        graph, %flinkshow follows it, %flinkcancel ends it, %flinkjobs lists what ran; %flinkgraph on drives each cell.

            %%flinkgraph delays
            late.write.parquet("out/late")
        """
        __tracebackhide__ = True  # as with IPython's own magics, what the cell raises is shown from its line on
        run = CapturedCell(self, line, cell)
        if is_blank(cell):
            print("nothing to compile: the cell is empty")
            return None
        if run.body.awaits_at is not None:
            raise TopLevelAwaitError(run.body.awaits_at)
        with plainly_interrupted(self.shell):
            with run.captured():
                value = run.body.run(self.shell.user_ns)
            run.finish()
        return value

    async def flinkgraph_awaiting(self, line: str, cell: str) -> Any:
        """Run a cell that awaits at its top level (see `cell_text`)."""
        __tracebackhide__ = True
        run = CapturedCell(self, line, cell)
        with outside_captures(), plainly_interrupted(self.shell):
            with run.captured():
                value = await run.body.run_awaiting(self.shell.user_ns)
            run.finish()
        return value

    @with_arguments("flinkgraph")
    @argument(
        "names",
        nargs="*",
        metavar="WHAT",
        help="on or off: the session mode; or a graph, or DataFrames: names, expressions; none: all graphs",
    )
    @argument("--name", help="the name of the graph made from DataFrames (job), or from all graphs")
    @job_arguments
    @argument("--view", choices=VIEWS, help="show this one of its graphs")
    @argument("--save", metavar="FILE", help=f"write the picture to a file instead: {', '.join(FORMATS)}")
    @line_magic("flinkgraph")
    def flinkgraph_line(self, line: str) -> CompiledGraph | None:
        """Show a graph again, or compile DataFrames that were made outside a %%flinkgraph cell.

        Without names: all that the session has defined, as one graph. With --name it is kept, and can be run.

        While the session mode is on, each cell is captured as it runs: nothing is deferred, and what it writes is
        driven as a graph. It turns on with the word on, and off with the word off.

            %flinkgraph                                the whole session's graph, with what is stale
            %flinkgraph delays --view regions          one graph of the job `delays`
            %flinkgraph delays --save delays.svg       its job graph, as a file
            %flinkgraph late slow --name both          a graph of two DataFrames; %flinkrun both runs it
            %flinkgraph on                             the session mode
            %flinkgraph on --durable ~/kept            the same, with answers and rows that outlive the kernel
        """
        options = parsed(self.flinkgraph_line, line)
        if not RESERVED.isdisjoint(options.names):
            self._turn_session(options)
            return None
        values = {name: self._value(name) for name in options.names}
        graph = next(iter(values.values())) if len(values) == 1 else None
        if not isinstance(graph, session.CompiledGraph):
            graph = self._of_frames(values, options) if values else self._of_all(options)
        stale = self.cells.stale(running_session(self.shell))
        graph.marks = stale_marks(graph.stream_graph, graph.job_graph, stale)
        if options.save:
            print(f"Written to {graph.save(options.save, options.view or 'job')}")
            return None
        if options.view:
            show(graph.mime_bundle(kind=options.view), raw=True)
            return None
        return graph

    @with_arguments("flinkrun")
    @argument("name", nargs="?", help="the graph's name")
    @argument("--detach", action="store_true", help="return the prompt immediately; the view continues")
    @argument(
        "--only",
        nargs="+",
        action="extend",
        metavar="SINK",
        help="run these sinks only, and what they are computed from",
    )
    @argument("--full", action="store_true", help="compute and write all, whatever earlier runs have left")
    @argument("--stale", action="store_true", help="list the cells whose results are stale, and why")
    @argument("--yes", action="store_true", help="with --stale: execute these cells' code again, effects included")
    @line_magic
    def flinkrun(self, line: str) -> None:
        """Deploy a graph on the session's SparkContext, and show it until it has ended.

        Interrupting the kernel cancels the job. SINK is the variable of a result, the last part of a path, or a table.

        With --stale: list the cells whose inputs have changed since they ran: files, settings, what other cells define.
        The cells of %%flinkgraph are known, and those that ran while the session mode was on.
        """
        options = parsed(self.flinkrun, line)
        if check_stale_words(options):
            run_or_list_stale(self.shell, self.cells, running_session(self.shell), yes=options.yes)
            return
        with plainly_interrupted(self.shell):
            graph = self._graph(options.name)
            self.run_graph(graph, detach=options.detach, only=options.only, full=options.full)

    @with_arguments("flinkcancel")
    @argument("name", help="the graph's name; or cell_N: what runs of a cell of the session mode")
    @line_magic
    def flinkcancel(self, line: str) -> None:
        """Cancel a graph's running job: all of its Spark work ends, and nothing else of the session's."""
        name = parsed(self.flinkcancel, line).name
        print("\n".join(self.line_jobs.cancel(name) or [cancelled(self._job(name))]))

    @with_arguments("flinkshow")
    @argument("name", help="the graph's name; or cell_N: a cell of the session mode")
    @argument("--run", type=int, metavar="RUN", help="one of its runs, as %%flinkjobs numbers them; a line of the cell")
    @line_magic
    def flinkshow(self, line: str) -> None:
        """Show the live view of a graph, with Run, and Cancel while it runs; or one of its runs that is over."""
        from flinkmagic.magics.live import show_live, show_recorded

        options = parsed(self.flinkshow, line)
        recorded = self._recorded(options.name, options.run)
        if recorded is None:
            show_live(self._graph(options.name))
        else:
            show_recorded(*recorded)

    @with_arguments("flinkjobs")
    @argument("name", nargs="?", help="one graph's; without it all")
    @argument("--errors", action="store_true", help="what failed, and where")
    @argument("--full", action="store_true", help="errors with the JVM's stack traces")
    @argument("--log", action="store_true", help="the job's events: slots, deployments, states, failures")
    @argument("--findings", action="store_true", help="why it took so long: what lost time, on which line, and a cure")
    @argument(
        "--compare",
        nargs="*",
        type=int,
        metavar="RUN",
        help="two runs side by side, by vertex and line: the last two, or one and the last, or two",
    )
    @argument("--json", action="store_true", help="findings, or the comparison, as JSON, for programs")
    @argument("--retained", action="store_true", help="what later runs need not compute again")
    @argument("--release", metavar="RESULT", help="release a retained result, all of a graph's, or all")
    @line_magic
    def flinkjobs(self, line: str) -> None:
        """List the session's jobs, or describe the last one of a graph."""
        options = parsed(self.flinkjobs, line)
        submitted = self.line_jobs.submitted(options.name)
        graphs = list(self.graphs.values())
        if options.name:
            graphs = [self._graph(options.name)] if not submitted or options.name in self.graphs else []
        if options.release or options.retained:
            self._show_retained(options.release, graphs, options.name)
        elif options.log or options.errors or options.full:
            for job in self._last_jobs(options.name, graphs):
                log = lines_visible("\n".join(job.log())) if options.log else ""
                print(log or errors_text(job, full=options.full))
        elif options.compare is not None:
            print(self._compared(options))
        elif options.findings or options.json:
            lines = self.line_jobs.findings(options.name)
            for job in self._last_jobs(options.name, graphs) if graphs or not lines else ():
                if job.streams and not options.json:
                    print(f"{job.name}: what its streams lose time with is not looked for; %flinkjobs {job.name}")
                    continue
                print(findings_of(job.name, job.findings(), job.critical_path(), as_json=options.json))
            for label, found in lines.items():
                print(findings_of(label, found.found, found.path, as_json=options.json))
        else:
            recorded = self.graphs.recorded(options.name) if options.name else self.graphs.all_recorded()
            print(jobs_table(graphs, submitted, self.line_jobs.place, recorded))
            if options.name and graphs and graphs[0].jobs:
                print("\n".join(graphs[0].jobs[-1].report()))
                print(to_table(graphs[0].view("job"), replace(graphs[0].jobs[-1].snapshot(), errors=())))

    @with_arguments("flinksim")
    @argument("name", help="the graph's name")
    @simulation_arguments
    @line_magic
    def flinksim(self, line: str) -> None:
        """Run a graph on a virtual cluster, and show it beside the run that really happened.

        After a real run, tasks take as long as they took there.
        """
        options = parsed(self.flinksim, line)
        simulated = session.simulate_graph(self._graph(options.name), **asked_for(options))
        show({"image/svg+xml": simulated.svg, "text/plain": lines_visible(simulated.text)}, raw=True)

    @with_arguments("flinkhistory")
    @argument("path", help="an event log of Spark, or a folder of them")
    @argument(
        "--jobs",
        type=typed(COUNT),
        default=SHOWN_INLINE,
        metavar="N",
        help="how many jobs, the longest ones, are shown with graphs and findings (%(default)s)",
    )
    @argument("--save", metavar="FILE", help="write one page of HTML instead")
    @line_magic
    def flinkhistory(self, line: str) -> None:
        """Show the jobs of Spark's event logs, of whatever application, and why they took so long.

        An application writes its log with spark.eventLog.enabled, below spark.eventLog.dir.

            %flinkhistory /var/log/spark/app-20260101120000-0001
            %flinkhistory /var/log/spark --jobs 20 --save history.html
        """
        from flinkmagic.history.report import histories, page

        options = parsed(self.flinkhistory, line)
        read = histories(Path(options.path).expanduser(), options.jobs)
        if options.save:
            Path(options.save).expanduser().write_text(page(read), encoding="utf-8")
            print(f"Written to {options.save}")
            return
        for history in read:
            show({"text/html": history.to_html(), "text/plain": history.to_text()}, raw=True)

    def _show_retained(self, release: str | None, graphs: list[CompiledGraph], name: str | None) -> None:
        spark = running_session(self.shell)
        kept = [one for one in session.retained(spark) if name in (None, one.graph)] if spark is not None else []
        if release is None:
            print(retained_table(kept, graphs, None if name else MOST_RETAINED))
        elif spark is None:
            raise UnknownNameError("retained result", release, [])
        else:
            gone = session.release_retained(spark, release)
            print(f"Released: {', '.join(one.name for one in gone)}.")

    def run_graph(
        self,
        graph: CompiledGraph,
        *,
        detach: bool = False,
        only: Sequence[str] | None = None,
        full: bool = False,
        at: DisplayHandle | None = None,
    ) -> None:
        """Deploy a graph, or some of its sinks, and show it (in the output `at`) until it has ended."""
        from flinkmagic.magics.live import run_live

        if self.graphs.replaced_job(graph.name) is not None:
            raise JobRunningError(graph.name)
        # A stream may never end: like `start()`, its run returns.
        detach = detach or graph.options.mode == STREAMING
        run_live(graph, detach=detach, widget=self.progress == "widget", only=only, full=full, at=at)

    def compiled(
        self, program: Any, name: str, options: Namespace, progress: CompileProgress | None = None
    ) -> CompiledGraph:
        """Compile with the given value of each option, else with the configured one."""
        on_progress = None if progress is None else progress.planned
        return session.compile(program, name, on_progress=on_progress, **job_options(options, self))

    def _of_frames(self, values: dict[str, Any], options: Namespace) -> CompiledGraph:
        """Return a graph of DataFrames that were made elsewhere; what is not a name becomes a result."""
        frames: dict[str, DataFrame] = {}
        for word, value in values.items():
            if not isinstance(value, DataFrame):
                raise InvalidValueError(type(value), "a DataFrame", word)
            frames[free_name(word if word.isidentifier() else DEFAULT_RESULT, frames, stem=DEFAULT_RESULT)] = value
        context = next(iter(frames.values())).sparkSession.sparkContext
        name = check_name(options.name or DEFAULT_NAME)
        program = over_frames(frames, self.graphs.programs(context), name, self.shell.user_ns)
        graph = self.compiled(program, name, options)
        self.define(graph)
        return graph

    def _of_all(self, options: Namespace) -> CompiledGraph:
        """Return one graph of all that the session has defined; what cells share is in it only once."""
        options.share = options.share or "always"
        spark = running_session(self.shell)
        programs = self.graphs.programs(spark.sparkContext) if spark is not None else []
        only_streams = bool(programs) and all(program.streams for program in programs)
        is_streaming = job_options(options, self)["mode"] == STREAMING or (only_streams and options.mode is None)
        if is_streaming:
            options.mode = STREAMING
        programs = [program for program in programs if bool(program.streams) == is_streaming]
        ordinary = self.session_programs(spark.sparkContext) if spark is not None and not is_streaming else []
        try:
            # A cell without the magic has no sinks: what it defines and takes no further is shown as results.
            for program in ordinary:
                program.results = last_frames(program, self.shell.user_ns)
            programs = [*(program for program in ordinary if program.results), *programs]
            if not programs:
                raise NoGraphError()
            graph = self.compiled(programs, check_name(options.name or WHOLE), options)
        finally:
            for program in ordinary:
                program.results = {}
        if options.name:
            self.define(graph)
        return graph

    def define(self, graph: CompiledGraph) -> None:
        """Register a graph under its name, and bind the variable of that name if it is free or holds a graph."""
        self.graphs.add(graph, cell_id(self.shell))
        holds = self.shell.user_ns.get(graph.name, getattr(builtins, graph.name, None))
        if holds is None or isinstance(holds, session.CompiledGraph):
            self.shell.user_ns[graph.name] = graph
        else:
            print(
                f"The variable {graph.name} stays what it is ({type(holds).__name__}). The magics know the graph by "
                f"its name: %flinkgraph {graph.name}, %flinkrun {graph.name}"
            )

    def _turn_session(self, options: Namespace) -> None:
        """Turn the session mode on or off; the word may be meant as a name if there are others."""
        word = next(word for word in options.names if word in RESERVED)
        if len(options.names) > 1:
            raise ReservedNameError(word)
        if word == ON:
            running_session(self.shell)  # refuses one of Spark Connect
        if options.durable is not None:
            self.durable = str(session.durable_store(options.durable).prepared()) if options.durable else None
        if options.durable_bytes is not None:
            self.durable_bytes = options.durable_bytes
        if options.refresh is not None:
            self.refresh = options.refresh
        self.session = word == ON
        if self.session:
            print("The session mode is on: actions and writes run as graphs, on their lines. Off: %flinkgraph off")
            if self.durable:
                print(f"Small answers and kept rows are stored in {self.durable}.")
        else:
            print("The session mode is off.")
        if isinstance(self.shell.user_ns.get(word), DataFrame):
            print(f"The DataFrame {word} can be shown under a second name: frame = {word}")

    def _known(self, name: str) -> CompiledGraph | None:
        value = self.shell.user_ns.get(name)
        return value if isinstance(value, session.CompiledGraph) else self.graphs.get(name)

    def _value(self, word: str) -> Any:
        """Return what a word after `%flinkgraph` means: a graph, or else a variable or an expression."""
        __tracebackhide__ = True
        graph = self._known(word)
        if graph is not None:
            return graph
        if word.isidentifier() and word not in self.shell.user_ns:
            raise UnknownNameError("variable", word, [*self.graphs, *self.shell.user_ns], is_listed=False)
        return self.shell.ev(word)

    def _graph(self, name: str) -> CompiledGraph:
        graph = self._known(name)
        if graph is None:
            raise UnknownNameError("graph", name, sorted(self.graphs))
        return graph

    def _recorded(self, name: str, number: int | None) -> tuple[Sequence[GraphView], JobSnapshot, str] | None:
        """Return the graphs of a run that is over, how it ended, and which it is; None for one that is shown live."""
        is_known, recorded = self._known(name) is not None, self.graphs.recorded(name)
        lines = self.line_jobs.drawn(name)
        if lines and not is_known and not recorded:
            at = list(lines)[-1] if number is None else number
            if at not in lines:
                raise NoSuchRunError(name, at, sorted(lines))
            return (*lines[at], f"line {at}")
        if number is None and (is_known or not recorded):
            return None
        from flinkmagic.session.recorded_run import numbered

        run = recorded[-1] if number is None else numbered(name, self._runs(name), number)
        return (run.views, run.snapshot, f"run {run.label}") if run.details.status.is_terminal else None

    def _runs(self, name: str) -> list[RecordedRun]:
        """Return the runs under a name, also of graphs that are no more."""
        recorded = self.graphs.recorded(name)
        graph = self._known(name)
        if graph is None and recorded:
            return recorded
        return self._graph(name).runs()

    def _compared(self, options: Namespace) -> str:
        """Return two runs side by side: the last two, a given one and the last, or two that are given."""
        if options.name is None or len(options.compare) > 2:
            raise UsageError("%flinkjobs NAME --compare [RUN [RUN]]: the name of a graph, and two runs at most")
        a, b = [*options.compare, None, None][:2]
        from flinkmagic.session.comparison import compare_numbered

        both = compare_numbered(options.name, self._runs(options.name), a, b)
        return both.to_json() if options.json else str(both)

    def _last_jobs(self, name: str | None, graphs: list[CompiledGraph]) -> list[Job]:
        return [self._job(name)] if name else [graph.jobs[-1] for graph in graphs if graph.jobs]

    def _job(self, name: str) -> Job:
        job = self.graphs.replaced_job(name)
        if job is not None:
            return job
        graph = self._graph(name)
        if not graph.jobs:
            raise NeverRunError(name)
        return graph.jobs[-1]
