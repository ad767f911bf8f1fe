"""Puts hooks into PySpark's classes while something is captured, and takes them out again.

The hooks are the process's, the capture is one thread's: a hooked method asks whether *this* thread and context
captures, and is PySpark's own method where it does not. The first capture installs the hooks, the last one to end
puts the very objects back that were there.
"""

from __future__ import annotations

import contextlib
import functools
import importlib
import os
import threading
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from types import FunctionType, TracebackType
from typing import TYPE_CHECKING, Any

import pyspark
from pyspark.sql import DataFrame

from flinkmagic.capturing import commands, hooks
from flinkmagic.capturing.hooks import Hook

if TYPE_CHECKING:
    from flinkmagic.capturing.recorder import Recorder

_recorder: ContextVar[Recorder | None] = ContextVar("flinkmagic_recorder", default=None)
_lock = threading.Lock()
_active: list[Recorder] = []
_installed: list[tuple[type, str, Any, Any]] = []
_ABSENT = object()

# PySpark names the innermost frame outside its own folder as the user's in its errors: hooks must not be it.
_HOOK_FILE = os.path.join(os.path.dirname(pyspark.__file__), "flinkmagic_hook.py")
_OUR_FOLDER = os.path.dirname(os.path.abspath(__file__)) + os.sep

_NOT_HOOKED = frozenset(
    {
        "asTable",
        "cache",
        "colRegex",
        "createGlobalTempView",
        "createOrReplaceGlobalTempView",
        "createOrReplaceTempView",
        "createTempView",
        "exists",
        "explain",
        "isLocal",
        "metadataColumn",
        "mergeInto",
        "persist",
        "printSchema",
        "registerTempTable",
        "sameSemantics",
        "scalar",
        "semanticHash",
        "transform",
        "unpersist",
        "writeTo",
        "inputFiles",
    }
)
"""Methods of `DataFrame` that read no rows and make no DataFrame of their own (or have a hook of their own)."""

_LAZY = frozenset(
    {
        "agg",
        "alias",
        "coalesce",
        "crossJoin",
        "cube",
        "distinct",
        "drop",
        "dropDuplicates",
        "dropDuplicatesWithinWatermark",
        "drop_duplicates",
        "dropna",
        "exceptAll",
        "fillna",
        "filter",
        "groupBy",
        "groupby",
        "groupingSets",
        "hint",
        "intersect",
        "intersectAll",
        "join",
        "lateralJoin",
        "limit",
        "mapInArrow",
        "mapInPandas",
        "melt",
        "nearestByJoin",
        "observe",
        "offset",
        "randomSplit",
        "repartition",
        "repartitionById",
        "repartitionByRange",
        "replace",
        "rollup",
        "sample",
        "sampleBy",
        "select",
        "selectExpr",
        "sort",
        "sortWithinPartitions",
        "orderBy",
        "subtract",
        "to",
        "toDF",
        "union",
        "unionAll",
        "unionByName",
        "unpivot",
        "where",
        "withColumn",
        "withColumnRenamed",
        "withColumns",
        "withColumnsRenamed",
        "withMetadata",
        "withWatermark",
        "zip",
        "zipWithIndex",
    }
)
"""Methods of `DataFrame` that are known to read nothing; a public method that is in no list counts as an action."""

_GROUPED_LAZY = frozenset(
    {
        "agg",
        "apply",
        "applyInArrow",
        "applyInPandas",
        "applyInPandasWithState",
        "avg",
        "cogroup",
        "count",
        "max",
        "mean",
        "min",
        "sum",
        "transformWithState",
        "transformWithStateInPandas",
    }
)


def activate(recorder: Recorder) -> None:
    """Let a recorder hear the calls of this thread and context."""
    with _lock:
        if not _active:
            try:
                _install()
            except BaseException:
                _uninstall()
                raise
        _active.append(recorder)
    recorder.token = _recorder.set(recorder)


def deactivate(recorder: Recorder) -> None:
    """End what `activate` began; the hooks go with the last recorder."""
    with contextlib.suppress(ValueError):  # ended in another context than begun, where it is not set
        _recorder.reset(recorder.token)
    with _lock:
        _active.remove(recorder)
        if not _active:
            _uninstall()


