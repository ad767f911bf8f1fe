"""A graph view as DOT text, for Graphviz and for further editing."""

from __future__ import annotations

from flinkmagic import amounts
from flinkmagic.display import palette, printable
from flinkmagic.display.snapshot import STATE_NAMES, EdgeView, GraphView, NodeView
from flinkmagic.display.subtasks import chips

_MAX_LINES = 4


def to_dot(view: GraphView) -> str:
    """Return `view` in DOT.

    In execution graphs every ExecutionVertex of a small vertex is a node of its own inside its vertex's cluster; a
    larger vertex is one node that says how many subtasks it represents.
    """
    lines = [
        f"digraph {printable.dot(printable.visible(view.name))} {{",
        f"  graph [label={printable.dot(printable.visible(f'{view.name}: {view.title}'))}];",
        '  graph [labelloc=t, rankdir=TB, compound=true, fontname="Helvetica", fontsize=12];',
        '  node [shape=box, style="rounded,filled", fillcolor=white, fontname="Helvetica", fontsize=11];',
        '  edge [fontname="Helvetica", fontsize=9, color="#5d6673"];',
    ]
    numbers = {node.id: index for index, node in enumerate(view.nodes)}
    expanded = {node.id for node in view.nodes if view.kind == "execution" and chips(node.parallelism)}
    framed = {node for cluster in view.clusters for node in cluster.nodes}
    for index, cluster in enumerate(view.clusters):
        lines.append(
            f"  subgraph cluster_{index} {{ label={printable.dot(printable.visible(cluster.label))}; style=rounded;"
        )
        for node in view.nodes:
            if node.id in cluster.nodes:
                lines += _node(node, numbers[node.id], node.id in expanded)
        lines.append("  }")
    for node in view.nodes:
        if node.id not in framed:
            lines += _node(node, numbers[node.id], node.id in expanded)
    for edge in view.edges:
        lines += _edges(edge, numbers, expanded)
    return "\n".join([*lines, "}", ""])


def _text(node: NodeView) -> str:
    parts = [line for operator in node.operators for line in (operator.title, operator.subtitle) if line]
    words = [printable.visible(part) for part in parts or [node.name]]
    if len(words) > 2 * _MAX_LINES:
        words = [*words[:2], "…", *words[-2 * (_MAX_LINES - 1) :]]
    words.append(" · ".join([amounts.count(node.parallelism, "subtask"), *map(printable.visible, node.badges)]))
    if set(node.state_counts) - {"CREATED"}:
        words.append(", ".join(f"{found} {palette.STATES[name].word}" for name, found in node.state_counts.items()))
    return "\n".join(words)


def _node(node: NodeView, number: int, expanded: bool) -> list[str]:
    tip = printable.dot(printable.visible(node.name))
    style = palette.STATES[node.leading_state]
    if not expanded:
        look = f"color={printable.dot(style.ink)}, penwidth=1.5"
        return [f"    n{number} [label={printable.dot(_text(node))}, tooltip={tip}, {look}];"]
    lines = [f"    subgraph cluster_n{number} {{ label={printable.dot(_text(node))}; tooltip={tip}; style=rounded;"]
    for subtask in range(node.parallelism):
        state = STATE_NAMES[node.states[subtask]] if node.states else "CREATED"
        style = palette.STATES[state]
        name = printable.dot(f"{subtask + 1}/{node.parallelism} {style.glyph} {style.word}")
        lines.append(f"      n{number}_{subtask} [label={name}, color={printable.dot(style.fill)}, penwidth=2];")
    return [*lines, "    }"]


def _edges(edge: EdgeView, numbers: dict[str, int], expanded: set[str]) -> list[str]:
    label = printable.dot(printable.visible(edge.label))
    source, target = f"n{numbers[edge.source]}", f"n{numbers[edge.target]}"
    if edge.pairs:
        named = [
            (
                f"{source}_{a}" if edge.source in expanded else source,
                f"{target}_{b}" if edge.target in expanded else target,
            )
            for a, b in edge.pairs
        ]
        once = dict.fromkeys(named)
        return [f"  {a} -> {b} [tooltip={label}];" for a, b in once]
    options = [f"label={label}"]
    if edge.source in expanded:
        source, options = f"{source}_0", [*options, f"ltail=cluster_{source}"]
    if edge.target in expanded:
        target, options = f"{target}_0", [*options, f"lhead=cluster_{target}"]
    return [f"  {source} -> {target} [{', '.join(options)}];"]
