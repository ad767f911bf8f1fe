"""Keeps the lines of a cell's card while they change: each with the action or write that it has now.

What a line says is `display.card.CardLine`.
"""

from __future__ import annotations

import threading
import time
from copy import copy
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from flinkmagic.amounts import moment
from flinkmagic.display.card import CardLine
from flinkmagic.display.snapshot import STATE_NAMES

if TYPE_CHECKING:
    from collections.abc import Callable

    from flinkmagic.deployment.watching.call_work import CallWork, WorkProgress
    from flinkmagic.display.snapshot import GraphView, JobSnapshot
    from flinkmagic.display.widget import JobView
    from flinkmagic.history.call_run import CallRun
    from flinkmagic.session import CompiledGraph, Job

COMPILING = "COMPILING"
"""The status of an action, or a write, that has no job yet."""


def from_other_kernel(at: float) -> str:
    """Return when another kernel computed a result."""
    return f"from {moment(at)}, another kernel"


class Drawn(NamedTuple):
    """The graphs of a job, and how far it is: plain values."""

    views: tuple[GraphView, ...]
    snapshot: JobSnapshot


class Drawing:
    """The graphs of a job that is over, drawn when somebody looks; it holds the job as long as they are not."""

    def __init__(self, draw: Callable[[], Drawn]) -> None:
        self._draw: Callable[[], Drawn] | None = draw
        self._drawn: Drawn | None = None
        self._lock = threading.Lock()

    def drawn(self) -> Drawn:
        """Return the graphs; from any thread."""
        with self._lock:
            if self._draw is not None:
                self._drawn, self._draw = self._draw(), None
            assert self._drawn is not None
            return self._drawn


class Act:
    """Follows one action or write from the moment when it is compiled.

    The line and the view of the job's graphs agree, because both are made from `snapshot`.
    """

    def __init__(self, line: LiveLine) -> None:
        self.line = line
        self.job: Job | None = None
        """None once the cell is over: the user's DataFrames are free then."""
        self.graph: CompiledGraph | None = None
        """The job's; as long as `job`."""
        self.last_stage: tuple[str, int] | None = None
        """The vertex that an action runs itself, after its job, and how many subtasks that has."""
        self.work: CallWork | None = None
        """What Spark runs for the action itself."""
        self.work_since = 0.0
        """When that began (`time.monotonic`)."""
        self._is_cancelled = False
        self.status = ""
        """How it ended; empty while it runs."""
        self.alone: CallRun | None = None
        """What Spark ran for an action that had no job, once that is over, unless it was short."""
        self._progress: WorkProgress | None = None
        self._began = time.monotonic()
        self._seconds = 0.0
        self.drawing: Drawing | None = None
        """The graphs, once the cell is over."""

    @property
    def seconds(self) -> float:
        """How long it has taken: the job, and what came before and after it."""
        return self._seconds if self.status else time.monotonic() - self._began

    def end(self, status: str, seconds: float) -> None:
        """Record how it ended."""
        self.status, self._seconds = status, seconds

    def again(self) -> Act:
        """Return a new one for another job, needed because the first one has failed."""
        other = Act(self.line)
        other._began = self._began
        return other

    def is_working(self) -> bool:
        """Return whether Spark runs something for the action itself."""
        return self.work is not None and not self.work.wait(0)

    def look(self) -> bool:
        """Ask how far Spark is with its work; return whether that still runs."""
        progress = self.work.progress() if self.work is not None else None
        if progress is None:
            return False
        self._progress = progress
        return True

    def follow_work(self, work: CallWork) -> None:
        """Follow what Spark runs for the action itself; cancel it if that was asked when the job was just over."""
        self.work, self.work_since = work, time.monotonic()
        if self._is_cancelled:
            work.cancel()

    def cancel(self) -> None:
        """Cancel what runs of it: its job, or what Spark runs, or is yet to run, for the action itself."""
        self._is_cancelled = True  # first: work that begins meanwhile looks at it
        for running in (self.job, self.work):
            if running is not None:
                running.cancel()

    def told(self) -> CardLine:
        """Return its line of the card, as far as it has come."""
        if self.job is None and self.work is None:
            return CardLine(*self.line.key, COMPILING)
        line = CardLine(*self.line.key, seconds=self.seconds)
        if self.job is None:
            progress = self._progress
            return line if progress is None else replace(line, done=progress.finished, to_do=progress.tasks)
        snapshot = self.snapshot()
        ran = {vertex: states for vertex, states in snapshot.states.items() if vertex not in snapshot.reused}
        subtasks = b"".join(ran.values())
        return replace(
            line,
            status=snapshot.status if snapshot.status in ("FINISHED", "FAILED", "CANCELED") else "RUNNING",
            stages=len(ran), tasks=len(subtasks), done=subtasks.count(_code("FINISHED")), to_do=len(subtasks),
            reused=len(snapshot.reused), saved_seconds=self.job.saved_seconds if snapshot.reused else 0.0,
            reused_from=from_other_kernel(self.job.other_kernel_at) if self.job.other_kernel_at else "",
        )  # fmt: skip

    def snapshot(self, *, closely: bool = False) -> JobSnapshot:
        """Return how far it has come: its job (`Job.snapshot`), and the last stage that an action runs itself."""
        assert self.job is not None
        job = replace(self.job.snapshot(closely=closely), elapsed_ms=1000 * self.seconds)
        if self.last_stage is None:
            return job
        vertex, tasks = self.last_stage
        states = {**job.states, vertex: self._states_of_last(job.status, tasks)}
        status = job.status if job.status != "FINISHED" else self.status or "RUNNING"
        return replace(job, states=states, status=status)

    def _states_of_last(self, job_status: str, tasks: int) -> bytes:
        if self.status == "FINISHED":
            return tasks * _code("FINISHED")
        if job_status != "FINISHED" or self._progress is None:
            return tasks * _code("CREATED")
        done = min(self._progress.finished, tasks)
        active = min(self._progress.active, tasks - done)
        return done * _code("FINISHED") + active * _code("RUNNING") + (tasks - done - active) * _code("SCHEDULED")

    def draw(self) -> Drawn:
        """Return the graphs of the job, and how far it is."""
        if self.drawing is not None:
            return self.drawing.drawn()
        if self.alone is not None:
            return Drawn(tuple(self.alone.views()), self.alone.explained())
        assert self.graph is not None
        return Drawn(self.graph.views(), self.snapshot(closely=bool(self.status)))

    def settle(self, *, drawn: bool) -> None:
        """Let go of what is over, and leave it to a drawing if its graphs can still be asked for."""
        if self.alone is not None or (self.job is not None and self.job.status.is_terminal):
            if drawn:
                self.drawing = Drawing(copy(self).draw)
            self.job = self.graph = self.alone = None


