"""What the rules of findings know of a job: plain values, so that a rule can be tried without Spark."""

from __future__ import annotations

import shlex
import statistics
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property

from flinkmagic.deployment import TaskRecord
from flinkmagic.graph.execution_state import ExecutionState
from flinkmagic.planning.stage_metrics import Metrics

KEYED = frozenset({"HASH", "RANGE"})
"""Partitioners that bring the rows of a key together."""
SHUFFLES = KEYED | {"REBALANCE"}
"""Partitioners that spread rows over partitions."""


@dataclass(frozen=True)
class OperatorFacts:
    """One operator of a job vertex, with what it has measured."""

    id: int
    kind: str
    """Spark's class: ``SortMergeJoinExec``; ``write`` of a sink; of a part of Flink's own it is empty."""
    operator: str = ""
    text: str = ""
    """Spark's own words, shortened."""
    cell: str = ""
    line: int = 0
    code: str = ""
    variable: str = ""
    metrics: Metrics = field(default_factory=dict)
    inputs: tuple[int, ...] = ()
    """The ids of the operators that it reads, also those of other vertices."""

    @property
    def calls_python(self) -> bool:
        """Whether it calls functions of the user's in Python workers."""
        return any(word in self.kind for word in ("Python", "InPandas", "InArrow"))

    @property
    def start_of_python_ms(self) -> int:
        """How long its tasks waited for Python workers to start and to get ready; 0 if Spark did not measure it."""
        total_ms, own_ms = metric(self.metrics, "pythonTotalTime"), metric(self.metrics, "pythonProcessingTime")
        if own_ms:
            return max(0, total_ms - own_ms)
        # Of a worker that was there before, Spark counts as its initialization also that it waited for the task.
        boot_ms = metric(self.metrics, "pythonBootTime")
        return boot_ms + metric(self.metrics, "pythonInitTime") if boot_ms else 0


@dataclass(frozen=True)
class InputFacts:
    """An edge by which a vertex reads another one."""

    vertex_id: str
    partitioner: str
    """``HASH``, ``RANGE``, ``GLOBAL``, ``BROADCAST``, ``FORWARD``, ..."""
    reader: int
    """The id of the operator that reads it."""
    source: int = -1
    """The id of the operator whose rows it are."""


@dataclass(frozen=True)
class VertexFacts:
    """One job vertex: a stage."""

    id: str
    name: str
    kind: str = ""
    """What its stage leaves: ``shuffle``, ``broadcast``, ``subquery``, ``boundary``, ``result``, ``write``."""
    stage: str = ""
    """The name of its stage, under which it is known what is retained."""
    operators: tuple[OperatorFacts, ...] = ()
    """Inputs first."""
    inputs: tuple[InputFacts, ...] = ()
    attempts: tuple[TaskRecord, ...] = ()
    """All attempts of its tasks, without those of its helpers."""
    written: tuple[int, ...] = ()
    """The bytes of each partition of its shuffle."""
    above: OperatorFacts | None = None
    """The exchange, with the line that asked for it, through which its rows go; it has the metrics of a write's
    command, too."""
    words: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    """What Spark calls the metrics of its operators (`StageMetrics.words`)."""

    @property
    def metrics_above(self) -> Metrics:
        """What `above` has measured."""
        return self.above.metrics if self.above is not None else {}

    @cached_property
    def tasks(self) -> tuple[TaskRecord, ...]:
        """The attempts that have finished, one for each task."""
        last = {task.subtask: task for task in self.attempts if task.state is ExecutionState.FINISHED}
        return tuple(task for task in last.values() if task.end_ms is not None)

    @property
    def start_ms(self) -> float:
        """When its first attempt was launched."""
        return min(task.start_ms for task in self.attempts)

    @property
    def end_ms(self) -> float:
        """When its last attempt ended; of one that still runs when the last that has ended did."""
        return max((task.end_ms for task in self.attempts if task.end_ms is not None), default=self.start_ms)

    @property
    def run_ms(self) -> float:
        """The time that its finished tasks took on executors."""
        return float(sum(task.run_ms or 0 for task in self.tasks))

    @property
    def rows_in(self) -> int:
        """The rows that its tasks read from files and shuffles."""
        return sum(task.rows_in or 0 for task in self.tasks)

    @property
    def bytes_in(self) -> int:
        """The bytes that its tasks read from files and shuffles."""
        return sum(task.bytes_in or 0 for task in self.tasks)

    @property
    def main_operator(self) -> OperatorFacts | None:
        """The last operator of which a line is known."""
        return next((one for one in reversed(self.operators) if one.line), None)

    def reads(self, partitioners: Iterable[str]) -> bool:
        """Return whether it reads an edge with one of some partitioners."""
        wanted = frozenset(partitioners)
        return any(one.partitioner in wanted for one in self.inputs)

    def first(self, of: Callable[[OperatorFacts], bool]) -> OperatorFacts | None:
        """Return the first operator, inputs first, for which something holds."""
        return next(filter(of, self.operators), None)

    def below(self, operator: OperatorFacts) -> list[OperatorFacts]:
        """Return the operators of this vertex on which one depends, itself included."""
        by_id = {one.id: one for one in self.operators}
        found, waiting = {}, [operator]
        while waiting:
            one = waiting.pop()
            if one.id not in found:
                found[one.id] = one
                waiting += [by_id[each] for each in one.inputs if each in by_id]
        return list(found.values())


