"""Turns Spark's reports about stages and tasks, the lines of ``java/TaskMonitor.java``, into records."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from flinkmagic.errors.base import InvariantViolatedError


class StageRef(NamedTuple):
    """A stage that a Spark job needs; most of them may be skipped."""

    stage_id: int
    shuffle_id: int | None
    """The shuffle that the stage writes; None for a stage that writes none."""
    tasks: int


class JobStarted(NamedTuple):
    """A Spark job of ours has started."""

    job_id: int
    tag: str
    """The one of our tags that it has."""
    stages: tuple[StageRef, ...]

    @property
    def final_stage(self) -> StageRef | None:
        """The stage for which the job runs: Spark numbers a stage after those that it needs."""
        return max(self.stages, default=None)


class JobEnded(NamedTuple):
    """A Spark job of ours is over."""

    job_id: int
    succeeded: bool


class TaskStarted(NamedTuple):
    """Spark launched a task attempt on an executor."""

    stage_id: int
    stage_attempt: int
    partition: int
    attempt: int
    task_id: int
    """Unique within the SparkContext."""
    executor: str
    launched_ms: float
    speculative: bool


class TaskMetrics(NamedTuple):
    """What a task attempt read, wrote and took; bytes and rows of files and shuffles together; None is unknown."""

    rows_in: int
    rows_out: int | None
    bytes_in: int
    bytes_out: int | None
    memory_spilled_bytes: int
    disk_spilled_bytes: int
    run_ms: int
    gc_ms: int
    result_bytes: int
    fetch_wait_ms: int = 0
    shuffle_write_ms: int = 0
    serialization_ms: int = 0
    peak_memory_bytes: int = 0

    def without_output(self, bytes_out: int | None) -> TaskMetrics:
        """Return the metrics of a task that writes neither files nor a shuffle: Spark does not count its rows."""
        return self._replace(rows_out=None, bytes_out=bytes_out)


RESUBMITTED = "Resubmitted"
"""The reason of an end that takes back a success: the task's output is lost, and its stage still runs."""


class TaskEnded(NamedTuple):
    """A task attempt is over."""

    started: TaskStarted
    finished_ms: float
    status: str
    """Spark's own word: SUCCESS, FAILED or KILLED."""
    metrics: TaskMetrics | None
    reason: str
    """The name of Spark's TaskEndReason; empty after success.

    It is ``ExceptionFailure``, ``FetchFailed:<shuffle>:<map>``, ``ExecutorLostFailure``, ...
    """
    error: str
    """The whole text of the reason; empty after success."""


class ExecutorAdded(NamedTuple):
    """An executor has registered."""

    executor: str
    cores: int


class ExecutorRemoved(NamedTuple):
    """An executor is gone."""

    executor: str
    reason: str


class ApplicationEnded(NamedTuple):
    """The SparkContext is being stopped."""


class Marker(NamedTuple):
    """All that Spark reported before `flush(token)` has been delivered."""

    token: str


TaskEvent = (
    JobStarted | JobEnded | TaskStarted | TaskEnded | ExecutorAdded | ExecutorRemoved | ApplicationEnded | Marker
)


class ContextStoppedError(Exception):
    """The loss of a session whose SparkContext was stopped."""

    def __init__(self) -> None:
        super().__init__("its SparkContext was stopped")


_ESCAPES = {"\\": "\\", "t": "\t", "n": "\n", "r": "\r"}


def parse_lines(text: str) -> Iterator[TaskEvent]:
    """Parse what `TaskMonitor.drain` returned."""
    for line in text.split("\n"):
        if line:
            yield _parse(line)


def _parse(line: str) -> TaskEvent:
    kind, *rest = line.split("\t")
    match kind:
        case "S":
            return _task(rest)
        case "E":
            metrics = TaskMetrics(*map(int, rest[10].split(","))) if rest[10] else None
            if len(rest) == 11:
                return TaskEnded(_task(rest), float(rest[8]), rest[9], metrics, "", "")
            return TaskEnded(_task(rest), float(rest[8]), rest[9], metrics, rest[11], _unescape(rest[12]))
        case "J":
            stages = tuple(map(_stage_ref, rest[2].split(","))) if rest[2] else ()
            return JobStarted(int(rest[0]), rest[1], stages)
        case "j":
            return JobEnded(int(rest[0]), rest[1] == "SUCCEEDED")
        case "A":
            return ExecutorAdded(rest[0], int(rest[1]))
        case "D":
            return ExecutorRemoved(rest[0], _unescape(rest[1]))
        case "Z":
            return ApplicationEnded()
        case "M":
            return Marker(rest[0])
    raise InvariantViolatedError(f"the task monitor writes lines of known kinds, not {line[:200]!r}")


def _task(fields: list[str]) -> TaskStarted:
    stage, stage_attempt, partition, attempt, task_id, executor, launched, speculative = fields[:8]
    return TaskStarted(
        int(stage),
        int(stage_attempt),
        int(partition),
        int(attempt),
        int(task_id),
        executor,
        float(launched),
        speculative == "1",
    )


def _stage_ref(text: str) -> StageRef:
    stage, shuffle, tasks = text.split(":")
    return StageRef(int(stage), None if shuffle == "-1" else int(shuffle), int(tasks))


def _unescape(text: str) -> str:
    if "\\" not in text:
        return text
    out, characters = [], iter(text)
    for character in characters:
        out.append(_ESCAPES[next(characters)] if character == "\\" else character)
    return "".join(out)
