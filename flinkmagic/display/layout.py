"""Asks the layout engine for the positions of boxes and arrows.

None of the user's text reaches it: it gets sizes and numbered names, and answers with positions. Its answer is kept, so
that painting the same graph again needs no layout.
"""

from __future__ import annotations

import json
from functools import lru_cache
from typing import Any

from flinkmagic.display.layout_engine import render_dot
from flinkmagic.display.packing import pack
from flinkmagic.display.placement import Box, LayoutRequest, Placement, Point, Route


def place(request: LayoutRequest) -> Placement:
    """Lay `request` out.

    Raises
    ------
    LayoutEngineNotFoundError
        If there is neither `dot` nor `pygraphviz`.
    """
    if not request.sizes:
        return Placement(0.0, 0.0, (), (), ())
    return _place(request)


@lru_cache(maxsize=64)
def _place(request: LayoutRequest) -> Placement:
    answer = json.loads(render_dot(request.to_dot(), "json0"))
    _, _, width, height = _floats(answer["bb"])
    nodes: dict[int, Box] = {}
    clusters: dict[int, Box] = {}
    for item in answer.get("objects", ()):
        name = item["name"]
        if name.startswith("cluster_"):
            left, bottom, right, top = _floats(item["bb"])
            clusters[int(name[8:])] = Box(left, height - top, right - left, top - bottom)
        else:
            index = int(name[1:])
            x, y = _floats(item["pos"])
            w, h = request.sizes[index]
            nodes[index] = Box(x - w / 2, height - y - h / 2, w, h)
    edges = sorted(answer.get("edges", ()), key=lambda edge: int(edge["id"]))
    routes = tuple(_route(edge, height) for edge in edges)
    placed = Placement(
        width,
        height,
        tuple(nodes[index] for index in range(len(request.sizes))),
        routes,
        tuple(clusters[index] for index in range(len(request.clusters))),
    )
    return pack(request, placed)


def _route(edge: dict[str, Any], height: float) -> Route:
    points: list[Point] = []
    tip: Point | None = None
    for part in edge["pos"].split():
        if part.startswith("e,"):
            x, y = _floats(part[2:])
            tip = (x, height - y)
        else:
            x, y = _floats(part)
            points.append((x, height - y))
    label: Point | None = None
    if "lp" in edge:
        x, y = _floats(edge["lp"])
        label = (x, height - y)
    return Route(tuple(points), tip or points[-1], label)


def _floats(text: str) -> list[float]:
    return [float(part) for part in text.split(",")]
