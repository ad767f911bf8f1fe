"""Lists the states of a job and the moves between them, as data (Flink's `JobStatus`)."""

from __future__ import annotations

from enum import Enum


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
