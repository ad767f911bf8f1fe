"""What is asked of the layout engine and what it answers: sizes, rectangles, routes."""

from __future__ import annotations

from dataclasses import dataclass

Point = tuple[float, float]

_NODE_GAP = 34.0


@dataclass(frozen=True)
class Box:
    """A rectangle by its upper left corner, in pixels; y grows downwards."""

    x: float
    y: float
    width: float
    height: float

    @property
    def center(self) -> Point:
        return self.x + self.width / 2, self.y + self.height / 2

    def meets(self, other: Box, margin: float = 0.0) -> bool:
        """Return whether the two rectangles, this one widened by `margin`, have a point in common."""
        return (
            self.x - margin < other.x + other.width
            and other.x < self.x + self.width + margin
            and self.y - margin < other.y + other.height
            and other.y < self.y + self.height + margin
        )


@dataclass(frozen=True)
class Route:
    """An arrow's route: the control points of a chain of cubic curves, its tip, and the middle of its label."""

    points: tuple[Point, ...]
    tip: Point
    label: Point | None


@dataclass(frozen=True)
class Placement:
    """A finished layout; lists are in the order of the request."""

    width: float
    height: float
    nodes: tuple[Box, ...]
    routes: tuple[Route, ...]
    clusters: tuple[Box, ...]


@dataclass(frozen=True)
class LayoutRequest:
    """Sizes and connections, by number."""

    sizes: tuple[tuple[float, float], ...]
    edges: tuple[tuple[int, int, float, float], ...]
    clusters: tuple[tuple[float, float, tuple[int, ...]], ...] = ()
    rank_gap: float = 30.0

    def to_dot(self) -> str:
        """Return the request in DOT, for `place`."""
        lines = [
            f"digraph {{ rankdir=TB; nodesep={_NODE_GAP / 72:.3f}; ranksep={self.rank_gap / 72:.3f};",
            'node [shape=box, fixedsize=true, label=""]; edge [arrowsize=0.6];',
        ]
        for index, (width, height) in enumerate(self.sizes):
            lines.append(f"n{index} [width={width / 72:.4f}, height={height / 72:.4f}];")
        for index, (width, height, members) in enumerate(self.clusters):
            inside = " ".join(f"n{member};" for member in members)
            lines.append(
                f"subgraph cluster_{index} {{ margin=12; labeljust=l; label={_spacer(width, height)}; {inside} }}"
            )
        for index, (source, target, width, height) in enumerate(self.edges):
            label = f", label={_spacer(width, height)}" if width else ""
            lines.append(f"n{source} -> n{target} [id={index}{label}];")
        return "\n".join([*lines, "}"])


def _spacer(width: float, height: float) -> str:
    """Return a label that takes up room and shows nothing: `flinkmagic.display.svg` draws what belongs there."""
    return f'<<table border="0" fixedsize="true" width="{width:.0f}" height="{height:.0f}"><tr><td></td></tr></table>>'
