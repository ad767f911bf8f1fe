"""Keeps objects for a SparkContext, as long as it lives."""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from pyspark import SparkContext

Kept = TypeVar("Kept")

_PLACE = "_flinkmagic"
"""The attribute of the context that holds all of them: they may refer to the context, and go together with it."""


def kept_for_context(make: Callable[[SparkContext], Kept]) -> Callable[[SparkContext], Kept]:
    """Let a function make its result once for each SparkContext; it can then be called from any thread."""
    # Code that is notified of what a thread does (files that it opens, calls of the JVM) may ask for it meanwhile.
    lock = threading.RLock()

    @functools.wraps(make)
    def kept(sc: SparkContext) -> Kept:
        with lock:
            made = vars(sc).setdefault(_PLACE, {})
            if kept not in made:
                made[kept] = make(sc)
            return made[kept]

    return kept


def jvm_context(sc: SparkContext) -> Any:
    """Return the JVM's own ``SparkContext``.

    Raises
    ------
    AttributeError
        If PySpark has stopped the context, which has none any more.
    """
    if sc._jsc is None:
        raise AttributeError("the SparkContext is stopped")
    return _jvm_context(sc)


@kept_for_context
def _jvm_context(sc: SparkContext) -> Any:
    return sc._jsc.sc()
