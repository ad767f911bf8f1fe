"""Unconnected parts of a graph, set in rows like words on a page.

dot puts them all side by side: a job of thirty independent pipelines would be a strip thirty times as wide as high.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

from flinkmagic.display.placement import Box, LayoutRequest, Placement, Point, Route

GAP = 46.0
ASPECT = 1.7
"""How much wider than high a page of parts may be."""
PAGE_WIDTH = 1000.0
"""Parts that fit into one row of this width stay there."""


def pack(request: LayoutRequest, placed: Placement) -> Placement:
    """Return `placed` with its unconnected parts moved into rows; each part moves as one."""
    part_of = parts(request)
    count = max(part_of, default=0) + 1
    if count < 2 or placed.width <= PAGE_WIDTH:
        return placed
    frames = _frames(request, placed, part_of, count)
    order = sorted(range(count), key=lambda part: frames[part].x)
    area = sum((frame.width + GAP) * (frame.height + GAP) for frame in frames)
    limit = max(PAGE_WIDTH, math.sqrt(area * ASPECT), *(frame.width for frame in frames))
    moves: list[Point] = [(0.0, 0.0)] * count
    x = y = row_height = width = 0.0
    for part in order:
        frame = frames[part]
        if x and x + frame.width > limit:
            x, y, row_height = 0.0, y + row_height + GAP, 0.0
        moves[part] = (x - frame.x, y - frame.y)
        x += frame.width + GAP
        width, row_height = max(width, x - GAP), max(row_height, frame.height)
    return Placement(
        width,
        y + row_height,
        tuple(_moved_box(box, moves[part_of[index]]) for index, box in enumerate(placed.nodes)),
        tuple(
            _moved_route(route, moves[part_of[edge[0]]])
            for edge, route in zip(request.edges, placed.routes, strict=True)
        ),
        tuple(
            _moved_box(box, moves[part_of[cluster[2][0]]])
            for cluster, box in zip(request.clusters, placed.clusters, strict=True)
        ),
    )


def parts(request: LayoutRequest) -> list[int]:
    """Assign numbers to the connected parts, by node; the nodes of a cluster are connected."""
    parent = list(range(len(request.sizes)))

    def root(node: int) -> int:
        while parent[node] != node:
            parent[node] = node = parent[parent[node]]
        return node

    for source, target, *_ in request.edges:
        parent[root(source)] = root(target)
    for *_, members in request.clusters:
        for member in members[1:]:
            parent[root(member)] = root(members[0])
    numbers: dict[int, int] = {}
    return [numbers.setdefault(root(node), len(numbers)) for node in range(len(parent))]


def _frames(request: LayoutRequest, placed: Placement, part_of: Sequence[int], count: int) -> list[Box]:
    """Return the rectangle that each part takes up: its boxes, frames, arrows and labels."""
    left, top = [math.inf] * count, [math.inf] * count
    right, bottom = [-math.inf] * count, [-math.inf] * count

    def include(part: int, x: float, y: float, width: float = 0.0, height: float = 0.0) -> None:
        left[part], top[part] = min(left[part], x), min(top[part], y)
        right[part], bottom[part] = max(right[part], x + width), max(bottom[part], y + height)

    for index, box in enumerate(placed.nodes):
        include(part_of[index], box.x, box.y, box.width, box.height)
    for cluster, box in zip(request.clusters, placed.clusters, strict=True):
        include(part_of[cluster[2][0]], box.x, box.y, box.width, box.height)
    for (source, _, width, height), route in zip(request.edges, placed.routes, strict=True):
        for x, y in (*route.points, route.tip):
            include(part_of[source], x, y)
        if route.label:
            include(part_of[source], route.label[0] - width / 2, route.label[1] - height / 2, width, height)
    return [Box(left[part], top[part], right[part] - left[part], bottom[part] - top[part]) for part in range(count)]


def _moved_box(box: Box, by: Point) -> Box:
    return replace(box, x=box.x + by[0], y=box.y + by[1])


def _moved_route(route: Route, by: Point) -> Route:
    def moved(point: Point) -> Point:
        return point[0] + by[0], point[1] + by[1]

    return Route(tuple(map(moved, route.points)), moved(route.tip), moved(route.label) if route.label else None)
