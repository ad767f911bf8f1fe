"""Lists which methods of PySpark get which hook, in the versions that have them."""

from __future__ import annotations

import functools
import importlib
import sys
from collections.abc import Iterator
from types import FunctionType, ModuleType
from typing import Any

from pyspark.sql import DataFrame

from flinkmagic.capturing.hooks import call_hooks, jvm_hooks, ml_hooks, native_hooks, rdd_hooks, session_hooks
from flinkmagic.capturing.hooks.audit import os_entries
from flinkmagic.capturing.hooks.call_hooks import Entry, anything, command
from flinkmagic.capturing.hooks.observation_hooks import Observe, observation_entries
from flinkmagic.capturing.hooks.split_hooks import RandomSplit
from flinkmagic.capturing.hooks.thread_hooks import thread_entries
from flinkmagic.capturing.sql import commands
from flinkmagic.capturing.writes.pending import Cause

_VIEWS = (
    "createTempView",
    "createOrReplaceTempView",
    "createGlobalTempView",
    "createOrReplaceGlobalTempView",
    "registerTempTable",
)

_CACHES = ("cache", "persist")

_USES = ("asTable", "exists", "scalar")
"""Other methods of `DataFrame` that read no rows yet, but hand the DataFrame on."""

_NOT_HOOKED = frozenset(
    {
        *_VIEWS,
        *_CACHES,
        *_USES,
        "colRegex",
        "explain",
        "isLocal",
        "metadataColumn",
        "mergeInto",
        "observe",
        "printSchema",
        "randomSplit",
        "sameSemantics",
        "semanticHash",
        "transform",
        "unpersist",
        "writeTo",
        "inputFiles",
    }
)
"""Methods of `DataFrame` that read no rows and make no DataFrame (or have a hook of their own)."""

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
        "offset",
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
"""Methods of `DataFrame` that are known to read nothing; a public method in no list counts as an action."""

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


def entries() -> Iterator[Entry]:
    """Yield class, attribute and hook factory; what this version of PySpark does not have is left out."""
    for owner, name, make in _wanted():
        value = getattr(owner, name, None)
        is_attribute = isinstance(value, (property, functools.cached_property)) or name == "_jdf"
        if callable(value) or is_attribute:
            yield owner, name, make


@functools.cache  # each cell asks it of all modules that there are
def is_hooked_when_imported(module: str) -> bool:
    """Return whether something in a module is hooked as soon as the module is imported, before the cell or in it."""
    return native_hooks.is_native(module) or ml_hooks.is_learning(module)


def entries_of(module: ModuleType) -> Iterator[Entry]:
    """Yield the entries of such a module."""
    if native_hooks.is_native(module.__name__):
        return native_hooks.entries_of(module)
    return ml_hooks.entries_of(module)


def _wanted() -> Iterator[Entry]:
    frame = classic_data_frame()
    for name in _public_methods(frame):
        if name not in _NOT_HOOKED:
            yield frame, name, call_hooks.LazyCall if name in _LAZY else call_hooks.Action
    yield frame, "randomSplit", RandomSplit
    for name in _VIEWS:
        yield frame, name, call_hooks.TempView
    for name in _CACHES:
        yield frame, name, call_hooks.Cached
    for name in _USES:
        yield frame, name, call_hooks.HandOver
    yield frame, "observe", Observe
    yield frame, "_jdf", call_hooks.JavaHalf
    for name in ("writeTo", "mergeInto"):
        yield frame, name, call_hooks.TableWriter
    for name in ("__repr__", "_repr_html_"):
        yield frame, name, call_hooks.EagerDisplay
    yield frame, "rdd", call_hooks.Action
    yield from _grouped()
    yield from _readers()
    yield from _writers()
    yield from _session_and_context()
    yield from observation_entries()
    yield from thread_entries()
    yield from os_entries()
    for name, module in list(sys.modules.items()):
        if module is not None and is_hooked_when_imported(name):
            yield from entries_of(module)


def _grouped() -> Iterator[Entry]:
    from pyspark.sql.group import GroupedData
    from pyspark.sql.pandas.group_ops import PandasCogroupedOps

    for owner in (GroupedData, PandasCogroupedOps):
        for name in _public_methods(owner):
            yield owner, name, call_hooks.LazyCall if name in _GROUPED_LAZY else call_hooks.Action


def _readers() -> Iterator[Entry]:
    from pyspark.sql.readwriter import DataFrameReader
    from pyspark.sql.streaming.readwriter import DataStreamReader

    for owner, read in ((DataFrameReader, call_hooks.FileRead), (DataStreamReader, call_hooks.StreamRead)):
        for name in ("load", "json", "csv", "parquet", "orc", "text", "xml"):
            yield owner, name, read
        yield owner, "table", call_hooks.TableRead
        for name in ("changes", "jdbc"):
            yield owner, name, call_hooks.ForeignRead


def _writers() -> Iterator[Entry]:
    from pyspark.sql.readwriter import DataFrameWriter, DataFrameWriterV2

    for name in ("save", "parquet", "csv", "json", "orc", "text", "xml", "jdbc", "saveAsTable", "insertInto"):
        yield DataFrameWriter, name, call_hooks.Save
    for name in ("create", "replace", "createOrReplace", "append", "overwrite", "overwritePartitions"):
        yield DataFrameWriterV2, name, call_hooks.SaveToTable
    merge = _module("pyspark.sql.merge")
    if merge is not None:
        yield merge.MergeIntoWriter, "merge", command(anything(Cause.SPARK))  # it does not keep what it is to merge


def _session_and_context() -> Iterator[Entry]:
    from pyspark import SparkContext
    from pyspark.sql import SparkSession, SQLContext
    from pyspark.sql.catalog import Catalog

    yield SparkSession, "sql", call_hooks.Sql
    yield SparkSession, "table", call_hooks.TableRead
    for name in ("range", "emptyDataFrame"):
        yield SparkSession, name, call_hooks.LazyCall
    on_table = (
        "createTable",
        "createExternalTable",
        "dropTable",
        "truncateTable",
        "recoverPartitions",
        "refreshTable",
    )
    for name in on_table:
        yield Catalog, name, command(commands.catalog_effects)
    for name in ("tableExists", "getTable", "listColumns", "isCached"):
        yield Catalog, name, command(commands.lookup_effects)
    yield Catalog, "cacheTable", command(commands.cached_table_effects)
    yield Catalog, "listTables", command(commands.listing_effects)
    for name in ("tableNames", "tables"):
        yield SQLContext, name, command(commands.listing_effects)
    yield Catalog, "dropDatabase", command(commands.database_effects)
    for name in ("textFile", "wholeTextFiles", "binaryFiles", "pickleFile", "sequenceFile"):
        yield SparkContext, name, call_hooks.RddRead
    yield from rdd_hooks.entries()
    yield from session_hooks.entries(classic_data_frame())
    yield from jvm_hooks.entries()


def _module(name: str) -> Any:
    try:
        return importlib.import_module(name)
    except ImportError:  # not in this version
        return None


def classic_data_frame() -> type:
    """Return the class whose methods run: in 4.x `pyspark.sql.DataFrame` only declares them."""
    classic = _module("pyspark.sql.classic.dataframe")
    return DataFrame if classic is None else classic.DataFrame


def _public_methods(owner: type) -> Iterator[str]:
    seen = set()
    for base in owner.__mro__:
        for name, value in vars(base).items():
            if not name.startswith("_") and name not in seen and isinstance(value, FunctionType):
                yield name
            seen.add(name)