def _listening() -> Recorder | None:
    """The recorder of a call that the user makes on the captured thread; None for calls that serve such a call."""
    recorder = _recorder.get()
    if recorder is None or recorder.depth or recorder.thread != threading.get_ident():
        return None
    return recorder if recorder in _active else None


def _install() -> None:
    for owner, name, make in _plan():
        before = owner.__dict__.get(name, _ABSENT)
        original = getattr(owner, name) if before is _ABSENT else before
        hooked = make(name, original)
        setattr(owner, name, hooked)
        _installed.append((owner, name, before, hooked))


def _uninstall() -> None:
    while _installed:
        owner, name, before, hooked = _installed.pop()
        if owner.__dict__.get(name) is not hooked:
            continue  # somebody has put his own in its place: ours is called by it, and does nothing any more
        if before is _ABSENT:
            delattr(owner, name)
        else:
            setattr(owner, name, before)


def _hooked(hook: Hook) -> Callable[..., Any]:
    original = hook.original

    def call(*args: Any, **kwargs: Any) -> Any:
        __tracebackhide__ = True
        recorder = _listening()
        if recorder is None:
            return original(*args, **kwargs)
        recorder.depth += 1
        try:
            hook.before(recorder, args, kwargs)
            return hook.after(recorder, args, kwargs, original(*args, **kwargs))
        except Exception as error:
            trace = error.__traceback__
            error.__traceback__ = _without_ours(trace.tb_next if trace is not None else None)
            raise error
        finally:
            hook.finish(args)
            recorder.depth -= 1

    call.__code__ = call.__code__.replace(co_filename=_HOOK_FILE)
    return functools.wraps(original)(call)


def _without_ours(trace: TracebackType | None) -> TracebackType | None:
    """A traceback without the frames of this package: the user's line, then Spark's."""
    if trace is None:
        return None
    rest = _without_ours(trace.tb_next)
    if trace.tb_frame.f_code.co_filename.startswith(_OUR_FOLDER):
        return rest
    return TracebackType(rest, trace.tb_frame, trace.tb_lasti, trace.tb_lineno)


class _RddAccess:
    """`DataFrame.rdd`: what the RDD reads later nobody sees, so the property counts as the action."""

    def __init__(self, original: Any) -> None:
        self._original = original
        self._hook = hooks.Action("rdd", original)

    def __get__(self, df: Any, owner: type | None = None) -> Any:
        if df is None:
            return self._original.__get__(df, owner)
        recorder = _listening()
        if recorder is not None:
            self._hook.before(recorder, (df,), {})
            recorder.depth += 1
        try:
            return self._original.__get__(df, owner)
        finally:
            if recorder is not None:
                recorder.depth -= 1


Make = Callable[[str, Any], Any]


def _with(hook: Callable[..., Hook], *extra: Any) -> Make:
    return lambda name, original: _hooked(hook(name, original, *extra))


@functools.lru_cache(maxsize=1)
def _plan() -> tuple[tuple[type, str, Make], ...]:
    """Which attributes get which hooks; what this version of PySpark does not have is left out."""
    return tuple(
        (owner, name, make)
        for owner, name, make in _wanted()
        if callable(getattr(owner, name, None)) or name == "rdd"
    )


def _wanted() -> Iterator[tuple[type, str, Make]]:
    frame = _classic_data_frame()
    for name in _public_methods(frame):
        if name not in _NOT_HOOKED:
            yield frame, name, _with(hooks.Transformation if name in _LAZY else hooks.Action)
    for name in ("createTempView", "createOrReplaceTempView", "createGlobalTempView"):
        yield frame, name, _with(hooks.TempView)
    yield frame, "createOrReplaceGlobalTempView", _with(hooks.TempView)
    for name in ("writeTo", "mergeInto"):
        yield frame, name, _with(hooks.TableWriter)
    for name in ("__repr__", "_repr_html_"):
        yield frame, name, _with(hooks.EagerDisplay)
    yield frame, "rdd", lambda _, original: _RddAccess(original)
    yield from _grouped()
    yield from _readers()
    yield from _writers()
    yield from _session_and_context()


