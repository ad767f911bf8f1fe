"""Declares what a scheduler reports about its job (Flink's `JobStatusListener`, `ExecutionStateUpdateListener`)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol

from flinkmagic.scheduling.job_status import JobStatus

if TYPE_CHECKING:
    from flinkmagic.graph.execution_state import ExecutionState


class JobListener(Protocol):
    """Is notified of what happens to a job, on the main thread, after it has happened.

    A listener must be quick and must not call the scheduler; it may hand work to the main thread.
    """

    def on_job_status_changed(self, old: JobStatus, new: JobStatus, at_ms: float, cause: BaseException | None) -> None:
        """Handle a change of the job as a whole (Flink's `JobStatusListener`)."""
        ...

    def on_execution_state_changed(
        self, vertices: Sequence[int], state: ExecutionState, at_ms: float, error: BaseException | None
    ) -> None:
        """Handle the entry of the current executions of `vertices` into `state`.

        CREATED means that they were reset for a new attempt.
        """
        ...
