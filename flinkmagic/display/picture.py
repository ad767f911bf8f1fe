"""A graph view drawn: cards placed by the layout, arrows, frames, a heading and a legend."""

from __future__ import annotations

from dataclasses import dataclass

from flinkmagic.display import labels, palette
from flinkmagic.display.cards import PAD, STRIPE, Card, draw, measure
from flinkmagic.display.layout import Box, LayoutRequest, Point, Route, place
from flinkmagic.display.scene import Element, box, element, moved, number, tooltip
from flinkmagic.display.snapshot import STATE_NAMES, ClusterView, EdgeView, GraphView
from flinkmagic.display.subtasks import chip_center, chips

MARGIN = 20.0
HEADING = 50.0
LEGEND = 30.0
EDGE_TEXT = 10.5
MAX_LINES = 256
"""An edge between subtasks is drawn line by line up to this many lines."""


@dataclass(frozen=True)
class Picture:
    """A finished drawing and where its boxes stand (for the widget)."""

    root: Element
    width: float
    height: float
    boxes: dict[str, Box]


def to_svg(view: GraphView) -> str:
    """Return the picture of `view` as an SVG document: no script, no link, no style sheet, a background of its own."""
    return draw_picture(view).root.to_svg()


def draw_picture(view: GraphView, *, heading: bool = True) -> Picture:
    """Lay `view` out and draw it; `heading` includes title, legend and background card."""
    cards = _cards(view)
    placement = place(_request(view, cards))
    top = HEADING if heading else 0.0
    content = moved(MARGIN, MARGIN + top, class_="fm-content")
    by_id = {node.id: placed for node, placed in zip(view.nodes, placement.nodes, strict=True)}
    content.add(*(_draw_cluster(c, b) for c, b in zip(view.clusters, placement.clusters, strict=True)))
    routed = list(zip(view.edges, placement.routes, strict=True))
    content.add(*(_draw_edge(view, edge, route, by_id) for edge, route in routed))
    content.add(*(_cluster_label(c, b) for c, b in zip(view.clusters, placement.clusters, strict=True)))
    content.add(*(_draw_label(edge, route) for edge, route in routed if route.label))
    content.add(
        *(draw(card, placed.x, placed.y) for card, placed in zip(cards, placement.nodes, strict=True))
    )
    width = max(placement.width + 2 * MARGIN, _heading_width(view) if heading else 0.0)
    legend = _legend(view, MARGIN, placement.height + MARGIN + top + 12) if heading else None
    height = placement.height + 2 * MARGIN + top + (LEGEND if legend else 0.0)
    root = element(
        "svg",
        tooltip(f"{view.name}: {view.title}") if heading else None,
        xmlns="http://www.w3.org/2000/svg", viewBox=f"0 0 {number(width)} {number(height)}",
        width=width, height=height, font_family=palette.SANS, role="img", class_="flinkmagic",
        aria_label=f"{view.title} of {view.name}: {view.summary}",
    )  # fmt: skip
    if heading:
        root.add(
            box(
                0.5,
                0.5,
                width - 1,
                height - 1,
                rx=12,
                fill=palette.SURFACE,
                stroke=palette.LINE,
                class_="fm-surface",
            )
        )
        root.add(_heading(view, width), legend)
        content.attributes["transform"] = (
            f"translate({number((width - placement.width) / 2)} {number(MARGIN + top)})"
        )
    return Picture(root.add(content), width, height, by_id)


def _cards(view: GraphView) -> list[Card]:
    subtasks = view.kind in ("execution", "regions")
    return [measure(node, with_subtasks=subtasks, title_only=subtasks) for node in view.nodes]


def _request(view: GraphView, cards: list[Card]) -> LayoutRequest:
    number_of = {node.id: index for index, node in enumerate(view.nodes)}
    edges = tuple((number_of[edge.source], number_of[edge.target], *_label_size(edge)) for edge in view.edges)
    clusters = tuple(
        (
            labels.width(labels.visible(cluster.label), 10.5) + 8,
            16.0,
            tuple(number_of[node] for node in cluster.nodes),
        )
        for cluster in view.clusters
    )
    gap = 44.0 if any(edge.pairs for edge in view.edges) else 26.0
    return LayoutRequest(tuple((card.width, card.height) for card in cards), edges, clusters, rank_gap=gap)