def _grouped() -> Iterator[tuple[type, str, Make]]:
    from pyspark.sql.group import GroupedData
    from pyspark.sql.pandas.group_ops import PandasCogroupedOps

    for owner in (GroupedData, PandasCogroupedOps):
        for name in _public_methods(owner):
            yield owner, name, _with(hooks.Transformation if name in _GROUPED_LAZY else hooks.Action)


def _readers() -> Iterator[tuple[type, str, Make]]:
    from pyspark.sql.readwriter import DataFrameReader
    from pyspark.sql.streaming.readwriter import DataStreamReader

    for owner, read in ((DataFrameReader, hooks.FileRead), (DataStreamReader, hooks.StreamRead)):
        for name in ("load", "json", "csv", "parquet", "orc", "text", "xml"):
            yield owner, name, _with(read)
        yield owner, "table", _with(hooks.TableRead)
        for name in ("changes", "jdbc"):
            yield owner, name, _with(hooks.ForeignRead)


def _writers() -> Iterator[tuple[type, str, Make]]:
    from pyspark.sql.readwriter import DataFrameWriter, DataFrameWriterV2
    from pyspark.sql.streaming.readwriter import DataStreamWriter

    for name in ("save", "parquet", "csv", "json", "orc", "text", "xml"):
        yield DataFrameWriter, name, _with(hooks.Save)
    for name in ("saveAsTable", "insertInto"):
        yield DataFrameWriter, name, _with(hooks.Command, commands.writer_effects)
    yield DataFrameWriter, "jdbc", _with(hooks.Command, commands.jdbc_effects)
    for name in ("create", "replace", "createOrReplace", "append", "overwrite", "overwritePartitions"):
        yield DataFrameWriterV2, name, _with(hooks.Command, commands.table_writer_effects)
    for name in ("start", "toTable"):
        yield DataStreamWriter, name, _with(hooks.Command, commands.unknown_effects)
    merge = _module("pyspark.sql.merge")
    if merge is not None:
        yield merge.MergeIntoWriter, "merge", _with(hooks.Command, commands.table_writer_effects)


def _session_and_context() -> Iterator[tuple[type, str, Make]]:
    from pyspark import RDD, SparkContext
    from pyspark.sql import SparkSession
    from pyspark.sql.catalog import Catalog

    yield SparkSession, "sql", _with(hooks.Sql)
    yield SparkSession, "table", _with(hooks.TableRead)
    for name in ("range", "createDataFrame", "emptyDataFrame"):
        yield SparkSession, name, _with(hooks.Transformation)
    on_table = (
        "createTable",
        "createExternalTable",
        "dropTable",
        "truncateTable",
        "recoverPartitions",
        "refreshTable",
    )
    for name in on_table:
        yield Catalog, name, _with(hooks.Command, commands.catalog_effects)
    yield Catalog, "dropDatabase", _with(hooks.Command, commands.unknown_effects)
    for name in ("textFile", "wholeTextFiles", "binaryFiles", "pickleFile", "sequenceFile"):
        yield SparkContext, name, _with(hooks.RddRead)
    for name in ("saveAsTextFile", "saveAsPickleFile", "saveAsSequenceFile", "saveAsHadoopFile"):
        yield RDD, name, _with(hooks.Command, commands.path_effects)


def _module(name: str) -> Any:
    try:
        return importlib.import_module(name)
    except ImportError:  # not in this version
        return None


def _classic_data_frame() -> type:
    """The class whose methods run: in 4.x `pyspark.sql.DataFrame` only declares them."""
    classic = _module("pyspark.sql.classic.dataframe")
    return DataFrame if classic is None else classic.DataFrame


def _public_methods(owner: type) -> Iterator[str]:
    seen = set()
    for base in owner.__mro__:
        for name, value in vars(base).items():
            if not name.startswith("_") and name not in seen and isinstance(value, FunctionType):
                yield name
            seen.add(name)
