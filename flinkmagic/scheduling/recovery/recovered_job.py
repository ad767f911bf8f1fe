"""What another process left of a job."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from flinkmagic.scheduling.recovery.job_graph_store import FinishedTask
from flinkmagic.scheduling.task_executor_gateway import ResultPartitionID, TaskExecutorGateway

HolderOf = Callable[[ResultPartitionID], TaskExecutorGateway | None]


@dataclass(frozen=True)
class RecoveredJob:
    """What is left of a former run.

    `finished` are its finished tasks; `holder_of` tells who holds a partition now, None where it is gone.
    """

    finished: Sequence[FinishedTask]
    holder_of: HolderOf
