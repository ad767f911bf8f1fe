"""Tells which threads make a captured cell's calls, and which of their calls only serve another one."""

from __future__ import annotations

import threading


class CellThreads:
    """The threads that work for a cell; the cell's own makes this object."""

    def __init__(self) -> None:
        self._own = threading.get_ident()
        self.working = {self._own}
        """The cell's own thread, those that it has started, and pool threads while they run what it handed them."""
        self._hooks = _Depth()

    def is_own(self) -> bool:
        """Return whether this thread is the one that runs the cell."""
        return threading.get_ident() == self._own

    def makes_calls(self) -> bool:
        """Return whether what this thread calls now is called by the cell's code."""
        return not self._hooks.depth and threading.get_ident() in self.working

    def serving(self) -> Serving:
        """Let the calls of the block be ours, not the cell's."""
        return Serving(self._hooks, 1)

    def calling_the_user(self) -> Serving:
        """Let the calls of the block be the cell's again; it stands within a block of `serving`."""
        return Serving(self._hooks, -1)


class _Depth(threading.local):
    """How many hooks this thread is in: calls that it makes there serve the outermost one."""

    depth = 0


class Serving:
    """A block in which a thread is deeper in hooks, or less. Written as a class, it leaves no frame in a traceback."""

    def __init__(self, hooks: _Depth, by: int) -> None:
        self._hooks, self._by = hooks, by

    def __enter__(self) -> None:
        self._hooks.depth += self._by

    def __exit__(self, *_: object) -> None:
        self._hooks.depth -= self._by