@dataclass(frozen=True)
class JobFacts:
    """A job that is over, or as far as it is."""

    vertices: tuple[VertexFacts, ...]
    """Those of which a task has run, producers before consumers."""
    started_ms: float
    ended_ms: float
    slots: int
    """The slots that the job may use."""
    name: str = ""
    """By which magics know it; empty of one of another application."""
    slots_of_session: int = 0
    """0 if that is not known."""
    is_finished: bool = True
    is_first: bool = False
    """Whether no job ran before it in its driver, which loads the classes of Spark for it."""
    planning_ms: float = 0.0
    """How long the driver planned it before it began; 0 if that is not known."""
    has_run_before: bool = False
    """Whether a job of its name ran before it in the session."""
    not_retained: Mapping[str, str] = field(default_factory=dict)
    """By the name of a stage, why no later run can use its result."""
    not_used: Mapping[str, str] = field(default_factory=dict)
    """By the name of a DataFrame, why its kept rows are not used."""
    reads_of_dropped_caches: Mapping[int, int] = field(default_factory=dict)
    """By the number (``cacheId``) of a cache that the job read, and that was dropped since, how many stages did so."""
    helpers: tuple[TaskRecord, ...] = ()
    """The tasks of other Spark jobs that vertices needed, such as the sampling for a range exchange."""

    @property
    def typed_name(self) -> str:
        """Its name as it is typed after a magic; a pattern if it is not known."""
        return shlex.quote(self.name or "NAME")

    @property
    def elapsed_ms(self) -> float:
        """How long it took."""
        return self.ended_ms - self.started_ms

    @cached_property
    def vertex(self) -> Mapping[str, VertexFacts]:
        """The vertices by their ids."""
        return {vertex.id: vertex for vertex in self.vertices}

    @property
    def caches(self) -> frozenset[int]:
        """The numbers of the caches that it read."""
        found = (one.metrics.get("cacheId") for vertex in self.vertices for one in vertex.operators)
        return frozenset(filter(None, found))

    def consumers(self, vertex: VertexFacts) -> list[VertexFacts]:
        """Return the vertices that read one."""
        return list(self._consumers.get(vertex.id, ()))

    @cached_property
    def _consumers(self) -> Mapping[str, list[VertexFacts]]:
        found: dict[str, list[VertexFacts]] = {}
        for vertex in self.vertices:
            for read in dict.fromkeys(one.vertex_id for one in vertex.inputs):
                found.setdefault(read, []).append(vertex)
        return found

    def producers(self, vertex: VertexFacts) -> list[VertexFacts]:
        """Return the vertices that one reads, as far as they have run in this job."""
        return [self.vertex[one.vertex_id] for one in vertex.inputs if one.vertex_id in self.vertex]

    def idle_ms(self, begin_ms: float, end_ms: float, slots: int | None = None) -> float:
        """Return the time that slots were without a task of the job, added up over them.

        Parameters
        ----------
        slots : int, optional
            Of how many; by default of all that the job may use.
        """
        if end_ms <= begin_ms:
            return 0.0
        return self._timeline.idle(begin_ms, end_ms, slots or self.slots)

    def free_ms(self, begin_ms: float, end_ms: float) -> float:
        """Return the time for which at least one slot was without a task of a vertex; it may have had a helper's."""
        return self._timeline_of_vertices.free(begin_ms, end_ms, self.slots)

    @property
    def most_tasks(self) -> int:
        """How many tasks ran simultaneously at most."""
        return self._timeline.most

    @cached_property
    def _attempts(self) -> list[TaskRecord]:
        return [task for vertex in self.vertices for task in vertex.attempts]

    @cached_property
    def _timeline(self) -> _Timeline:
        return _Timeline([*self._attempts, *self.helpers], self.ended_ms)

    @cached_property
    def _timeline_of_vertices(self) -> _Timeline:
        return _Timeline(self._attempts, self.ended_ms)


