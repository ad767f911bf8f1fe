"""Results that stay in the session: DataFrames over rows that a job has computed.

A result's last stage is run once and its rows are kept as Spark keeps a persisted DataFrame's. Two traps are avoided:

- ``persist()`` plans with the configuration of the session that calls it; so the rows are those of the job's own plan
  (a `LogicalRDD`, planned already), and it is called on the job's clone of the session;
- Spark's cache is shared by all sessions of a context and found by plan; a `LogicalRDD` equals only itself, so a query
  that the user defines later is never served from here, however equal it is to what was computed.

`Dataset` lives in ``sql.classic`` from 4.0 on. Seen on 3.5.9 and 4.3.0.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from py4j.java_gateway import JavaClass

from flinkmagic.planning.handles import ResultStageHandle

if TYPE_CHECKING:
    from py4j.java_gateway import JavaObject
    from pyspark.sql import DataFrame, SparkSession


@dataclass
class _Kept:
    """A result's Dataset on the clone; its plan is the key under which Spark's cache knows the rows."""

    dataset: JavaObject
    frame: DataFrame | None = None


class KeptResults:
    """The kept results of one deployment, by the handle that made them.

    Parameters
    ----------
    spark : SparkSession
        The user's session: the DataFrames that are handed out belong to it.
    """

    def __init__(self, spark: SparkSession) -> None:
        self._spark = spark
        self._lock = threading.Lock()
        self._kept: dict[int, _Kept] = {}
        self._released = False

    @property
    def is_released(self) -> bool:
        """Whether `release` was called."""
        return self._released

    def batches(self, handle: ResultStageHandle) -> JavaObject:
        """The RDD of a result's column batches; a pass over it computes and keeps the rows.

        Called on the thread of the stage. It starts no job.
        """
        with self._lock:
            kept = self._kept.get(id(handle))
        if kept is None:
            session = handle.query_execution.sparkSession()
            schema = self._jvm.org.apache.spark.sql.types.DataType.fromJson(handle.schema_json)
            dataset = session.internalCreateDataFrame(handle.plan.execute(), schema, False)
            dataset.persist()
            kept = _Kept(dataset)
            with self._lock:
                self._kept[id(handle)] = kept
        cache = self._spark._jsparkSession.sharedState().cacheManager()
        relation = cache.lookupCachedData(kept.dataset).get().cachedRepresentation()
        return relation.cacheBuilder().cachedColumnBuffers()

    def frame(self, handle: ResultStageHandle) -> DataFrame:
        """A DataFrame of the user's session over a result's kept rows, the same one each time."""
        from pyspark.sql import DataFrame

        kept = self._kept[id(handle)]
        if kept.frame is None:
            plan = kept.dataset.queryExecution().logical()
            jdf = self._dataset_class.ofRows(self._spark._jsparkSession, plan)
            kept.frame = DataFrame(jdf, self._spark)
            kept.frame.is_cached = True
        return kept.frame

    def release(self) -> None:
        """Let go of the rows of all results; DataFrames that were handed out compute them anew when they are used."""
        with self._lock:
            kept, self._kept, self._released = list(self._kept.values()), {}, True
        for one in kept:
            one.dataset.unpersist()

    @property
    def _dataset_class(self) -> Any:
        classic = self._jvm.org.apache.spark.sql.classic.Dataset
        return classic if isinstance(classic, JavaClass) else self._jvm.org.apache.spark.sql.Dataset

    @property
    def _jvm(self) -> Any:
        jvm = self._spark.sparkContext._jvm
        assert jvm is not None
        return jvm
