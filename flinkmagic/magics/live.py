"""Shows a job while it runs, in a live view or a progress line, and its final states afterwards."""

from __future__ import annotations

import shutil
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from IPython.core.getipython import get_ipython
from IPython.display import DisplayHandle

from flinkmagic.capturing.writes.sparks_errors import release_log
from flinkmagic.display import GraphView, JobSnapshot, progress_line, to_table, to_text
from flinkmagic.display.queries import query_lines
from flinkmagic.errors.usage import JobFailedError
from flinkmagic.magics.live_view import LiveView, RecordedView, Shown, final_bundle, follow_beside, shown_at
from flinkmagic.magics.terminal import RewrittenLine
from flinkmagic.scheduling.job_status import JobStatus
from flinkmagic.session import CompiledGraph, Job
from flinkmagic.session.line_as_job import root_error, wait_or_cancel


def run_live(
    graph: CompiledGraph,
    *,
    detach: bool = False,
    widget: bool = True,
    only: Sequence[str] | None = None,
    full: bool = False,
    at: DisplayHandle | None = None,
) -> Job:
    """Run a graph and show its progress; a picture with the final states remains.

    A run that fails only for what several sinks share is followed by one in which they share nothing.

    Parameters
    ----------
    detach : bool
        Return immediately; the view continues.
    widget : bool
        Whether a notebook shows the live view, or else a progress line.
    only, full
        As `CompiledGraph.run` takes them.
    at : DisplayHandle, optional
        The output in which a notebook shows it; by default a new one.

    Raises
    ------
    JobFailedError
        If the job failed; the picture shows where.
    JobRunningError
        If the graph is running already.
    KeyboardInterrupt
        If the kernel was interrupted; the job has been cancelled by then.
    Exception
        What Spark raised for a streaming query that it refused to start; the others run.
    """
    job = graph.launch(only=only, full=full)
    while True:
        shown: Shown
        if not in_notebook():
            shown = _TerminalLine(graph, job, detached=detach)
        elif widget:
            shown = LiveView(graph, job, at=at)
        else:
            shown = _NotebookLine(graph, job, at)
        try:
            follow(graph, job, shown, detach=detach)
            break
        except JobFailedError:
            unshared = graph.run_unshared()
            if unshared is None:
                raise
            job, at = unshared, None
    job.check_starts()
    return job


def follow(graph: CompiledGraph, job: Job, shown: Shown, *, detach: bool = False) -> None:
    """Show a job that runs; wait for it, unless it is detached, and raise what it has failed with.

    Raises
    ------
    JobFailedError
        If the job failed.
    KeyboardInterrupt
        If the kernel was interrupted; the job has been cancelled by then.
    """
    watcher = follow_beside(job, shown)
    if detach:
        return
    try:
        wait_or_cancel(job)
    finally:
        watcher.join()
    if job.status is JobStatus.FAILED:
        cause = root_error(job)
        release_log(cause)
        raise JobFailedError(graph.name, failures(job)) from cause


def failures(job: Job) -> list[str]:
    """Return what ended a failed job; failures after which it was restarted are in `%flinkjobs NAME --errors`."""
    entries = job.exceptions()
    last = [entry for entry in entries if not entry.restarted] or entries
    restarts = len(entries) - len(last)
    told = [str(entry.root.error) for entry in last]
    return told if not restarts else [*told, f"(after {restarts} earlier failures and restarts)"]


def show_live(graph: CompiledGraph) -> None:
    """Show the live view of a graph, with Run if it can run and Cancel while it runs."""
    job = graph.jobs[-1] if graph.jobs else None
    if not in_notebook():
        print(to_text(graph.view("job")))
        if job is None or job.status.is_terminal:
            print(graph.summary())
            return
        snapshot = job.snapshot()
        print("\n".join([progress_line(snapshot), *query_lines(snapshot.queries)]))
        return
    LiveView(graph, job, lasting=True)


def show_recorded(views: Sequence[GraphView], snapshot: JobSnapshot, called: str) -> None:
    """Show a job that is over, with all its tabs."""
    if in_notebook():
        RecordedView(views, snapshot, called)
        return
    job_graph = next(view for view in views if view.kind == "job")
    print(f"{called}\n{to_table(job_graph.paint(snapshot), snapshot)}")


def in_notebook() -> bool:
    """Return whether a front end shows rich output, and can change it later."""
    shell = get_ipython()
    return shell is not None and hasattr(shell, "kernel")


class _NotebookLine:
    """A progress line in a notebook's output, for front ends without widgets."""

    def __init__(self, graph: CompiledGraph, job: Job, at: DisplayHandle | None) -> None:
        self._graph, self._job = graph, job
        self._handle = shown_at(at, self._line())

    def _line(self) -> Mapping[str, Any]:
        return {"text/plain": progress_line(self._job.snapshot())}

    def update(self) -> None:
        self._handle.update(self._line(), raw=True)

    def end(self) -> None:
        self._handle.update(final_bundle(self._graph, self._job), raw=True)


class _TerminalLine:
    """A progress line that is rewritten in place, and a table in the end."""

    def __init__(self, graph: CompiledGraph, job: Job, *, detached: bool = False) -> None:
        self._graph, self._job, self._detached = graph, job, detached
        self._line = RewrittenLine()

    def update(self) -> None:
        if not self._detached:  # else the user types there
            self._line.write(progress_line(self._job.snapshot()))

    def end(self) -> None:
        snapshot = self._job.snapshot()
        if self._detached:
            lines = [progress_line(snapshot), *query_lines(snapshot.queries), f"More: %flinkshow {self._graph.name}"]
            print("\n" + "\n".join(lines), flush=True)
            return
        self._line.wipe()
        # The error that the magic raises reports what failed.
        snapshot = replace(snapshot, errors=())
        job_graph = next(view for view in self._graph.views() if view.kind == "job")
        print(to_table(job_graph, snapshot, width=shutil.get_terminal_size().columns - 1))
        print(self._graph.summary(), flush=True)
