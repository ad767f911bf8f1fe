"""Moves a job from state to state by a table of legal moves, and tells listeners of each (Flink's `JobStatus`)."""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum
from typing import TYPE_CHECKING, Protocol

from flinkmagic.errors.scheduling import IllegalStateTransitionError
from flinkmagic.scheduling.clock import Clock

if TYPE_CHECKING:
    from flinkmagic.graph.execution_state import ExecutionState


class JobStatus(Enum):
    """The state of a job as a whole (Flink's `JobStatus`).

    `SUSPENDED` is terminal for this process only: another one may take the job up.
    """

    INITIALIZING = "INITIALIZING"
    CREATED = "CREATED"
    RUNNING = "RUNNING"
    FAILING = "FAILING"
    FAILED = "FAILED"
    CANCELLING = "CANCELLING"
    CANCELED = "CANCELED"
    FINISHED = "FINISHED"
    RESTARTING = "RESTARTING"
    SUSPENDED = "SUSPENDED"
    RECONCILING = "RECONCILING"

    @property
    def is_globally_terminal(self) -> bool:
        """Whether the job is over everywhere, so that no process may take it up."""
        return self in _GLOBALLY_TERMINAL

    @property
    def is_terminal(self) -> bool:
        """Whether the job is over here (`isTerminalState`: globally terminal, or suspended)."""
        return self in _GLOBALLY_TERMINAL or self is JobStatus.SUSPENDED

    def __str__(self) -> str:
        return self.value


_GLOBALLY_TERMINAL = frozenset({JobStatus.FAILED, JobStatus.CANCELED, JobStatus.FINISHED})

TRANSITIONS: frozenset[tuple[JobStatus, JobStatus]] = frozenset(
    (source, target)
    for source, targets in {
        JobStatus.INITIALIZING: (
            JobStatus.CREATED,
            JobStatus.FAILED,
            JobStatus.CANCELLING,
            JobStatus.SUSPENDED,
        ),
        JobStatus.CREATED: (
            JobStatus.RUNNING,
            JobStatus.RECONCILING,
            JobStatus.CANCELLING,
            JobStatus.FAILING,
            JobStatus.SUSPENDED,
        ),
        JobStatus.RECONCILING: (JobStatus.RUNNING, JobStatus.FAILING, JobStatus.SUSPENDED),
        JobStatus.RUNNING: (
            JobStatus.RESTARTING,
            JobStatus.FINISHED,
            JobStatus.CANCELLING,
            JobStatus.FAILING,
            JobStatus.SUSPENDED,
        ),
        JobStatus.RESTARTING: (
            JobStatus.RUNNING,
            JobStatus.CANCELLING,
            JobStatus.FAILING,
            JobStatus.SUSPENDED,
        ),
        JobStatus.CANCELLING: (
            JobStatus.CANCELED,
            JobStatus.FAILED,
            JobStatus.FAILING,
            JobStatus.SUSPENDED,
        ),
        JobStatus.FAILING: (JobStatus.FAILED, JobStatus.CANCELLING, JobStatus.SUSPENDED),
    }.items()
    for target in targets
)
"""Every legal transition of a job. Nothing else may change a job's status."""


class JobListener(Protocol):
    """Is notified of what happens to a job, on the main thread, after it has happened.

    A listener must be quick and must not call the scheduler; it may hand work to the main thread. A class that derives
    from this one need not care for single executions.
    """

    def on_job_status_changed(self, old: JobStatus, new: JobStatus, at_ms: float, cause: BaseException | None) -> None:
        """Handle a change of the job as a whole (Flink's `JobStatusListener`)."""

    def on_execution_state_changed(
        self, vertices: Sequence[int], state: ExecutionState, at_ms: float, error: BaseException | None
    ) -> None:
        """Handle the entry of the current executions of `vertices` into `state`.

        CREATED means that they were reset for a new attempt.
        """
        return


class JobStatusMachine:
    """Holds a job's status and notifies listeners of each transition."""

    def __init__(self, job_name: str, clock: Clock, listeners: Sequence[JobListener]) -> None:
        self._job_name = job_name
        self._clock = clock
        self._listeners = listeners
        self.status = JobStatus.INITIALIZING
        self.timestamps: dict[JobStatus, float] = {JobStatus.INITIALIZING: clock.now_ms()}
        self._history = [f"{clock.now_ms():g} ms {JobStatus.INITIALIZING}"]

    def transition(self, to: JobStatus, cause: BaseException | None = None) -> None:
        """Move to another status, or raise `IllegalStateTransitionError` with the job's history."""
        old = self.status
        if (old, to) not in TRANSITIONS:
            raise IllegalStateTransitionError(f"Job {self._job_name!r}", str(old), str(to), tuple(self._history))
        at_ms = self._clock.now_ms()
        self.status = to
        self.timestamps[to] = at_ms
        self._history.append(f"{at_ms:g} ms {to}")
        del self._history[:-50]
        for listener in self._listeners:
            listener.on_job_status_changed(old, to, at_ms, cause)
