"""Keeps one record for each task attempt that Spark launched for a job."""

from __future__ import annotations

import heapq
import threading
from collections import Counter
from collections.abc import Callable
from typing import Any, NamedTuple

from flinkmagic.deployment.watching.task_events import RESUBMITTED, TaskEnded, TaskStarted
from flinkmagic.graph.execution_state import ExecutionState

_STATES = {
    "SUCCESS": ExecutionState.FINISHED,
    "FAILED": ExecutionState.FAILED,
    "KILLED": ExecutionState.CANCELED,
}


class TaskRecord(NamedTuple):
    """A task attempt, as Spark ran it.

    Spark may launch several for one execution of the ExecutionGraph (its own retries inside a stage, speculation) and,
    if outputs were lost with an executor, some after the execution was finished: each has a record.
    """

    vertex_id: str
    vertex: str
    subtask: int
    """The partition, counted from 0."""
    attempt: int
    """How many attempts Spark launched for this subtask before this one; those of helpers are counted separately."""
    state: ExecutionState
    """RUNNING, FINISHED, FAILED or CANCELED."""
    slot: str
    """The executor and the number of the slot on it: ``driver_0``."""
    executor: str
    """Spark's id of the executor."""
    start_ms: float
    """Launch by Spark's clocks, milliseconds since the epoch."""
    end_ms: float | None = None
    """End by the same clocks; None while it runs."""
    rows_in: int | None = None
    """Read from files and shuffles together. This and all down to `peak_memory_bytes`: None while it runs and if Spark
    did not report it."""
    rows_out: int | None = None
    bytes_in: int | None = None
    bytes_out: int | None = None
    memory_spilled_bytes: int | None = None
    disk_spilled_bytes: int | None = None
    run_ms: int | None = None
    """Time on the executor; of a task with several cores that of all of them (seen on 4.3.0)."""
    gc_ms: int | None = None
    """The part of `run_ms` that garbage collection took."""
    result_bytes: int | None = None
    """What it sent to the driver: rows, or where its output is, and what it has measured."""
    fetch_wait_ms: int | None = None
    """The part of `run_ms` in which it waited for blocks of shuffles."""
    shuffle_write_ms: int | None = None
    """The part of `run_ms` in which it wrote shuffle files, without making the rows."""
    serialization_ms: int | None = None
    """The time on the executor, beside `run_ms`, in which the task was read, and its result written."""
    peak_memory_bytes: int | None = None
    """The most memory that its sorts, aggregates and joins held."""
    error: str = ""
    """Spark's error text; empty if there is none."""
    reason: str = ""
    """Spark's name for the end of a failed attempt, such as ``ExceptionFailure``; ``Resubmitted`` of one that succeeded
    and whose output was lost while its stage still ran."""
    stage: int = -1
    """This, `stage_attempt` and `task_id` are the numbers that Spark's UI shows for it."""
    stage_attempt: int = 0
    task_id: int = -1
    speculative: bool = False
    """Whether Spark launched it beside a slow one."""
    role: str = "task"
    """``task``: one of the vertex's subtasks; ``helper``: of another Spark job that the vertex needs, such as the
    sampling for a range exchange; ``recovery``: to make lost outputs of the vertex once more."""


class TaskLog:
    """Keeps the records of a job, in the order of launch; written on the main thread, read on any."""

    def __init__(self, slots: SlotNumbers) -> None:
        self._lock = threading.Lock()
        self._of: dict[int, TaskRecord] = {}
        self._attempts: Counter[tuple[str, int, bool]] = Counter()
        self._slots = slots

    def records(self) -> list[TaskRecord]:
        """Return all records, oldest first."""
        with self._lock:
            return list(self._of.values())

    def started(self, task: TaskStarted, vertex_id: str, vertex: str, role: str) -> int:
        """Record a launch; return the number of the slot that the task was put in."""
        key = (vertex_id, task.partition, role == "helper")
        slot = self._slots.take(task.executor, task.task_id)
        record = TaskRecord(
            vertex_id=vertex_id,
            vertex=vertex,
            subtask=task.partition,
            attempt=self._attempts[key],
            state=ExecutionState.RUNNING,
            slot=f"{task.executor}_{slot}",
            executor=task.executor,
            start_ms=task.launched_ms,
            stage=task.stage_id,
            stage_attempt=task.stage_attempt,
            task_id=task.task_id,
            speculative=task.speculative,
            role=role,
        )
        self._attempts[key] += 1
        with self._lock:
            self._of[task.task_id] = record
        return slot

    def ended(self, end: TaskEnded) -> None:
        """Record an end."""
        executor, task_id = end.started.executor, end.started.task_id
        guest = self._slots.give_back(executor, task_id)
        if guest is not None:
            self._change(guest[0], slot=f"{executor}_{guest[1]}")
        self._change(task_id, **_what_became_of_it(end))

    def output_lost(self, task_id: int) -> None:
        """Record that Spark runs a task again that has succeeded."""
        record = self._of.get(task_id)
        if record is not None and record.end_ms is not None:
            self._change(task_id, reason=RESUBMITTED)

    def _change(self, task_id: int, **known: Any) -> None:
        with self._lock:
            record = self._of.get(task_id)
            if record is not None:
                self._of[task_id] = record._replace(**known)


def _what_became_of_it(end: TaskEnded) -> dict[str, Any]:
    """Return the fields of a record that are known at the end."""
    known: dict[str, Any] = {
        "state": _STATES.get(end.status, ExecutionState.FAILED),
        "end_ms": end.finished_ms,
        "error": end.error,
        "reason": end.reason,
    }
    if end.metrics is not None:
        known.update(end.metrics._asdict())
    return known


class SlotNumbers:
    """Numbers the slots of executors: a task gets the lowest number that is free on its executor.

    Spark's cores have no names. Spark launches a task on a core before it reports the end of the one that had it, so on
    an executor that seems full a task temporarily shares the number of the task that began first; the next end on that
    executor settles it.

    Parameters
    ----------
    capacity : callable
        How many tasks an executor runs simultaneously.
    """

    def __init__(self, capacity: Callable[[str], int]) -> None:
        self._capacity = capacity
        self._free: dict[str, list[int]] = {}
        self._used: dict[str, int] = {}
        self._running: dict[str, dict[int, int]] = {}
        self._guests: dict[int, int] = {}
        """By the task that shares a number, the task that had it before."""

    def take(self, executor: str, task_id: int) -> int:
        """Return the number of a task that was launched."""
        running = self._running.setdefault(executor, {})
        free = self._free.setdefault(executor, [])
        used = self._used.get(executor, 0)
        if free:
            number = heapq.heappop(free)
        elif used < self._capacity(executor):
            number, self._used[executor] = used, used + 1
        else:
            hosts = set(self._guests.values())
            host = next((task for task in running if task not in hosts and task not in self._guests), None)
            if host is None:
                number, self._used[executor] = used, used + 1
            else:
                number, self._guests[task_id] = running[host], host
        running[task_id] = number
        return number

    def give_back(self, executor: str, task_id: int) -> tuple[int, int] | None:
        """Free a task's number; return the task that shared one because of it, and its true number, if there is one."""
        running = self._running.get(executor, {})
        number = running.pop(task_id, None)
        if number is None:
            return None
        if self._guests.pop(task_id, None) is not None:
            return None  # its host still has the number
        guest = next((guest for guest, host in self._guests.items() if host == task_id), None)
        if guest is None:
            guest = next((guest for guest in self._guests if guest in running), None)
        if guest is None:
            heapq.heappush(self._free[executor], number)
            return None
        del self._guests[guest]
        running[guest] = number
        return guest, number
