"""Shows interrupts and errors as in any cell: with the user's own lines, without our lines or those that we wait in."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from types import TracebackType
from typing import Any

from flinkmagic.capturing.hooks.patches import without_ours
from flinkmagic.magics.cell import CompiledBody

_until_ours = partial(without_ours, with_sparks=False)
"""What the user's line waits in is not shown."""


@contextmanager
def plainly_interrupted(shell: Any) -> Iterator[None]:
    """Show an interrupt of what runs inside, which is the body of a captured cell."""
    try:
        yield
    except KeyboardInterrupt as interrupt:
        trace = _user_lines(interrupt.__traceback__)
        told = ["\n".join(["KeyboardInterrupt", *getattr(interrupt, "__notes__", ())])]
        if trace is not None:
            told = shell.InteractiveTB.structured_traceback(KeyboardInterrupt, interrupt, trace)
        interrupt._render_traceback_ = lambda: told  # type: ignore[attr-defined]
        raise


@contextmanager
def interrupted_in_a_call(shell: Any) -> Iterator[None]:
    """Show an interrupt of what runs inside, which a line of an ordinary cell has called."""
    try:
        yield
    except KeyboardInterrupt as interrupt:
        _show_part(shell, interrupt, _until_ours)
        raise


def show_without_ours(shell: Any, error: BaseException) -> None:
    """Show an error of a call without our frames: IPython shows the last frame of a traceback even if it is hidden."""
    if not hasattr(error, "_render_traceback_"):
        _show_part(shell, error, without_ours)


def _show_part(shell: Any, error: BaseException, part: Callable[[TracebackType | None], TracebackType | None]) -> None:
    """Show an error with a part of its traceback, which is whole once it has reached the cell."""

    def told() -> Any:
        return shell.InteractiveTB.structured_traceback(type(error), error, part(error.__traceback__))

    error._render_traceback_ = told  # type: ignore[attr-defined]


def _user_lines(trace: TracebackType | None) -> TracebackType | None:
    """Return the frames of a traceback below ours, up to where the user's line called us again."""
    while trace is not None and not _is_body(trace):
        trace = trace.tb_next
    return None if trace is None else _until_ours(trace.tb_next)


def _is_body(trace: TracebackType) -> bool:
    return trace.tb_frame.f_code in (CompiledBody.run.__code__, CompiledBody.run_awaiting.__code__)
