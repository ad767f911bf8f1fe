"""`flinkmagic.compile` and what it returns."""

from __future__ import annotations

import keyword
import threading
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from flinkmagic.capturing.program import Program
from flinkmagic.display import (
    GraphView,
    JobSnapshot,
    execution_view,
    job_view,
    mime_bundle,
    stream_view,
)
from flinkmagic.errors import (
    InvalidNameError,
    InvalidParallelismError,
    NoResultError,
    NotAProgramError,
    UnsupportedModeError,
)
from flinkmagic.graph.execution_graph import ExecutionGraph, build_execution_graph
from flinkmagic.graph.job_graph import JobGraph
from flinkmagic.graph.job_graph_generator import create_job_graph
from flinkmagic.graph.stream_graph import StreamGraph
from flinkmagic.planning import PlannedJob, plan
from flinkmagic.session.job import Job
from flinkmagic.session.summary import graph_summary, sharing_notes, sink_line

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

DEFAULT_NAME = "job"


def compile(
    program: Program | DataFrame | Sequence[DataFrame] | Mapping[str, DataFrame],
    name: str | None = None,
    parallelism: int | None = None,
    mode: str = "batch",
    *,
    slots: int | None = None,
) -> CompiledGraph:
    """Compile what was captured, or DataFrames, through Flink's graphs. No Spark job is started.

    Parameters
    ----------
    program : Program, DataFrame, sequence or mapping of DataFrame
        What `capture` gave: its writes, or without one its results, are the sinks. Of DataFrames each is a
        result; a mapping names them.
    name : str, optional
        The graph's name, a Python identifier. The program's own name by default.
    parallelism : int, optional
        How many partitions shuffles make. By default the smaller of ``spark.sql.shuffle.partitions`` and twice
        the slots.
    mode : {"batch"}
        The runtime mode.
    slots : int, optional
        How many slots the job's vertices may hold side by side. By default all of the session's cores.

    Returns
    -------
    CompiledGraph

    Raises
    ------
    UserError
        One of its subclasses for each thing that cannot be compiled: its text says what and where.
    """
    if mode != "batch":
        raise UnsupportedModeError(mode)
    for number in (parallelism, slots):
        if number is not None:
            check_parallelism(number)
    if name is not None:
        check_name(name)
    return CompiledGraph(_sinks_of(program), name, parallelism, slots)


def check_name(name: str) -> str:
    """Return a graph's name, which must be able to be a variable.

    Raises
    ------
    InvalidNameError
        Where it is no identifier, or a keyword.
    """
    if not isinstance(name, str) or not name.isidentifier() or keyword.iskeyword(name):
        raise InvalidNameError(str(name))
    return name


def check_parallelism(number: Any) -> int:
    """Return a parallelism, which must be a whole number of at least 1.

    Raises
    ------
    InvalidParallelismError
        Where it is not.
    """
    if isinstance(number, bool) or not isinstance(number, int) or number < 1:
        raise InvalidParallelismError(number)
    return number


