"""The live view of a job in a notebook."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import traitlets

from flinkmagic.display import widget_data
from flinkmagic.display.collapse import LARGE, collapse
from flinkmagic.display.placed_widget import PlacedWidget, static
from flinkmagic.display.snapshot import KIND_TITLES, ErrorView, GraphKind, GraphView, JobSnapshot, NodeView
from flinkmagic.errors.base import FlinkMagicError

_TASK_BYTES_PER_SECOND = 250_000
"""Jupyter drops messages of a kernel that sends more than 1 MB a second; tasks are sent at most this fast."""

_MOST_MEASURED = 200
"""The measures of so many vertices are a message of some hundred kilobytes."""


class JobView(PlacedWidget):
    """A job as a widget: its graphs in tabs, live states, details, timeline, Run and Cancel.

    Parameters
    ----------
    views : iterable of GraphView
        That of kind ``job`` is needed, ``stream``, ``execution`` and ``regions`` make other tabs. The picture of the
        job graph is laid out immediately, the others on a thread of their own.
    snapshot : JobSnapshot, optional
        How far the job is; without one it has not run.
    on_run, on_cancel : callable, optional
        Called without arguments when Run (or Run again) and Cancel are clicked. A FlinkMagicError that they raise is
        shown in the view. They should return soon: until they do, the kernel learns of no other click.
    on_touch : callable, optional
        Called without arguments every few seconds while the view is used: pointed at, typed or scrolled in.
    """

    _esm = static(
        "dom.js", "tasks.js", "graph.js", "findings.js", "details.js", "timeline.js", "slots.js", "view.js", "places.js"
    )
    _css = static("view.css")

    tab = traitlets.Enum([*KIND_TITLES], "job").tag(sync=True)
    """The open tab: ``stream``, ``job``, ``execution``, ``regions``, ``timeline`` or ``findings``."""
    selected = traitlets.Unicode("").tag(sync=True)
    """Id of the selected job vertex, or the empty string."""

    _about = traitlets.Dict().tag(sync=True)
    _frame = traitlets.Dict().tag(sync=True)
    _tasks = traitlets.Dict().tag(sync=True)
    _findings = traitlets.Dict().tag(sync=True)
    _measures = traitlets.Dict().tag(sync=True)
    _stream = traitlets.Dict().tag(sync=True)
    _job = traitlets.Dict().tag(sync=True)
    _collapsed = traitlets.Dict().tag(sync=True)
    _execution = traitlets.Dict().tag(sync=True)
    _regions = traitlets.Dict().tag(sync=True)

    def __init__(
        self,
        views: Iterable[GraphView],
        *,
        snapshot: JobSnapshot | None = None,
        on_run: Callable[[], object] | None = None,
        on_cancel: Callable[[], object] | None = None,
        on_touch: Callable[[], object] | None = None,
    ) -> None:
        self._views = {view.kind: view for view in views}
        self._on_run, self._on_cancel, self._on_touch = on_run, on_cancel, on_touch
        self._snapshot = snapshot
        self._log = widget_data.TaskColumns()
        self._tasks_sent_at, self._tasks_dirty = 0.0, False
        self._lock = threading.RLock()
        job = self._views["job"]
        collapsed = self._collapse(job)
        self._boxes: list[NodeView] = (
            [*job.nodes, *(node for node in collapsed.nodes if node.members)] if collapsed else [*job.nodes]
        )
        first = {"_collapsed" if collapsed else "_job": widget_data.picture(collapsed or job)}
        super().__init__(
            _about=widget_data.about(job, collapsed, list(self._views)), _frame=self._make_frame(), **first
        )
        if snapshot is not None:
            self.update(snapshot)
        self.on_msg(self._clicked)
        self._drawing = threading.Thread(target=self._draw_others, name="flinkmagic-pictures", daemon=True)
        self._drawing.start()

    def view(self, kind: GraphKind) -> GraphView:
        """Return the graph view of that kind, as it is before any state is painted on it."""
        return self._views[kind]

    def _collapse(self, job: GraphView) -> GraphView | None:
        if len(job.nodes) <= LARGE:
            return None
        frames = self._views["regions"].clusters if "regions" in self._views else ()
        collapsed = collapse(job, [frame.nodes for frame in frames if len(frame.nodes) > 1])
        return collapsed if len(collapsed.nodes) < len(job.nodes) else None

    def _draw_others(self) -> None:
        for kind, view in self._views.items():
            name = f"_{kind}"
            if getattr(self, name):
                continue
            try:
                setattr(self, name, widget_data.picture(view))
            except FlinkMagicError as error:
                setattr(self, name, {"error": str(error)})

    def update(self, snapshot: JobSnapshot) -> None:
        """Show the job's progress; from any thread, two to five times a second, and once when it has ended."""
        with self._lock:
            self._snapshot = snapshot
            self._tasks_dirty |= self._log.add(snapshot.tasks)
            frame = self._make_frame()
            ended = not frame["live"]
            send_tasks = self._tasks_dirty and (ended or self._may_send_tasks())
            if send_tasks:
                self._tasks_dirty = False
                self._tasks_sent_at = time.monotonic()
            # One message for both, so that the view never shows states of one moment with tasks of another.
            with self.hold_sync():
                self._frame = frame
                self._findings = widget_data.findings(snapshot.findings)
                self._measures = self._make_measures()
                if send_tasks:
                    self._tasks = self._log.encode()

    def _make_measures(self) -> dict[str, Any]:
        """Return the measures of all vertices of a job that is over; else, and of many, of the selected one."""
        snapshot = self._snapshot
        if snapshot is None:
            return {}
        known = snapshot.measures
        is_whole = snapshot.status in widget_data.TERMINAL and len(known) <= _MOST_MEASURED
        wanted = known if is_whole else known.keys() & {self.selected}
        return {vertex: widget_data.measures(known[vertex]) for vertex in wanted}

    @traitlets.observe("selected")
    def _selected_changed(self, _change: object) -> None:
        with self._lock:
            self._measures = self._make_measures()

    def _may_send_tasks(self) -> bool:
        return time.monotonic() - self._tasks_sent_at >= len(self._log) * 73 / _TASK_BYTES_PER_SECOND

    def _make_frame(self) -> dict[str, Any]:
        return widget_data.frame(
            self._snapshot,
            self._boxes,
            can_run=self._on_run is not None,
            can_cancel=self._on_cancel is not None,
        )

    def _clicked(self, _widget: object, content: Mapping[str, Any], _buffers: object) -> None:
        actions = {"run": self._on_run, "cancel": self._on_cancel, "touch": self._on_touch}
        action = actions.get(str(content.get("type")))
        if action is None:
            return
        try:
            action()
        except Exception as error:  # noqa: BLE001 - whoever clicks sees nothing else of it
            told = str(error) if isinstance(error, FlinkMagicError) else f"{type(error).__name__}: {error}"
            self._frame = {**self._make_frame(), "errors": [widget_data.error_box(ErrorView(told))]}
