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
from functools import lru_cache
from pathlib import Path
from typing import Any

from flinkmagic.display.packing import pack
from flinkmagic.display.placement import Box, LayoutRequest, Placement, Point, Route
from flinkmagic.errors import LayoutEngineNotFoundError, LayoutFailedError

_engine_lock = threading.Lock()
_engine_found = False


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
