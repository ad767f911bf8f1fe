"""Provides leader election and a store for jobs that outlive their process (Flink's `HighAvailabilityServices`)."""

from __future__ import annotations

from pathlib import Path
from typing import Protocol

from flinkmagic.scheduling.recovery.job_graph_store import JobGraphStore
from flinkmagic.scheduling.recovery.leader_election import (
    FileLockLeaderElection,
    LeaderElection,
    StandaloneLeaderElection,
)


class HighAvailabilityServices(Protocol):
    """Provides leader election and the store of jobs."""

    @property
    def job_graph_store(self) -> JobGraphStore | None:
        """Where jobs are kept; None if they end with their process."""
        ...

    def job_manager_leader_election(self, job_id: str) -> LeaderElection:
        """Make the election of a job's leader, for one contender."""
        ...


class StandaloneHaServices:
    """Lets jobs end with their process; no one contends for them (Flink's class of that name)."""

    job_graph_store: JobGraphStore | None = None

    def job_manager_leader_election(self, job_id: str) -> LeaderElection:
        """Make an election that its only contender wins."""
        return StandaloneLeaderElection()


class FileSystemHaServices:
    """Keeps jobs in a folder, which is made if needed: a journal and a lock for each."""

    def __init__(self, folder: Path) -> None:
        self.job_graph_store = JobGraphStore(folder)

    def job_manager_leader_election(self, job_id: str) -> LeaderElection:
        """Make an election by the lock of the job's file."""
        return FileLockLeaderElection(self.job_graph_store.lock_path(job_id))
