"""Keeps the rows of one job in the session: those of its results, and those that several sinks read (boundaries).

Their stage runs once and its rows are kept as Spark keeps a persisted DataFrame's. Two traps are avoided:

- ``persist()`` plans with the configuration of the session that calls it; so what is kept are the rows of the job's own
  plan, which is planned already;
- Spark's cache is shared by all sessions of a context and searched by plan. A result is kept as a `LogicalRDD`, which
  equals only itself; the rows of a boundary, and of a superstep's result, are those of a relation that Spark's cache
  does not know at all. So a query that the user defines later is never served from here, however equal it is to what
  was computed.

`Dataset` lives in ``sql.classic`` from 4.0 on. Seen on 3.5.9 and 4.3.0.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from py4j.protocol import Py4JError
from pyspark import StorageLevel

from flinkmagic.jvm.block_storage import driver_blocks
from flinkmagic.jvm.contexts import jvm_context
from flinkmagic.jvm.java import dataset_of, items, java_class, option, scala_object, scala_seq
from flinkmagic.planning.java_classes import CLASSES

if TYPE_CHECKING:
    from py4j.java_gateway import JavaObject
    from pyspark.sql import DataFrame, SparkSession

    from flinkmagic.planning.stage_handles import StageHandle

_LOG = logging.getLogger(__name__)


class Kept(NamedTuple):
    """What is kept for one handle."""

    plan: JavaObject | None
    """The logical plan that reads the rows; None for those of a boundary that no job has taken up yet."""
    rows: KeptRows


class KeptRows:
    """Rows that a job and the store of retained results share: they go when the last holder releases them.

    Parameters
    ----------
    builder : py4j.java_gateway.JavaObject
        The ``CachedRDDBuilder`` of the rows.
    drop : callable
        Lets Spark drop them.
    is_stored : callable, optional
        Returns whether all of them can be read although the builder has not counted them, such as from files.
    """

    def __init__(
        self, builder: JavaObject, drop: Callable[[], object], is_stored: Callable[[], bool] = lambda: False
    ) -> None:
        self.builder = builder
        self._is_stored = is_stored
        self._lock = threading.Lock()
        self._holders = 1
        self._drop = drop

    def hold(self) -> bool:
        """Add a holder; return False if the rows are gone."""
        with self._lock:
            if self._holders:
                self._holders += 1
            return self._holders > 0

    def let_go(self) -> None:
        """Remove a holder."""
        with self._lock:
            self._holders -= 1
            is_last = self._holders == 0
        if is_last:
            try:
                self._drop()
            except (Py4JError, OSError) as gone:
                _LOG.debug("nothing to drop, the session is gone: %s", gone)

    def are_there(self) -> bool:
        """Return whether they can be read without being computed."""
        return self._holders > 0 and (self.are_loaded() or self._is_stored())

    def are_loaded(self) -> bool:
        """Return whether Spark holds all of them."""
        return bool(self.builder.isCachedColumnBuffersLoaded())


class JobRows:
    """The rows that one job keeps, by the handle that made them.

    Parameters
    ----------
    spark : SparkSession
        The user's session: the DataFrames that are handed out belong to it.
    level : str
        The storage level of results that Spark's cache is not to know, by PySpark's name; empty lets it keep them.
    """

    def __init__(self, spark: SparkSession, level: str = "") -> None:
        self._spark = spark
        self._level = level
        self._lock = threading.Lock()
        self._kept: dict[StageHandle, Kept] = {}
        self._frames: dict[StageHandle, tuple[Kept, DataFrame]] = {}
        self.is_released = False
        """Whether `release` was called."""

    @property
    def jsession(self) -> JavaObject:
        """The user's Java session."""
        return self._spark._jsparkSession

    def batches(self, handle: StageHandle) -> JavaObject:
        """Return the RDD of a handle's column batches; a pass over it computes and keeps the rows.

        Called on the thread of the stage. It starts no job.
        """
        kept = self.of(handle)
        if kept is None:
            sc = self._spark.sparkContext
            level = sc._getJavaStorageLevel(getattr(StorageLevel, self._level)) if self._level else None
            builder, plan, drop = handle.keep(level)
            # Where rows were added, the builder does not know of all: it counts those that its own plan makes.
            is_stored = partial(self._are_stored, builder) if handle.added_files else lambda: False
            kept = self._put(handle, plan, KeptRows(builder, drop, is_stored))
        return kept.rows.builder.cachedColumnBuffers()

    def frame(self, handle: StageHandle) -> DataFrame:
        """Return a DataFrame of the user's session over the kept rows, the same one each time.

        Its columns are those of the DataFrame that was computed, by expression id: a column that the user took from
        that one (``agg["count"]``) is a column of this one, too.
        """
        from pyspark.sql import DataFrame

        kept = self._kept[handle]
        known, frame = self._frames.get(handle, (None, None))
        if known is not kept or frame is None:
            plan = kept.plan if handle.columns is None else self._under_columns(kept.plan, handle.columns)
            frame = DataFrame(dataset_of(self._jvm, self._spark._jsparkSession, plan), self._spark)
            frame.is_cached = True
            self._frames[handle] = kept, frame
        return frame

    def local_frame(self, handle: StageHandle, most_rows: int, most_bytes: int) -> DataFrame | None:
        """Return a DataFrame like `frame` over a copy of the rows that the driver holds; start no job.

        Returns
        -------
        DataFrame or None
            None if there are more rows, or Spark does not hold all of them.
        """
        from pyspark.sql import DataFrame

        sc = self._spark.sparkContext
        rows = CLASSES.shared_instance(sc._gateway, "DriverRows")
        builder, blocks = self._kept[handle].rows.builder, driver_blocks(sc)
        relation = rows.copy(builder, blocks, handle.columns, most_rows, most_bytes)
        if relation is None:
            return None
        return DataFrame(dataset_of(self._jvm, self._spark._jsparkSession, relation), self._spark)

    def _under_columns(self, plan: JavaObject, columns_before: JavaObject) -> JavaObject:
        """Return the rows of a plan under the columns of another, unless two of those are the same column."""
        wanted = items(columns_before)
        if len({attribute.exprId().id() for attribute in wanted}) < len(wanted):
            return plan
        catalyst = "org.apache.spark.sql.catalyst"
        alias = scala_object(self._jvm, f"{catalyst}.expressions.Alias")
        columns = [
            alias.apply(
                column,
                attribute.name(),
                attribute.exprId(),
                scala_seq(self._jvm, []),
                option(self._jvm, attribute.metadata()),
                scala_seq(self._jvm, []),
            )
            for column, attribute in zip(items(plan.output()), wanted, strict=True)
        ]
        project = java_class(self._jvm, f"{catalyst}.plans.logical.Project")
        return project(scala_seq(self._jvm, columns), plan)

    def of(self, handle: StageHandle) -> Kept | None:
        """Return what is kept for a handle."""
        with self._lock:
            return self._kept.get(handle)

    def take_up(self, handle: StageHandle, earlier: Kept) -> bool:
        """Give a handle the rows of an earlier job; return False if they are gone."""
        if not earlier.rows.hold():
            return False
        self._put(handle, handle.taken_up(earlier.plan), earlier.rows)
        return True

    def _put(self, handle: StageHandle, plan: JavaObject, rows: KeptRows) -> Kept:
        with self._lock:
            kept = self._kept[handle] = Kept(plan, rows)
        return kept

    def stored_partitions(self, handle: StageHandle) -> int:
        """Return how many partitions of a handle's rows are stored.

        They may be more than Spark has counted: the task that stored one may have ended after Spark had given its stage
        up. Such a partition is read, and not counted, when the stage runs again; so Spark would never say that all
        are there, and nothing would use the rows (seen on 4.3.0).
        """
        kept = self.of(handle)
        return 0 if kept is None else self._stored(kept.rows.builder.cachedColumnBuffers())

    def _are_stored(self, builder: JavaObject) -> bool:
        batches = builder.cachedColumnBuffers()
        return self._stored(batches) == int(batches.getNumPartitions())

    def _stored(self, batches: JavaObject) -> int:
        rows = batches.id()
        stored = jvm_context(self._spark.sparkContext).getRDDStorageInfo()
        return sum(int(one.numCachedPartitions()) for one in stored if one.id() == rows)

    def forget(self, handle: StageHandle) -> None:
        """Release the rows of a handle whose stage did not keep all of them, and will run again from the start."""
        with self._lock:
            kept = self._kept.pop(handle, None)
            self._frames.pop(handle, None)
        if kept is not None:
            kept.rows.let_go()

    def clear(self) -> None:
        """Release all rows; DataFrames that were handed out compute them again when they are used."""
        with self._lock:
            kept, self._kept = list(self._kept.values()), {}
            self._frames.clear()
        for one in kept:
            one.rows.let_go()

    def release(self) -> None:
        """Release all rows for good; see `clear`."""
        self.is_released = True
        self.clear()

    @property
    def _jvm(self) -> Any:
        jvm = self._spark.sparkContext._jvm
        assert jvm is not None
        return jvm
