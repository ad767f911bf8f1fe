"""What the run of a vertex reports to its environment."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol

from flinkmagic.errors.scheduling import ExecutorRecoveryError
from flinkmagic.graph.execution_graph import ExecutionAttemptID
from flinkmagic.graph.execution_job_vertex import ExecutionJobVertex
from flinkmagic.graph.execution_state import ExecutionState
from flinkmagic.scheduling.slots.physical_slot_provider import PhysicalSlotRequest

if TYPE_CHECKING:
    from flinkmagic.deployment.stages.stage_runner import StageRun


class EndedRun(Protocol):
    """The questions that can be asked of a run that has ended."""

    job_vertex: ExecutionJobVertex
    stage_run: StageRun | None
    has_launched: bool

    @property
    def is_region_over(self) -> bool:
        """Whether nothing is left of it, nor of those in its Spark job."""
        ...

    @property
    def has_all_successes(self) -> bool:
        """Whether all its subtasks have succeeded at Spark."""
        ...

    @property
    def counted(self) -> frozenset[int]:
        """The subtasks of which a task has succeeded before Spark gave the stage up."""
        ...


class RunHost(Protocol):
    """What a run reports to its environment; all on the main thread."""

    def offer_slot(self, job_vertex: ExecutionJobVertex, subtask: int, executor: str, number: int) -> None:
        """Offer the slot in which a subtask was launched; its request is fulfilled within this call."""
        ...

    def report(
        self,
        attempt: ExecutionAttemptID,
        state: ExecutionState,
        error: BaseException | None = None,
        at_ms: float | None = None,
    ) -> None:
        """Report the state of an execution to the scheduler."""
        ...

    def replace(
        self, job_vertex: ExecutionJobVertex, subtask: int, loss: ExecutorRecoveryError | None, at_ms: float | None
    ) -> bool:
        """Give a subtask that Spark runs again by itself a new execution, unless the scheduler has other plans for it.

        Without a `loss`, what it had made is lost.
        """
        ...

    def later(self, action: Callable[[], None]) -> None:
        """Do something after the scheduler's running call: nothing may answer the call before it returns."""
        ...

    def hand_back(self, job_vertex: ExecutionJobVertex, requests: dict[int, PhysicalSlotRequest]) -> None:
        """Return requests that a run of a vertex will not fulfil; another run of the vertex may."""
        ...

    def run_over(self, run: EndedRun) -> None:
        """Note that nothing of this run is left."""
        ...
