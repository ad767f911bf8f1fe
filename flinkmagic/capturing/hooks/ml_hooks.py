"""Hooks machine learning: what trains, transforms, evaluates, saves or loads models.

Its packages are slow to import, so they are hooked only once something imports them, before the cell or in it. PySpark
and the JVM save a model in several steps, some of them writes of DataFrames: for the user it is one line, which runs
immediately.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Iterator
from types import ModuleType
from typing import TYPE_CHECKING, Any

from flinkmagic.capturing.hooks import call_hooks
from flinkmagic.capturing.hooks.call_hooks import Args, Hook, Kwargs
from flinkmagic.capturing.hooks.rdd_hooks import java_function_effects
from flinkmagic.capturing.sql import commands
from flinkmagic.capturing.writes.pending import Effects
from flinkmagic.capturing.writes.targets import Source

if TYPE_CHECKING:
    from flinkmagic.capturing.recorder import Recorder

Make = Callable[[str, Any], Hook]


def is_learning(name: str) -> bool:
    """Return whether a module belongs to one of those packages."""
    return name.startswith(("pyspark.ml.", "pyspark.mllib."))


def ml_entries() -> Iterator[tuple[Any, str, Make]]:
    """Yield class, attribute and hook factory."""
    for module in [module for name, module in sys.modules.items() if is_learning(name)]:
        yield from entries_of(module)


def entries_of(module: ModuleType) -> Iterator[tuple[Any, str, Make]]:
    """Yield the entries of one imported module."""
    name = module.__name__
    if name == "pyspark.ml.base":
        yield module.Estimator, "fit", call_hooks.Action
        yield module.Transformer, "transform", call_hooks.LazyCall
    elif name == "pyspark.ml.evaluation":
        yield module.Evaluator, "evaluate", call_hooks.Action
    elif name == "pyspark.mllib.common":
        # The older package works on RDDs in the JVM.
        yield module, "callJavaFunc", functools.partial(call_hooks.Watched, effects=java_function_effects)
    elif name == "pyspark.mllib.util":
        yield module.JavaSaveable, "save", functools.partial(call_hooks.Command, effects=_saves)
    util: Any = sys.modules.get("pyspark.ml.util")
    if hasattr(util, "MLReader"):  # these modules import each other, so it has been imported too
        yield from _models(module, util.MLWriter, "save", commands.path_effects)
        yield from _models(module, util.MLReader, "load", _loads)


def _models(
    module: ModuleType, base: type, method: str, effects: Callable[..., Effects]
) -> Iterator[tuple[Any, str, Make]]:
    for owner in vars(module).values():
        if (
            isinstance(owner, type)
            and issubclass(owner, base)
            and owner.__module__ == module.__name__
            and method in vars(owner)
        ):
            yield owner, method, functools.partial(call_hooks.Command, effects=effects)


def _loads(recorder: Recorder, args: Args, kwargs: Kwargs) -> Effects:
    path = args[1] if len(args) > 1 else kwargs.get("path")
    return Effects(reads=(Source(path=recorder.resolver.target(str(path)).path),))


def _saves(recorder: Recorder, args: Args, kwargs: Kwargs) -> Effects:
    path = args[2] if len(args) > 2 else kwargs.get("path")
    return Effects(changes=(recorder.resolver.target(str(path)),))
