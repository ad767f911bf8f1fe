"""Writes the texts of `%flinkjobs`."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from flinkmagic import amounts
from flinkmagic.display.printable import lines_visible
from flinkmagic.display.text import aligned
from flinkmagic.errors.deployment import VertexFailedError
from flinkmagic.magics.line_jobs import identity

if TYPE_CHECKING:
    from flinkmagic.display.findings import Finding
    from flinkmagic.reuse.retained_answers import RetainedAnswer
    from flinkmagic.reuse.retained_results import RetainedResult
    from flinkmagic.scheduling.dispatcher import JobDetails
    from flinkmagic.scheduling.failover.exception_history import ExceptionHistoryEntry
    from flinkmagic.session import CompiledGraph, Job
    from flinkmagic.session.findings.critical_path import CriticalPath
    from flinkmagic.session.recorded_run import RecordedRun


def cancelled(job: Job) -> str:
    """Cancel a job unless it is over; return what has become of it."""
    if job.status.is_terminal:
        return f"{job.name} is {job.status} already."
    job.cancel()
    return f"{job.name} is {job.wait()}."


def jobs_table(
    graphs: Sequence[CompiledGraph],
    submitted: Sequence[JobDetails],
    place: Callable[[JobDetails], str | None],
    recorded: Sequence[RecordedRun],
) -> str:
    """Return one line for each job that was submitted: name, run, status, time, tasks.

    Jobs of graphs that were replaced come first, with the session mode's, then the runs of each graph, then the graphs
    that never ran.

    Parameters
    ----------
    place : callable
        Returns the cell and the line of a job of the session mode.
    recorded : sequence of RecordedRun
        Runs of graphs that were replaced; submitted jobs of others are `old`.
    """
    rows = [("graph", "run", "status", "time", "tasks")]
    own = [[(job, job.details()) for job in graph.jobs] for graph in graphs]
    known = {identity(details) for jobs in own for _, details in jobs}
    labels = {identity(run.details): run.label for run in recorded}
    former = {identity(job): job for job in [*(run.details for run in recorded), *submitted]}
    others = sorted((job for key, job in former.items() if key not in known), key=lambda job: job.start_ms)
    rows += [_row(job, place(job) or labels.get(identity(job), "old")) for job in others]
    for graph, jobs in zip(graphs, own, strict=True):
        if not jobs:
            rows.append((graph.name, "-", "not run", "-", str(graph.execution_graph.n_vertices)))
        rows += [_row(details, _number(job)) for job, details in jobs]
    if len(rows) == 1:
        return "No graph has been defined yet (%%flinkgraph NAME)."
    return "\n".join(aligned(rows))


_MOST_OF_A_NAME = 32
"""So many characters: what has no name is told by its code, and a line that wraps is hard to read."""


def retained_table(
    results: Sequence[RetainedResult | RetainedAnswer], graphs: Sequence[CompiledGraph], most: int | None = None
) -> str:
    """Return what later runs need not compute again, and what they would compute of the graphs' last jobs, and why.

    Parameters
    ----------
    most : int, optional
        How many results have a line; the others, which take least, have one together.
    """
    rows: list[tuple[str, ...]] = [
        ("result", "kind", "name", "size", "where", "age", "last used", "saved", "graph", "for")
    ]
    now = time.time()
    largest = sorted(results, key=lambda one: one.bytes, reverse=True)[:most]
    listed = [one for one in results if one in largest]
    for one in listed:
        ages = (amounts.age(now - one.made_at), amounts.age(now - one.used_at))
        scope = "session" if one.for_session else "job"
        kind = "shared rows" if one.kind == "boundary" else one.kind
        saved = amounts.duration(1000 * one.uses * one.seconds) if one.uses else "–"
        size = amounts.size(one.bytes)
        what = amounts.cut(lines_visible(one.what), _MOST_OF_A_NAME)
        rows.append((one.name, kind, what, size, one.place, *ages, saved, one.graph, scope))
    smaller = [one for one in results if one not in listed]
    if smaller:
        rows.append(_sum_row("smaller", smaller))
    if len(results) > 1:
        rows.append(_sum_row("results", results))
    lines = aligned(rows) if results else ["Nothing is retained."]
    for graph in graphs:
        titles = _titles(graph)
        for stage, reason in (graph.jobs[-1].not_retained() if graph.jobs else {}).items():
            lines.append(lines_visible(f"{graph.name}: every run computes {titles.get(stage, stage)}: {reason}"))
    return "\n".join(lines)


def _sum_row(what: str, results: Sequence[RetainedResult | RetainedAnswer]) -> tuple[str, ...]:
    return f"{len(results)} {what}", "", "", amounts.size(sum(one.bytes for one in results)), *6 * ("",)


def _titles(graph: CompiledGraph) -> dict[str, str]:
    """Return what readers see of a graph's vertices, by the names of their stages; a sink has a name of its own."""
    vertices = {node.vertex_id: node.title for node in graph.view("job").nodes}
    titles = {getattr(one.operator_factory, "name", ""): vertices[one.id] for one in graph.job_graph.vertices.values()}
    return titles | {sink.name: sink.name for sink in graph.sinks}


