"""How far a deployment has come."""

from __future__ import annotations

from dataclasses import dataclass

from flinkmagic.deployment.watching.task_records import TaskRecord
from flinkmagic.scheduling.scheduler_ng import ExecutionGraphInfo


@dataclass(frozen=True)
class DeploymentSnapshot:
    """How far a deployment has come at one instant; safe to keep and to read on any thread.

    Attributes
    ----------
    job : ExecutionGraphInfo
        Status, states, failures.
    tasks : tuple of TaskRecord
        Every attempt so far.
    slots_used, slots_total : int
        Slots in which a task of this job runs now, and those that it may use.
    """

    job: ExecutionGraphInfo
    tasks: tuple[TaskRecord, ...]
    slots_used: int
    slots_total: int
