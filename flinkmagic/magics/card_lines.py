"""The lines of a cell's card."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import TYPE_CHECKING

from flinkmagic.display.action_lines import ActionLine
from flinkmagic.display.snapshot import STATE_NAMES

if TYPE_CHECKING:
    from flinkmagic.deployment.watching.call_work import CallWork, WorkProgress
    from flinkmagic.display.snapshot import JobSnapshot
    from flinkmagic.display.widget import JobView, View
    from flinkmagic.session import CompiledGraph, Job

COMPILING = "COMPILING"
"""The status of an action, or a write, that has no job yet."""


class Act:
    """One action or write of a line, from the moment when it is compiled.

    The line and the view of the job's graphs say the same of it, because both are made from `snapshot`.
    """

    def __init__(self) -> None:
        self.job: Job | None = None
        self.graph: CompiledGraph | None = None
        """The job's, if it can be shown."""
        self.last_stage: tuple[str, int] | None = None
        """The vertex that an action runs itself, after its job, and how many subtasks that has."""
        self.progress: WorkProgress | None = None
        """How far that is."""
        self.status = ""
        """What it has come to."""
        self._began = time.monotonic()
        self._seconds = 0.0

    @property
    def seconds(self) -> float:
        """How long it has taken: the job, and what came before and after it."""
        return self._seconds if self.status else time.monotonic() - self._began

    def end(self, status: str, seconds: float) -> None:
        """Note what it has come to."""
        self.status, self._seconds = status, seconds

    def again(self) -> Act:
        """Return the same for another job, which it needs because the first one has failed."""
        other = Act()
        other._began = self._began
        return other

    def snapshot(self) -> JobSnapshot:
        """Return how far it is whose job has come so far."""
        assert self.job is not None
        job = replace(self.job.snapshot(), elapsed_ms=1000 * self.seconds)
        if self.last_stage is None:
            return job
        vertex, tasks = self.last_stage
        states = {**job.states, vertex: self._states_of_last(job.status, tasks)}
        status = job.status if job.status != "FINISHED" else self.status or "RUNNING"
        return replace(job, states=states, status=status)

    def _states_of_last(self, job_status: str, tasks: int) -> bytes:
        if self.status == "FINISHED":
            return tasks * _code("FINISHED")
        if job_status != "FINISHED" or self.progress is None:
            return tasks * _code("CREATED")
        done = min(self.progress.finished, tasks)
        active = min(self.progress.active, tasks - done)
        return done * _code("FINISHED") + active * _code("RUNNING") + (tasks - done - active) * _code("SCHEDULED")


class CardLine:
    """A line of a card, with the last action or write that it had.

    While its cell runs it refers to that one's job; then only to what can be shown of it: the user's DataFrames are
    free.
    """

    def __init__(self, call: str, line: int) -> None:
        self.total = ActionLine(call, line, times=0)
        """All that is over."""
        self.act = Act()
        self.openable: Act | None = None
        """The last one that has a graph to show."""
        self.running: ActionLine | None = None
        self.pictures: tuple[dict[str, View], JobSnapshot] | None = None
        self.work: CallWork | None = None
        """What Spark runs for the action itself at this moment."""
        self.view: JobView | None = None
        self.viewed: Act | None = None
        """What that shows: the line's last one when it was opened. In a loop others follow."""

    @property
    def shown(self) -> ActionLine:
        """What the card says now."""
        running = self.running
        if running is None:
            return self.total
        return replace(running, times=self.total.times + 1, seconds=self.total.seconds + running.seconds)

    def begin(self) -> None:
        """Begin with another action or write, which is compiled first."""
        self.act = Act()
        self.running = ActionLine(self.total.call, self.total.line, COMPILING)

    def of(self, act: Act) -> ActionLine:
        """Return what an action or a write of the line has come to."""
        line = ActionLine(self.total.call, self.total.line, seconds=act.seconds)
        if act.job is None:
            progress = act.progress
            return line if progress is None else replace(line, done=progress.finished, of=progress.tasks)
        snapshot = act.snapshot()
        ran = {vertex: states for vertex, states in snapshot.states.items() if vertex not in snapshot.reused}
        subtasks = b"".join(ran.values())
        return replace(
            line,
            status=snapshot.status if snapshot.status in ("FINISHED", "FAILED", "CANCELED") else "RUNNING",
            stages=len(ran), tasks=len(subtasks), done=subtasks.count(_code("FINISHED")), of=len(subtasks),
            reused=len(snapshot.reused), saved_seconds=act.job.saved_seconds if snapshot.reused else 0.0,
        )  # fmt: skip

    def add(self, one: ActionLine) -> None:
        """Add an action or a write that is over."""
        total, self.running, self.work = self.total, None, None
        self.total = replace(
            one,
            times=total.times + 1,
            seconds=total.seconds + one.seconds,
            stages=total.stages + one.stages,
            tasks=total.tasks + one.tasks,
            reused=total.reused + one.reused,
            answered=total.answered + one.answered,
            answered_at=one.answered_at or total.answered_at,
            saved_seconds=total.saved_seconds + one.saved_seconds,
        )

    @property
    def can_open(self) -> bool:
        """Whether its graphs can be shown."""
        return self.openable is not None or self.pictures is not None

    def draw(self) -> tuple[dict[str, View], JobSnapshot]:
        """Return the graphs of the last job, and how far it is."""
        if self.pictures is not None:
            return self.pictures
        assert self.openable is not None
        assert self.openable.graph is not None
        return {view.kind: view for view in self.openable.graph.views()}, self.openable.snapshot()

    def show(self, act: Act) -> None:
        """Show in the line's view how far it is, if it is the one that was opened."""
        if self.view is not None and self.viewed is act and act.job is not None:
            self.view.update(act.snapshot())

    def cancel(self) -> None:
        """Cancel what runs of the line: its job, or what Spark runs for the action itself."""
        for running in (self.act.job, self.work):
            if running is not None:
                running.cancel()

    def settle(self) -> None:
        """Refer to no job that is over."""
        viewed = self.viewed
        if viewed is not None and viewed.job is not None and viewed.job.status.is_terminal:
            self.show(viewed)
            self.viewed = None
        last = self.openable
        if last is not None and last.job is not None and last.job.status.is_terminal:
            self.pictures, self.openable = self.draw(), None
        if self.act.job is not None and self.act.job.status.is_terminal:
            self.act.job = self.act.graph = None

    def let_go(self) -> None:
        """Be a line of text from here on."""
        self.act.job = self.act.graph = self.openable = self.viewed = self.pictures = None
        if self.view is not None:
            self.view.close()
            self.view = None


def _code(state: str) -> bytes:
    return bytes([STATE_NAMES.index(state)])
