"""One record for each task attempt that Spark launched for a job."""

from __future__ import annotations

import heapq
import threading
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass

from flinkmagic.deployment.watching.task_events import RESUBMITTED, TaskEnded, TaskStarted
from flinkmagic.graph.execution_state import ExecutionState

_STATES = {
    "SUCCESS": ExecutionState.FINISHED,
    "FAILED": ExecutionState.FAILED,
    "KILLED": ExecutionState.CANCELED,
}


@dataclass(frozen=True)
class TaskRecord:
    """A task attempt, as Spark ran it.

    Spark may launch several for one execution of the ExecutionGraph (its own retries inside a stage, speculation) and,
    where outputs were lost with an executor, some after the execution was finished: each has a record.

    Attributes
    ----------
    vertex_id, vertex : str
        The job vertex's id and name.
    subtask : int
        The partition, counted from 0.
    attempt : int
        How many attempts Spark launched for this subtask before this one; those of helpers are counted apart.
    state : ExecutionState
        RUNNING, FINISHED, FAILED or CANCELED.
    slot : str
        The executor and the number of the slot on it: ``driver_0``.
    executor : str
        Spark's id of the executor.
    start_ms, end_ms : float
        Launch and end by Spark's clocks, milliseconds since the epoch; the end is None while it runs.
    rows_in, rows_out, bytes_in, bytes_out : int or None
        Read and written, files and shuffles together; None while it runs and where Spark did not tell.
    memory_spilled_bytes, disk_spilled_bytes : int or None
        Spilled.
    run_ms, gc_ms : int or None
        Time on the executor, and the part of it that garbage collection took.
    error : str
        Spark's text, empty without one.
    reason : str
        Spark's name for the end of a failed attempt, such as ``ExceptionFailure``; ``Resubmitted`` of one that
        succeeded and whose output was lost while its stage still ran.
    stage, stage_attempt, task_id : int
        By which Spark's UI knows it.
    speculative : bool
        Whether Spark launched it beside one that was slow.
    role : str
        ``task``: one of the vertex's subtasks; ``helper``: of another Spark job that the vertex needs, such as the
        sampling for a range exchange; ``recovery``: to make lost outputs of the vertex once more.
    """

    vertex_id: str
    vertex: str
    subtask: int
    attempt: int
    state: ExecutionState
    slot: str
    executor: str
    start_ms: float
    end_ms: float | None = None
    rows_in: int | None = None
    rows_out: int | None = None
    bytes_in: int | None = None
    bytes_out: int | None = None
    memory_spilled_bytes: int | None = None
    disk_spilled_bytes: int | None = None
    run_ms: int | None = None
    gc_ms: int | None = None
    error: str = ""
    reason: str = ""
    stage: int = -1
    stage_attempt: int = 0
    task_id: int = -1
    speculative: bool = False
    role: str = "task"


class _Attempt:
    """What is known of a task attempt; its record is made when somebody asks for it."""

    __slots__ = ("attempt", "end", "record", "role", "slot", "started", "vertex", "vertex_id")

    def __init__(self, started: TaskStarted, vertex_id: str, vertex: str, role: str, attempt: int, slot: int) -> None:
        self.started = started
        self.vertex_id = vertex_id
        self.vertex = vertex
        self.role = role
        self.attempt = attempt
        self.slot = slot
        self.end: TaskEnded | None = None
        self.record: TaskRecord | None = None


class TaskLog:
    """The records of a job, in the order of launch; written on the main thread, read on any.

    Parameters
    ----------
    slots : SlotNumbers
        Tells the slots of an executor apart.
    """

    def __init__(self, slots: SlotNumbers) -> None:
        self._lock = threading.Lock()
        self._of: dict[int, _Attempt] = {}
        self._attempts: Counter[tuple[str, int, bool]] = Counter()
        self._slots = slots

    def records(self) -> list[TaskRecord]:
        """All records, oldest first."""
        with self._lock:
            return [one.record or _record(one) for one in self._of.values()]

    def started(self, task: TaskStarted, vertex_id: str, vertex: str, role: str) -> int:
        """Note a launch; gives the number of the slot that the task was put in."""
        key = (vertex_id, task.partition, role == "helper")
        slot = self._slots.take(task.executor, task.task_id)
        attempt = _Attempt(task, vertex_id, vertex, role, self._attempts[key], slot)
        self._attempts[key] += 1
        with self._lock:
            self._of[task.task_id] = attempt
        return slot

    def ended(self, end: TaskEnded) -> None:
        """Note an end."""
        guest = self._slots.give_back(end.started.executor, end.started.task_id)
        one = self._of.get(end.started.task_id)
        with self._lock:
            if guest is not None:
                self._of[guest[0]].slot = guest[1]
                self._of[guest[0]].record = None
            if one is not None:
                one.end, one.record = end, None

    def output_lost(self, task_id: int) -> None:
        """Note that Spark runs a task that has succeeded once more."""
        one = self._of.get(task_id)
        if one is not None and one.end is not None:
            with self._lock:
                one.end, one.record = one.end._replace(reason=RESUBMITTED), None


def _record(one: _Attempt) -> TaskRecord:
    task, end = one.started, one.end
    metrics = end.metrics if end is not None else None
    one.record = TaskRecord(
        vertex_id=one.vertex_id,
        vertex=one.vertex,
        subtask=task.partition,
        attempt=one.attempt,
        state=ExecutionState.RUNNING if end is None else _STATES.get(end.status, ExecutionState.FAILED),
        slot=f"{task.executor}_{one.slot}",
        executor=task.executor,
        start_ms=task.launched_ms,
        end_ms=end.finished_ms if end is not None else None,
        rows_in=metrics.rows_in if metrics is not None else None,
        rows_out=metrics.rows_out if metrics is not None else None,
        bytes_in=metrics.bytes_in if metrics is not None else None,
        bytes_out=metrics.bytes_out if metrics is not None else None,
        memory_spilled_bytes=metrics.memory_spilled_bytes if metrics is not None else None,
        disk_spilled_bytes=metrics.disk_spilled_bytes if metrics is not None else None,
        run_ms=metrics.run_ms if metrics is not None else None,
        gc_ms=metrics.gc_ms if metrics is not None else None,
        error=end.error if end is not None else "",
        reason=end.reason if end is not None else "",
        stage=task.stage_id,
        stage_attempt=task.stage_attempt,
        task_id=task.task_id,
        speculative=task.speculative,
        role=one.role,
    )
    return one.record


class SlotNumbers:
    """Numbers the slots of executors: a task gets the lowest number that is free on its executor.

    Spark's cores have no names. Spark launches a task on a core before it tells of the end of the one that had it, so
    on an executor that seems full a task shares, for the moment, the number of the task that began first; the next end
    on that executor settles it.

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
        """By the task that shares a number, the task that has had it before."""

    def take(self, executor: str, task_id: int) -> int:
        """The number of a task that was launched."""
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
        """A task has ended. The task, and its true number, that shared one until now because of it, if any did."""
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
