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
        ...

    def revoke_leadership(self) -> None:
        """Stop leading."""
        ...

    def handle_error(self, error: Exception) -> None:
        """Handle the news that this contender will never lead."""
        ...


class LeaderElection(Protocol):
    """Says who leads (Flink's `LeaderElection`)."""

    def start(self, contender: LeaderContender) -> None:
        """Start to contend: `contender` leads within this call if no one else does."""
        ...

    def stop(self) -> None:
        """Stop contending; a leader is told that it has lost the leadership."""
        ...


class StandaloneLeaderElection:
    """Makes the only contender the leader (Flink's class of that name)."""

    def __init__(self) -> None:
        self._contender: LeaderContender | None = None

    def start(self, contender: LeaderContender) -> None:
        """Lead from now on."""
        self._contender = contender
        contender.grant_leadership()

    def stop(self) -> None:
        """Stop leading."""
        contender, self._contender = self._contender, None
        if contender is not None:
            contender.revoke_leadership()


class FileLockLeaderElection:
    """Elects by an exclusive lock on a file, which is left behind; the system releases it when its holder dies.

    The lock's file must be on a disk of this machine, or on one that locks across machines. Leadership ends
    with the process or with `stop`; it cannot be taken from a holder that lives.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        path.parent.mkdir(parents=True, exist_ok=True)
        self._lock = FileLock(str(path), thread_local=False)
        self._contender: LeaderContender | None = None

    @property
    def is_leader(self) -> bool:
        """Whether this contender leads."""
        return bool(self._lock.is_locked)

    def start(self, contender: LeaderContender) -> None:
        """Start to contend: `contender` leads within this call, or is told that another one does."""
        if self._contender is not None:
            raise InvariantViolatedError("an election has one contender")
        try:
            self._lock.acquire(timeout=0)
        except Timeout:
            contender.handle_error(JobLedElsewhereError(str(self._path)))
            return
        self._contender = contender
        contender.grant_leadership()

    def stop(self) -> None:
        """Stop contending; a leader is told that it has lost the leadership, then the lock is released."""
        contender, self._contender = self._contender, None
        if self.is_leader:
            if contender is not None:
                contender.revoke_leadership()
            self._lock.release()
