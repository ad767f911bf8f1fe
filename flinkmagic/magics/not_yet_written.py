"""Tells a cell that looks for missing data that a graph, compiled and not run, has yet to write it."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from flinkmagic.capturing.writes.targets import PathResolver, Target, resolve_uri
from flinkmagic.display.printable import lines_visible
from flinkmagic.jvm.java import items, session_state
from flinkmagic.magics.spark_session import running_session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from flinkmagic.capturing.writes.deferred_write import DeferredWrite
    from flinkmagic.magics.graphs import NotebookGraphs
    from flinkmagic.session import CompiledGraph

_MISSING = {"PATH_NOT_FOUND": "path", "TABLE_OR_VIEW_NOT_FOUND": "relationName"}
"""Spark's error conditions for missing paths and tables, and the parameter that names what is missing."""


class MissingTargetNotes:
    """Adds a line to an error that a known graph's run would prevent; called after each cell (``post_run_cell``)."""

    def __init__(self, shell: Any, graphs: NotebookGraphs) -> None:
        self._shell = shell
        self._graphs = graphs

    def __call__(self, result: Any) -> None:
        """Look at the error with which a cell has ended."""
        error = result.error_in_exec
        if error is None or not self._graphs:
            return
        spark = running_session(self._shell)
        missing = _missing(error, spark) if spark is not None else None
        if missing is None:
            return
        for graph, write in self._graphs.awaited():
            if missing.overlaps(write.facts.target):
                print(awaited_line(graph, write), file=sys.stderr)
                return


def awaited_line(graph: CompiledGraph, write: DeferredWrite) -> str:
    """Return a line like ``out/late has yet to be written by delays (cell 3, line 5). Run it: %flinkrun delays``."""
    job = graph.jobs[-1] if graph.jobs else None
    left_out = [sink.write.command for sink in job.left_out() if sink.write is not None] if job is not None else []
    is_running = job is not None and not job.status.is_terminal and all(one is not write.command for one in left_out)
    then = "It is running: wait for it." if is_running else f"Run it: %flinkrun {graph.name}"
    return lines_visible(f"{write.facts.label} has yet to be written by {graph.name} ({write.location}). {then}")


def _missing(error: BaseException, spark: SparkSession) -> Target | None:
    """Return what an error says is missing."""
    if isinstance(error, FileNotFoundError):
        return Target(path=resolve_uri(f"file:{error.filename}")) if isinstance(error.filename, str) else None
    condition = getattr(error, "getCondition", None) or getattr(error, "getErrorClass", None)
    parameter = _MISSING.get(condition() or "") if callable(condition) else None
    if parameter is None:
        return None
    named = str(error.getMessageParameters().get(parameter, ""))  # type: ignore[attr-defined]
    if parameter == "path":
        return PathResolver(spark).target(named)
    from flinkmagic.capturing.writes.tables import table_target

    return table_target(spark, items(session_state(spark).sqlParser().parseMultipartIdentifier(named)))
