"""Lets at most one process lead a job (Flink's `LeaderElection`)."""

from __future__ import annotations

from pathlib import Path
from typing import Protocol

from filelock import FileLock, Timeout

from flinkmagic.errors.base import InvariantViolatedError
from flinkmagic.errors.job_store import JobLedElsewhereError


class LeaderContender(Protocol):
    """Wants to lead (Flink's `LeaderContender`)."""

    def grant_leadership(self) -> None:
        """Lead from now on."""

    def revoke_leadership(self) -> None:
        """Stop leading."""

    def handle_error(self, error: Exception) -> None:
        """Handle the news that this contender will never lead."""


class LeaderElection:
    """Elects by an exclusive lock on a file, which is left behind; the system releases it when its holder dies.

    The lock's file must be on a disk of this machine, or on one that locks across machines. Leadership ends
    with the process or with `stop`; it cannot be taken from a holder that lives. Without a file, the only contender
    leads.
    """

    def __init__(self, path: Path | None) -> None:
        self._lock: FileLock | None = None
        if path is not None:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._lock = FileLock(str(path), thread_local=False)
        self._contender: LeaderContender | None = None

    def start(self, contender: LeaderContender) -> None:
        """Start to contend: `contender` leads within this call, or is told that another one does."""
        if self._contender is not None:
            raise InvariantViolatedError("an election has one contender")
        if self._lock is not None:
            try:
                self._lock.acquire(timeout=0)
            except Timeout:
                contender.handle_error(JobLedElsewhereError(self._lock.lock_file))
                return
        self._contender = contender
        contender.grant_leadership()

    def stop(self) -> None:
        """Stop contending; a leader is told that it has lost the leadership, then the lock is released."""
        contender, self._contender = self._contender, None
        if contender is not None:
            contender.revoke_leadership()
        if self._lock is not None:
            self._lock.release()