def _number(job: Job) -> str:
    """Return the number of a run, and how much of its graph it ran."""
    part = job.part()
    return f"{job.number} ({part})" if part else str(job.number)


def _row(job: JobDetails, number: str) -> tuple[str, str, str, str, str]:
    return job.name, number, str(job.status), amounts.duration(job.duration_ms), f"{job.finished_tasks}/{job.tasks}"


def errors_text(job: Job, *, full: bool) -> str:
    """Return what failed in a job and where; with `full` also what Spark's JVM said, including stack traces."""
    entries = job.exceptions()
    if not entries:
        return f"{job.name}: no errors."
    lines, told = [], set()
    for entry in entries:
        for failure in (entry.root, *entry.concurrent):
            if id(failure.error) in told:  # a query fails as a whole: all its tasks have the one error
                continue
            told.add(id(failure.error))
            lines.append(_failure_text(failure))
            if full:
                lines += [_indented(text) for text in _jvm_texts(job, failure)]
    return "\n".join(lines)


def findings_of(name: str, found: Sequence[Finding], path: CriticalPath | str | None, *, as_json: bool) -> str:
    """Return why a job took as long as it did."""
    from flinkmagic.session.findings.texts import findings_json, findings_text

    write = findings_json if as_json else findings_text
    text = write(name, found, path)
    return text if as_json else lines_visible(text)


def _failure_text(failure: ExceptionHistoryEntry) -> str:
    """Return the failure, and its executor; errors that name their task do not get the name a second time."""
    text = str(failure.error)
    if not failure.task_name or not (
        isinstance(failure.error, VertexFailedError) or text.startswith(failure.task_name)
    ):
        return lines_visible(str(failure))
    where = f" [attempt {(failure.attempt or 0) + 1} on executor {failure.resource_id}]" if failure.resource_id else ""
    first, newline, rest = text.partition("\n")
    return lines_visible(f"{first}{where}{newline}{rest}")


def _jvm_texts(job: Job, failure: ExceptionHistoryEntry) -> list[str]:
    """Return what the failed task said in full, else what Spark's job ended with."""
    told = []
    if failure.vertex is not None:
        vertex = job.execution_graph.execution_vertex(failure.vertex)
        place = (vertex.job_vertex.id, vertex.subtask)
        told = [task.error for task in job.tasks() if task.error and (task.vertex_id, task.subtask) == place]
    error = failure.error.__cause__ or failure.error
    return list(dict.fromkeys(told)) or [getattr(error, "_stackTrace", "") or str(error)]


def _indented(text: str) -> str:
    return "\n".join(f"    {line}" for line in lines_visible(text.rstrip().expandtabs(4)).split("\n"))
