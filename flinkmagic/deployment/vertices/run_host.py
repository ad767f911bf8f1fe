"""What the run of a vertex says to its surroundings."""

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
    """What is asked of a run that has ended."""

    job_vertex: ExecutionJobVertex
    stage_run: StageRun | None
    has_launched: bool

    @property
    def has_all_successes(self) -> bool:
        """Whether all its subtasks have succeeded at Spark."""
        ...


class RunHost(Protocol):
    """What a run says to its surroundings; all on the main thread."""

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
        """Tell the scheduler what became of an execution."""
        ...

    def replace(
        self, job_vertex: ExecutionJobVertex, subtask: int, loss: ExecutorRecoveryError | None, at_ms: float | None
    ) -> bool:
        """Spark runs a subtask again by itself: it gets a new execution, unless the scheduler has other plans for it.

        Without a `loss` what it had made is lost.
        """
        ...

    def later(self, action: Callable[[], None]) -> None:
        """Do something after the scheduler's call that is under way: nothing may answer it before it returns."""
        ...

    def hand_back(self, job_vertex: ExecutionJobVertex, requests: dict[int, PhysicalSlotRequest]) -> None:
        """Requests that a run of a vertex will not fulfil; another one of the vertex may."""
        ...

    def run_over(self, run: EndedRun) -> None:
        """Nothing of this run is left."""
        ...
