"""What the run of a vertex knows about one subtask."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

from flinkmagic.deployment.vertices.subtask_state import SubtaskLife, SubtaskState
from flinkmagic.deployment.watching.task_events import TaskEnded
from flinkmagic.graph.execution_graph import ExecutionAttemptID
from flinkmagic.graph.execution_state import ExecutionState
from flinkmagic.scheduling.slots.physical_slot_provider import PhysicalSlotRequest


class SubtaskEnd(NamedTuple):
    """The last report about a subtask's execution."""

    state: ExecutionState
    error: BaseException | None = None
    at_ms: float | None = None


@dataclass
class SubtaskRun:
    """One execution of a subtask, from its request to its end; its replacement has a record of its own.

    Attributes
    ----------
    subtask : int
        Which subtask of the vertex.
    life : SubtaskLife
        Its state, and how it came there.
    request : PhysicalSlotRequest or None
        What waits for the launch; None before it comes and once it is fulfilled.
    running : set of int
        Spark's task attempts that run.
    attempt : ExecutionAttemptID or None
        The execution that was deployed.
    companions : list of ExecutionAttemptID
        Executions of vertices upstream that run within the same task.
    launched_ms : float
        When Spark launched its first task.
    unannounced : list of ExecutionAttemptID
        Executions that were deployed, and not yet reported as running.
    end : SubtaskEnd or None
        The last report.
    told : set of ExecutionAttemptID
        The executions that got it.
    success : TaskEnded or None
        The task that counts.
    """

    subtask: int
    life: SubtaskLife
    request: PhysicalSlotRequest | None = None
    running: set[int] = field(default_factory=set)
    attempt: ExecutionAttemptID | None = None
    companions: list[ExecutionAttemptID] = field(default_factory=list)
    launched_ms: float = 0.0
    unannounced: list[ExecutionAttemptID] = field(default_factory=list)
    end: SubtaskEnd | None = None
    told: set[ExecutionAttemptID] = field(default_factory=set)
    success: TaskEnded | None = None

    @property
    def state(self) -> SubtaskState:
        """Its current state."""
        return self.life.state

    @property
    def is_over(self) -> bool:
        """Whether nothing more is reported about it."""
        return self.life.state.is_over
