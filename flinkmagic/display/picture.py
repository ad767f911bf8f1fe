"""A graph view drawn: nodes placed by the layout, arrows, frames, a heading and a legend."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from flinkmagic import amounts
from flinkmagic.display import palette, printable
from flinkmagic.display.arrows import Arrows, label_size
from flinkmagic.display.layout import place
from flinkmagic.display.nodes import MeasuredNode, draw, measure
from flinkmagic.display.placement import Box, LayoutRequest
from flinkmagic.display.scene import Element, box, element, moved, number, tooltip
from flinkmagic.display.snapshot import STATE_NAMES, ClusterView, GraphView

MARGIN = 20.0
HEADING = 50.0
LEGEND = 30.0


@dataclass(frozen=True)
class Picture:
    """A finished drawing."""

    root: Element
    width: float
    height: float


def to_svg(view: GraphView) -> str:
    """Return the picture of `view` as an SVG document: no script, no link, no style sheet, a background of its own."""
    return draw_picture(view).root.to_svg()


def draw_picture(view: GraphView, *, heading: bool = True, far_titles: bool = False) -> Picture:
    """Lay `view` out and draw it.

    `heading` adds title, legend and background; `far_titles` adds to each node the large words that the widget shows
    instead of the small ones when the graph is zoomed out.
    """
    nodes = [measure(node, with_subtasks=view.kind in ("execution", "regions")) for node in view.nodes]
    placement = place(_request(view, nodes))
    top = HEADING if heading else 0.0
    content = moved(MARGIN, MARGIN + top, class_="fm-content")
    content.add(*(_draw_cluster(c, b) for c, b in zip(view.clusters, placement.clusters, strict=True)))
    arrows = Arrows(view, placement)
    content.add(*arrows.lines())
    content.add(*(_cluster_label(c, b) for c, b in zip(view.clusters, placement.clusters, strict=True)))
    content.add(*arrows.labels())
    content.add(
        *(
            draw(node, placed.x, placed.y, far_title=far_titles)
            for node, placed in zip(nodes, placement.nodes, strict=True)
        )
    )
    if heading:
        present = [name for code, name in enumerate(STATE_NAMES) if any(code in node.states for node in view.nodes)]
        width = max(placement.width + 2 * MARGIN, _heading_width(view))
        content.attributes["transform"] = f"translate({number((width - placement.width) / 2)} {number(MARGIN + top)})"
        return framed(view, content, width, placement.height, present)
    width, height = placement.width + 2 * MARGIN, placement.height + 2 * MARGIN
    return Picture(_root(view, width, height).add(content), width, height)


def framed(view: GraphView, content: Element, width: float, height: float, states: Sequence[str]) -> Picture:
    """Put a drawing, which is `height` high without its margins, under a heading and over the signs of its states."""
    legend = _legend(states, MARGIN, height + MARGIN + HEADING + 12)
    total = height + 2 * MARGIN + HEADING + (LEGEND if legend else 0.0)
    root = _root(view, width, total, tooltip(f"{view.name}: {view.title}"))
    root.add(
        box(
            0.5,
            0.5,
            width - 1,
            total - 1,
            rx=12,
            fill=palette.SURFACE,
            stroke=palette.LINE,
            class_="fm-surface",
        ),
        _heading(view, width),
        legend,
        content,
    )
    return Picture(root, width, total)


def _root(view: GraphView, width: float, height: float, hint: Element | None = None) -> Element:
    return element(
        "svg",
        hint,
        xmlns="http://www.w3.org/2000/svg", viewBox=f"0 0 {number(width)} {number(height)}",
        width=width, height=height, font_family=palette.SANS, role="img", class_="flinkmagic",
        aria_label=f"{view.title} of {view.name}: {view.summary}",
    )  # fmt: skip


def _request(view: GraphView, nodes: list[MeasuredNode]) -> LayoutRequest:
    number_of = {node.id: index for index, node in enumerate(view.nodes)}
    edges = tuple((number_of[edge.source], number_of[edge.target], *label_size(edge)) for edge in view.edges)
    clusters = tuple(
        (
            printable.width(printable.visible(cluster.label), 10.5) + 8,
            16.0,
            tuple(number_of[node] for node in cluster.nodes),
        )
        for cluster in view.clusters
    )
    gap = 44.0 if any(edge.pairs for edge in view.edges) else 26.0
    return LayoutRequest(tuple((node.width, node.height) for node in nodes), edges, clusters, rank_gap=gap)


def _draw_cluster(cluster: ClusterView, placed: Box) -> Element:
    hint = "\n".join([cluster.label, *(f"{name}: {value}" for name, value in cluster.facts)])
    return moved(
        placed.x, placed.y,
        tooltip(hint),
        box(0, 0, placed.width, placed.height, rx=12, fill=palette.CLUSTER, stroke=palette.LINE, class_="fm-frame"),
        class_="fm-cluster", data_id=cluster.id, data_vertex=cluster.vertex_id,
    )  # fmt: skip


def _cluster_label(cluster: ClusterView, placed: Box) -> Element:
    """Return the frame's label with its own background: arrows into the frame pass behind it."""
    text = printable.visible(cluster.label)
    width = printable.width(text, 10.5, bold=True)
    return moved(
        placed.x, placed.y,
        box(9, 7, width + 8, 15, rx=4, fill=palette.CLUSTER, class_="fm-frame-label"),
        element("text", text, x=13, y=18, font_size=10.5, font_weight="600", fill=palette.MUTED,
                class_="fm-frame-text"),
    )  # fmt: skip