class _Timeline:
    """How many tasks run simultaneously, from each moment at which that changes."""

    def __init__(self, tasks: Iterable[TaskRecord], now_ms: float) -> None:
        changes: dict[float, int] = {}
        for task in tasks:
            end_ms = now_ms if task.end_ms is None else task.end_ms
            changes[task.start_ms] = changes.get(task.start_ms, 0) + 1
            changes[end_ms] = changes.get(end_ms, 0) - 1
        self._times = sorted(changes)
        self._running: list[int] = []
        running = 0
        for at in self._times:
            running += changes[at]
            self._running.append(running)

    @property
    def most(self) -> int:
        """How many tasks ran simultaneously at most."""
        return max(self._running, default=0)

    def idle(self, begin_ms: float, end_ms: float, slots: int) -> float:
        """Return the idle time of some slots, added up."""
        # Spark reports a task's launch before the end of the core's last task.
        return sum((length * max(0, slots - running) for length, running in self._parts(begin_ms, end_ms)), 0.0)

    def free(self, begin_ms: float, end_ms: float, slots: int) -> float:
        """Return the time for which fewer tasks ran than there are slots."""
        return sum((length for length, running in self._parts(begin_ms, end_ms) if running < slots), 0.0)

    def _parts(self, begin_ms: float, end_ms: float) -> Iterator[tuple[float, int]]:
        """Yield the parts of a time in which as many tasks ran: how long, and how many."""
        index, at = bisect_right(self._times, begin_ms) - 1, begin_ms
        while at < end_ms:
            running = self._running[index] if index >= 0 else 0
            until = self._times[index + 1] if index + 1 < len(self._times) else end_ms
            until = min(until, end_ms)
            yield until - at, running
            at, index = until, index + 1


def took_ms(task: TaskRecord) -> float:
    """Return the time from a task's launch to its end; 0 while it runs."""
    return 0.0 if task.end_ms is None else task.end_ms - task.start_ms


def ratio(value: float, base: float) -> float:
    """Return how many times a base a value is; infinite if the base is nothing and the value is not."""
    return value / base if base > 0 else float("inf") if value > 0 else 1.0


def median(values: Iterable[float]) -> float:
    """Return the median; 0 of nothing."""
    known = list(values)
    return statistics.median(known) if known else 0.0


def metric(metrics: Metrics, name: str) -> int:
    """Return one of Spark's metrics; 0 if it was not measured."""
    return int(metrics.get(name, 0))
