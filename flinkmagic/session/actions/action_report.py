"""What became of an action."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from flinkmagic.capturing.capture_listener import ActionCall
    from flinkmagic.capturing.source_code.source_location import SourceLocation
    from flinkmagic.deployment.watching.call_work import CallWork
    from flinkmagic.session.actions.action_graph import ActionGraph
    from flinkmagic.session.job import Job


ONE_STAGE = "it is one stage"
"""Why an action runs as plain Spark runs it: there is nothing to schedule."""

ROWS_ON_DEMAND = "its rows are computed as they are asked for"
"""The note on an iterator over rows, until all of them have been asked for."""


@dataclass(frozen=True)
class ActionReport:
    """What became of an action.

    Attributes
    ----------
    method : str
        Its name: ``count``.
    text : str
        The call as it was written.
    location : SourceLocation
        Its line.
    seconds : float
        How long it took.
    is_driven : bool
        Whether its stages, except the last, ran under our scheduler.
    reason : str
        Why not; empty if they did, or if there was nothing to run.
    stages, tasks : int
        How many stages its query has, and how many tasks those ran that ran under our scheduler; 0 if none did.
    reused : int
        How many stages did not run, because their results existed.
    saved_seconds : float
        How long these took when they ran; or the action, if it was answered as before.
    kept_at : float
        When the answer was computed, if it was answered as before; else 0.
    graph : ActionGraph, optional
        Its graphs, with the job in them.
    status : str
        FINISHED, FAILED or CANCELED.
    note : str
        What else the user should know of it.
    """

    method: str
    text: str
    location: SourceLocation
    seconds: float
    is_driven: bool
    reason: str = ""
    stages: int = 0
    tasks: int = 0
    reused: int = 0
    saved_seconds: float = 0.0
    kept_at: float = 0.0
    graph: ActionGraph | None = None
    status: str = "FINISHED"
    note: str = ""

    @property
    def is_one_stage(self) -> bool:
        """Whether its query is a single stage."""
        return self.reason == ONE_STAGE

    @property
    def is_left_to_spark(self) -> bool:
        """Whether plain Spark ran it, for another reason than that it is a single stage."""
        return not (self.is_driven or self.is_one_stage or self.kept_at)


class ActionListener(Protocol):
    """Learns of a session's actions, on the thread of each."""

    def action_began(self, call: ActionCall) -> None:
        """Note that an action's query is compiled from now on."""
        ...

    def job_started(self, call: ActionCall, graph: ActionGraph, job: Job) -> None:
        """Note that the stages of an action run from now on, all but the last."""
        ...

    def work_started(self, call: ActionCall, work: CallWork) -> None:
        """Note that Spark runs for the action itself from now on: its last stage, or all of it."""
        ...

    def action_done(self, report: ActionReport) -> None:
        """Note that an action has ended, one way or another."""
        ...

    def rows_done(self, report: ActionReport, done: ActionReport) -> None:
        """Note what became of the rows that an action has handed out one by one; `report` is what was noted of it."""
        ...