def _label_size(edge: EdgeView) -> tuple[float, float]:
    if edge.chained:
        return 0.0, 0.0
    return labels.width(edge.label, EDGE_TEXT) + 22, 20.0


def _draw_cluster(cluster: ClusterView, placed: Box) -> Element:
    hint = "\n".join([cluster.label, *(f"{name}: {value}" for name, value in cluster.facts)])
    return moved(
        placed.x, placed.y,
        tooltip(hint),
        box(0, 0, placed.width, placed.height, rx=12, fill=palette.CLUSTER, stroke=palette.LINE, class_="fm-frame"),
        class_="fm-cluster", data_id=cluster.id, data_vertex=cluster.vertex_id,
    )  # fmt: skip


def _cluster_label(cluster: ClusterView, placed: Box) -> Element:
    """The frame's words, on a ground of their own: arrows into the frame pass behind them."""
    text = labels.visible(cluster.label)
    width = labels.width(text, 10.5, bold=True)
    return moved(
        placed.x, placed.y,
        box(9, 7, width + 8, 15, rx=4, fill=palette.CLUSTER, class_="fm-frame-label"),
        element("text", text, x=13, y=18, font_size=10.5, font_weight="600", fill=palette.MUTED,
                class_="fm-frame-text"),
    )  # fmt: skip


def _draw_edge(view: GraphView, edge: EdgeView, route: Route, boxes: dict[str, Box]) -> Element:
    facts = [f"{name}: {value}" for name, value in edge.facts]
    group = element(
        "g",
        tooltip("\n".join([edge.label, *facts])),
        class_="fm-edge",
        data_source=edge.source,
        data_target=edge.target,
    )
    lines = _subtask_lines(view, edge, boxes) if edge.pairs else None
    if lines:
        group.add(element("path", d=lines, fill="none", stroke=palette.EDGE, stroke_width=0.9, opacity=0.75,
                          class_="fm-line fm-fan"))  # fmt: skip
        return group
    start, *rest = route.points
    curve = f"M{_xy(start)}C{' '.join(map(_xy, rest))}"
    width = 1.8 if edge.result_type.startswith("BLOCKING") else 1.4
    group.add(
        element("path", d=curve, fill="none", stroke=palette.EDGE, stroke_width=width, class_="fm-line"),
        element("path", d=_arrow_head(route), fill=palette.EDGE, class_="fm-head"),
    )
    return group


def _subtask_lines(view: GraphView, edge: EdgeView, boxes: dict[str, Box]) -> str | None:
    """Lines between subtasks, from the foot of one card to the head of the other; None where a card is in the way."""
    source, target = boxes[edge.source], boxes[edge.target]
    start_y, end_y = source.y + source.height, target.y
    if end_y <= start_y or len(edge.pairs or ()) > MAX_LINES or _in_the_way(source, target, boxes):
        return None
    producers, consumers = view.node(edge.source).parallelism, view.node(edge.target).parallelism
    middle = (end_y - start_y) / 2
    parts = []
    for producer, consumer in edge.pairs or ():
        x1 = source.x + _port(producers, producer, source.width)
        x2 = target.x + _port(consumers, consumer, target.width)
        parts.append(
            f"M{_xy((x1, start_y))}C{_xy((x1, start_y + middle))} {_xy((x2, end_y - middle))} {_xy((x2, end_y))}"
        )
    return "".join(parts)


def _in_the_way(source: Box, target: Box, boxes: dict[str, Box]) -> bool:
    """Whether a card stands where lines from `source` down to `target` would pass.

    Lines leave and arrive upright, so they are under their source first, over their target last, and cross in the
    middle.
    """
    top, gap = source.y + source.height, target.y - source.y - source.height
    left, right = min(source.x, target.x), max(source.x + source.width, target.x + target.width)
    passed = (
        Box(source.x, top + 1, source.width, gap * 0.3),
        Box(left, top + gap * 0.3, right - left, gap * 0.4),
        Box(target.x, top + gap * 0.7, target.width, gap * 0.3 - 1),
    )
    others = [placed for placed in boxes.values() if placed is not source and placed is not target]
    return any(part.meets(other) for part in passed for other in others)


