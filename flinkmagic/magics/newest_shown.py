"""Keeps references to the newest things that are shown, and drops the older ones."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Generic, TypeVar

T = TypeVar("T")


class Newest(Generic[T]):
    """Holds the last `most` things that were added; callable from any thread.

    Parameters
    ----------
    let_go : callable
        Called with each that is held no more.
    is_idle : callable, optional
        Whether one can be let go of; those that cannot do not count. By default all can.
    """

    def __init__(self, most: int, let_go: Callable[[T], object], is_idle: Callable[[T], bool] = lambda _: True) -> None:
        self.most = most
        self._let_go, self._is_idle = let_go, is_idle
        self._held: list[T] = []
        self._lock = threading.Lock()

    def add(self, one: T) -> None:
        """Hold one as the newest, also if it was held before."""
        with self._lock:
            self._held = [*(held for held in self._held if held != one), one]
            idle = [held for held in self._held if self._is_idle(held)]
            gone = idle[: max(len(idle) - self.most, 0)]
            self._held = [held for held in self._held if held not in gone]
        for former in gone:
            self._let_go(former)
