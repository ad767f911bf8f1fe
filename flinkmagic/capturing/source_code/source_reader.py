"""Finds where a call is in the user's source, and how it is written there.

PySpark's own call site names the wrong cell (it takes the number of the cell that runs for that of the cell where the
function was defined). The frame knows better: its file name is the one that IPython's compile cache gave to the cell,
or a plain file, and since Python 3.11 its instruction knows the columns at which the call begins and ends.
"""

from __future__ import annotations

import ast
import functools
import itertools
import linecache
import os
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from types import FrameType, TracebackType
from typing import Any

from flinkmagic.amounts import cut
from flinkmagic.capturing.source_code.code_files import FLINKMAGIC, INSTALLED, SPARK, STANDARD_LIBRARY
from flinkmagic.capturing.source_code.handlers import handler_of
from flinkmagic.capturing.source_code.source_location import CellSource, SourceLocation
from flinkmagic.capturing.source_code.syntax import parsed

TEXT_LIMIT = 160
"""How much of a call's text is kept; pictures shorten it further."""

_OURS = (*SPARK, FLINKMAGIC)
_LIBRARIES = (*STANDARD_LIBRARY, *INSTALLED)
_CHAIN_STARTS = frozenset({"read", "readStream", "write", "writeStream", "na", "stat", "tvf"})
_SETTINGS = frozenset(
    {
        "bucketBy", "clusterBy", "foreach", "foreachBatch", "format", "mode", "name", "option", "options", "outputMode",
        "partitionBy", "queryName", "schema", "sortBy", "trigger",
    }
)  # fmt: skip
"""The methods of readers and writers that return themselves (PySpark 3.5 to 4.3)."""


def is_ours(filename: str) -> bool:
    """Return whether a file is PySpark's, py4j's or ours."""
    return filename.startswith(_OURS)


def user_frame() -> FrameType | None:
    """Return the innermost frame of the user's own code, not of a library, if there is one."""
    outer = None
    for frame in frames_from(sys._getframe(1)):
        name = frame.f_code.co_filename
        if name.startswith(_OURS):
            continue
        outer = outer or frame
        if not name.startswith(_LIBRARIES) and not name.startswith("<frozen"):
            return frame
    return outer


def frames_from(frame: FrameType | None) -> Iterator[FrameType]:
    """Yield a frame, and those that led to it."""
    while frame is not None:
        yield frame
        frame = frame.f_back


class SourceReader:
    """Reads locations and calls from the source that frames were compiled from."""

    def __init__(self, cell: CellSource | None = None) -> None:
        self._cell = cell
        self._around: dict[FrameType, int] = {}
        self._calls: dict[str, dict[tuple[int, int], list[ast.Call]]] = {}

    def location(self, frame: FrameType | None) -> SourceLocation:
        """Return the line that a frame is at, and the cell's line that led there."""
        if frame is None:
            return SourceLocation("unknown", "", 0, "")
        called_from = None
        if self._cell is not None and not self._is_cells(frame.f_code.co_filename):
            outer = next((f for f in frames_from(frame.f_back) if f.f_code.co_filename == self._cell.filename), None)
            called_from = self._line(outer) if outer is not None else None
        return self._line(frame, called_from)

    def raised_at(self, trace: TracebackType | None) -> SourceLocation:
        """Return the last line of the cell, or else of the user's code, that a traceback goes through."""
        found = None
        while trace is not None:
            name = trace.tb_frame.f_code.co_filename
            is_cell = self._cell is not None and name == self._cell.filename
            if is_cell or (self._cell is None and not name.startswith((*_OURS, *_LIBRARIES))):
                found = trace
            trace = trace.tb_next
        if found is None:
            return self.location(None)
        return self._at(found.tb_frame, found.tb_lineno)

    def begin(self, frame: FrameType | None) -> None:
        """Note the frames around a captured block; if there is a cell, its own frames tell what is captured."""
        self._around = {} if self._cell is not None else {outer: outer.f_lineno or 0 for outer in frames_from(frame)}

    def end(self) -> None:
        """Release the frames."""
        self._around = {}

    def handler(self, frame: FrameType | None) -> SourceLocation | None:
        """Return the line of the handler that catches what a frame's line raises, in the cell or in what it calls.

        A ``try`` around the captured block is none of the block's.
        """
        for inner in self._captured(frame):
            name = inner.f_code.co_filename
            source = "".join(linecache.getlines(name, inner.f_globals))
            if not source and self._cell is not None and name == self._cell.filename:
                source = self._cell.source
            after = self._around.get(inner, 0)
            line = None if name.startswith(_OURS) else handler_of(inner, source, after)
            if line is not None:
                return self._at(inner, line)
        return None

    def _captured(self, frame: FrameType | None) -> list[FrameType]:
        """Return the frames from a call to the cell, or to the block, innermost first."""
        frames = list(frames_from(frame))
        if self._cell is None:
            last = next((place for place, one in enumerate(frames) if one in self._around), -1)
        else:
            ours = [place for place, one in enumerate(frames) if one.f_code.co_filename == self._cell.filename]
            last = max(ours, default=-1)
        return frames[: last + 1]

    def _line(self, frame: FrameType, called_from: SourceLocation | None = None) -> SourceLocation:
        return self._at(frame, frame.f_lineno or 0, called_from)

    def _at(self, frame: FrameType, line: int, called_from: SourceLocation | None = None) -> SourceLocation:
        filename = frame.f_code.co_filename
        lines = self._lines(filename, frame)
        code = lines[line - 1].strip() if 0 < line <= len(lines) else ""
        above = self._cell.above.get(filename, 0) if self._cell is not None else 0
        return SourceLocation(self._label(filename), filename, line + above, code, called_from)

    def _is_cells(self, filename: str) -> bool:
        return self._cell is not None and (filename == self._cell.filename or filename in self._cell.above)

    def _label(self, filename: str) -> str:
        if self._cell is not None:
            if self._is_cells(filename):
                return self._cell.label
            if filename in self._cell.labels:
                return self._cell.labels[filename]
        return os.path.basename(filename)

    def _lines(self, filename: str, frame: FrameType) -> Sequence[str]:
        if self._cell is not None and self._is_cells(filename):
            lines = self._cell.source.splitlines()
            return lines if filename == self._cell.filename else lines[self._cell.above[filename] :]
        return linecache.getlines(filename, frame.f_globals)

    def call_text(self, frame: FrameType | None, method: str, args: Sequence[Any], kwargs: Mapping[str, Any]) -> str:
        """Return the call that a frame is executing, as it is written; reconstructed if the text is not available."""
        node = self._call_node(frame, method) if frame is not None else None
        if frame is None or node is None:
            return shorten(reconstruct(method, args, kwargs))
        return shorten(_text_of(node, self._lines(frame.f_code.co_filename, frame)))

    def _call_node(self, frame: FrameType, method: str) -> ast.Call | None:
        filename = frame.f_code.co_filename
        if filename not in self._calls:
            lines = self._lines(filename, frame)
            self._calls[filename] = _index_calls("".join(line.removesuffix("\n") + "\n" for line in lines))
        calls = self._calls[filename]
        end = _call_end(frame)
        if end is not None:
            return next(iter(calls.get(end, ())), None)
        named = [node for nodes in calls.values() for node in nodes if _may_be(node, method, frame.f_lineno)]
        return named[0] if len(named) == 1 else None


