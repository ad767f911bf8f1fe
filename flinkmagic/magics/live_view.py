"""The job view in a notebook's output, and the picture that takes its place.

A notebook is saved without the state of its widgets, so a view that stands there when it is saved reopens as an error.
Therefore a picture takes the place of a view: when the job is over, at once where nobody uses the view, else when it
has been left alone for a while. A view that `%flinkshow` brought back without a job that runs goes the same way, or
when the next cell runs and nobody has used it.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Protocol

from IPython.core.getipython import get_ipython
from IPython.display import DisplayHandle, display

from flinkmagic.session import CompiledGraph, Job

if TYPE_CHECKING:
    from flinkmagic.display.widget import JobView

UPDATE_S = 0.25
"""Between two looks at a running job: 4 updates a second."""

IDLE_S = 120.0
"""For how long nobody has used a view before a picture takes its place."""


class Shown(Protocol):
    """What shows how far a job is."""

    def update(self) -> None:
        """Show how far it is now."""
        ...

    def end(self) -> None:
        """Show what is to stay."""
        ...


def follow_beside(job: Job, shown: Shown) -> threading.Thread:
    """Bring a view up to date until its job is over, on a thread of its own."""
    name = f"flinkmagic-view-{job.name}"
    thread = threading.Thread(target=_follow, args=(job, shown), name=name, daemon=True)
    thread.start()
    return thread


def _follow(job: Job, shown: Shown) -> None:
    while not job.wait(UPDATE_S).is_terminal:
        shown.update()
    # The status can be terminal a moment before Spark has ended the job's last task.
    job.wait()
    shown.end()


def final_bundle(graph: CompiledGraph, job: Job | None) -> Mapping[str, Any]:
    """What a notebook keeps: the graphs in the colours of a job, or of none."""
    bundle = graph.mime_bundle(job.snapshot() if job is not None else None)
    return {**bundle, "text/plain": graph.summary()} if job is not None else bundle


class LiveView:
    """The widget in an output, until a picture takes its place.

    Parameters
    ----------
    graph : CompiledGraph
        What is shown.
    job : Job, optional
        The run that is shown; one that starts later is shown from then on.
    lasting : bool
        The view was asked for on its own (`%flinkshow`): it has Run, and stays for a while after a job's end.
    """

    def __init__(self, graph: CompiledGraph, job: Job | None, *, lasting: bool = False) -> None:
        self._graph, self._job, self._lasting = graph, job, lasting
        self._lock = threading.RLock()
        self._closed = threading.Event()
        self._used_at = time.monotonic() if lasting else float("-inf")
        self._untouched = True
        self._view = self._make_view()
        self._handle: DisplayHandle = display(self._view, display_id=True)
        if lasting:
            graph.started.append(self._show_run)
            get_ipython().events.register("pre_run_cell", self._next_cell)
            if job is not None and not job.status.is_terminal:
                follow_beside(job, self)
            else:
                self._retire_when_left_alone()

    def update(self) -> None:
        """Show how far the job is now."""
        if self._job is not None:
            self._view.update(self._job.snapshot())

    def end(self) -> None:
        """The job is over: leave its picture, now or when nobody uses the view any more."""
        self.update()
        if self._is_used():
            self._retire_when_left_alone()
        else:
            self._become_picture()

    def _make_view(self) -> JobView:
        from flinkmagic.display.widget import JobView

        return JobView(
            {view.kind: view for view in self._graph.views()},
            snapshot=self._job.snapshot() if self._job is not None else None,
            on_run=(lambda: self._graph.run(wait=False)) if self._lasting else None,
            on_cancel=self._cancel,
            on_touch=self._touch,
        )

    def _cancel(self) -> None:
        if self._job is not None:
            self._job.cancel()

    def _show_run(self, job: Job) -> None:
        """Show a run that has begun, from wherever it was started."""
        with self._lock:
            if self._closed.is_set():
                return
            self._job, former = job, self._view.view("job")
            if any(view.kind == "job" and view.nodes != former.nodes for view in self._graph.views()):
                # A run plans anew, and may find other stages than the last one did.
                outdated, self._view = self._view, self._make_view()
                self._handle.update(self._view)
                outdated.close()
        follow_beside(job, self)

    def _touch(self) -> None:
        self._used_at, self._untouched = time.monotonic(), False

    def _is_used(self) -> bool:
        return time.monotonic() - self._used_at < IDLE_S

    def _is_running(self) -> bool:
        return self._job is not None and not self._job.status.is_terminal

    def _next_cell(self, _info: object) -> None:
        if self._untouched and not self._is_running():
            self._become_picture()

    def _retire_when_left_alone(self) -> None:
        threading.Thread(target=self._retire, name=f"flinkmagic-idle-{self._graph.name}", daemon=True).start()

    def _retire(self) -> None:
        while self._is_used():
            if self._closed.wait(max(self._used_at + IDLE_S - time.monotonic(), 0.1)):
                return
        # Of a run that has started meanwhile, the end decides.
        if not self._is_running():
            self._become_picture()

    def _become_picture(self) -> None:
        with self._lock:
            if self._closed.is_set():
                return
            self._closed.set()
            if self._lasting:
                self._graph.started.remove(self._show_run)
                get_ipython().events.unregister("pre_run_cell", self._next_cell)
            self._handle.update(final_bundle(self._graph, self._job), raw=True)
            self._view.close()
