"""Runs a `%%flinkgraph` cell once: its options, its capture, and what is done with the result."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from IPython.display import display as show

from flinkmagic import display, session
from flinkmagic.capturing.capture_listener import StreamStartingListener
from flinkmagic.capturing.capture_mode import CaptureMode
from flinkmagic.capturing.program import Program
from flinkmagic.capturing.source_code.source_location import CellSource, SourceLocation
from flinkmagic.capturing.writes.deferred_write import DeferredWrite
from flinkmagic.display.printable import lines_visible
from flinkmagic.errors.base import is_from_signal
from flinkmagic.errors.streaming import stream_runs_plainly
from flinkmagic.errors.usage import UnnamedCheckpointError
from flinkmagic.magics.cell import cell_labels, cell_number, compile_body, name_of_cell
from flinkmagic.magics.graphs import cell_id
from flinkmagic.magics.magic_line_parser import parsed
from flinkmagic.magics.not_yet_written import awaited_line
from flinkmagic.magics.option_arguments import job_options
from flinkmagic.magics.spark_session import cell_session, running_session, say_other_python
from flinkmagic.options import STREAMING
from flinkmagic.session.graph_names import check_name
from flinkmagic.session.summary import nothing_deferred, only_shown_note

if TYPE_CHECKING:
    from IPython.display import DisplayHandle
    from pyspark.sql import SparkSession

    from flinkmagic.capturing.streams.deferred_stream import DeferredStream
    from flinkmagic.magics.compile_progress import CompileProgress
    from flinkmagic.magics.flink_magics import FlinkMagics
    from flinkmagic.session import CompiledGraph


class CapturedCell(StreamStartingListener):
    """Captures a cell, compiles it, and shows or runs its graph; deploys what its lines need, and says what they do."""

    def __init__(self, magics: FlinkMagics, line: str, cell: str) -> None:
        self._magics = magics
        self._shell = magics.shell
        self._options = parsed(magics.flinkgraph_cell, line)
        if self._options.name is None and job_options(self._options, magics)["checkpoint_dir"] is not None:
            raise UnnamedCheckpointError
        self._name = check_name(self._options.name or name_of_cell(cell_number(self._shell)))
        self._raw = f"%%flinkgraph {line}\n{cell}"
        self._is_run = bool(self._options.run or magics.run)
        self.body = compile_body(self._shell, f"%%flinkgraph {line}", cell)
        self._mode = job_options(self._options, magics)["mode"]
        self._spark: SparkSession
        self._source: CellSource
        self._progress: CompileProgress
        self._graph: CompiledGraph | None = None
        self._stream_graphs = 0
        self._shows_graphs = False
        self._output: DisplayHandle | None = None
        """The output that showed the line about the cell's progress."""
        self._is_followed = False
        """Whether a view of a run is shown below that line."""

    @contextmanager
    def captured(self) -> Iterator[None]:
        """Capture what runs inside, and compile it if that ends without an error."""
        from flinkmagic.magics.compile_progress import CompileProgress

        number, graphs = cell_number(self._shell), self._magics.graphs
        self._source = CellSource(f"cell {number}", self.body.filename, self.body.source, cell_labels(self._shell))
        cells = self._magics.cells
        with CompileProgress(self._name, widget=self._magics.progress == "widget") as progress:
            self._progress = progress
            progress.say("Spark starts" if running_session(self._shell) is None else "the cell is captured")
            # The layout engine starts while Spark plans.
            display.warm_up()
            self._spark = spark = cell_session(self._shell)
            say_other_python(spark.sparkContext)
            recording = cells.begin(self._raw, number, cell_id(self._shell)) or cells.current
            try:
                with session.capture(
                    spark,
                    name=self._name,
                    location=self._source,
                    namespace=self._shell.user_ns,
                    earlier=[*graphs.programs(spark.sparkContext), *self._magics.session_programs(spark.sparkContext)],
                    mode=self._capture_mode(),
                    listener=self,
                ) as program:
                    yield
                cells.end(recording, program)
                progress.say("Spark plans")
                self._graph = self._compiled(program, progress)
                if self._graph is not None and not self._is_followed:
                    progress.say("its graphs are drawn")
                    self._output = progress.hand_over()
            finally:
                cells.drop(recording)  # if it raised

    def finish(self) -> None:
        """Keep the graph, if there is one, and show or run it."""
        if self._graph is None:
            return
        session.warm_up(self._graph.spark)  # later kernels need not compile our Java classes again
        self._magics.define(self._graph)
        if not self._is_run:
            if self._output is None:
                show(self._graph)
            else:
                self._output.update(self._graph)
            return
        runs = len(self._graph.jobs)
        try:
            self._magics.run_graph(self._graph, at=self._output)
        except BaseException:
            if self._output is not None and len(self._graph.jobs) == runs:
                self._output.update({"text/plain": ""}, raw=True)
            raise

    def _compiled(self, program: Program, progress: CompileProgress) -> CompiledGraph | None:
        _say_what_started(program)
        if self._stream_graphs and not program.streams:
            return None  # its queries run, and what else it names is no stream
        if not (program.writes or program.results or program.streams):
            _say_what_ran(program, shows_graphs=self._shows_graphs)
            return None
        _say_what_ran_on_its_line(program)
        if self._is_run and program.streams:
            return self._graph_of_streams(program, progress)
        graph = self._magics.compiled(program, self._name, self._options, progress)
        only_shown = graph.only_shown() if self._is_run else ()
        if only_shown:
            print(only_shown_note(only_shown))
            self._is_run = len(only_shown) < len(graph.sinks)
        if only_shown and self._is_run:
            for result in only_shown:
                del program.results[result]
            graph = self._magics.compiled(program, self._name, self._options, progress)
        return graph

    def run_pending(self, program: Program) -> None:
        """Deploy what the cell has deferred so far, because its next line needs it."""
        self._is_followed = True
        if program.streams:
            streams_graph = self._graph_of_streams(program)
            if streams_graph is not None:
                self._magics.define(streams_graph)
                self._magics.run_graph(streams_graph)
                self._magics.graphs.leave(streams_graph)
            return
        self._shows_graphs = True
        graph = self._magics.compiled(program, self._name, self._options)
        try:
            self._magics.run_graph(graph)
        finally:
            self._magics.graphs.leave(graph)

    def start_stream(self, stream: DeferredStream) -> None:
        """Start a query of the cell on its line, unless the job of an earlier run is in its way."""
        self._magics.graphs.check_ended(self._next_stream_name())
        session.start_stream(stream, self._spark, self._source, **job_options(self._options, self._magics))

    def _graph_of_streams(self, program: Program, progress: CompileProgress | None = None) -> CompiledGraph | None:
        """Return the graph of queries that have started; None, and say so, if none can be made."""
        name = self._next_stream_name()
        self._stream_graphs += 1
        try:
            return self._magics.compiled(program, name, self._options, progress)
        except Exception as error:  # the queries run
            for stream in program.streams:
                stream.query.taken_over(has_job=False)
            if is_from_signal(error):
                raise
            where = ", ".join(str(stream.location) for stream in program.streams)
            print(lines_visible(stream_runs_plainly(where, error)))
            return None

    def _next_stream_name(self) -> str:
        """Return the name of the next graph: a cell whose lines wait for their streams has one for each such line."""
        return f"{self._name}_{self._stream_graphs + 1}" if self._stream_graphs else self._name

    def awaited(self) -> list[DeferredWrite]:
        """Return the writes that other graphs of the notebook have captured, and not run."""
        return [write for _, write in self._awaited()]

    def awaited_read(self, location: SourceLocation, write: DeferredWrite) -> None:
        """Say that a line has read what such a write is yet to make."""
        line = next(awaited_line(graph, one) for graph, one in self._awaited() if one is write)
        print(f"{location}: read as it is now; {line}")

    def write_deferred(self, pending: int) -> None:
        """Say how many writes the cell has captured."""
        self._progress.captured(pending)

    def _awaited(self) -> list[tuple[CompiledGraph, DeferredWrite]]:
        return [(graph, write) for graph, write in self._magics.graphs.awaited() if graph.name != self._name]

    def _capture_mode(self) -> CaptureMode:
        if self._mode == STREAMING:
            return CaptureMode.STREAMING_RUN if self._is_run else CaptureMode.STREAMING
        return CaptureMode.RUN if self._is_run else CaptureMode.BATCH


def _say_what_started(program: Program) -> None:
    """Say which lines have started streaming queries, and the option that makes a job of them."""
    for started in program.eager.streams:
        told = f"{started.location}: the stream has started. With --mode streaming it is a graph, and its run a job."
        print(lines_visible(told))


def _say_what_ran(program: Program, *, shows_graphs: bool) -> None:
    """Say why a cell has no graph: it has no sink, or each of its writes ran on the way."""
    for write in program.eager.writes:
        print(
            lines_visible(
                f"{write.location}: written to {write.facts.label}, because a later line of the cell needed it."
            )
        )
    for skipped in program.eager.skipped:
        print(lines_visible(f"{skipped.location}: nothing to do, {skipped.path} exists and the mode is 'ignore'."))
    _say_what_ran_on_its_line(program)
    print(nothing_deferred(program, shows_graphs=shows_graphs))


def _say_what_ran_on_its_line(program: Program) -> None:
    """Say which lines have changed rows already: running the cell again would repeat that."""
    for statement in program.eager.statements:
        print(lines_visible(f"{statement.location}: {statement.text} has run: it cannot be put off."))