class LiveLine:
    """One line of a card: its finished and its running actions and writes."""

    def __init__(self, call: str, line: int) -> None:
        self.past = CardLine(call, line, times=0)
        """Those that are over."""
        self.act: Act | None = None
        """Those that run."""
        self.openable: Act | None = None
        """The last one that has graphs to show; it may be over."""
        self.view: JobView | None = None
        self._viewed: Act | None = None
        """What the view shows, until that is over: `openable` when the view was opened. In a loop others follow."""

    @property
    def key(self) -> tuple[str, int]:
        """The call as it is written, and its line's number."""
        return self.past.call, self.past.line

    @property
    def shown(self) -> CardLine:
        """What the card says now."""
        return self.past if self.act is None else self.past.then(self.act.told())

    def end(self, act: Act, one: CardLine) -> None:
        """Record how an action or a write ended."""
        self.past = self.past.then(one)
        if self.act is act:
            self.act = None

    def open(self, on_cancel: Callable[[], object]) -> None:
        """Show the graphs of the last one that has some."""
        if self.openable is not None and self.view is None:
            from flinkmagic.display.widget import JobView

            drawn = self.openable.draw()
            self._viewed = self.openable
            self.view = JobView(drawn.views, snapshot=drawn.snapshot, on_cancel=on_cancel)

    def update(self) -> None:
        """Update the view to show how far the opened one has come."""
        if self.view is not None and self._viewed is not None and self._viewed.job is not None:
            self.view.update(self._viewed.snapshot(closely=bool(self._viewed.status)))
            if self._viewed.status:
                self._viewed = None

    def settle(self) -> None:
        """Drop references to jobs that are over."""
        self.update()
        for act in (self._viewed, self.openable):
            if act is not None:
                act.settle(drawn=act is self.openable)

    def close(self) -> None:
        """Turn into a line of text for good."""
        self.openable = self._viewed = None
        if self.view is not None:
            self.view.close()
            self.view = None


def _code(state: str) -> bytes:
    return bytes([STATE_NAMES.index(state)])