def _sinks_of(program: Any) -> Program | dict[str, DataFrame]:
    from pyspark.sql import DataFrame

    if isinstance(program, Program):
        if not program.writes and not program.results:
            raise NoResultError(program.name or DEFAULT_NAME)
        return program
    if isinstance(program, DataFrame):
        return {"result": program}
    if isinstance(program, Mapping):
        named = dict(program)
    elif isinstance(program, Sequence) and not isinstance(program, str):
        named = {f"result{number}": frame for number, frame in enumerate(program, start=1)}
    else:
        raise NotAProgramError(program)
    for frame in named.values():
        if not isinstance(frame, DataFrame):
            raise NotAProgramError(frame)
    if not named:
        raise NoResultError(DEFAULT_NAME)
    return named


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
    jobs : list of Job
        The runs of this graph, oldest first.
    """

    def __init__(
        self,
        program: Program | dict[str, DataFrame],
        name: str | None,
        parallelism: int | None,
        slots: int | None,
    ) -> None:
        captured = program.name if isinstance(program, Program) else None
        self.name = name or captured or DEFAULT_NAME
        self.program = program
        self.spark: SparkSession = (
            program.spark if isinstance(program, Program) else next(iter(program.values())).sparkSession
        )
        self.parallelism = parallelism
        self.slots = slots
        self.jobs: list[Job] = []
        self._starting = threading.Lock()
        planned = self._plan()
        # The plan that was shown is the plan of the first run; later runs plan anew (see `run`).
        self._unused_plan: PlannedJob | None = planned
        self.sinks = planned.sinks
        self.shared = planned.shared
        self.warnings = planned.warnings
        self._slots_planned_for = planned.slots
        self.stream_graph: StreamGraph = planned.environment.get_stream_graph()
        self.job_graph: JobGraph = create_job_graph(self.stream_graph)
        self._compiled: ExecutionGraph = build_execution_graph(self.job_graph)
        self._views: tuple[GraphView, ...] | None = None

    @property
    def execution_graph(self) -> ExecutionGraph:
        """One vertex for each parallel subtask: the last run's, or before a run the compiled one."""
        return self.jobs[-1].execution_graph if self.jobs else self._compiled

    def run(self, wait: bool = True) -> Job:
        """Deploy the graph on the session's SparkContext.

        The first run takes the plan that was compiled. A later one plans anew, because a finished plan's shuffles
        stand for what its inputs were then.

        Parameters
        ----------
        wait : bool
            Return when the job has ended, well or not; else at once.

        Returns
        -------
        Job
            Ask its `status`; what went wrong is in `exceptions()`.
        """
        with self._starting:
            planned, self._unused_plan = self._unused_plan, None
            if planned is None:
                planned = self._plan()
                self.stream_graph = planned.environment.get_stream_graph()
                self.job_graph = create_job_graph(self.stream_graph)
                self._compiled = build_execution_graph(self.job_graph)
                self._views = None
            execution_graph = build_execution_graph(self.job_graph) if self.jobs else self._compiled
            job = Job(self.name, planned, execution_graph, self.spark, self.slots)
            self.jobs.append(job)
        job._start()
        if wait:
            job.wait()
        return job

    def summary(self) -> str:
        """What the graph holds, in a line, and after a run what became of it, sink by sink."""
        lines = [f"{self.name}: {self._headline()}", *sharing_notes(self.shared), *self.warnings]
        if self.jobs:
            lines += self.jobs[-1].report()
        else:
            lines += [f"  {sink_line(sink)}" for sink in self.sinks]
        return "\n".join(lines)

    def views(self) -> tuple[GraphView, ...]:
        """The stream, job and execution graph as a reader is shown them, without states."""
        if self._views is None:
            self._views = (
                stream_view(self.stream_graph, self.job_graph),
                job_view(self.job_graph),
                execution_view(self._compiled),
            )
        return self._views

    def mime_bundle(self, snapshot: JobSnapshot | None = None) -> Mapping[str, str]:
        """Pictures and text for a notebook's output, painted with a job's states where a snapshot is given."""
        views = self.views()
        if snapshot is not None:
            views = tuple(view.paint(snapshot) for view in views)
        notes = [*sharing_notes(self.shared), *self.warnings]
        return mime_bundle(views, summary=self._headline(), snapshot=snapshot, notes=notes)

    def _headline(self) -> str:
        return graph_summary(self.stream_graph, self.job_graph, self._compiled, self._slots_planned_for)

    def _plan(self) -> PlannedJob:
        return plan(self.program, parallelism=self.parallelism, slots=self.slots, name=self.name)

    def __repr__(self) -> str:
        return f"<CompiledGraph {self.name}: {self._headline()}>"

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> Mapping[str, str]:
        return self.mime_bundle(self.jobs[-1].snapshot() if self.jobs else None)
