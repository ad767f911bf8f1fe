"""New executions for what runs again without the scheduler's doing.

Flink's executors do nothing by themselves: a lost one is noticed by the JobMaster, which restarts regions. Executors
that recover by themselves (Spark's, whose driver runs lost tasks again and remakes lost outputs) only say what they do.
That is no restart of the job: no strategy is asked for leave, nothing else is cancelled. But the executions that were
lost are over, and what runs now are others.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from flinkmagic.errors import ExecutorRecoveryError
from flinkmagic.graph.execution_state import ExecutionState
from flinkmagic.scheduling.exception_history import ExceptionHistoryEntry
from flinkmagic.scheduling.execution_operations import ON_EXECUTOR
from flinkmagic.scheduling.job_status import JobStatus

if TYPE_CHECKING:
    from flinkmagic.scheduling.default_scheduler import DefaultScheduler

_GOES_ON = frozenset({JobStatus.RUNNING, JobStatus.RESTARTING})
_REPLACEABLE = frozenset({*ON_EXECUTOR, ExecutionState.FINISHED})


def replace_executions(
    scheduler: DefaultScheduler, vertices: Sequence[int], cause: ExecutorRecoveryError, at_ms: float | None = None
) -> bool:
    """Give the vertices of a region new executions, and ask for their slots at once.

    1. Executions that run have FAILED of `cause`; those that are FINISHED stay so, as prior ones: what they made is
       lost.
    2. Consumers that are not scheduled yet wait for the new ones; those that are stay as they are.
    3. The new ones are scheduled whatever becomes of their inputs: they run already.

    Parameters
    ----------
    scheduler : DefaultScheduler
        The job's, on its thread.
    vertices : sequence of int
        All of the region.
    cause : ExecutorRecoveryError
        What was lost.
    at_ms : float, optional
        When; now by default.

    Returns
    -------
    bool
        False, and nothing has changed, where the job is ending or the scheduler is about to restart them itself.
    """
    executions = scheduler.executions
    states = [executions.state(vertex) for vertex in vertices]
    if scheduler.job_status not in _GOES_ON or not _REPLACEABLE.issuperset(states):
        return False
    if not scheduler._waiting_for_restart.isdisjoint(vertices):
        return False
    _note(scheduler, vertices, cause)
    for vertex, state in zip(vertices, states, strict=True):
        if state in ON_EXECUTOR:
            scheduler._operations.end(vertex, ExecutionState.FAILED, cause, at_ms)
    scheduler._versioner.record_modifications(vertices)
    scheduler.strategy.on_vertices_reset(vertices)
    for vertex in vertices:
        scheduler._reset(vertex)
    scheduler.strategy.restart_at_once(vertices)
    return True


def _note(scheduler: DefaultScheduler, vertices: Sequence[int], cause: ExecutorRecoveryError) -> None:
    vertex = vertices[-1]
    execution = scheduler.execution_graph.execution_vertex(vertex).current_execution
    entry = ExceptionHistoryEntry(
        cause,
        scheduler._clock.now_ms(),
        vertex,
        scheduler.executions.task_name(vertex),
        execution.attempt_id.attempt,
        execution.resource_id,
    )
    scheduler.event_log.add("scheduler", f"{entry}; it is run again where it was submitted")
    history = scheduler._failure_handler.history
    entries = history.entries()
    last = entries[-1].root.error if entries else None
    belongs = isinstance(last, ExecutorRecoveryError) and last.belongs_with(cause)
    history.add(entry, vertices, not belongs)
