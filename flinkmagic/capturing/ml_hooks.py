"""Machine learning: what trains, transforms, evaluates, and saves or loads models.

Its packages are slow to import, so that they are hooked only where somebody has imported them. A model is saved by
lines of PySpark's own and of the JVM's, some of them writes of DataFrames: it is one line of the user's, and runs
immediately.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from flinkmagic.capturing import commands, hooks
from flinkmagic.capturing.hooks import Args, Hook, Kwargs
from flinkmagic.capturing.pending import Effects
from flinkmagic.capturing.rdd_hooks import java_function_effects
from flinkmagic.capturing.targets import Source

if TYPE_CHECKING:
    from flinkmagic.capturing.recorder import Recorder

Make = Callable[[str, Any], Hook]


def ml_entries() -> Iterator[tuple[Any, str, Make]]:
    """Class, attribute, and what makes its hook."""
    base = sys.modules.get("pyspark.ml.base")
    evaluation = sys.modules.get("pyspark.ml.evaluation")
    util = sys.modules.get("pyspark.ml.util")
    if base is not None:
        yield base.Estimator, "fit", hooks.Action
        yield base.Transformer, "transform", hooks.Transformation
    if evaluation is not None:
        yield evaluation.Evaluator, "evaluate", hooks.Action
    if util is not None:
        yield from _models(util.MLWriter, "save", commands.path_effects)
        yield from _models(util.MLReader, "load", _loads)
    yield from _mllib()


def _models(base: type, method: str, effects: Callable[..., Effects]) -> Iterator[tuple[Any, str, Make]]:
    for owner in (base, *_subclasses(base)):
        if method in vars(owner):
            yield owner, method, functools.partial(hooks.Command, effects=effects)


def _mllib() -> Iterator[tuple[Any, str, Make]]:
    """The older package, which works on RDDs in the JVM."""
    common, util = sys.modules.get("pyspark.mllib.common"), sys.modules.get("pyspark.mllib.util")
    if common is not None:
        yield common, "callJavaFunc", functools.partial(hooks.Watched, effects=java_function_effects)
    if util is not None:
        yield util.JavaSaveable, "save", functools.partial(hooks.Command, effects=_saves)


def _loads(recorder: Recorder, args: Args, kwargs: Kwargs) -> Effects:
    path = args[1] if len(args) > 1 else kwargs.get("path")
    return Effects(reads=(Source(path=recorder.resolver.target(str(path)).path),))


def _saves(recorder: Recorder, args: Args, kwargs: Kwargs) -> Effects:
    path = args[2] if len(args) > 2 else kwargs.get("path")
    return Effects(changes=(recorder.resolver.target(str(path)),))


def _subclasses(base: type) -> Iterator[type]:
    subclass: type
    for subclass in base.__subclasses__():
        yield subclass
        yield from _subclasses(subclass)
