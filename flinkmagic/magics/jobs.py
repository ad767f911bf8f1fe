"""The texts of `%flinkjobs`."""

from __future__ import annotations

import traceback
from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from flinkmagic.session import CompiledGraph, Job


def jobs_table(graphs: Sequence[CompiledGraph], replaced: Sequence[Job] = ()) -> str:
    """One line for each run of each graph, and of replaced ones that still run: name, run, status, time, tasks."""
    rows = [("graph", "run", "status", "time", "tasks")]
    rows += [_row(job, "old") for job in replaced]
    for graph in graphs:
        if not graph.jobs:
            rows.append((graph.name, "-", "not run", "-", str(graph.execution_graph.n_vertices)))
        for number, job in enumerate(graph.jobs, start=1):
            rows.append(_row(job, str(number)))
    if len(rows) == 1:
        return "No graph has been defined yet (%%flinkgraph NAME)."
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return "\n".join(
        "  ".join(text.ljust(width) for text, width in zip(row, widths, strict=True)).rstrip() for row in rows
    )


def _row(job: Job, number: str) -> tuple[str, str, str, str, str]:
    snapshot = job.snapshot()
    finished = snapshot.task_counts.get("FINISHED", 0)
    elapsed = f"{(snapshot.elapsed_ms or 0.0) / 1000:.1f} s"
    return job.name, number, snapshot.status, elapsed, f"{finished}/{snapshot.n_tasks}"


def errors_text(job: Job, *, full: bool) -> str:
    """What failed in a job and where; with `full` what Spark's JVM said of it, stack traces and all."""
    entries = job.exceptions()
    if not entries:
        return f"{job.name}: no errors."
    lines = []
    for entry in entries:
        for failure in (entry.root, *entry.concurrent):
            lines.append(str(failure))
            if full:
                error = failure.error
                lines.append("".join(traceback.format_exception(type(error), error, error.__traceback__)))
    return "\n".join(lines)
