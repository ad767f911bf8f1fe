"""Shows the job view in a notebook's output, and the picture that takes its place.

The output always holds a picture, and the view covers it (`JobView.in_place_of` says why). When the job is over its
last picture remains alone, or beneath the view if the view is in use at that moment. A view that `%flinkshow` brought
back stays.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import TYPE_CHECKING, Any, Protocol

from IPython.display import DisplayHandle, display

from flinkmagic.display.page import mime_bundle
from flinkmagic.magics.newest_shown import Newest
from flinkmagic.session import CompiledGraph, Job

if TYPE_CHECKING:
    from flinkmagic.display.snapshot import GraphView, JobSnapshot
    from flinkmagic.display.widget import JobView
    from flinkmagic.session.iterations.iteration import Iteration

UPDATE_S = 0.25
"""The time between two looks at a running job: 4 updates a second."""

IDLE_S = 120.0
"""A view that was not used for this long is removed when its job ends."""

LOOK_S = 1.0
"""The time between two close looks at a running job, while somebody reads what they find."""

LOOK_SHARE = 0.05
"""The part of the time that such looks may take: with very many tasks they are rarer."""


class Shown(Protocol):
    """Displays the progress of a job."""

    def update(self) -> None:
        """Show the job's progress now."""

    def end(self) -> None:
        """Show what is to remain."""


def follow_beside(job: Job | Iteration, shown: Shown) -> threading.Thread:
    """Update a view until its job, or its loop, is over, on its own thread."""
    name = f"flinkmagic-view-{job.name}"
    thread = threading.Thread(target=_follow, args=(job, shown), name=name, daemon=True)
    thread.start()
    return thread


def _follow(job: Job | Iteration, shown: Shown) -> None:
    while not job.wait(UPDATE_S).is_terminal:
        shown.update()
    # The status can be terminal a moment before Spark has ended the job's last task.
    job.wait()
    shown.end()


def shown_at(at: DisplayHandle | None, bundle: Mapping[str, Any]) -> DisplayHandle:
    """Show a bundle in an output, or in a new one."""
    if at is None:
        made: DisplayHandle = display(bundle, raw=True, display_id=True)
        return made
    at.update(bundle, raw=True)
    return at


def final_bundle(graph: CompiledGraph, job: Job | None) -> Mapping[str, Any]:
    """Return what a notebook stores: the graphs in the colours of a job, or of none."""
    if job is None:
        return graph.mime_bundle()
    note = f"The live view of it: %flinkshow {graph.name}"
    bundle = graph.mime_bundle(job.snapshot(closely=True), notes=[note])
    return {**bundle, "text/plain": f"{graph.summary()}\n{note}"}


class CloseLook:
    """Takes snapshots of a job: in detail once it is over, and from time to time while somebody reads the details.

    The detailed snapshots of a running job take at most a small part of its time (`LOOK_SHARE`).
    """

    def __init__(self, job: Job) -> None:
        self._job = job
        self._due = float("-inf")
        self._seen: JobSnapshot | None = None

    def snapshot(self, *, is_read: bool) -> JobSnapshot:
        """Return the job's progress, with what was found last."""
        begun = time.monotonic()
        is_over = self._job.status.is_terminal
        if not is_over and (not is_read or begun < self._due):
            snapshot, seen = self._job.snapshot(), self._seen
            return snapshot if seen is None else replace(snapshot, findings=seen.findings, measures=seen.measures)
        self._seen = self._job.snapshot(closely=True)
        self._due = begun + max(LOOK_S, (time.monotonic() - begun) / LOOK_SHARE)
        return self._seen


