"""The graphs that a notebook has defined."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from flinkmagic.capturing.program import Program

if TYPE_CHECKING:
    from pyspark import SparkContext

    from flinkmagic.session import CompiledGraph, Job


class NotebookGraphs(dict[str, "CompiledGraph"]):
    """Graphs by their names, in the order in which their cells ran last.

    A graph is replaced when its cell runs again, also where the cell gives it another name by then. A job of the
    replaced graph goes on, and can be asked for until it is over.
    """

    def __init__(self) -> None:
        super().__init__()
        self._cells: dict[str, str] = {}
        self._replaced: dict[str, Job] = {}

    def keep(self, graph: CompiledGraph, cell: str | None = None) -> None:
        """Know a graph under its name from now on; `cell` is the front end's name for the cell that defines it."""
        former = [name for name, other in self._cells.items() if cell is not None and other == cell]
        for name in {*former, graph.name} & self.keys():
            replaced = self.pop(name)
            self._cells.pop(name, None)
            if replaced is not graph and replaced.jobs and not replaced.jobs[-1].status.is_terminal:
                self._replaced[name] = replaced.jobs[-1]
        self[graph.name] = graph
        if cell is not None:
            self._cells[graph.name] = cell

    def programs(self, context: SparkContext) -> list[Program]:
        """What the cells have captured on one SparkContext; a graph that spans several of them adds nothing."""
        return [
            graph.program
            for graph in self.values()
            if isinstance(graph.program, Program)
            and not graph.program.parts
            and graph.spark.sparkContext is context
        ]

    def replaced_job(self, name: str) -> Job | None:
        """The job of a graph that was replaced under this name while the job ran, as long as it runs."""
        job = self._replaced.get(name)
        if job is not None and job.status.is_terminal:
            del self._replaced[name]
            return None
        return job

    def replaced_jobs(self) -> list[Job]:
        """All jobs that run on although their graphs were replaced."""
        return [job for name in list(self._replaced) if (job := self.replaced_job(name)) is not None]


def cell_id(shell: Any) -> str | None:
    """The front end's lasting name for the cell that is running, where it sends one (JupyterLab and Notebook do)."""
    parent = shell.get_parent() if hasattr(shell, "get_parent") else {}
    identity = (parent.get("metadata") or {}).get("cellId")
    return str(identity) if identity else None
