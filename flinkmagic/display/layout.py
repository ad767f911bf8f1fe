"""Where boxes and arrows stand: laid out by Graphviz' dot, whichever of its two forms the machine has.

The engine is `dot` from PATH, else the Graphviz inside the pip-installed `pygraphviz`, behind a small `dot` command
of our own (`dot_command.py`). No text of the user's reaches it: it is given sizes and numbered names, and answers
with positions. What it answered is kept, so that painting the same graph again costs no layout.
"""

from __future__ import annotations

import atexit
import importlib.util
import json
import os
import shutil
import sys
import tempfile
import threading
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from flinkmagic.errors import LayoutEngineNotFoundError, LayoutFailedError

Point = tuple[float, float]


_engine_lock = threading.Lock()
_engine_found = False


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
        """Whether the two rectangles, this one widened by `margin`, have a point in common."""
        return (
            self.x - margin < other.x + other.width
            and other.x < self.x + self.width + margin
            and self.y - margin < other.y + other.height
            and other.y < self.y + self.height + margin
        )


@dataclass(frozen=True)
class Route:
    """An arrow's way: the control points of a chain of cubic curves, its tip, where its label's middle stands."""

    points: tuple[Point, ...]
    tip: Point
    label: Point | None


@dataclass(frozen=True)
class Placement:
    """A finished layout; lists are in the order of what was asked for."""

    width: float
    height: float
    nodes: tuple[Box, ...]
    routes: tuple[Route, ...]
    clusters: tuple[Box, ...]


@dataclass(frozen=True)
class LayoutRequest:
    """Sizes and connections, by number.

    Attributes
    ----------
    sizes : width and height of each node.
    edges : (source, target, label width, label height); no label where the width is 0.
    clusters : (label width, label height, members).
    horizontal : left to right instead of top to bottom.
    """

    sizes: tuple[tuple[float, float], ...]
    edges: tuple[tuple[int, int, float, float], ...]
    clusters: tuple[tuple[float, float, tuple[int, ...]], ...] = ()
    horizontal: bool = False
    rank_gap: float = 30.0
    node_gap: float = 34.0

    def to_dot(self) -> str:
        """Return the request in DOT, for `place`."""
        direction = "LR" if self.horizontal else "TB"
        lines = [
            f"digraph {{ rankdir={direction}; nodesep={self.node_gap / 72:.3f}; ranksep={self.rank_gap / 72:.3f};",
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
    """A label that takes up room and shows nothing: what stands there is drawn by `flinkmagic.display.svg`."""
    return f'<<table border="0" fixedsize="true" width="{width:.0f}" height="{height:.0f}"><tr><td></td></tr></table>>'


def place(request: LayoutRequest) -> Placement:
    """Lay `request` out.

    Raises
    ------
    LayoutEngineNotFoundError
        Where there is neither `dot` nor `pygraphviz`.
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
    return Placement(
        width,
        height,
        tuple(nodes[index] for index in range(len(request.sizes))),
        routes,
        tuple(clusters[index] for index in range(len(request.clusters))),
    )


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


def render_dot(source: str, output_format: str) -> str:
    """Run DOT text through the layout engine and return what it prints in `output_format`."""
    import graphviz

    _find_engine()
    try:
        answer: str = graphviz.pipe_string("dot", output_format, source, encoding="utf-8", quiet=True)
    except graphviz.CalledProcessError as error:
        raise LayoutFailedError(str(error.stderr or error).strip()) from error
    return answer


def engine_available() -> bool:
    """Whether pictures can be laid out on this machine."""
    return shutil.which("dot") is not None or importlib.util.find_spec("pygraphviz") is not None


def _find_engine() -> None:
    """Make the `graphviz` package able to lay out: with `dot`, or with our own command in its place."""
    global _engine_found
    with _engine_lock:
        if _engine_found:
            return
        from graphviz.backend import dot_command

        if shutil.which(str(dot_command.DOT_BINARY)) is None:
            if importlib.util.find_spec("pygraphviz") is None:
                raise LayoutEngineNotFoundError
            dot_command.DOT_BINARY = _own_dot()
        _engine_found = True


def _own_dot() -> Path:
    """Write a command that starts `dot_command.py` with this interpreter; it lives as long as this process."""
    folder = Path(tempfile.mkdtemp(prefix="flinkmagic-dot-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    script = Path(__file__).with_name("dot_command.py")
    if os.name == "nt":
        command = folder / "dot.cmd"
        command.write_text(f'@"{sys.executable}" "{script}" %*\r\n', encoding="utf-8")
        return command
    import shlex

    command = folder / "dot"
    command.write_text(
        f'#!/bin/sh\nexec {shlex.quote(sys.executable)} {shlex.quote(str(script))} "$@"\n', encoding="utf-8"
    )
    command.chmod(0o700)
    return command
