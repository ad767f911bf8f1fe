"""Graphs and jobs as plain text: a tree for the terminal, a progress line, a table at the end."""

from __future__ import annotations

from collections.abc import Sequence

from flinkmagic import amounts
from flinkmagic.display import palette, printable
from flinkmagic.display.costs import VertexCost
from flinkmagic.display.snapshot import LEFT_OUT, EdgeView, GraphView, JobSnapshot, NodeView, state_counts

_WIDTH = 110
_BAR_WIDTH = 20
_LONGEST = 3
_NARROWEST = 18


def to_text(view: GraphView) -> str:
    """Return `view` as a tree that begins at the sinks; what several of them read is written only once."""
    lines = [amounts.cut(f"{printable.visible(view.name)} · {view.title}{_status(view)}", _WIDTH)]
    if view.summary:
        lines.append(amounts.cut(printable.visible(view.summary), _WIDTH))
    inputs: dict[str, list[EdgeView]] = {node.id: [] for node in view.nodes}
    consumed = set()
    for arrow in view.edges:
        inputs[arrow.target].append(arrow)
        consumed.add(arrow.source)
    nodes = {node.id: node for node in view.nodes}
    numbers = {node.id: index + 1 for index, node in enumerate(view.nodes)}
    roots = [node.id for node in view.nodes if node.id not in consumed]
    written: set[str] = set()
    # A stack, not recursion: a chain of a thousand vertices is a deep tree. A cycle (an iteration) has no root of its
    # own and is entered at the first of its nodes.
    for root in [*roots, *(node.id for node in view.nodes)]:
        if root in written:
            continue
        stack = [(root, "", "")]
        while stack:
            node_id, first, rest = stack.pop()
            again = node_id in written
            lines += _entry(nodes[node_id], numbers[node_id], first, rest, again)
            if again:
                continue
            written.add(node_id)
            below = inputs[node_id]
            for index in reversed(range(len(below))):
                last = index == len(below) - 1
                branch, bar = ("└─ ", "   ") if last else ("├─ ", "│  ")
                by = f"{printable.visible(below[index].label)} ← "
                stack.append((below[index].source, rest + branch + by, rest + bar))
    return "\n".join(lines)


def _entry(node: NodeView, number: int, first: str, rest: str, again: bool) -> list[str]:
    """Return the lines of a node; `first` comes before the first of them, `rest` before the others."""
    title = printable.visible(node.title)
    if again:
        return [amounts.cut(f"{first}[{number}] {title}", _WIDTH - 12) + " (see above)"]
    tail = " ".join([f"  ×{node.parallelism}", *(f"({printable.visible(badge)})" for badge in node.badges)])
    tail += _states(node)
    head = f"{first}[{number}] {palette.ROLES[node.role].word}: "
    lines = [head + amounts.cut(title, max(_WIDTH - len(head) - len(tail), 24)) + tail]
    for operator in reversed(node.operators):
        is_told = operator is node.main_operator
        text = operator.subtitle if is_told else f"{operator.title}  {operator.subtitle}"
        if text:
            lines.append(amounts.cut(f"{rest}     {printable.visible(text)}", _WIDTH))
    return lines


def _states(node: NodeView) -> str:
    counts = node.state_counts
    if not set(counts) - {"CREATED"}:
        return ""
    return "  " + " ".join(
        f"{palette.STATES[name].glyph}{found} {palette.STATES[name].word}" for name, found in counts.items()
    )


def _status(view: GraphView) -> str:
    if not view.status:
        return ""
    elapsed = f" after {amounts.duration(view.elapsed_ms)}" if view.elapsed_ms is not None else ""
    return f" · {palette.JOB_GLYPHS.get(view.status, '○')} {view.status}{elapsed}"


