"""Compares two runs of a graph: their measures side by side, by vertex and line.

Anchor: the ``compare`` of Spark's history server. Nothing is weighed or explained here; what lost time in one run is
told by its findings.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from flinkmagic import amounts
from flinkmagic.display.costs import VertexCost
from flinkmagic.display.page import CELL, escaped, table_row
from flinkmagic.display.printable import lines_visible, visible
from flinkmagic.display.snapshot import NodeView
from flinkmagic.display.text import aligned
from flinkmagic.errors.usage import NothingToCompareError
from flinkmagic.session.recorded_run import RecordedRun, numbered

_HEAD = ("vertex", "line", "difference", "time", "tasks run", "slots", "rows in", "rows out", "bytes in", "bytes out")
_NOTHING = VertexCost(None)
_HTML_CELL = f"{CELL};white-space:nowrap"
_HTML_NOTE = "padding:0 10px 6px 24px;text-align:left;white-space:pre-wrap"


@dataclass(frozen=True)
class VertexRun:
    """What one job vertex took in one run; an unknown value is None."""

    time_s: float | None
    """From its first task's start to its last one's end."""
    rows_in: int | None
    rows_out: int | None
    bytes_in: int | None
    bytes_out: int | None
    tasks: int
    """How many subtasks ran."""
    slots: int
    """On how many slots they ran."""
    plan: str
    """Its operators, inputs first."""
    is_reused: bool
    """Whether its result was there before the run."""


@dataclass(frozen=True)
class ComparedVertex:
    """One job vertex in both runs; None where a run has none like it."""

    vertex: str
    line: str
    first: VertexRun | None
    second: VertexRun | None

    @property
    def difference_s(self) -> float:
        """How much longer it took in the second run; what did not run took no time."""
        return _seconds(self.second) - _seconds(self.first)


@dataclass(frozen=True)
class ComparedRun:
    """One of the runs as a whole."""

    run: int
    status: str
    elapsed_s: float
    tasks: int
    """How many subtasks ran."""
    tasks_of_graph: int
    """How many its graph has: also those whose results were there, or that never began."""
    slots: int
    """How many slots it could use."""
    reused: int
    """How many job vertices did not run, because their results were there."""


@dataclass(frozen=True)
class Comparison:
    """Two runs of a graph side by side. Made by `CompiledGraph.compare`."""

    name: str
    first: ComparedRun
    second: ComparedRun
    vertices: tuple[ComparedVertex, ...]
    """Those whose times differ most come first."""

    def to_json(self) -> str:
        """Return the comparison as one JSON object in one line."""
        rows = [{**asdict(one), "difference_s": round(one.difference_s, 3)} for one in self.vertices]
        told: dict[str, Any] = {"name": self.name, "first": asdict(self.first), "second": asdict(self.second)}
        return json.dumps({**told, "vertices": rows})

    def __str__(self) -> str:
        """Return a table with a line for each vertex, and one more for each plan that differs."""
        head, *rows = aligned([_HEAD, *map(_row, self.vertices)])
        lines = [_runs_line(self), "", head]
        for row, one in zip(rows, self.vertices, strict=True):
            lines += [row, *(f"    {note}" for note in _notes(one))]
        return lines_visible("\n".join(lines))

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        printer.text(str(self))

    def _repr_html_(self) -> str:
        """Return the same as HTML."""
        rows = [table_row("th", _HEAD, _HTML_CELL)]
        for one in self.vertices:
            rows.append(table_row("td", _row(one), _HTML_CELL))
            notes = escaped("\n".join(_notes(one)))
            if notes:
                rows.append(f'<tr><td colspan="{len(_HEAD)}" style="{_HTML_NOTE}">{notes}</td></tr>')
        return (
            f"<div>{escaped(_runs_line(self))}</div>"
            f'<div style="overflow-x:auto"><table style="border-collapse:collapse">{"".join(rows)}</table></div>'
        )


def compare_numbered(name: str, runs: Sequence[RecordedRun], a: int | None, b: int | None) -> Comparison:
    """Return two of the runs of a graph side by side, by their numbers (`CompiledGraph.compare`).

    Raises
    ------
    NoSuchRunError
        If there is no run of a number.
    NothingToCompareError
        If there are fewer than two.
    """
    if len(runs) < 2:
        raise NothingToCompareError(name, len(runs))
    second = numbered(name, runs, runs[-1].number if b is None else b)
    before = [run.number for run in runs if run.number < second.number] or [runs[-1].number]
    return compare_runs(numbered(name, runs, before[-1] if a is None else a), second)


def compare_runs(first: RecordedRun, second: RecordedRun) -> Comparison:
    """Return two runs side by side, the vertices with the largest difference in time first.

    Vertices belong together by their ids, which are equal as long as the plan is; else by what they show, and where;
    else by what they show.
    """
    pairs = _pairs(list(first.job_view.nodes), list(second.job_view.nodes))
    compared = [_compared(first, one, second, other) for one, other in pairs]
    compared.sort(key=lambda one: -abs(one.difference_s))
    return Comparison(second.details.name, _whole(first), _whole(second), tuple(compared))


def _pairs(firsts: list[NodeView], seconds: list[NodeView]) -> list[tuple[NodeView | None, NodeView | None]]:
    found: list[tuple[NodeView | None, NodeView | None]] = []
    keys: tuple[Callable[[NodeView], object], ...] = (
        lambda node: node.vertex_id,
        lambda node: (node.title, node.main_operator.where),
        lambda node: node.title,
    )
    for key in keys:
        for one in list(firsts):
            same = next((other for other in seconds if key(other) == key(one)), None)
            if same is not None:
                found.append((one, same))
                firsts.remove(one)
                seconds.remove(same)
    return [*found, *((one, None) for one in firsts), *((None, other) for other in seconds)]


def _compared(first: RecordedRun, one: NodeView | None, second: RecordedRun, other: NodeView | None) -> ComparedVertex:
    shown = other or one
    assert shown is not None
    return ComparedVertex(
        shown.title,
        shown.main_operator.where,
        None if one is None else _vertex_run(first, one),
        None if other is None else _vertex_run(second, other),
    )


def _vertex_run(run: RecordedRun, node: NodeView) -> VertexRun:
    cost = run.snapshot.costs.get(node.vertex_id, _NOTHING)
    tasks = [task for task in run.snapshot.tasks if task.vertex_id == node.vertex_id]
    return VertexRun(
        time_s=None if cost.took_ms is None else cost.took_ms / 1000,
        rows_in=cost.rows_in,
        rows_out=cost.rows_out,
        bytes_in=cost.bytes_in,
        bytes_out=cost.bytes_out,
        tasks=len({task.subtask for task in tasks}),
        slots=len({task.slot for task in tasks}),
        plan=" → ".join(line.operator for line in node.operators if line.operator),
        is_reused=node.vertex_id in run.snapshot.reused,
    )


def _whole(run: RecordedRun) -> ComparedRun:
    snapshot = run.snapshot
    return ComparedRun(
        run=run.number,
        status=snapshot.status,
        elapsed_s=(snapshot.elapsed_ms or 0.0) / 1000,
        tasks=len({(task.vertex_id, task.subtask) for task in snapshot.tasks}),
        tasks_of_graph=run.details.tasks,
        slots=snapshot.slots_total or 0,
        reused=len(snapshot.reused),
    )


def _seconds(run: VertexRun | None) -> float:
    return 0.0 if run is None or run.time_s is None else run.time_s


def _runs_line(both: Comparison) -> str:
    def told(run: ComparedRun) -> str:
        reused = f", {run.reused} reused" if run.reused else ""
        tasks = f"{run.tasks:,} of {amounts.count(run.tasks_of_graph, 'task')} ran"
        slots = amounts.count(run.slots, "slot")
        return f"run {run.run} ({run.status}, {amounts.duration(1000 * run.elapsed_s)}, {tasks}, {slots}{reused})"

    difference = _signed(both.second.elapsed_s - both.first.elapsed_s)
    return f"{both.name}: {told(both.first)} → {told(both.second)}: {difference}"


def _row(one: ComparedVertex) -> tuple[str, ...]:
    def change(of: Callable[[VertexRun], str]) -> str:
        """Return a value, or what it was and what it is."""
        first, second = ("–" if run is None else of(run) for run in (one.first, one.second))
        return first if first == second else f"{first} → {second}"

    return (
        amounts.cut(visible(one.vertex), _WIDEST),
        visible(one.line),
        _signed(one.difference_s),
        change(lambda run: amounts.duration(None if run.time_s is None else 1000 * run.time_s)),
        change(lambda run: f"{run.tasks:,}"),
        change(lambda run: f"{run.slots:,}"),
        change(lambda run: "–" if run.rows_in is None else f"{run.rows_in:,}"),
        change(lambda run: "–" if run.rows_out is None else f"{run.rows_out:,}"),
        change(lambda run: amounts.size(run.bytes_in)),
        change(lambda run: amounts.size(run.bytes_out)),
    )


_WIDEST = 48


def _signed(seconds: float) -> str:
    sign = "+" if seconds >= 0 else "−"
    return f"{sign}{amounts.duration(1000 * abs(seconds))}"


def _notes(one: ComparedVertex) -> list[str]:
    """Return what is not a number: which run has the vertex, whether it was computed, and by which plan."""
    if one.first is None or one.second is None:
        run = one.first or one.second
        assert run is not None
        return [f"only in the {'first' if one.second is None else 'second'} run: {run.plan}"]
    notes = []
    if one.first.is_reused != one.second.is_reused:
        notes.append("reuse: computed → reused" if one.second.is_reused else "reuse: reused → computed")
    if one.first.plan != one.second.plan:
        notes += [f"plan: {one.first.plan}", f"   →  {one.second.plan}"]
    return notes
