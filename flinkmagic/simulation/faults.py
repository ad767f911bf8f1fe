"""Lists what can go wrong in a simulation, and when."""

from __future__ import annotations

import random
import re
from collections.abc import Sequence
from dataclasses import dataclass

from flinkmagic.errors.base import FlinkMagicError
from flinkmagic.errors.usage import InvalidValueError
from flinkmagic.scheduling.failover.restart_strategy import parse_duration_ms


class SimulatedError(FlinkMagicError):
    """Why a simulated task fails."""

    what: str
    at_ms: float

    def __str__(self) -> str:
        return f"{self.what} (simulated at {self.at_ms / 1000.0:g}s)"


@dataclass(frozen=True)
class FailTask:
    """Fail a subtask: the attempt that runs at that time, or else the next one that runs."""

    vertex: str
    """The name of a job vertex, or of an operator in it."""
    subtask: int
    """Counted from 0."""
    at_ms: float


@dataclass(frozen=True)
class LoseTaskManager:
    """Kill an executor; its connections break immediately. `back_after_ms` later a new one takes its place."""

    resource_id: str
    at_ms: float
    back_after_ms: float | None = None


@dataclass(frozen=True)
class SilenceTaskManager:
    """Cut an executor off; it continues to work, and only its silence reveals it."""

    resource_id: str
    at_ms: float
    back_after_ms: float | None = None


@dataclass(frozen=True)
class LoseSlot:
    """Break one slot of an executor."""

    resource_id: str
    slot_index: int
    at_ms: float


@dataclass(frozen=True)
class LosePartition:
    """Lose a finished partition: the one at `position` (from 0 to 1) among the existing ones."""

    position: float
    at_ms: float


@dataclass(frozen=True)
class FailJob:
    """Fail the job, for a reason that concerns no single task."""

    at_ms: float


@dataclass(frozen=True)
class CancelJob:
    """Cancel the job, as its user would."""

    at_ms: float


@dataclass(frozen=True)
class SuspendJob:
    """Take the leadership from the job's master."""

    at_ms: float


Fault = FailTask | LoseTaskManager | SilenceTaskManager | LoseSlot | LosePartition | FailJob | CancelJob | SuspendJob


def parse_duration(text: str) -> float:
    """Return the milliseconds of `1.5s`, `200ms`, `2m`, `1h` or plain seconds."""
    duration_ms = parse_duration_ms(text)
    if duration_ms is None:
        raise InvalidValueError(text, "a time such as 1.5s, 200ms or 2m")
    return duration_ms


def parse_task_failure(text: str) -> FailTask:
    """Parse `Map:2@1.5s`: subtask 2 of `Map` at 1.5 s."""
    match = re.fullmatch(r"(.+):(\d+)@([^@]+)", text)
    if match is None:
        raise InvalidValueError(text, "VERTEX:SUBTASK@TIME, such as Map:2@1.5s")
    return FailTask(match[1], int(match[2]), parse_duration(match[3]))


def parse_task_manager_loss(text: str) -> LoseTaskManager:
    """Parse `tm-1@2s`, or `tm-1@2s+5s` for one that is replaced five seconds later."""
    match = re.fullmatch(r"([^@]+)@([^@+]+)(?:\+([^@+]+))?", text)
    if match is None:
        raise InvalidValueError(text, "NAME@TIME, such as tm-1@2s, or tm-1@2s+5s")
    return LoseTaskManager(match[1], parse_duration(match[2]), parse_duration(match[3]) if match[3] else None)


def random_faults(
    source: random.Random,
    count: int,
    *,
    vertices: Sequence[tuple[str, int]],
    task_managers: Sequence[tuple[str, int]],
    horizon_ms: float,
    back_after_ms: float,
) -> list[Fault]:
    """Draw faults that a job can survive: lost executors come back.

    Parameters
    ----------
    vertices : sequence of (name, parallelism)
        Those of the job.
    task_managers : sequence of (name, slots)
        Those of the cluster.
    horizon_ms : float
        The time before which all of them happen.
    back_after_ms : float
        How soon a lost executor is replaced.
    """
    faults: list[Fault] = []
    for _ in range(count):
        at_ms = round(source.uniform(0.0, horizon_ms), 3)
        kind = source.choices(range(6), weights=(10, 2, 1, 2, 3, 1))[0]
        name, slots = source.choice(task_managers)
        if kind == 0:
            vertex, parallelism = source.choice(vertices)
            faults.append(FailTask(vertex, source.randrange(parallelism), at_ms))
        elif kind == 1:
            faults.append(LoseTaskManager(name, at_ms, back_after_ms))
        elif kind == 2:
            faults.append(SilenceTaskManager(name, at_ms, back_after_ms))
        elif kind == 3:
            faults.append(LoseSlot(name, source.randrange(slots), at_ms))
        elif kind == 4:
            faults.append(LosePartition(source.random(), at_ms))
        else:
            faults.append(FailJob(at_ms))
    return sorted(faults, key=lambda fault: fault.at_ms)
