"""The report of a run as one HTML page, to be sent (`document`). All words from data pass through `page.escaped`."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Sequence

from flinkmagic import amounts
from flinkmagic.display.measures import PARTS, Facts, VertexMeasures
from flinkmagic.display.page import document, escaped, section, to_html
from flinkmagic.display.snapshot import GraphView, JobSnapshot, NodeView, OperatorLine, TaskView

MOST_FAILURES = 20
"""So many failed attempts of a vertex are told."""

_STYLE = """
body { max-width: 1100px; margin: 24px auto; padding: 0 20px; overflow-wrap: anywhere; }
table { border-collapse: collapse; margin: 4px 0; font-size: 12px; }
th, td { padding: 1px 12px 1px 0; text-align: right; font-weight: 400; font-variant-numeric: tabular-nums; }
th:first-child, td:first-child { text-align: left; }
.vertex { margin: 4px 0 4px 14px; }
.vertex > details > div { margin: 2px 0 14px 14px; }
.vertex > details > div > div { margin-bottom: 4px; }
.bar { display: flex; width: 420px; max-width: 100%; height: 14px; border: 1px solid #8894a5; border-radius: 3px;
  overflow: hidden; }
.bar i { min-width: 1px; }
.legend i { display: inline-block; width: 9px; height: 9px; margin-right: 4px; border: 1px solid #8894a5; }
.legend span, .measures span { margin-right: 12px; }
.legend, .measures, small { font-size: 12px; }
.operator { margin: 6px 0; padding-left: 9px; border-left: 3px solid #8894a5; }
code, pre { font: 12px/1.45 ui-monospace, Menlo, Consolas, "DejaVu Sans Mono", monospace; white-space: pre-wrap; }
"""


def report_page(
    views: Sequence[GraphView], snapshot: JobSnapshot, *, notes: Sequence[str] = (), events: Sequence[str] = ()
) -> str:
    """Return a run as a page: its graphs, its timeline, its findings, its vertices, its events.

    A stream has its queries above, and neither a timeline nor findings. The views are in the colours of the snapshot.
    """
    job = next(view for view in views if view.kind == "job")
    more = [("Vertices", "".join(_vertex(node, snapshot) for node in snapshot.longest_first(job.nodes)))]
    if events:
        more.append(("Events", f"<pre>{escaped(chr(10).join(events))}</pre>"))
    told = to_html(
        views, open_kinds=["job", "findings"], summary=job.summary, snapshot=snapshot, notes=notes, more=more
    )
    return document(snapshot.name, told, _STYLE)


def _vertex(node: NodeView, snapshot: JobSnapshot) -> str:
    """Return all that is known of a vertex, folded."""
    measures = snapshot.measures.get(node.vertex_id, VertexMeasures())
    tasks = [task for task in snapshot.tasks if task.vertex_id == node.vertex_id]
    cost = snapshot.costs.get(node.vertex_id)
    told = " · ".join(filter(None, [node.title, cost.words()[0] if cost is not None else "", *node.badges]))
    parts = [
        *(f"<div>{escaped(mark)}</div>" for mark in node.marks),
        _time(measures),
        _facts((*measures.facts, *measures.above, *snapshot.facts.get(node.vertex_id, ()))),
        *(_operator(line, measures) for line in node.operators),
        _spread(tasks),
        *map(_failure, [task for task in tasks if task.error][:MOST_FAILURES]),
    ]
    content = "".join(parts)
    return f'<div class="vertex">{section(told, f"<div>{content}</div>")}</div>'


def _time(measures: VertexMeasures) -> str:
    total = sum(measures.parts.values())
    if not total:
        return ""
    pieces = "".join(
        f'<i style="flex:{ms / total:.4f} 0 0;background:{PARTS[name]}"></i>' for name, ms in measures.parts.items()
    )
    legend = "".join(
        f'<span><i style="background:{PARTS[name]}"></i>{name} <b>{amounts.duration(ms)}</b></span>'
        for name, ms in measures.parts.items()
    )
    went = f"Where {amounts.duration(total)} of its tasks went"
    return f'<div>{went}</div><div class="bar">{pieces}</div><div class="legend">{legend}</div>'


def _facts(facts: Facts) -> str:
    rows = "".join(f"<tr><th>{escaped(name)}</th><td>{escaped(value)}</td></tr>" for name, value in facts)
    return f"<table>{rows}</table>" if rows else ""


def _operator(line: OperatorLine, measures: VertexMeasures) -> str:
    measured = [fact for node in line.node_ids for fact in measures.operators.get(node, ())]
    told = "".join(f"<span>{escaped(name)} <b>{escaped(value)}</b></span>" for name, value in measured)
    words = section("Spark's words", f"<pre>{escaped(line.text)}</pre>") if line.text else ""
    return (
        f'<div class="operator"><code>{escaped(line.code.strip() or line.title)}</code>'
        f'<div><small>{escaped(line.subtitle)}</small></div><div class="measures">{told}</div>{words}</div>'
    )


def _spread(tasks: Sequence[TaskView]) -> str:
    """Return the median and the largest of what the finished tasks took and read."""
    done = [
        task for task in tasks if task.state == "FINISHED" and task.start_ms is not None and task.end_ms is not None
    ]
    measured: tuple[tuple[str, Callable[[float], str], list[float | None]], ...] = (
        ("time", amounts.duration, [(task.end_ms or 0.0) - (task.start_ms or 0.0) for task in done]),
        ("rows in", lambda value: f"{value:,.0f}", [task.rows_in for task in done]),
        ("rows out", lambda value: f"{value:,.0f}", [task.rows_out for task in done]),
        ("bytes in", amounts.size, [task.bytes_in for task in done]),
        ("bytes out", amounts.size, [task.bytes_out for task in done]),
    )
    rows = []
    for name, show, values in measured:
        known = [value for value in values if value is not None]
        if any(known):
            middle, most = show(statistics.median(known)), show(max(known))
            rows.append(f"<tr><th>{name}</th><td>{middle}</td><td>{most}</td></tr>")
    if not rows:
        return ""
    head = f"<tr><th>{amounts.count(len(done), 'task')}</th><th>median</th><th>largest</th></tr>"
    return f"<table>{head}{''.join(rows)}</table>"


def _failure(task: TaskView) -> str:
    where = f"subtask {task.subtask + 1}, attempt {task.attempt + 1}, {task.executor or 'no executor'}"
    return f"<div>✗ {escaped(where)}: {escaped(task.error or '')}</div>"
