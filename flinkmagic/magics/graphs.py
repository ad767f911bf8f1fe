"""Keeps the graphs that a notebook has defined."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from flinkmagic.capturing.writes.deferred_write import DeferredWrite
from flinkmagic.errors.usage import JobRunningError
from flinkmagic.magics.cell_recorder import running_again

if TYPE_CHECKING:
    from pyspark import SparkContext

    from flinkmagic.capturing.program import Program
    from flinkmagic.session import CompiledGraph, Job
    from flinkmagic.session.recorded_run import RecordedRun


MOST_RUNS = 200
MOST_ATTEMPTS = 200_000
"""So many runs of replaced graphs are recorded, with so many attempts of tasks together: some 50 MB."""

_ENDING_S = 10.0
"""How long a job may take to end when its queries have."""


class NotebookGraphs(dict[str, "CompiledGraph"]):
    """Holds graphs by name, in the order in which their cells last ran.

    A graph is replaced when its cell runs again, even if the cell gives it another name by then. A job of the replaced
    graph continues, and can be asked for until it is over; after that its run is recorded, as the earlier ones are.
    """

    def __init__(self) -> None:
        super().__init__()
        self._cells: dict[str, str] = {}
        self._replaced: dict[str, Job] = {}
        self._recorded: list[RecordedRun] = []
        """The runs of graphs that were replaced, in the order in which they were recorded."""

    def add(self, graph: CompiledGraph, cell: str | None = None) -> None:
        """Register a graph under its name; `cell` is the front end's name for the cell that defines it."""
        former = [name for name, other in self._cells.items() if cell is not None and other == cell]
        for name in {*former, graph.name} & self.keys():
            replaced = self.pop(name)
            self._cells.pop(name, None)
            if replaced is not graph:
                self.leave(replaced)
        graph.earlier = self.recorded(graph.name)
        self[graph.name] = graph
        if cell is not None:
            self._cells[graph.name] = cell

    def leave(self, graph: CompiledGraph) -> None:
        """Keep of a graph that is not (or no longer) known its running job, and its runs that are over."""
        for job in graph.jobs:
            if job.status.is_terminal:
                self._record(job)
            else:
                self._replaced[graph.name] = job

    def recorded(self, name: str) -> list[RecordedRun]:
        """Return the runs of graphs that had a name before, oldest first."""
        self.replaced_job(name)  # it may be over by now
        return self._recorded_of(name)

    def _recorded_of(self, name: str) -> list[RecordedRun]:
        return sorted((run for run in self._recorded if run.details.name == name), key=lambda run: run.number)

    def all_recorded(self) -> list[RecordedRun]:
        """Return the runs of all graphs that were replaced."""
        for name in list(self._replaced):
            self.replaced_job(name)
        return list(self._recorded)

    def _record(self, job: Job) -> None:
        if any((run.details.name, run.number) == (job.name, job.number) for run in self._recorded):
            return  # a graph of streams is left while it is known, and again later
        self._recorded.append(job.record())
        while len(self._recorded) > MOST_RUNS or sum(len(one.snapshot.tasks) for one in self._recorded) > MOST_ATTEMPTS:
            del self._recorded[0]
        for graph in self.values():
            graph.earlier = self._recorded_of(graph.name)

    def programs(self, context: SparkContext) -> list[Program]:
        """Return what the cells have captured on one SparkContext; a graph that spans several of them adds nothing."""
        return [
            graph.program for graph in self.values() if not graph.program.parts and graph.spark.sparkContext is context
        ]

    def awaited(self) -> list[tuple[CompiledGraph, DeferredWrite]]:
        """Return the writes that no run has done yet, with their graphs."""
        # The writes of a graph that spans several cells are copies that share the command.
        done = [write.command for graph in self.values() for job in graph.jobs for write in job.finished_writes()]
        return [
            (graph, write)
            for graph in self.values()
            if not graph.program.parts
            for write in graph.program.writes
            if all(write.command is not command for command in done)
        ]

    def replaced_job(self, name: str) -> Job | None:
        """Return the job of a graph that was replaced under this name while the job ran, as long as it runs."""
        job = self._replaced.get(name)
        if job is not None and job.status.is_terminal:
            del self._replaced[name]
            self._record(job)
            return None
        return job

    def check_ended(self, name: str) -> None:
        """Check that no job runs under a name; wait for one whose queries have ended.

        Raises
        ------
        JobRunningError
            If one runs.
        """
        known = self.get(name)
        jobs = [job for job in (self.replaced_job(name), known.jobs[-1] if known and known.jobs else None) if job]
        for job in jobs:
            if job.status.is_terminal:
                continue
            if job.is_ending():
                job.wait(_ENDING_S)
            if not job.status.is_terminal:
                raise JobRunningError(name)


def cell_id(shell: Any) -> str | None:
    """Return the front end's lasting name for the running cell, if it sends one (JupyterLab and Notebook do)."""
    again = running_again()
    if again is not None:
        return again.cell if again.is_lasting else None
    parent = shell.get_parent() if hasattr(shell, "get_parent") else {}
    identity = (parent.get("metadata") or {}).get("cellId")
    return str(identity) if identity else None
