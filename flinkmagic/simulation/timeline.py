"""Records what ran where and when, in a simulated run or in a real one."""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from typing import Any

from flinkmagic.graph.access_execution_graph import AccessExecutionGraph
from flinkmagic.graph.execution import Execution
from flinkmagic.graph.execution_state import ExecutionState
from flinkmagic.scheduling.execution_graph_info import ExecutionGraphInfo

_S = ExecutionState
_ENDS = (_S.FINISHED, _S.CANCELED, _S.FAILED)


@dataclass(frozen=True)
class TaskSpan:
    """One attempt, from its deployment to its end."""

    vertex: int
    job_vertex: int
    task_name: str
    attempt: int
    resource_id: str
    slot: int
    """The number of the slot on its executor."""
    start_ms: float
    running_ms: float | None
    end_ms: float | None
    """None while it runs."""
    state: str
    error: str | None = None


@dataclass(frozen=True)
class Timeline:
    """A run: its tasks, and the slots that they ran in."""

    name: str
    job_status: str
    spans: tuple[TaskSpan, ...]
    slots: tuple[tuple[str, int], ...]
    """All slots that existed, as (executor, number)."""
    start_ms: float
    end_ms: float
    restarts: int

    @property
    def makespan_ms(self) -> float:
        """The time from start to end."""
        return self.end_ms - self.start_ms

    def end_of(self, span: TaskSpan) -> float:
        """Return when an attempt ended; the end of the run for one that still ran then."""
        return self.end_ms if span.end_ms is None else span.end_ms

    @property
    def busy_ms(self) -> float:
        """How long slots held a task, summed over the slots."""
        return sum(self._busy_ms_of(slot) for slot in self.slots)

    @property
    def utilisation(self) -> float:
        """The fraction of the slots' time in which they held a task, 0 to 1."""
        total_ms = self.makespan_ms * len(self.slots)
        return self.busy_ms / total_ms if total_ms > 0 else 0.0

    def _busy_ms_of(self, slot: tuple[str, int]) -> float:
        busy_ms, until_ms = 0.0, float("-inf")
        own = [span for span in self.spans if (span.resource_id, span.slot) == slot]
        for span in sorted(own, key=lambda span: span.start_ms):
            end_ms = self.end_of(span)
            busy_ms += max(0.0, end_ms - max(span.start_ms, until_ms))
            until_ms = max(until_ms, end_ms)
        return busy_ms

    def to_json(self) -> dict[str, Any]:
        """Return the timeline as plain data; times in milliseconds from the start."""
        spans = []
        for span in self.spans:
            entry = asdict(span)
            for name in ("start_ms", "running_ms", "end_ms"):
                if entry[name] is not None:
                    entry[name] = round(entry[name] - self.start_ms, 3)
            spans.append(entry)
        return {
            "name": self.name,
            "job_status": self.job_status,
            "makespan_ms": round(self.makespan_ms, 3),
            "slot_utilisation": round(self.utilisation, 4),
            "restarts": self.restarts,
            "slots": [f"{resource_id}/{slot}" for resource_id, slot in self.slots],
            "tasks": spans,
        }


def timeline_of(
    info: ExecutionGraphInfo,
    *,
    end_ms: float | None = None,
    slot_of_allocation: Mapping[str, int] | None = None,
    slots: Iterable[tuple[str, int]] = (),
) -> Timeline:
    """Make the timeline of a run.

    Parameters
    ----------
    info : ExecutionGraphInfo
        The run; for each subtask, the attempts that are kept.
    end_ms : float, optional
        When it ended, if not when its job did.
    slot_of_allocation : mapping of str to int, optional
        The number of the slot by allocation id. Without it slots are numbered so that no two allocations overlap in
        one, using as few as possible.
    slots : iterable of (str, int)
        Slots that existed whether or not anything ran in them.
    """
    graph = info.archived_execution_graph
    runs: list[tuple[int, Execution]] = []
    for vertex in range(graph.n_vertices):
        runs += [(vertex, execution) for execution in graph.prior_executions(vertex)]
        runs.append((vertex, graph.current_execution(vertex)))
    deployed = [(v, e) for v, e in runs if _S.DEPLOYING in e.timestamps and e.resource_id is not None]
    numbers = dict(slot_of_allocation) if slot_of_allocation is not None else _pack(e for _, e in deployed)
    spans = sorted((_span(graph, v, e, numbers) for v, e in deployed), key=lambda s: (s.start_ms, s.vertex, s.attempt))
    used = {(span.resource_id, span.slot) for span in spans}
    start_ms = min((e.timestamps[_S.CREATED] for _, e in runs if e.attempt == 0), default=0.0)
    return Timeline(
        info.job_name,
        str(info.job_status),
        tuple(spans),
        tuple(sorted(used.union(slots), key=_slot_key)),
        start_ms,
        info.ended_ms if end_ms is None else end_ms,
        info.number_of_restarts,
    )


