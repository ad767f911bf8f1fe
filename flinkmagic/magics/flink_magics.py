"""`%%flinkgraph` and the line magics."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from IPython.core.magic import Magics, cell_magic, line_magic, magics_class, no_var_expand
from IPython.core.magic_arguments import argument, magic_arguments, parse_argstring
from IPython.display import display as show
from pyspark.sql import DataFrame
from traitlets import Bool, Enum, Int, Unicode

from flinkmagic import display, session
from flinkmagic.capturing.merging import over_frames
from flinkmagic.capturing.program import CellSource, Program
from flinkmagic.display.labels import lines_visible
from flinkmagic.errors import (
    EmptyCellError,
    JobRunningError,
    NeverRunError,
    NoGraphError,
    NotAProgramError,
    UnknownGraphError,
    UnknownVariableError,
)
from flinkmagic.magics.cell import cell_labels, cell_number, compile_body, is_blank
from flinkmagic.magics.graphs import NotebookGraphs, cell_id
from flinkmagic.magics.jobs import errors_text, jobs_table, retained_table
from flinkmagic.magics.options import count, job_arguments, job_options
from flinkmagic.magics.options import restart as restart_strategy
from flinkmagic.magics.spark_session import session_of
from flinkmagic.scheduling.scheduler_factory import SCHEDULERS
from flinkmagic.session.checks import (
    DEFAULT_NAME,
    FORMATS,
    RETAIN,
    SHARING,
    STORAGE_LEVELS,
    VIEWS,
    WHOLE,
    check_name,
)

if TYPE_CHECKING:
    from argparse import Namespace

    from flinkmagic.magics.compile_progress import CompileProgress
    from flinkmagic.session import CompiledGraph, Job


def _say_what_is_left(program: Program) -> None:
    """Tell why there is no graph of a cell whose every write was run on the way, or had nothing to do."""
    for write in program.deployed:
        print(f"{write.location}: written to {write.path}, because a later line of the cell needed it.")
    for skipped in program.skipped:
        print(f"{skipped.location}: nothing to do, {skipped.path} exists and the mode is 'ignore'.")
    print("Nothing is left to run.")


@magics_class
class FlinkMagics(Magics):
    """The magics of flinkmagic; `%config FlinkMagics` lists and sets their defaults."""

    run = Bool(False, help="Run a %%flinkgraph cell as soon as it is compiled.").tag(config=True)
    parallelism = Int(
        None,
        allow_none=True,
        min=1,
        help="How many partitions shuffles make; None: the smaller of the session's shuffle partitions "
        "and twice the slots.",
    ).tag(config=True)
    slots = Int(None, allow_none=True, min=1, help="How many slots a job may use; None: all cores.").tag(
        config=True
    )
    share = Enum(
        SHARING,
        "auto",
        help="What several sinks share and is computed once: what is worth keeping, everything but bare scans, or "
        "nothing.",
    ).tag(config=True)
    storage_level = Enum(
        STORAGE_LEVELS,
        "MEMORY_AND_DISK_DESER",
        help="Where the rows of shared DataFrames are kept: one of PySpark's storage levels.",
    ).tag(config=True)
    restart = Unicode(
        "none",
        help="Whether failed tasks are restarted: none, fixed-delay:ATTEMPTS:DELAY, "
        "failure-rate:FAILURES:INTERVAL:DELAY or exponential-delay.",
    ).tag(config=True)
    scheduler = Enum(sorted(SCHEDULERS), "default", help="Which of Flink's schedulers decides.").tag(config=True)
    retain = Enum(
        RETAIN,
        "job",
        help="For whom the results of finished stages are retained: nobody, later runs under the same name, all later "
        "graphs of the session.",
    ).tag(config=True)
    retain_bytes = Int(
        None, allow_none=True, min=0, help="How many bytes are retained at most, over all graphs; None: as it was."
    ).tag(config=True)
    checkpoint_dir = Unicode(
        None, allow_none=True, help="A folder in which is recorded how far a run came, for another kernel to take up."
    ).tag(config=True)
    progress = Enum(
        ["widget", "line"],
        "widget",
        help="How a notebook shows a running job: the live view, or a line of text.",
    ).tag(config=True)

    def __init__(self, shell: Any) -> None:
        super().__init__(shell)
        self.graphs = NotebookGraphs()

    @no_var_expand
    @magic_arguments("%flinkgraph")
    @argument("name", help="the graph's name; a variable of that name holds it")
    @job_arguments
    @argument("--run", action="store_true", help="run the graph as soon as it is compiled")
    @cell_magic("flinkgraph")
    def flinkgraph_cell(self, line: str, cell: str) -> Any:
        """Capture the cell's DataFrame operations, compile them, and show their graphs.

        The cell is ordinary PySpark. Its writes are deferred until the graph is run. A cell without a write makes
        the DataFrames that it binds to names, and that no other of them consumes, its results.
        """
        # What the cell raises is shown from the cell's own line on, as with IPython's own magics.
        __tracebackhide__ = True
        from flinkmagic.magics.compile_progress import CompileProgress

        options = parse_argstring(self.flinkgraph_cell, line)
        name = check_name(options.name)
        if is_blank(cell):
            raise EmptyCellError(name)
        # The layout engine starts while Spark plans.
        display.warm_up()
        spark = session_of(self.shell)
        body = compile_body(self.shell, f"%%flinkgraph {line}", cell)
        run_at_once = options.run or self.run

        def run_pending(program: Program) -> None:
            """Deploy what the cell has deferred so far, because its next line needs it."""
            self._run(self._compile(program, name, options))

        location = CellSource(
            f"cell {cell_number(self.shell)}", body.filename, body.source, cell_labels(self.shell)
        )
        with CompileProgress(name, widget=self.progress == "widget") as progress:
            with session.capture(
                spark,
                name=name,
                location=location,
                namespace=self.shell.user_ns,
                run_pending=run_pending if run_at_once else None,
                earlier=self.graphs.programs(spark.sparkContext),
                on_write=progress.captured,
            ) as program:
                value = body.run(self.shell.user_ns)
            if not program.writes and (program.deployed or program.skipped):
                _say_what_is_left(program)
                return value
            graph = self._compile(program, name, options, progress)
        self._keep(graph)
        if run_at_once:
            self._run(graph)
        else:
            show(graph)
        return value

    @no_var_expand
    @magic_arguments("flinkgraph")
    @argument("names", nargs="*", metavar="NAME", help="a graph, or variables that hold DataFrames; none: all graphs")
    @argument("--name", help="the name of the graph that is made of DataFrames (job), or of all graphs")
    @job_arguments
    @argument("--view", choices=VIEWS, help="show this one of its graphs")
    @argument("--save", metavar="FILE", help=f"write the picture to a file instead: {', '.join(FORMATS)}")
    @line_magic("flinkgraph")
    def flinkgraph_line(self, line: str) -> CompiledGraph | None:
        """Show a graph again, or compile DataFrames that were made outside of a %%flinkgraph cell.

        Without names: all that the session has defined, as one graph. With --name it is kept, and can be run.
        """
        options = parse_argstring(self.flinkgraph_line, line)
        graph = self._known(options.names[0]) if len(options.names) == 1 else None
        if graph is None:
            graph = self._of_frames(options) if options.names else self._of_all(options)
        if options.save:
            print(f"Written to {graph.save(options.save, options.view or 'job')}")
            return None
        if options.view:
            show(graph.mime_bundle(kind=options.view), raw=True)
            return None
        return graph

    @no_var_expand
    @magic_arguments("flinkrun")
    @argument("name", help="the graph's name")
    @argument("--detach", action="store_true", help="give the prompt back; the view goes on")
    @line_magic
    def flinkrun(self, line: str) -> None:
        """Deploy a graph on the session's SparkContext, and show it until it has ended.

        Interrupting the kernel cancels the job.
        """
        options = parse_argstring(self.flinkrun, line)
        self._run(self._graph(options.name), detach=options.detach)

    @no_var_expand
    @magic_arguments("flinkcancel")
    @argument("name", help="the graph's name")
    @line_magic
    def flinkcancel(self, line: str) -> None:
        """Cancel a graph's running job: all of its Spark work ends, and nothing else of the session's."""
        job = self._job(parse_argstring(self.flinkcancel, line).name)
        if job.status.is_terminal:
            print(f"{job.name} is {job.status} already.")
            return
        job.cancel()
        print(f"{job.name} is {job.wait()}.")

    @no_var_expand
    @magic_arguments("flinkshow")
    @argument("name", help="the graph's name")
    @line_magic
    def flinkshow(self, line: str) -> None:
        """Show the live view of a graph, with Run, and Cancel while it runs."""
        from flinkmagic.magics.live import show_live

        show_live(self._graph(parse_argstring(self.flinkshow, line).name))

    @no_var_expand
    @magic_arguments("flinkjobs")
    @argument("name", nargs="?", help="one graph's; without it all")
    @argument("--errors", action="store_true", help="what failed, and where")
    @argument("--full", action="store_true", help="errors with the JVM's stack traces")
    @argument("--log", action="store_true", help="the job's events: slots, deployments, states, failures")
    @argument("--retained", action="store_true", help="what later runs need not compute again")
    @argument("--release", metavar="RESULT", help="let go of a retained result, or of all of a graph's")
    @line_magic
    def flinkjobs(self, line: str) -> None:
        """List the session's jobs, or tell of the last one of a graph."""
        options = parse_argstring(self.flinkjobs, line)
        graphs = [self._graph(options.name)] if options.name else list(self.graphs.values())
        if options.release:
            gone = session.release_retained(session_of(self.shell), options.release)
            print(f"Released: {', '.join(one.name for one in gone)}.")
        elif options.retained:
            print(retained_table(session.retained(session_of(self.shell)), graphs))
        elif options.log or options.errors or options.full:
            jobs = (
                [self._job(options.name)]
                if options.name
                else [graph.jobs[-1] for graph in graphs if graph.jobs]
            )
            for job in jobs:
                log = lines_visible("\n".join(job.log())) if options.log else ""
                print(log or errors_text(job, full=options.full))
        else:
            print(jobs_table(graphs, self.graphs.replaced_jobs()))
            if options.name and graphs[0].jobs:
                print("\n".join(graphs[0].jobs[-1].report()))
                print(display.to_table(graphs[0].view("job"), replace(graphs[0].jobs[-1].snapshot(), errors=())))

    @no_var_expand
    @magic_arguments("flinksim")
    @argument("name", help="the graph's name")
    @argument("--task-managers", type=count, default=1, metavar="N", help="how many executors there are (1)")
    @argument("--slots", type=count, default=4, metavar="N", help="how many slots each has (4)")
    @argument("--seed", type=int, default=0, metavar="N", help="what chance follows (0)")
    @argument(
        "--task-seconds",
        action="append",
        default=[],
        metavar="[NAME=]SECONDS",
        help="how long a task works, about (1, or as long as it took)",
    )
    @argument("--fail", action="append", default=[], metavar="VERTEX:SUBTASK@TIME", help="such as Map:2@1.5s")
    @argument("--lose-task-manager", action="append", default=[], metavar="NAME@TIME", help="such as tm-1@2s")
    @argument("--faults", type=int, default=0, metavar="N", help="so many faults by chance")
    @argument("--restart", type=restart_strategy, default="fixed-delay:3:1s", help="of failed tasks (%(default)s)")
    @line_magic
    def flinksim(self, line: str) -> None:
        """Run a graph on a virtual cluster, and show it beside the run that really happened.

        After a real run tasks take as long as they took there.
        """
        options = parse_argstring(self.flinksim, line)
        simulated = session.simulate_graph(
            self._graph(options.name),
            task_managers=options.task_managers,
            slots=options.slots,
            seed=options.seed,
            task_seconds=options.task_seconds,
            fail=options.fail,
            lose_task_manager=options.lose_task_manager,
            faults=options.faults,
            restart=options.restart,
        )
        show({"image/svg+xml": simulated.svg, "text/plain": lines_visible(simulated.text)}, raw=True)

    def _run(self, graph: CompiledGraph, *, detach: bool = False) -> None:
        from flinkmagic.magics.live import run_live

        if self.graphs.replaced_job(graph.name) is not None:
            raise JobRunningError(graph.name)
        run_live(graph, detach=detach, widget=self.progress == "widget")

    def _compile(
        self, program: Any, name: str, options: Namespace, progress: CompileProgress | None = None
    ) -> CompiledGraph:
        """Compile under an option's value, else under the configured one."""
        on_progress = None if progress is None else progress.planned
        return session.compile(program, name, on_progress=on_progress, **job_options(options, self))

    def _of_frames(self, options: Namespace) -> CompiledGraph:
        """A graph of DataFrames that were made elsewhere."""
        frames = {name: self._frame(name) for name in options.names}
        context = next(iter(frames.values())).sparkSession.sparkContext
        name = check_name(options.name or DEFAULT_NAME)
        program = over_frames(frames, self.graphs.programs(context), name, self.shell.user_ns)
        graph = self._compile(program, name, options)
        self._keep(graph)
        return graph

    def _of_all(self, options: Namespace) -> CompiledGraph:
        """One graph of all that the session has defined; what cells have in common stands in it once."""
        options.share = options.share or "always"
        programs = self.graphs.programs(session_of(self.shell).sparkContext)
        if not programs:
            raise NoGraphError()
        graph = self._compile(programs, check_name(options.name or WHOLE), options)
        if options.name:
            self._keep(graph)
        return graph

    def _keep(self, graph: CompiledGraph) -> None:
        self.graphs.keep(graph, cell_id(self.shell))
        self.shell.user_ns[graph.name] = graph

    def _known(self, name: str) -> CompiledGraph | None:
        value = self.shell.user_ns.get(name)
        return (
            value
            if isinstance(value, session.CompiledGraph)
            else None
            if value is not None
            else self.graphs.get(name)
        )

    def _graph(self, name: str) -> CompiledGraph:
        graph = self._known(name)
        if graph is None:
            raise UnknownGraphError(name, sorted(self.graphs))
        return graph

    def _job(self, name: str) -> Job:
        job = self.graphs.replaced_job(name)
        if job is not None:
            return job
        graph = self._graph(name)
        if not graph.jobs:
            raise NeverRunError(name)
        return graph.jobs[-1]

    def _frame(self, name: str) -> DataFrame:
        if name not in self.shell.user_ns:
            raise UnknownVariableError(name)
        value = self.shell.user_ns[name]
        if not isinstance(value, DataFrame):
            raise NotAProgramError(value)
        return value
