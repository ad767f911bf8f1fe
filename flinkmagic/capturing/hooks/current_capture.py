"""Finds the capture that notes a call: that of the cell whose thread makes it, for the cell's own calls only.

The hooks belong to the process, a capture to a cell. A cell's threads are the one that runs it and those that work for
it: threads that it starts, and pool threads while they run what it handed them. Other threads of the kernel (those of
widgets, and flinkmagic's own) belong to no cell.
"""

from __future__ import annotations

import contextlib
import functools
import os
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, TypeVar

import pyspark

if TYPE_CHECKING:
    from flinkmagic.capturing.recorder import Recorder

recording: ContextVar[Recorder | None] = ContextVar("flinkmagic_recorder", default=None)
"""What notes the calls of a thread and context."""

# PySpark's errors name the innermost frame outside its own folder as the user's: hooks must not be that frame.
HOOK_FILE = os.path.join(os.path.dirname(pyspark.__file__), "flinkmagic_hook.py")

_Function = TypeVar("_Function", bound=Callable[..., Any])

active: list[Recorder] = []
"""The captures that run now, in the order in which they began."""


def as_pysparks(function: _Function) -> _Function:
    """Let PySpark take the frames of a function for its own."""
    hidden: Any = function
    hidden.__code__ = hidden.__code__.replace(co_filename=HOOK_FILE)
    return function


def listening() -> Recorder | None:
    """Return the recorder of a cell's call; None for calls that serve such a call, and for calls from elsewhere."""
    if not active:
        return None
    recorder = recording.get()
    if recorder is None or recorder.ended or not recorder.threads.makes_calls():
        return None
    return recorder if recorder in active else None


@contextlib.contextmanager
def outside_captures() -> Iterator[None]:
    """Let calls of this thread and context belong to no capture, as those of a magic's own that a cell calls."""
    around = recording.get()
    recording.set(None)
    try:
        yield
    finally:
        if recording.get() is None:  # otherwise a capture has begun, and goes on
            recording.set(around if around in active else None)


def serving(recorder: Recorder | None) -> AbstractContextManager[None]:
    """Let the calls of the block be ours, not the user's."""
    return nullcontext() if recorder is None else recorder.threads.serving()


def calling_the_user(recorder: Recorder | None) -> AbstractContextManager[None]:
    """Let the calls of the block be the user's again; it stands within a block of `serving`."""
    return nullcontext() if recorder is None else recorder.threads.calling_the_user()


def working_for(recorder: Recorder, work: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function that makes its thread one of the cell's while it runs."""

    @functools.wraps(work)
    def run(*args: Any, **kwargs: Any) -> Any:
        ident, working = threading.get_ident(), recorder.threads.working
        if recorder not in active or ident in working:
            return work(*args, **kwargs)
        token = recording.set(recorder)
        working.add(ident)
        try:
            return work(*args, **kwargs)
        finally:
            working.discard(ident)
            recording.reset(token)

    return run


def _forget_captures() -> None:
    # A forked child runs the cell's code, but the session, its gateway and the writes belong to the parent.
    active.clear()


if hasattr(os, "register_at_fork"):  # not on Windows
    os.register_at_fork(after_in_child=_forget_captures)
