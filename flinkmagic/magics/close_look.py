"""Looks at a job closely, so that neither the job nor who waits for it feels it."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from flinkmagic.display.snapshot import JobSnapshot
    from flinkmagic.session import Job

LOOK_S = 1.0
"""The time between two close looks at a running job, while somebody reads what they find."""

LOOK_SHARE = 0.05
"""The part of the time that such looks may take: with very many tasks they are rarer."""


class CloseLook:
    """Looks at a job: closely once it is over, and from time to time while somebody reads what that finds."""

    def __init__(self, job: Job) -> None:
        self._job = job
        self._due = float("-inf")
        self._seen: JobSnapshot | None = None

    def snapshot(self, *, is_read: bool) -> JobSnapshot:
        """Return the job's progress, with what was found last."""
        begun = time.monotonic()
        is_over = self._job.status.is_terminal
        if not is_over and (not is_read or begun < self._due):
            snapshot, seen = self._job.snapshot(), self._seen
            return snapshot if seen is None else replace(snapshot, findings=seen.findings, measures=seen.measures)
        self._seen = self._job.snapshot(closely=True)
        self._due = begun + max(LOOK_S, (time.monotonic() - begun) / LOOK_SHARE)
        return self._seen