def _port(parallelism: int, subtask: int, width: float) -> float:
    """How far from a card's left the lines of one subtask start."""
    left, inner = STRIPE + PAD, width - STRIPE - 2 * PAD
    if chips(parallelism) and parallelism <= 8:
        return left + chip_center(parallelism, subtask, inner)
    return left + inner * (subtask + 0.5) / parallelism


def _xy(point: Point) -> str:
    return f"{number(point[0])} {number(point[1])}"


def _arrow_head(route: Route) -> str:
    (bx, by), (tx, ty) = route.points[-1], route.tip
    dx, dy = tx - bx, ty - by
    length = max((dx * dx + dy * dy) ** 0.5, 0.1)
    half = 4.2 / length
    left, right = (bx - dy * half, by + dx * half), (bx + dy * half, by - dx * half)
    return f"M{_xy(route.tip)}L{_xy(left)}L{_xy(right)}z"


def _draw_label(edge: EdgeView, route: Route) -> Element:
    assert route.label is not None
    text = labels.visible(edge.label)
    partitioner, _, rest = text.partition(" · ")
    width = labels.width(text, EDGE_TEXT) + 16
    x, y = route.label[0] + 3, route.label[1]
    words = element("text", element("tspan", partitioner, font_weight="700", fill=palette.INK, class_="fm-edge-strong"),
                    x=x, y=y + 3.7, font_size=EDGE_TEXT, text_anchor="middle", fill=palette.MUTED,
                    class_="fm-edge-text")  # fmt: skip
    if rest:
        words.add(f" · {rest}")
    return element(
        "g",
        box(x - width / 2, y - 9, width, 18, rx=9, fill=palette.CARD, stroke=palette.LINE, class_="fm-edge-pill"),
        words,
        class_="fm-edge-label", data_source=edge.source, data_target=edge.target,
    )  # fmt: skip


def _heading_width(view: GraphView) -> float:
    return max(
        labels.width(_heading_title(view), 15) + labels.width(_status_text(view), 11.5) + 90,
        labels.width(labels.visible(view.summary), 11.5) + 2 * MARGIN,
    )


def _heading_title(view: GraphView) -> str:
    return f"{labels.shorten(labels.visible(view.name), 420, 15)} · {view.title}"


def _status_text(view: GraphView) -> str:
    if not view.status:
        return ""
    time = f" · {labels.duration(view.elapsed_ms)}" if view.elapsed_ms is not None else ""
    return view.status + time


def _heading(view: GraphView, width: float) -> Element:
    name = labels.shorten(labels.visible(view.name), 420, 15)
    group = element(
        "g",
        element("text", element("tspan", name, font_weight="700", fill=palette.INK), f" · {view.title}",
                x=MARGIN, y=31, font_size=15, fill=palette.MUTED),
        element("text", labels.visible(view.summary), x=MARGIN, y=50, font_size=11.5, fill=palette.MUTED),
        class_="fm-heading",
    )  # fmt: skip
    text = _status_text(view)
    if text:
        style = palette.STATES[palette.JOB_STYLES.get(view.status, "CREATED")]
        pill = labels.width(text, 11.5, bold=True) + 38
        group.add(moved(
            width - MARGIN - pill, 14,
            box(0, 0, pill, 24, rx=12, fill=palette.CARD, stroke=style.fill, stroke_width=1.6),
            moved(10, 6, element("path", d=style.icon, fill=style.ink, fill_rule="evenodd")),
            element("text", text, x=27, y=16.2, font_size=11.5, font_weight="600", fill=style.ink),
            class_="fm-status",
        ))  # fmt: skip
    return group


def _legend(view: GraphView, x: float, y: float) -> Element | None:
    """Name the states that occur, where any task has begun."""
    present = [
        name for code, name in enumerate(STATE_NAMES) if any(code in node.states for node in view.nodes)
    ]
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
        at += 17 + labels.width(style.word, 11) + 16
    return group
