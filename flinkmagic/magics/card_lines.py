"""The lines of a cell's card."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from flinkmagic.display.action_lines import ActionLine
from flinkmagic.display.snapshot import STATE_NAMES

if TYPE_CHECKING:
    from flinkmagic.display.snapshot import JobSnapshot
    from flinkmagic.display.widget import JobView, View
    from flinkmagic.session import CompiledGraph, Job
    from flinkmagic.session.actions.action_report import CallWork


class CardLine:
    """A line of a card, with the last job that it had.

    While its cell runs it refers to that job; then only to what can be shown of it: the user's DataFrames are free.
    """

    def __init__(self, call: str, line: int) -> None:
        self.total = ActionLine(call, line, times=0)
        """All that is over."""
        self.graph: CompiledGraph | None = None
        self.job: Job | None = None
        self.running: ActionLine | None = None
        self.pictures: tuple[dict[str, View], JobSnapshot] | None = None
        self.last_stage: tuple[str, int] | None = None
        """The vertex that the action itself runs, after its job, and how many subtasks that has."""
        self.work: CallWork | None = None
        """What Spark runs for the action itself at this moment."""
        self.view: JobView | None = None
        self.viewed: Job | None = None
        """Whose view it is: the line's job when it was opened. In a loop other jobs follow."""

    @property
    def shown(self) -> ActionLine:
        """What the card says now."""
        running = self.running
        if running is None:
            return self.total
        return replace(running, times=self.total.times + 1, seconds=self.total.seconds + running.seconds)

    def of(self, job: Job, snapshot: JobSnapshot) -> ActionLine:
        """Return what a job of the line has come to."""
        status = snapshot.status if snapshot.status in ("FINISHED", "FAILED", "CANCELED") else "RUNNING"
        ran = {vertex: states for vertex, states in snapshot.states.items() if vertex not in snapshot.reused}
        return ActionLine(
            self.total.call, self.total.line, status,
            seconds=(snapshot.elapsed_ms or 0.0) / 1000,
            stages=len(ran), tasks=sum(map(len, ran.values())),
            done=snapshot.task_counts.get("FINISHED", 0), of=snapshot.n_tasks,
            reused=len(snapshot.reused), saved_seconds=job.saved_seconds if snapshot.reused else 0.0,
        )  # fmt: skip

    def so_far(self) -> ActionLine:
        """Return what the running action has come to when Spark runs the rest of it itself."""
        if self.running is None or self.job is None:  # it has no job
            return ActionLine(self.total.call, self.total.line)
        return self.of(self.job, self.job.snapshot())

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
        return self.graph is not None or self.pictures is not None

    def draw(self) -> tuple[dict[str, View], JobSnapshot]:
        """Return the graphs of the last job, and how far it is."""
        if self.pictures is not None:
            return self.pictures
        assert self.graph is not None
        assert self.job is not None
        return {view.kind: view for view in self.graph.views()}, self.as_action(self.job.snapshot())

    def as_action(self, snapshot: JobSnapshot) -> JobSnapshot:
        """Return how far the action is whose job has come so far: it runs the job's last vertex itself."""
        if self.last_stage is None or snapshot.status != "FINISHED":
            return snapshot
        if self.running is not None:
            return replace(snapshot, status="RUNNING")
        if self.total.status != "FINISHED":
            return replace(snapshot, status=self.total.status)
        vertex, tasks = self.last_stage
        finished = bytes([STATE_NAMES.index("FINISHED")])
        return replace(snapshot, states={**snapshot.states, vertex: tasks * finished})

    def cancel(self) -> None:
        """Cancel what runs of the line: its job, or what Spark runs for the action itself."""
        for running in (self.job, self.work):
            if running is not None:
                running.cancel()

    def settle(self) -> None:
        """Refer to no job that is over."""
        if self.view is not None and self.viewed is not None and self.viewed.status.is_terminal:
            last = self.viewed.snapshot()
            self.view.update(self.as_action(last) if self.viewed is self.job else last)
            self.viewed = None
        if self.job is not None and self.job.status.is_terminal:
            self.pictures = self.draw()
            self.graph = self.job = None

    def let_go(self) -> None:
        """Be a line of text from here on."""
        self.graph = self.job = self.viewed = self.pictures = None
        if self.view is not None:
            self.view.close()
            self.view = None