def progress_line(snapshot: JobSnapshot) -> str:
    """Return one line: state, bar, tasks by state, slots, time.

    Such as ``delays ▶ RUNNING [███████▒▒▒      ] 7/17 tasks · 3 running · 4/4 slots · 2.1 s``.
    """
    counts, total = snapshot.task_counts, snapshot.n_tasks
    done = counts.get("FINISHED", 0)
    under_way = sum(counts.get(name, 0) for name in ("DEPLOYING", "INITIALIZING", "RUNNING"))
    full = _BAR_WIDTH * done // max(total, 1)
    half = min(_BAR_WIDTH - full, -(-_BAR_WIDTH * under_way // max(total, 1)))
    parts = [f"{done:,}/{total:,} tasks"]
    parts += [
        f"{counts[name]:,} {palette.STATES[name].word}"
        for name in palette.ATTENTION
        if name in counts and name not in ("FINISHED", "CREATED")
    ]
    if snapshot.slots_total is not None:
        parts.append(f"{snapshot.slots_used or 0}/{snapshot.slots_total} slots")
    if snapshot.elapsed_ms is not None:
        parts.append(amounts.duration(snapshot.elapsed_ms))
    if snapshot.note:
        parts.append(printable.visible(snapshot.note))
    bar = "█" * full + "▒" * half + " " * (_BAR_WIDTH - full - half)
    glyph = palette.JOB_GLYPHS.get(snapshot.status, "○")
    return f"{printable.visible(snapshot.name)} {glyph} {snapshot.status} [{bar}] {' · '.join(parts)}"


def to_table(view: GraphView, snapshot: JobSnapshot, *, width: int = _WIDTH) -> str:
    """Return one line for each job vertex, those that took longest first; then the errors.

    A line shows the tasks by state, time (or a stream's last batch), rows and bytes in and out. Names of vertices are
    cut so that the lines are at most `width` columns wide.
    """
    header = ("vertex", "tasks", "time", "rows in", "rows out", "bytes in", "bytes out")
    rows = [header, *(_row(node, snapshot) for node in snapshot.longest_first(view.nodes))]
    others = _widths(rows)[1:]
    room = max(width - sum(others) - 2 * len(others), _NARROWEST)
    rows = [(amounts.cut(row[0], room), *row[1:]) for row in rows]
    lines = aligned(rows)
    lines.insert(1, "  ".join("─" * wide for wide in _widths(rows)))
    for error in snapshot.errors:
        lines.append(
            f"✗ {printable.visible(error.where)}{': ' if error.where else ''}{printable.visible(error.message)}"
        )
        lines += [f"    {printable.visible(line)}" for line in error.traceback.splitlines()]
    return "\n".join(lines)


def aligned(rows: Sequence[Sequence[str]]) -> list[str]:
    """Return rows as lines, with columns as wide as what stands in them."""
    widths = _widths(rows)
    lines = []
    for row in rows:
        padded = [text + " " * (wide - _display_width(text)) for text, wide in zip(row, widths, strict=True)]
        lines.append("  ".join(padded).rstrip())
    return lines


def _widths(rows: Sequence[Sequence[str]]) -> list[int]:
    return [max(map(_display_width, column)) for column in zip(*rows, strict=True)]


def longest_line(view: GraphView, snapshot: JobSnapshot) -> str:
    """Return which vertices of a finished job took longest: ``"longest: lineitem: scan, filter (6.7 s); …"``."""
    if snapshot.status not in ("FINISHED", "FAILED", "CANCELED"):
        return ""
    costs = [(node, snapshot.costs.get(node.vertex_id)) for node in snapshot.longest_first(view.nodes)[:_LONGEST]]
    told = [
        f"{amounts.cut(node.title, 60)} ({cost.took})"
        for node, cost in costs
        if cost is not None and cost.batch is None
    ]
    return f"longest: {'; '.join(told)}" if len(told) > 1 else ""


def _display_width(text: str) -> int:
    return round(printable.width(text, 1, "mono") / 0.61)


def _row(node: NodeView, snapshot: JobSnapshot) -> tuple[str, ...]:
    states = snapshot.states.get(node.vertex_id, node.states)
    cost = snapshot.costs.get(node.vertex_id) or VertexCost(None)
    words = [f"{found:,} {palette.STATES[name].word}" for name, found in state_counts(states).items()]
    rows = ["–" if each is None else f"{each:,}" for each in (cost.rows_in, cost.rows_out)]
    return (
        printable.visible(node.title),
        ", ".join(words) or (LEFT_OUT if LEFT_OUT in snapshot.badges_of(node) else f"{node.parallelism:,}"),
        cost.took,
        *rows,
        amounts.size(cost.bytes_in),
        amounts.size(cost.bytes_out),
    )
