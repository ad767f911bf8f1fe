"""Keeps objects for a SparkContext, as long as it lives."""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar
from weakref import WeakKeyDictionary

if TYPE_CHECKING:
    from pyspark import SparkContext

Kept = TypeVar("Kept")


def kept_for_context(make: Callable[[SparkContext], Kept]) -> Callable[[SparkContext], Kept]:
    """Let a function make its result once for each SparkContext; it can then be called from any thread."""
    made: WeakKeyDictionary[SparkContext, Kept] = WeakKeyDictionary()
    # Code that is notified of what a thread does (files that it opens, calls of the JVM) may ask for it meanwhile.
    lock = threading.RLock()

    @functools.wraps(make)
    def kept(sc: SparkContext) -> Kept:
        with lock:
            if sc not in made:
                made[sc] = make(sc)
            return made[sc]

    return kept
