"""Records the progress of a deployment."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from flinkmagic.deployment.watching.task_records import TaskRecord
from flinkmagic.scheduling.failover.exception_history import RootExceptionHistoryEntry
from flinkmagic.scheduling.scheduler_ng import ExecutionGraphInfo


@dataclass(frozen=True)
class DeploymentSnapshot:
    """The progress of a deployment at one instant; safe to keep and to read on any thread."""

    job: ExecutionGraphInfo
    tasks: tuple[TaskRecord, ...]
    """Every attempt so far."""
    slots_used: int
    """Slots in which a task of this job runs now."""
    slots_total: int
    """Slots that the job may use."""
    waiting_for: str = ""
    """Which pipelined region waits for how many slots; empty if none does."""

    @classmethod
    def of(
        cls, info: ExecutionGraphInfo, tasks: Sequence[TaskRecord], slots_total: int, *, waiting_for: str = ""
    ) -> DeploymentSnapshot:
        """Return a job's snapshot with its tasks; a failure that was reported is not reported again as the job's."""
        job = replace(info, exception_history=without_repetition(info.exception_history))
        return cls(job, tuple(tasks), sum(task.end_ms is None for task in tasks), slots_total, waiting_for)


def without_repetition(history: Sequence[RootExceptionHistoryEntry]) -> tuple[RootExceptionHistoryEntry, ...]:
    """Leave out the end of a job that repeats a failure which was reported when it happened."""
    told: set[int] = set()
    kept = []
    for entry in history:
        if not (entry.root.is_global and id(entry.root.error) in told):
            kept.append(entry)
        told.add(id(entry.root.error))
    return tuple(kept)