class LiveView:
    """Shows the view in an output, over the picture that is saved.

    Parameters
    ----------
    job : Job, optional
        The run that is shown; one that starts later is shown from then on.
    lasting : bool
        The view was opened by itself (`%flinkshow`): it has Run, and stays when the job is over.
    at : DisplayHandle, optional
        The output in which it is shown; by default a new one.
    """

    def __init__(
        self, graph: CompiledGraph, job: Job | None, *, lasting: bool = False, at: DisplayHandle | None = None
    ) -> None:
        self._graph, self._job, self._lasting = graph, job, lasting
        self._look = CloseLook(job) if job is not None else None
        self._lock = threading.RLock()
        self._closed = False
        self._used_at = float("-inf")
        self._view = self._make_view()
        self._handle = shown_at(at, self._stand_in())
        if lasting:
            graph.started.append(self._show_run)
            if job is not None and self.is_running():
                follow_beside(job, self)
            else:
                OPEN_VIEWS.add(self)

    def update(self) -> None:
        """Show the job's progress now."""
        if self._look is not None:
            is_read = self._view.tab == "findings" or bool(self._view.selected)
            self._view.update(self._look.snapshot(is_read=is_read))

    def end(self) -> None:
        """End with the job: put its picture in place of the view, or beneath a view that is in use."""
        self.update()
        if not self._lasting and not self._is_used():
            self.close()
            return
        with self._lock:
            # A run that was started meanwhile has its own end.
            if self._closed or self.is_running():
                return
            self._handle.update(self._stand_in(), raw=True)
        OPEN_VIEWS.add(self)

    def close(self) -> None:
        """Leave only the picture."""
        with self._lock:
            if self._closed:
                return
            self._closed = True
            if self._lasting:
                self._graph.started.remove(self._show_run)
            self._handle.update(final_bundle(self._graph, self._job), raw=True)
            self._view.close()

    def _stand_in(self) -> Mapping[str, Any]:
        if self._job is None or not self.is_running():
            return self._view.in_place_of(final_bundle(self._graph, self._job))
        # The other graphs would be laid out while the job waits to begin.
        note = f"As it was at {datetime.now():%H:%M:%S}, while the job ran."
        return self._view.in_place_of(self._graph.mime_bundle(self._job.snapshot(), "job", notes=[note]))

    def _make_view(self) -> JobView:
        from flinkmagic.display.widget import JobView

        return JobView(
            self._graph.views(),
            snapshot=self._look.snapshot(is_read=False) if self._look is not None else None,
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
            if self._closed:
                return
            self._job, self._look, former = job, CloseLook(job), self._view.view("job")
            if any(view.kind == "job" and view.nodes != former.nodes for view in self._graph.views()):
                # A run plans again, and may find other stages than the last one.
                outdated, self._view = self._view, self._make_view()
                self._handle.update(self._stand_in(), raw=True)
                outdated.close()
        follow_beside(job, self)

    def _touch(self) -> None:
        self._used_at = time.monotonic()

    def _is_used(self) -> bool:
        return time.monotonic() - self._used_at < IDLE_S

    def is_running(self) -> bool:
        """Return whether the job runs that is shown."""
        return self._job is not None and not self._job.status.is_terminal


class RecordedView:
    """Shows a job that is over in an output, with all its tabs, over the picture that is saved.

    Parameters
    ----------
    views : sequence of GraphView
        Its graphs, without states.
    called : str
        Which run it is: ``run 3``.
    """

    def __init__(self, views: Sequence[GraphView], snapshot: JobSnapshot, called: str) -> None:
        from flinkmagic.display.widget import JobView

        self._views, self._snapshot, self._called = views, snapshot, called
        self._view = JobView(views, snapshot=snapshot)
        self._handle = shown_at(None, self._view.in_place_of(self._bundle()))
        OPEN_VIEWS.add(self)

    def close(self) -> None:
        """Leave only the picture."""
        self._handle.update(self._bundle(), raw=True)
        self._view.close()

    def is_running(self) -> bool:
        """Return False: its job is over."""
        return False

    def _bundle(self) -> Mapping[str, Any]:
        painted = [view.paint(self._snapshot) for view in self._views]
        return mime_bundle(painted, summary=self._called, snapshot=self._snapshot)


OPEN_VIEWS: Newest[LiveView | RecordedView] = Newest(12, lambda view: view.close(), lambda view: not view.is_running())
"""The views that stay without a running job; each holds all graphs of its job, here and in the browser.

A view whose graph has been started again is added again at the run's end.
"""
