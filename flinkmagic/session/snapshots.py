"""A job's state as the pictures read it: the bridge from the scheduler's records to the display's."""

from __future__ import annotations

from collections.abc import Sequence

from flinkmagic.deployment import TaskRecord
from flinkmagic.display.snapshot import ErrorView, JobSnapshot, TaskView, state_codes
from flinkmagic.graph.execution_state import ExecutionState
from flinkmagic.scheduling.scheduler_ng import ExecutionGraphInfo

_DISPLAY_CODES = bytes.maketrans(
    bytes(state.value for state in ExecutionState), state_codes(state.name for state in ExecutionState)
)
"""Translates a column of the graph's state codes into the display's."""


def job_snapshot(
    info: ExecutionGraphInfo,
    *,
    elapsed_ms: float,
    started_at_ms: float,
    slots: tuple[int, int] | None,
    tasks: Sequence[TaskRecord] = (),
    errors: Sequence[ErrorView] = (),
) -> JobSnapshot:
    """Make a snapshot of what the scheduler tells.

    Parameters
    ----------
    info : ExecutionGraphInfo
        The job at one instant.
    elapsed_ms, started_at_ms : float
        Since when it runs, in milliseconds.
    slots : tuple of int, optional
        Slots in use, and of how many.
    tasks : sequence of TaskRecord
        The attempts that are known.
    errors : sequence of ErrorView
        What failed.
    """
    graph = info.archived_execution_graph
    states = {
        vertex.id: graph.state[vertex.first : vertex.first + vertex.parallelism].tobytes().translate(_DISPLAY_CODES)
        for vertex in graph.job_vertices
    }
    return JobSnapshot(
        name=info.job_name,
        status=info.job_status.value,
        elapsed_ms=elapsed_ms,
        states=states,
        slots_used=slots[0] if slots else None,
        slots_total=slots[1] if slots else None,
        started_at_ms=started_at_ms,
        tasks=tuple(task_view(task) for task in tasks),
        errors=tuple(errors),
    )


def task_view(task: TaskRecord) -> TaskView:
    """What the display shows of an attempt."""
    return TaskView(
        vertex_id=task.vertex_id,
        subtask=task.subtask,
        attempt=task.attempt,
        state=task.state,
        slot=task.slot,
        executor=task.executor,
        start_ms=task.start_ms,
        end_ms=task.end_ms,
        rows_in=task.rows_read,
        rows_out=task.rows_written,
        bytes_in=task.bytes_read,
        bytes_out=task.bytes_written,
        error=task.error,
    )
