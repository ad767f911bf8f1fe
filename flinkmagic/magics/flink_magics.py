"""`%%flinkgraph` and its line magics."""

from __future__ import annotations

import argparse
from typing import Any

from IPython.core.magic import Magics, cell_magic, line_magic, magics_class, no_var_expand
from IPython.core.magic_arguments import argument, magic_arguments, parse_argstring
from IPython.display import display
from pyspark.sql import DataFrame
from traitlets import Bool, Int

from flinkmagic.capturing.program import CellSource, Program
from flinkmagic.errors import (
    EmptyCellError,
    InvalidParallelismError,
    NotAProgramError,
    UnknownGraphError,
    UnknownVariableError,
)
from flinkmagic.magics.cell import cell_number, compile_body, is_blank
from flinkmagic.magics.live import run_live
from flinkmagic.magics.spark_session import session_of
from flinkmagic.session import CompiledGraph, capture, check_name, check_parallelism, compile


def _parallelism(text: str) -> int:
    """A parallelism as it is typed behind an option."""
    try:
        return check_parallelism(int(text) if text.isdecimal() else text)
    except InvalidParallelismError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def _slots(text: str) -> int:
    """A number of slots as it is typed behind an option."""
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"The slots must be a whole number of at least 1, not {text!r}.")
    return int(text)


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

    def __init__(self, shell: Any) -> None:
        super().__init__(shell)
        self.graphs: dict[str, CompiledGraph] = {}

    @no_var_expand
    @magic_arguments()
    @argument("name", help="the graph's name; a variable of that name holds it")
    @argument("--parallelism", "-p", type=_parallelism, metavar="N", help="how many partitions shuffles make")
    @argument("--slots", type=_slots, metavar="N", help="how many slots its vertices may hold side by side")
    @argument("--run", action="store_true", help="run the graph as soon as it is compiled")
    @cell_magic("flinkgraph")
    def flinkgraph_cell(self, line: str, cell: str) -> Any:
        """Capture the cell's DataFrame operations, compile them, and show their graphs.

        The cell is ordinary PySpark. Its writes are deferred until the graph is run. A cell without a write makes
        the DataFrames that it binds to names, and that no other of them consumes, its results.
        """
        # What the cell raises is shown from the cell's own line on, as with IPython's own magics.
        __tracebackhide__ = True
        options = parse_argstring(self.flinkgraph_cell, line)
        name = check_name(options.name)
        if is_blank(cell):
            raise EmptyCellError(name)
        spark = session_of(self.shell)
        body = compile_body(self.shell, f"%%flinkgraph {line}", cell)
        run_at_once = options.run or self.run

        def run_pending(program: Program) -> None:
            """Deploy what the cell has deferred so far, because its next line needs it."""
            run_live(self._compile(program, name, options))

        location = CellSource(f"cell {cell_number(self.shell)}", body.filename, body.source)
        with capture(
            spark,
            name=name,
            location=location,
            namespace=self.shell.user_ns,
            run_pending=run_pending if run_at_once else None,
        ) as program:
            value = body.run(self.shell.user_ns)
        if not program.writes and (program.deployed or program.skipped):
            _say_what_is_left(program)
            return value
        graph = self._compile(program, name, options)
        self._keep(graph)
        if run_at_once:
            run_live(graph)
        else:
            display(graph)
        return value

    @no_var_expand
    @magic_arguments()
    @argument("dataframes", nargs="+", metavar="DATAFRAME", help="variables that hold DataFrames")
    @argument("--name", default="job", help="the graph's name (%(default)s)")
    @argument("--parallelism", "-p", type=_parallelism, metavar="N", help="how many partitions shuffles make")
    @argument("--slots", type=_slots, metavar="N", help="how many slots its vertices may hold side by side")
    @line_magic("flinkgraph")
    def flinkgraph_line(self, line: str) -> CompiledGraph:
        """Compile DataFrames that were made outside of a %%flinkgraph cell, as one graph."""
        options = parse_argstring(self.flinkgraph_line, line)
        frames = {name: self._frame(name) for name in options.dataframes}
        graph = self._compile(frames, check_name(options.name), options)
        self._keep(graph)
        return graph

    @no_var_expand
    @magic_arguments()
    @argument("name", help="the graph's name")
    @line_magic
    def flinkrun(self, line: str) -> None:
        """Deploy a graph on the session's SparkContext, and show it until it has ended.

        Interrupting the kernel cancels the job.
        """
        run_live(self._graph(parse_argstring(self.flinkrun, line).name))

    def _compile(self, program: Any, name: str, options: argparse.Namespace) -> CompiledGraph:
        """Compile under an option's value, else under the configured one."""
        return compile(
            program,
            name,
            parallelism=options.parallelism or self.parallelism,
            slots=options.slots or self.slots,
        )

    def _keep(self, graph: CompiledGraph) -> None:
        self.graphs[graph.name] = graph
        self.shell.user_ns[graph.name] = graph

    def _graph(self, name: str) -> CompiledGraph:
        value = self.shell.user_ns.get(name)
        if isinstance(value, CompiledGraph):
            return value
        if name in self.graphs:
            return self.graphs[name]
        raise UnknownGraphError(name, sorted(self.graphs))

    def _frame(self, name: str) -> DataFrame:
        if name not in self.shell.user_ns:
            raise UnknownVariableError(name)
        value = self.shell.user_ns[name]
        if not isinstance(value, DataFrame):
            raise NotAProgramError(value)
        return value
