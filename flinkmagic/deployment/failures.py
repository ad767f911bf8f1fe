"""Extracts from a failed Spark stage what the user needs: the Python traceback's own lines and the user's line."""

from __future__ import annotations

import linecache
import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from flinkmagic.capturing.source_code.code_files import FLINKMAGIC
from flinkmagic.capturing.source_code.source_location import label_of
from flinkmagic.capturing.writes.sparks_errors import is_cancelled
from flinkmagic.errors.deployment import VertexFailedError
from flinkmagic.errors.scheduling import SuppressRestartsError
from flinkmagic.jvm.java import java_words

_TRACEBACK = "Traceback (most recent call last):"
_FRAME = re.compile(r'^\s*File "(?P<file>.+)", line (?P<line>\d+), in (?P<function>.+)$')
_JAVA_FRAME = re.compile(r"^\s*at [\w.$]+\(")
# 4.x ends an error's text with it: with one for each error around what was raised.
_SQLSTATE = re.compile(r"^\s*SQLSTATE: \w+\)*(?: SQLSTATE: \w+\)*)*$")
# Frames of the machinery that calls the user's function: the worker's, and ours, which calls functions of batches.
_MACHINERY = re.compile(r"[/\\]pyspark(\.zip)?[/\\]|[/\\]lib[/\\]pyspark|[/\\]py4j[/\\-]")
# The cause below it is that of the pipe to the worker, which says nothing useful.
_CRASH = re.compile(r"Python worker exited unexpectedly[^\n]*")
_LOST_TASK = re.compile(r"Lost task [\d.]+ in stage [\d.]+ \(TID \d+\)[^:]*(?: executor [^:]+)?: ")


def python_traceback(text: str) -> tuple[str, str] | None:
    """Return the innermost Python traceback in a text of Spark's, without the worker's frames, and its last line.

    Source lines that the worker did not have (a notebook's cell has no file there) are added from this process, and a
    cell is named by its number.

    Returns
    -------
    tuple of str or None
        The traceback (empty if it has no frame of the user's), and what was raised (``ValueError: bad row``); None if
        there is no Python traceback.
    """
    start = text.rfind(_TRACEBACK)
    if start < 0:
        return None
    lines = text[start:].splitlines()
    frames: list[str] = []
    raised: list[str] = []
    keep = False
    for line in lines[1:]:
        frame = _FRAME.match(line)
        if frame is not None:
            keep = not _MACHINERY.search(frame["file"]) and not frame["file"].startswith(FLINKMAGIC)
            if keep:
                frames.append(_placed(frame))
                frames.extend(_source_line(frame["file"], int(frame["line"])))
        elif line.startswith("    "):
            if keep and not (frames and frames[-1].strip() == line.strip()):
                frames.append(line)
        elif not line.strip() or _JAVA_FRAME.match(line) or _SQLSTATE.match(line):
            if raised:
                break
        else:
            raised.append(line)
    what = "\n".join(raised).strip()
    return "\n".join([_TRACEBACK, *frames, what]) if frames else "", what


def _placed(frame: re.Match[str]) -> str:
    """Return a frame's line, with the cell's number in place of the name under which its source is cached."""
    cell = label_of(frame["file"])
    return frame[0] if cell is None else f"  {cell}, line {frame['line']}, in {frame['function']}"


def _source_line(filename: str, line: int) -> list[str]:
    source = linecache.getline(filename, line).strip()
    return [f"    {source}"] if source else []


def cause_of(text: str) -> str:
    """Return the first line of a JVM error that says what failed, without the part that Spark adds around it."""
    text = java_words(text)
    crash = _CRASH.search(text)
    if crash is not None:
        return crash[0]
    for part in reversed(text.split("Caused by: ")):
        lines = [line for line in part.splitlines() if line.strip() and not _JAVA_FRAME.match(line)]
        if lines and not lines[0].lstrip().startswith("..."):
            first = _LOST_TASK.split(lines[0])[-1].strip()
            if first and first != "Driver stacktrace:":
                return first
    return text.splitlines()[0].strip() if text.strip() else "Spark gave no reason"


@lru_cache(maxsize=1024)
def short_reason(text: str) -> str:
    """Return the message of a failed task, in a line: what its Python code raised, else the JVM's own words."""
    found = python_traceback(text)
    return found[1] if found is not None else cause_of(text)


def vertex_failed(vertex: str, error: BaseException, task_error: str, metadata: Mapping[str, Any]) -> VertexFailedError:
    """Return the error that a failed vertex is reported with; what was cancelled at Spark is not to be restarted.

    Parameters
    ----------
    error : BaseException
        The error with which Spark's job ended.
    task_error : str
        The message of the task that failed last; empty if none did (a failure on the driver).
    metadata : mapping
        The facts of the user's call behind the vertex: ``cell``, ``line``, ``code``.
    """
    text = task_error or str(error)
    found = python_traceback(text)
    trace, cause = found if found is not None else ("", cause_of(text))
    failed = VertexFailedError(
        vertex,
        cause,
        where=_where(metadata),
        code=str(metadata.get("code") or ""),
        python_traceback=trace,
    )
    failed.__cause__ = SuppressRestartsError(error) if is_cancelled(error) else error
    return failed


def _where(metadata: Mapping[str, Any]) -> str:
    cell, line = metadata.get("cell"), metadata.get("line")
    return ", ".join([*([str(cell)] if cell else []), *([f"line {line}"] if line else [])])
