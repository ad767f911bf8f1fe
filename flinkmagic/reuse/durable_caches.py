"""Stores the rows of what the user caches, and lets Spark fill an equal cache of a later process from them.

A cache stays the user's: Spark fills it when it is read first, whoever reads it, and ``unpersist()`` drops it. Only the
place that its rows are read from is another one.

1. A cache is looked up when it is asked for, if nothing has read it before and any process would put the same rows
   there (`ResultKeys.of_cache`), unless its plan is adaptive and promises partitions or an order.
2. They are stored as kept rows are (`durable_rows`), once Spark holds all of them, if the stages that have filled the
   cache took longer than storing and reading them does.
3. A cache that finds its rows reads them from files of the JVM's own, which end with it: hard links to the stored ones
   if those lie on the same disk, else copies. So whatever happens to the store, nothing of the user's fails.
"""

from __future__ import annotations

import os
import shutil
import time
from collections import deque
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from flinkmagic.jvm.contexts import jvm_context, kept_for_context
from flinkmagic.jvm.java import java_class
from flinkmagic.planning.java_classes import CLASSES
from flinkmagic.reuse.durable_keys import durable_keys
from flinkmagic.reuse.durable_rows import DurableRows, durable_rows
from flinkmagic.reuse.durable_store import DurableEntry
from flinkmagic.reuse.result_keys import ResultKey, ResultKeys

if TYPE_CHECKING:
    from py4j.java_gateway import JavaObject
    from pyspark import SparkContext
    from pyspark.sql import DataFrame

    from flinkmagic.reuse.durable_store import DurableStore

_MOST_EMPTY = 50
"""How many caches that are not filled are watched: the latest ones."""


@dataclass(frozen=True)
class _Empty:
    """A cache that Spark has not filled yet."""

    relation: JavaObject
    durable_key: str
    what: str


class DurableCaches:
    """The caches of one SparkContext whose rows are in one store; made by `durable_caches`."""

    def __init__(self, sc: SparkContext, rows: DurableRows) -> None:
        self._sc, self._rows = sc, rows
        self._java: Any = CLASSES.shared_instance(sc._gateway, "UserCaches")
        self._empty: deque[_Empty] = deque(maxlen=_MOST_EMPTY)
        self._found: deque[tuple[str, DurableEntry]] = deque(maxlen=_MOST_EMPTY)

    def cached(self, df: DataFrame, what: str) -> None:
        """Let a cache that was just asked for be filled from stored rows; else store its rows once it is filled.

        Parameters
        ----------
        what : str
            The call, as it was written.

        Raises
        ------
        Py4JError, PySparkException
            If Spark cannot plan the query. The cache is what it would be without us.
        """
        relation = self._relation(df)
        if relation is None or not self._java.mayTakeRows(relation.cacheBuilder()):
            return
        builder, session = relation.cacheBuilder(), df.sparkSession._jsparkSession
        key = ResultKeys(self._sc).of_cache(builder, session)
        stored_as = durable_keys(self._sc).of(key) if isinstance(key, ResultKey) else None
        if stored_as is None:
            return
        fill, own = partial(self._java.fillFrom, builder), partial(_own_files, self._sc)
        entry = self._rows.fill(stored_as, builder.cachedPlan().schema().json(), session, own, fill)
        for former in [one for one in self._empty if one.durable_key == stored_as]:
            self._empty.remove(former)
        if entry is not None:
            self._found.append((what, entry))
        else:
            self._empty.append(_Empty(relation, stored_as, what))

    def found(self) -> list[tuple[str, DurableEntry]]:
        """Return the calls that have found stored rows since this was last asked, and what they have found."""
        found = list(self._found)
        self._found.clear()
        return found

    def _relation(self, df: DataFrame) -> JavaObject | None:
        cached = df.sparkSession._jsparkSession.sharedState().cacheManager().lookupCachedData(df._jdf)
        return cached.get().cachedRepresentation() if cached.isDefined() else None

    def store_filled(self) -> None:
        """Store the rows of the caches that Spark has filled meanwhile, when there is time."""
        for one in [one for one in self._empty if one.relation.cacheBuilder().isCachedColumnBuffersLoaded()]:
            self._empty.remove(one)
            seconds = float(self._java.secondsToFill(jvm_context(self._sc), one.relation.cacheBuilder()))
            self._rows.store_cache(DurableEntry(one.durable_key, one.what, seconds, time.time(), b""), one.relation)


def _own_files(sc: SparkContext, folder: Path) -> Path:
    """Return a folder among Spark's own files, which ends with the JVM, that has the rows of another one.

    Raises
    ------
    OSError
        If they cannot be had.
    """
    utils: Any = java_class(sc._jvm, "org.apache.spark.util.Utils")
    own = Path(str(utils.createTempDir(utils.getLocalDir(jvm_context(sc).conf()), "cache").getPath()))
    for file in folder.glob("*.parquet"):
        try:
            os.link(file, own / file.name)
        except OSError:  # another disk, or one without hard links
            shutil.copyfile(file, own / file.name)
    return own


@kept_for_context
def _known(sc: SparkContext) -> dict[DurableRows, DurableCaches]:
    return {}


def durable_caches(sc: SparkContext, store: DurableStore | None) -> DurableCaches | None:
    """Return the durable caches of a SparkContext in a store, if there is one; None if it has none."""
    rows = durable_rows(sc, store)
    return None if rows is None else _known(sc).setdefault(rows, DurableCaches(sc, rows))
