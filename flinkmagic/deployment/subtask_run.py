"""What the run of a vertex knows of one subtask."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

from flinkmagic.deployment.task_events import TaskEnded
from flinkmagic.graph.execution_graph import ExecutionAttemptID
from flinkmagic.graph.execution_state import ExecutionState
from flinkmagic.scheduling.slots.physical_slot_provider import PhysicalSlotRequest
from flinkmagic.scheduling.task_executor_gateway import IOMetrics


class SubtaskEnd(NamedTuple):
    """The last that is told of a subtask's execution."""

    state: ExecutionState
    error: BaseException | None = None
    io_metrics: IOMetrics | None = None
    at_ms: float | None = None


@dataclass
class SubtaskRun:
    """One execution of a subtask, from its request to its end; one that replaces it has another record.

    Attributes
    ----------
    request : PhysicalSlotRequest or None
        What awaits the launch; None once it is fulfilled.
    is_awaited : bool
        Whether its request is still to come: it replaces an execution that was lost.
    attempt : ExecutionAttemptID or None
        The execution that was deployed.
    companions : list of ExecutionAttemptID
        Executions of vertices upstream that run within the same task.
    launched_ms : float
        When Spark launched its first task.
    unannounced : list of ExecutionAttemptID
        Deployed, and not told yet that they run.
    end : SubtaskEnd or None
        What was told last.
    told : set of ExecutionAttemptID
        To whom.
    running : set of int
        Spark's task attempts that run.
    success : TaskEnded or None
        The one that counts.
    is_merged : bool
        Whether the task of another subtask does its work.
    cancel_requested, over : bool
        Whether it is to be cancelled; whether nothing more is told of it.
    """

    request: PhysicalSlotRequest | None
    is_awaited: bool = False
    attempt: ExecutionAttemptID | None = None
    companions: list[ExecutionAttemptID] = field(default_factory=list)
    launched_ms: float = 0.0
    unannounced: list[ExecutionAttemptID] = field(default_factory=list)
    end: SubtaskEnd | None = None
    told: set[ExecutionAttemptID] = field(default_factory=set)
    running: set[int] = field(default_factory=set)
    success: TaskEnded | None = None
    is_merged: bool = False
    cancel_requested: bool = False
    over: bool = False
