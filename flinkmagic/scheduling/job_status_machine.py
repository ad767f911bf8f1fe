"""Moves the status of one job by the table, and dates each transition."""

from __future__ import annotations

from collections.abc import Sequence

from flinkmagic.errors.scheduling import IllegalStateTransitionError
from flinkmagic.scheduling.clock import Clock
from flinkmagic.scheduling.job_listener import JobListener
from flinkmagic.scheduling.job_status import TRANSITIONS, JobStatus


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
