"""Reports how an action ended."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

from flinkmagic.reuse.durable_store import KERNEL

if TYPE_CHECKING:
    from flinkmagic.capturing.capture_listener import ActionCall
    from flinkmagic.capturing.source_code.source_location import SourceLocation
    from flinkmagic.deployment.watching.call_work import CallWork
    from flinkmagic.session.actions.action_graph import ActionGraph
    from flinkmagic.session.job import Job


ONE_STAGE = "it is one stage"
"""Why plain Spark runs an action: there is nothing to schedule."""

ROWS_ON_DEMAND = "its rows are computed as they are asked for"
"""The note on an iterator over rows, until all of them have been asked for."""


@dataclass(frozen=True)
class ActionReport:
    """How an action ended."""

    method: str
    """Such as ``count``."""
    text: str
    """The call as it was written."""
    location: SourceLocation
    began: float = field(default_factory=time.monotonic, repr=False)
    """When it began, by `time.monotonic`."""
    seconds: float = 0.0
    """How long it took."""
    is_driven: bool = False
    """Whether its stages, except the last, ran under our scheduler."""
    reason: str = ""
    """Why they did not; empty if they did, or if there was nothing to run."""
    stages: int = 0
    """How many stages its query has; 0 if none ran under our scheduler."""
    reused: int = 0
    """How many stages did not run, because their results existed."""
    saved_seconds: float = 0.0
    """How long the reused stages once took; or the whole action, if it was answered as before."""
    kept_at: float = 0.0
    """When the answer was computed, if it was answered as before; else 0."""
    kernel: str = KERNEL
    """The process that has computed the answer."""
    graph: ActionGraph | None = None
    """Holds the job."""
    work: CallWork | None = field(default=None, repr=False)
    """What Spark ran for the action itself."""
    status: str = "FINISHED"
    """FINISHED, FAILED or CANCELED."""
    note: str = ""
    """What else the user should know."""

    @property
    def is_from_other_kernel(self) -> bool:
        """Whether another process has computed the answer."""
        return self.kernel != KERNEL

    @property
    def is_one_stage(self) -> bool:
        """Whether its query is a single stage."""
        return self.reason == ONE_STAGE

    @property
    def is_left_to_spark(self) -> bool:
        """Whether plain Spark ran it for another reason than that it is a single stage."""
        return not (self.is_driven or self.is_one_stage or self.kept_at)


class ActionListener(Protocol):
    """Is told of a session's actions, on the thread of each."""

    def action_began(self, call: ActionCall) -> None:
        """Note that an action's query is about to be compiled."""

    def job_started(self, call: ActionCall, graph: ActionGraph, job: Job) -> None:
        """Note that the stages of an action begin to run, all but the last."""

    def work_started(self, call: ActionCall, work: CallWork) -> None:
        """Note that Spark begins to run the action itself: its last stage, or all of it."""

    def action_done(self, report: ActionReport) -> None:
        """Note that an action has finished, failed or been cancelled."""

    def rows_done(self, report: ActionReport, done: ActionReport) -> None:
        """Note that an iterator over rows has ended: `done` replaces the `report` of its action."""
