"""The graphs that a notebook has defined."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from flinkmagic.capturing.program import Program
from flinkmagic.capturing.writes.deferred_write import DeferredWrite

if TYPE_CHECKING:
    from pyspark import SparkContext

    from flinkmagic.session import CompiledGraph, Job

MOST_PAST_RUNS = 100
"""So many runs of graphs that were replaced are remembered."""


@dataclass(frozen=True)
class PastRun:
    """What is remembered of a run whose graph was replaced: its job would keep rows and shuffle files."""

    name: str
    status: str
    elapsed_ms: float
    finished_tasks: int
    tasks: int

    @classmethod
    def of(cls, job: Job) -> PastRun:
        """A run as it is now."""
        snapshot = job.snapshot()
        finished = snapshot.task_counts.get("FINISHED", 0)
        return cls(job.name, snapshot.status, snapshot.elapsed_ms or 0.0, finished, snapshot.n_tasks)


class NotebookGraphs(dict[str, "CompiledGraph"]):
    """Graphs by their names, in the order in which their cells ran last.

    A graph is replaced when its cell runs again, also where the cell gives it another name by then. A job of the
    replaced graph goes on, and can be asked for until it is over; its earlier runs are remembered.
    """

    def __init__(self) -> None:
        super().__init__()
        self._cells: dict[str, str] = {}
        self._replaced: dict[str, Job] = {}
        self._past: deque[PastRun] = deque(maxlen=MOST_PAST_RUNS)

    def add(self, graph: CompiledGraph, cell: str | None = None) -> None:
        """Know a graph under its name from now on; `cell` is the front end's name for the cell that defines it."""
        former = [name for name, other in self._cells.items() if cell is not None and other == cell]
        for name in {*former, graph.name} & self.keys():
            replaced = self.pop(name)
            self._cells.pop(name, None)
            if replaced is not graph:
                self.note_runs(replaced)
        self[graph.name] = graph
        if cell is not None:
            self._cells[graph.name] = cell

    def note_runs(self, graph: CompiledGraph) -> None:
        """Remember the runs of a graph that is not (or no longer) known."""
        for job in graph.jobs:
            if job.status.is_terminal:
                self._past.append(PastRun.of(job))
            else:
                self._replaced[graph.name] = job

    def programs(self, context: SparkContext) -> list[Program]:
        """What the cells have captured on one SparkContext; a graph that spans several of them adds nothing."""
        return [
            graph.program
            for graph in self.values()
            if isinstance(graph.program, Program) and not graph.program.parts and graph.spark.sparkContext is context
        ]

    def awaited(self) -> list[tuple[CompiledGraph, DeferredWrite]]:
        """The writes that no run has done yet, with their graphs."""
        # The writes of a graph that spans several cells are copies, which have the command in common.
        done = [write.command for graph in self.values() for job in graph.jobs for write in job.finished_writes()]
        return [
            (graph, write)
            for graph in self.values()
            if isinstance(graph.program, Program) and not graph.program.parts
            for write in graph.program.writes
            if all(write.command is not command for command in done)
        ]

    def replaced_job(self, name: str) -> Job | None:
        """The job of a graph that was replaced under this name while the job ran, as long as it runs."""
        job = self._replaced.get(name)
        if job is not None and job.status.is_terminal:
            del self._replaced[name]
            self._past.append(PastRun.of(job))
            return None
        return job

    def replaced_jobs(self) -> list[Job]:
        """All jobs that run on although their graphs were replaced."""
        return [job for name in list(self._replaced) if (job := self.replaced_job(name)) is not None]

    def past_runs(self, name: str | None = None) -> list[PastRun]:
        """The runs of graphs that were replaced, oldest first; of one name, or all."""
        self.replaced_jobs()
        return [run for run in self._past if name is None or run.name == name]


def cell_id(shell: Any) -> str | None:
    """The front end's lasting name for the cell that is running, where it sends one (JupyterLab and Notebook do)."""
    parent = shell.get_parent() if hasattr(shell, "get_parent") else {}
    identity = (parent.get("metadata") or {}).get("cellId")
    return str(identity) if identity else None
