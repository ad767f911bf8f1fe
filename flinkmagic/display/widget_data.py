"""What the widget is sent: views, frames and tasks as plain data. `static/*.js` reads exactly this."""

from __future__ import annotations

import base64
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from flinkmagic.display import palette, printable
from flinkmagic.display.findings import FindingsView
from flinkmagic.display.measures import PARTS, Facts, VertexMeasures
from flinkmagic.display.nodes import BAR_ORDER, MARK_WIDTH, footer_text
from flinkmagic.display.picture import draw_picture
from flinkmagic.display.queries import QueryView
from flinkmagic.display.snapshot import (
    KIND_TITLES,
    STATE_NAMES,
    ErrorView,
    GraphKind,
    GraphView,
    JobSnapshot,
    NodeView,
    TaskView,
    leading_state,
    state_counts,
)

MANY_NODES = 30
"""From this many boxes on, a picture is likely to be viewed zoomed out: it carries large titles too."""

FLOAT_COLUMNS = ("start_ms", "end_ms", "rows_in", "rows_out", "bytes_in", "bytes_out")

TERMINAL = ("FINISHED", "FAILED", "CANCELED", "SUSPENDED")


def about(job: GraphView, collapsed: GraphView | None, kinds: Collection[GraphKind]) -> dict[str, Any]:
    """Return what does not change while a job runs; the kinds are without the timeline and the findings."""
    groups = {node.id: node for node in collapsed.nodes if node.members} if collapsed else {}
    return {
        "name": printable.visible(job.name),
        "look": _look(),
        "tabs": [each for each in KIND_TITLES.items() if each[0] in {*kinds, "timeline", "findings"}],
        "vertices": {node.vertex_id: _vertex(node) for node in job.nodes},
        "order": [node.vertex_id for node in job.nodes],
        "edges": [[edge.source, edge.target] for edge in job.edges],
        "groups": {
            name: {"title": printable.visible(node.name), "members": list(node.members)}
            for name, node in groups.items()
        },
        "group_of": {member: name for name, node in groups.items() for member in node.members},
        "search": [[node.vertex_id, _searched(node)] for node in job.nodes],
        "collapsible": collapsed is not None,
    }


def _look() -> dict[str, Any]:
    return {
        "names": list(STATE_NAMES),
        "states": {name: {"word": style.word, "icon": style.icon} for name, style in palette.STATES.items()},
        "cells": [palette.CELLS[name] for name in STATE_NAMES],
        "parts": PARTS,
        "mark": {"icon": palette.MARK_ICON, "width": MARK_WIDTH},
    }


def _vertex(node: NodeView) -> dict[str, Any]:
    seen = printable.visible
    return {
        "title": seen(node.title),
        "name": seen(node.name),
        "role_word": palette.ROLES[node.role].word,
        "parallelism": node.parallelism,
        "badges": [seen(badge) for badge in node.badges],
        "facts": _facts(node.facts),
        "operators": [
            {
                "call": seen(": ".join(filter(None, (line.name or line.phrase, line.call)))),
                "operator": seen(line.operator),
                "where": seen(line.where),
                "code": printable.lines_visible(line.code),
                "variable": seen(line.variable),
                "text": printable.lines_visible(line.text),
                "ids": list(line.node_ids),
            }
            for line in node.operators
        ],
    }


def _searched(node: NodeView) -> str:
    words = [node.name]
    for line in node.operators:
        words += [line.name, line.phrase, line.call, line.operator, line.variable, line.code, line.where, line.text]
    return printable.visible(" ".join(filter(None, words))).lower()


def picture(view: GraphView) -> dict[str, Any]:
    """Return the drawing of `view` as a tree, and its size."""
    drawn = draw_picture(view, heading=False, far_titles=len(view.nodes) >= MANY_NODES)
    return {"tree": drawn.root.to_json(), "width": drawn.width, "height": drawn.height}


def frame(
    snapshot: JobSnapshot | None, boxes: Iterable[NodeView], *, can_run: bool, can_cancel: bool
) -> dict[str, Any]:
    """Return the job's progress: header, and the state of each of `boxes` by the vertex that paints it."""
    if snapshot is None:
        return {"status": "", "action": "run" if can_run else "none", "vertices": {}, "errors": []}
    counts, total = snapshot.task_counts, snapshot.n_tasks
    return {
        "status": printable.visible(snapshot.status),
        "glyph": palette.JOB_GLYPHS.get(snapshot.status, "○"),
        "tone": palette.JOB_STYLES.get(snapshot.status, "CREATED"),
        "live": snapshot.status not in TERMINAL,
        "elapsed": snapshot.elapsed_ms,
        "done": counts.get("FINISHED", 0),
        "total": total,
        "reused": sum(len(snapshot.states.get(vertex, b"")) for vertex in snapshot.reused),
        "bar": _shares(counts, total),
        "slots_used": snapshot.slots_used,
        "slots_total": snapshot.slots_total,
        "note": printable.visible(snapshot.note),
        "action": _action(snapshot.status, can_run, can_cancel),
        "errors": [error_box(error) for error in snapshot.errors],
        "queries": [_query(query) for query in snapshot.queries],
        "vertices": {box.vertex_id: _states(snapshot, box) for box in boxes if box.vertex_id},
        "facts": {vertex: _facts(facts) for vertex, facts in snapshot.facts.items()},
    }