def _call_end(frame: FrameType) -> tuple[int, int] | None:
    """Return line and column (in bytes) where the running call's text ends; None if Python keeps no columns."""
    if sys.version_info < (3, 11):
        return None
    positions = itertools.islice(frame.f_code.co_positions(), frame.f_lasti // 2, None)
    _, end_line, _, end_column = next(positions, (None,) * 4)
    return None if end_line is None or end_column is None else (end_line, end_column)


def _may_be(node: ast.Call, method: str, line: int) -> bool:
    return (
        isinstance(node.func, ast.Attribute)
        and node.func.attr == method
        and node.lineno <= line <= (node.end_lineno or node.lineno)
    )


@functools.lru_cache(maxsize=16)  # many captures read the same module's source
def _index_calls(source: str) -> dict[tuple[int, int], list[ast.Call]]:
    """Return all calls of a text by the place where they end; of those that end together the outermost."""
    found: dict[tuple[int, int], list[ast.Call]] = {}
    tree = parsed(source)
    for node in ast.walk(tree) if tree is not None else ():
        if isinstance(node, ast.Call):
            found.setdefault((node.end_lineno or 0, node.end_col_offset or 0), []).append(node)
    return found


def _text_of(node: ast.Call, lines: Sequence[str]) -> str:
    if not isinstance(node.func, ast.Attribute):
        return _slice(lines, (node.lineno, node.col_offset), _end(node))
    start = _name_start(_chain_start(node.func) or node.func)
    text = _slice(lines, start, _end(node))
    if "\n" in text and "#" in text:
        name = ast.Name(node.func.attr, ast.Load())
        return ast.unparse(ast.Call(name, node.args, node.keywords))
    return text


def _chain_start(func: ast.Attribute) -> ast.Attribute | None:
    """Return the `.read` or `.write` of a chain, so that its settings are shown with the call that ends it."""
    node: ast.AST = func.value
    while isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in _SETTINGS:
        node = node.func.value
    return node if isinstance(node, ast.Attribute) and node.attr in _CHAIN_STARTS else None


def _name_start(attribute: ast.Attribute) -> tuple[int, int]:
    line, column = _end(attribute)
    return line, column - len(attribute.attr.encode())


def _end(node: ast.expr) -> tuple[int, int]:
    return node.end_lineno or node.lineno, node.end_col_offset or node.col_offset


def _slice(lines: Sequence[str], start: tuple[int, int], end: tuple[int, int]) -> str:
    rows = [line.rstrip("\n").encode() for line in lines[start[0] - 1 : end[0]]]
    if not rows:
        return ""
    rows[-1] = rows[-1][: end[1]]
    rows[0] = rows[0][start[1] :]
    return b"\n".join(rows).decode()


def shorten(text: str) -> str:
    """Return one line of at most `TEXT_LIMIT` characters: lines that a backslash continues are joined."""
    text = text.replace("\\\n", "\n")
    text = re.sub(r"([(\[{])\s*\n\s*", r"\1", text)
    text = re.sub(r",?\s*\n\s*([)\]}])", r"\1", text)
    text = re.sub(r"\s*\n\s*(?=\.)", "", text)
    text = re.sub(r"\s*\n\s*", " ", text).strip()
    return cut(text, TEXT_LIMIT)


def reconstruct(method: str, args: Sequence[Any], kwargs: Mapping[str, Any]) -> str:
    """Return a call reconstructed from its arguments' values."""
    parts = [_argument(arg) for arg in args]
    parts += [f"{name}={_argument(value)}" for name, value in kwargs.items()]
    return f"{method}({', '.join(parts)})"


def _argument(value: Any) -> str:
    kind = type(value).__name__
    if isinstance(value, str):
        return '"' + value.replace('"', '\\"') + '"'
    if kind == "Column":
        return str(value).removeprefix("Column<'").removesuffix("'>")
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(map(_argument, value[:8])) + (", …]" if len(value) > 8 else "]")
    if callable(value):
        return getattr(value, "__name__", kind)
    if value is None or isinstance(value, (bool, int, float)):
        return repr(value)
    return kind