def _span(graph: AccessExecutionGraph, vertex: int, execution: Execution, numbers: Mapping[str, int]) -> TaskSpan:
    job_vertex = graph.job_vertex_of(vertex)
    assert execution.resource_id is not None
    return TaskSpan(
        vertex=vertex,
        job_vertex=job_vertex.index,
        task_name=job_vertex.task_name(vertex - job_vertex.first),
        attempt=execution.attempt,
        resource_id=execution.resource_id,
        slot=numbers.get(execution.slot or "", 0),
        start_ms=execution.timestamps[_S.DEPLOYING],
        running_ms=execution.timestamps.get(_S.RUNNING),
        end_ms=_end_ms(execution),
        state=execution.state.name,
        error=None if execution.error is None else str(execution.error),
    )


def _end_ms(execution: Execution) -> float | None:
    return next((execution.timestamps[state] for state in _ENDS if state in execution.timestamps), None)


def _pack(executions: Iterable[Execution]) -> dict[str, int]:
    """Assign numbers to slots by executor so that no two allocations overlap in one."""
    spans: dict[tuple[str, str], tuple[float, float]] = {}
    for execution in executions:
        key = (execution.resource_id or "", execution.slot or "")
        start_ms, end_ms = execution.timestamps[_S.DEPLOYING], _end_ms(execution)
        known = spans.get(key, (float("inf"), float("-inf")))
        spans[key] = (min(known[0], start_ms), max(known[1], float("inf") if end_ms is None else end_ms))
    numbers: dict[str, int] = {}
    free: dict[str, list[int]] = {}
    busy: dict[str, list[tuple[float, int]]] = {}
    for (resource_id, allocation_id), (start_ms, end_ms) in sorted(spans.items(), key=lambda item: (item[1], item[0])):
        own_free, own_busy = free.setdefault(resource_id, []), busy.setdefault(resource_id, [])
        while own_busy and own_busy[0][0] <= start_ms:
            heapq.heappush(own_free, heapq.heappop(own_busy)[1])
        number = heapq.heappop(own_free) if own_free else len(own_busy)
        heapq.heappush(own_busy, (end_ms, number))
        numbers[allocation_id] = number
    return numbers


def _slot_key(slot: tuple[str, int]) -> tuple[str, int, str, int]:
    """Return a sort key that orders executors as people do: tm-2 before tm-10."""
    resource_id, number = slot
    stem = resource_id.rstrip("0123456789")
    digits = resource_id[len(stem) :]
    return stem, int(digits) if digits else -1, resource_id, number


def timeline_text(timeline: Timeline, width: int = 60) -> str:
    """Return a timeline for a terminal: a line for each attempt, with a bar, and the total below."""
    lines = [f"{timeline.name}: {timeline.job_status}"]
    total_ms = max(timeline.makespan_ms, 1e-9)
    names = [f"{span.task_name}#{span.attempt}" for span in timeline.spans]
    places = [f"{span.resource_id}/{span.slot}" for span in timeline.spans]
    name_width = max(map(len, names), default=0)
    place_width = max(map(len, places), default=0)
    for span, name, place in zip(timeline.spans, names, places, strict=True):
        start_ms = span.start_ms - timeline.start_ms
        end_ms = timeline.end_of(span) - timeline.start_ms
        left = int(width * start_ms / total_ms)
        right = max(left + 1, round(width * end_ms / total_ms))
        bar = (" " * left + _BARS.get(span.state, "=") * (right - left)).ljust(width)[:width]
        lines.append(
            f"{place:<{place_width}}  {name:<{name_width}}  |{bar}|  "
            f"{start_ms / 1000:8.3f}s {end_ms / 1000:8.3f}s  {span.state}"
        )
    lines.append(
        f"makespan {timeline.makespan_ms / 1000:.3f}s, {len(timeline.slots)} slots used to "
        f"{100 * timeline.utilisation:.1f} %, {timeline.restarts} restarts"
    )
    return "\n".join(lines)


_BARS = {"FINISHED": "#", "FAILED": "x", "CANCELED": "-"}
