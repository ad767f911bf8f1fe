"""Hooks machine learning: what trains, transforms, evaluates, saves or loads models.

Its packages are slow to import, so they are hooked only once something imports them, before the cell or in it. PySpark
and the JVM save a model in several steps, some of them writes of DataFrames: for the user it is one line, which runs
immediately.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from types import ModuleType
from typing import Any

from flinkmagic.capturing.hooks import call_hooks
from flinkmagic.capturing.hooks.call_hooks import Entry, Judge, changes_at, reads_at
from flinkmagic.capturing.hooks.rdd_hooks import java_function_effects


def is_learning(name: str) -> bool:
    """Return whether a module belongs to one of those packages."""
    return name.startswith(("pyspark.ml.", "pyspark.mllib."))


def entries_of(module: ModuleType) -> Iterator[Entry]:
    """Yield the entries of one imported module."""
    name = module.__name__
    if name == "pyspark.ml.base":
        yield module.Estimator, "fit", call_hooks.Action
        yield module.Transformer, "transform", call_hooks.LazyCall
    elif name == "pyspark.ml.evaluation":
        yield module.Evaluator, "evaluate", call_hooks.Action
    elif name == "pyspark.mllib.common":
        # The older package works on RDDs in the JVM.
        yield module, "callJavaFunc", call_hooks.watched(java_function_effects)
    elif name == "pyspark.mllib.util":
        yield module.JavaSaveable, "save", call_hooks.command(changes_at(2, "path"))
    util: Any = sys.modules.get("pyspark.ml.util")
    if hasattr(util, "MLReader"):  # these modules import each other, so it has been imported too
        yield from _models(module, util.MLWriter, "save", changes_at(1, "path"))
        yield from _models(module, util.MLReader, "load", reads_at(1, "path"))


def _models(module: ModuleType, base: type, method: str, effects: Judge) -> Iterator[Entry]:
    for owner in vars(module).values():
        if (
            isinstance(owner, type)
            and issubclass(owner, base)
            and owner.__module__ == module.__name__
            and method in vars(owner)
        ):
            yield owner, method, call_hooks.command(effects)