def _heading_width(view: GraphView) -> float:
    return max(
        printable.width(_heading_title(view), 15) + printable.width(_status_text(view), 11.5) + 90,
        printable.width(printable.visible(view.summary), 11.5) + 2 * MARGIN,
    )


def _heading_title(view: GraphView) -> str:
    return f"{printable.shorten(printable.visible(view.name), 420, 15)} · {view.title}"


def _status_text(view: GraphView) -> str:
    if not view.status:
        return ""
    time = f" · {amounts.duration(view.elapsed_ms)}" if view.elapsed_ms is not None else ""
    return view.status + time


def _heading(view: GraphView, width: float) -> Element:
    name = printable.shorten(printable.visible(view.name), 420, 15)
    group = element(
        "g",
        element("text", element("tspan", name, font_weight="700", fill=palette.INK), f" · {view.title}",
                x=MARGIN, y=31, font_size=15, fill=palette.MUTED),
        element("text", printable.visible(view.summary), x=MARGIN, y=50, font_size=11.5, fill=palette.MUTED),
        class_="fm-heading",
    )  # fmt: skip
    text = _status_text(view)
    if text:
        style = palette.STATES[palette.JOB_STYLES.get(view.status, "CREATED")]
        pill = printable.width(text, 11.5, bold=True) + 38
        group.add(moved(
            width - MARGIN - pill, 14,
            box(0, 0, pill, 24, rx=12, fill=palette.CARD, stroke=style.fill, stroke_width=1.6),
            moved(10, 6, element("path", d=style.icon, fill=style.ink, fill_rule="evenodd")),
            element("text", text, x=27, y=16.2, font_size=11.5, font_weight="600", fill=style.ink),
            class_="fm-status",
        ))  # fmt: skip
    return group


def _legend(present: Sequence[str], x: float, y: float) -> Element | None:
    """Name the states that occur, where any task has begun."""
    if not any(name != "CREATED" for name in present):
        return None
    group = moved(x, y, class_="fm-legend")
    at = 0.0
    for name in present:
        style = palette.STATES[name]
        group.add(
            moved(at, 0, element("path", d=style.icon, fill=style.ink, fill_rule="evenodd")),
            element("text", style.word, x=at + 17, y=10, font_size=11, fill=palette.MUTED),
        )
        at += 17 + printable.width(style.word, 11) + 16
    return group
