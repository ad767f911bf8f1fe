"""The arrows of a picture: between boxes, and in execution graphs between single subtasks."""

from __future__ import annotations

from bisect import bisect_left

from flinkmagic.display import palette, printable
from flinkmagic.display.nodes import PAD, STRIPE
from flinkmagic.display.placement import Box, Placement, Point, Route
from flinkmagic.display.scene import Element, box, element, number, tooltip
from flinkmagic.display.snapshot import EdgeView, GraphView
from flinkmagic.display.subtasks import CHIPS_IN_ROW, chip_center

TEXT = 10.5
PILL_HEIGHT = 18.0


def label_size(edge: EdgeView) -> Point:
    """Return how much room an edge's label needs; none for a chained edge, which passes nothing on."""
    if edge.chained:
        return 0.0, 0.0
    return _pill_width(edge) + 6, PILL_HEIGHT + 2


def _pill_width(edge: EdgeView) -> float:
    return printable.width(printable.visible(edge.label), TEXT) + 16


class Arrows:
    """Draws the edges of a view whose boxes are placed."""

    def __init__(self, view: GraphView, placement: Placement) -> None:
        self._routed = list(zip(view.edges, placement.routes, strict=True))
        self._boxes = {node.id: placed for node, placed in zip(view.nodes, placement.nodes, strict=True)}
        self._width = {node.id: node.parallelism for node in view.nodes}
        self._by_top = sorted(placement.nodes, key=lambda placed: placed.y)
        self._tops = [placed.y for placed in self._by_top]
        self._tallest = max((placed.height for placed in placement.nodes), default=0.0)
        self._fans = [self._fan(edge) for edge in view.edges]

    def lines(self) -> list[Element]:
        """Draw every edge's line or lines."""
        return [_line(edge, route, fan) for (edge, route), fan in zip(self._routed, self._fans, strict=True)]

    def labels(self) -> list[Element]:
        """Draw every edge's label: beside its line, or in the middle of its fan of lines if there is room."""
        spots = [
            Box(0, 0, *label_size(edge)) if route.label is None else _pill(edge, (route.label[0] + 3, route.label[1]))
            for edge, route in self._routed
        ]
        for index, ((edge, route), fan) in enumerate(zip(self._routed, self._fans, strict=True)):
            if fan is None or route.label is None:
                continue
            wanted = _pill(edge, self._middle(edge))
            if not any(wanted.meets(spot, 4) for other, spot in enumerate(spots) if other != index):
                spots[index] = wanted
        return [_label(edge, spot) for (edge, route), spot in zip(self._routed, spots, strict=True) if route.label]

    def _middle(self, edge: EdgeView) -> Point:
        source, target = self._boxes[edge.source], self._boxes[edge.target]
        ports = [_port(self._width[name], placed) for name, placed in ((edge.source, source), (edge.target, target))]
        return sum(ports) / 2, (source.y + source.height + target.y) / 2

    def _fan(self, edge: EdgeView) -> str | None:
        """Return lines between subtasks, from one node's foot to another's head; None if a third is in the way."""
        source, target = self._boxes[edge.source], self._boxes[edge.target]
        start_y, end_y = source.y + source.height, target.y
        if not edge.pairs or end_y <= start_y or self._in_the_way(source, target):
            return None
        producers, consumers = self._width[edge.source], self._width[edge.target]
        middle = (start_y + end_y) / 2
        parts = []
        for producer, consumer in edge.pairs:
            x1 = source.x + port(producers, producer, source.width)
            x2 = target.x + port(consumers, consumer, target.width)
            parts.append(f"M{_xy((x1, start_y))}C{_xy((x1, middle))} {_xy((x2, middle))} {_xy((x2, end_y))}")
        return "".join(parts)

    def _in_the_way(self, source: Box, target: Box) -> bool:
        """Return whether a node is where lines from `source` down to `target` would pass.

        Lines leave and arrive vertically, so they are under their source first, over their target last, and cross in
        the middle.
        """
        top, gap = source.y + source.height, target.y - source.y - source.height
        left, right = min(source.x, target.x), max(source.x + source.width, target.x + target.width)
        passed = (
            Box(source.x, top + 1, source.width, gap * 0.3),
            Box(left, top + gap * 0.3, right - left, gap * 0.4),
            Box(target.x, top + gap * 0.7, target.width, gap * 0.3 - 1),
        )
        near = self._by_top[bisect_left(self._tops, top - self._tallest) : bisect_left(self._tops, target.y)]
        return any(
            part.meets(other) for other in near if other is not source and other is not target for part in passed
        )


def port(parallelism: int, subtask: int, width: float) -> float:
    """Return how far from a node's left the lines of one subtask start."""
    left, inner = STRIPE + PAD, width - STRIPE - 2 * PAD
    if parallelism <= CHIPS_IN_ROW:
        return left + chip_center(parallelism, subtask, inner)
    return left + inner * (subtask + 0.5) / parallelism


def _port(parallelism: int, placed: Box) -> float:
    """Return where the middle of all lines of a node is."""
    return placed.x + (port(parallelism, 0, placed.width) + port(parallelism, parallelism - 1, placed.width)) / 2


def _line(edge: EdgeView, route: Route, fan: str | None) -> Element:
    facts = [f"{name}: {value}" for name, value in edge.facts]
    group = element(
        "g",
        tooltip("\n".join([edge.label, *facts])),
        class_="fm-edge",
        data_source=edge.source,
        data_target=edge.target,
    )
    if fan:
        return group.add(element("path", d=fan, fill="none", stroke=palette.EDGE, stroke_width=0.9, opacity=0.75,
                                 class_="fm-line fm-fan"))  # fmt: skip
    start, *rest = route.points
    curve = f"M{_xy(start)}C{' '.join(map(_xy, rest))}"
    width = 1.8 if edge.result_type.startswith("BLOCKING") else 1.4
    return group.add(
        element("path", d=curve, fill="none", stroke=palette.EDGE, stroke_width=width, class_="fm-line"),
        element("path", d=_arrow_head(route), fill=palette.EDGE, class_="fm-head"),
    )


def _xy(point: Point) -> str:
    return f"{number(point[0])} {number(point[1])}"


def _arrow_head(route: Route) -> str:
    (bx, by), (tx, ty) = route.points[-1], route.tip
    dx, dy = tx - bx, ty - by
    length = max((dx * dx + dy * dy) ** 0.5, 0.1)
    half = 4.2 / length
    left, right = (bx - dy * half, by + dx * half), (bx + dy * half, by - dx * half)
    return f"M{_xy(route.tip)}L{_xy(left)}L{_xy(right)}z"


def _pill(edge: EdgeView, center: Point) -> Box:
    width = _pill_width(edge)
    return Box(center[0] - width / 2, center[1] - PILL_HEIGHT / 2, width, PILL_HEIGHT)


def _label(edge: EdgeView, spot: Box) -> Element:
    partitioner, _, rest = printable.visible(edge.label).partition(" · ")
    x, y = spot.center
    words = element("text", element("tspan", partitioner, font_weight="700", fill=palette.INK, class_="fm-edge-strong"),
                    x=x, y=y + 3.7, font_size=TEXT, text_anchor="middle", fill=palette.MUTED,
                    class_="fm-edge-text")  # fmt: skip
    if rest:
        words.add(f" · {rest}")
    return element(
        "g",
        box(spot.x, spot.y, spot.width, spot.height, rx=9, fill=palette.CARD, stroke=palette.LINE,
            class_="fm-edge-pill"),
        words,
        class_="fm-edge-label", data_source=edge.source, data_target=edge.target,
    )  # fmt: skip
