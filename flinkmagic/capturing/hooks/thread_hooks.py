"""Hooks threads, pools and processes that work for a cell.

A thread that the cell starts, and a pool's thread while it runs what the cell handed it, belong to the cell. What other
processes do is not seen: giving them work settles what is pending.
"""

from __future__ import annotations

import _thread
import asyncio
import multiprocessing.pool
import multiprocessing.process
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

from flinkmagic.capturing.call_arguments import Args, Kwargs
from flinkmagic.capturing.hooks.call_hooks import Entry, Hook, anything, command
from flinkmagic.capturing.hooks.current_capture import working_for
from flinkmagic.capturing.writes.pending import Cause, Effects

if TYPE_CHECKING:
    from flinkmagic.capturing.recorder import Recorder

_POOL_METHODS = (
    "apply",
    "apply_async",
    "imap",
    "imap_unordered",
    "map",
    "map_async",
    "starmap",
    "starmap_async",
)


class ThreadStart(Hook):
    """`Thread.start`: what the thread runs is the cell's."""

    def before(self, recorder: Recorder, args: Args, kwargs: Kwargs) -> None:
        thread = args[0]
        # `Thread` calls `run` of the instance; a subclass may have a `run` of its own.
        thread.run = working_for(recorder, thread.run)


class BareThread(Hook):
    """`_thread.start_new_thread`: the same without an object."""

    def arguments(self, recorder: Recorder, args: Args, kwargs: Kwargs) -> tuple[Args, Kwargs]:
        return (working_for(recorder, args[0]), *args[1:]), kwargs


class ThreadWork(Hook):
    """A thread pool gets a function: it runs as part of the cell.

    It is an argument by place: those by name are the function's own.
    """

    def arguments(self, recorder: Recorder, args: Args, kwargs: Kwargs) -> tuple[Args, Kwargs]:
        if len(args) < 2 or not callable(args[1]):
            return args, kwargs
        return (args[0], working_for(recorder, args[1]), *args[2:]), kwargs


class PoolWork(ThreadWork):
    """A pool of `multiprocessing` gets a function; its workers are processes or threads."""

    def before(self, recorder: Recorder, args: Args, kwargs: Kwargs) -> None:
        if not isinstance(args[0], multiprocessing.pool.ThreadPool):
            recorder.settle(Effects(unknown=True, cause=Cause.PROCESS))

    def arguments(self, recorder: Recorder, args: Args, kwargs: Kwargs) -> tuple[Args, Kwargs]:
        if not isinstance(args[0], multiprocessing.pool.ThreadPool):
            return args, kwargs
        if "func" in kwargs:
            return args, {**kwargs, "func": working_for(recorder, kwargs["func"])}
        return super().arguments(recorder, args, kwargs)


def thread_entries() -> Iterator[Entry]:
    """Yield class, attribute and hook factory of all that starts a thread or process, or hands work to one."""
    yield threading.Thread, "start", ThreadStart
    yield _thread, "start_new_thread", BareThread
    yield ThreadPoolExecutor, "submit", ThreadWork
    for name in _POOL_METHODS:
        yield multiprocessing.pool.Pool, name, PoolWork
    # What another process touches is not seen.
    yield multiprocessing.process.BaseProcess, "start", command(anything(Cause.PROCESS))
    # Nor is what a coroutine does in another thread's loop, as with IPython's ``%%bash``.
    yield asyncio, "run_coroutine_threadsafe", command(anything(Cause.THREAD))
    # Slow to import: code that has a process executor has imported it.
    processes = sys.modules.get("concurrent.futures.process")
    if processes is not None:
        yield processes.ProcessPoolExecutor, "submit", command(anything(Cause.PROCESS))