def _action(status: str, can_run: bool, can_cancel: bool) -> str:
    if status in TERMINAL:
        return "again" if can_run else "none"
    if status == "CANCELLING":
        return "wait"
    return "cancel" if can_cancel else "none"


def _shares(counts: Mapping[str, int], total: int) -> list[list[Any]]:
    return [[name, counts[name] / total] for name in BAR_ORDER if counts.get(name)]


def _states(snapshot: JobSnapshot, box: NodeView) -> dict[str, Any]:
    # The subtasks of what is not part of the run are as they were compiled.
    states, cost = snapshot.states_of(box) or bytes(box.parallelism), snapshot.cost_of(box)
    return {
        "states": base64.b64encode(states).decode("ascii"),
        "lead": leading_state(states),
        "words": footer_text(states, box.parallelism),
        "cost": [] if cost is None else list(cost.words()),
        "bar": _shares(state_counts(states), max(len(states), 1)),
    }


def findings(view: FindingsView | None) -> dict[str, Any]:
    """Return what lost a job's time; nothing if nobody has looked."""
    if view is None:
        return {}
    seen = printable.visible
    found = [
        {
            "rule": seen(one.rule),
            "what": seen(one.what),
            "cost": seen(one.cost),
            "basis": seen(one.basis),
            "where": seen(one.where),
            "code": printable.lines_visible(one.code.strip()),
            "vertex": one.vertex_id,
            "operator": seen(one.operator),
            "cure": printable.lines_visible(one.cure),
            "mark": seen(one.mark),
        }
        for one in view.found
    ]
    return {"path": seen(view.path), "found": found, "none": seen(view.none)}


def measures(told: VertexMeasures) -> dict[str, Any]:
    """Return where the time of a vertex went, and what its operators have measured."""
    return {
        "parts": [[name, ms] for name, ms in told.parts.items()],
        "facts": _facts(told.facts),
        "operators": {str(node): _facts(facts) for node, facts in told.operators.items()},
        "above": _facts(told.above),
        "stages": [[printable.visible(one.words), one.url] for one in told.stages if is_web(one.url)],
    }


def is_web(url: str) -> bool:
    """Return whether a link leads to a page: not to a script."""
    return url.startswith(("http://", "https://"))


def _facts(facts: Facts) -> list[list[str]]:
    return [[printable.visible(name), printable.visible(value)] for name, value in facts]


def _query(query: QueryView) -> dict[str, Any]:
    seen = printable.visible
    return {
        "name": seen(query.name),
        "doing": seen(query.doing),
        "facts": [[seen(fact.name), seen(fact.value), fact.bars] for fact in query.facts],
    }


def error_box(error: ErrorView) -> dict[str, Any]:
    """Return a failure."""
    return {
        "message": printable.lines_visible(error.message),
        "where": printable.visible(error.where),
        "vertex": error.vertex_id,
        "traceback": printable.lines_visible(error.traceback),
    }


class TaskColumns:
    """All task attempts that were ever reported; the newest report of each counts."""

    def __init__(self) -> None:
        self._tasks: dict[tuple[str, int, int], TaskView] = {}

    def __len__(self) -> int:
        return len(self._tasks)

    def add(self, tasks: Sequence[TaskView]) -> bool:
        """Add reports; return whether anything is new."""
        changed = False
        for task in tasks:
            key = (task.vertex_id, task.subtask, task.attempt)
            if self._tasks.get(key) != task:
                self._tasks[key] = task
                changed = True
        return changed

    def values(self) -> list[TaskView]:
        """Return the attempts, in the order of their first report."""
        return list(self._tasks.values())

    def encode(self) -> dict[str, Any]:
        """Return the attempts as columns in one buffer: eight-byte floats, four-byte integers, one-byte states."""
        tasks = self.values()
        strings: dict[str, int] = {}
        vertices: dict[str, int] = {}

        def number(text: str | None) -> int:
            return -1 if text is None else strings.setdefault(printable.lines_visible(text), len(strings))

        integers = {
            "vertex": [vertices.setdefault(task.vertex_id, len(vertices)) for task in tasks],
            "subtask": [task.subtask for task in tasks],
            "attempt": [task.attempt for task in tasks],
            "slot": [number(task.slot) for task in tasks],
            "executor": [number(task.executor) for task in tasks],
            "error": [number(task.error) for task in tasks],
        }
        floats = (
            [np.nan if (value := getattr(task, column)) is None else value for task in tasks]
            for column in FLOAT_COLUMNS
        )
        parts = [np.asarray(column, dtype="<f8").tobytes() for column in floats]
        parts += [np.asarray(column, dtype="<i4").tobytes() for column in integers.values()]
        parts.append(bytes(STATE_NAMES.index(task.state) for task in tasks))
        return {
            "n": len(tasks),
            "strings": list(strings),
            "vertices": list(vertices),
            "columns": b"".join(parts),
        }
