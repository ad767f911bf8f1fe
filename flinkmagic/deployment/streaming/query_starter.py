"""Starts a streaming query by Spark's own writer, for the first time and again."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

from flinkmagic.deployment.stages.spark_jobs import require_pinned_threads
from flinkmagic.deployment.streaming.query_checkpoints import QueryCheckpoints
from flinkmagic.planning.clones import SHUFFLE_PARTITIONS

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from flinkmagic.capturing.streams.deferred_stream import DeferredStream

_STARTING = threading.Lock()
"""Held while a query copies the settings of its session."""


class QueryStarter:
    """Starts one query as often as its job asks.

    Parameters
    ----------
    spark : SparkSession
        The user's session, to which the query belongs as it would after a plain start.
    parallelism : int
        How many partitions its shuffles, and its state, have unless the checkpoint says otherwise.

    Raises
    ------
    StreamRestartError
        If it could not be restarted as it should.
    """

    def __init__(self, stream: DeferredStream, spark: SparkSession, *, parallelism: int, restarts: bool) -> None:
        require_pinned_threads(spark.sparkContext)
        self._stream = stream
        self._spark = spark
        self._parallelism = parallelism
        self._pool = spark.sparkContext.getLocalProperty("spark.scheduler.pool")
        self._checkpoints = QueryCheckpoints(stream, spark.sparkContext, restarts=restarts)

    def start(self) -> Any:
        """Start it; return Spark's query once that is up, as `start()` does."""
        self._spark.sparkContext.setLocalProperty("spark.scheduler.pool", self._pool)  # type: ignore[arg-type]
        conf = self._spark._jsparkSession.sessionState().conf()
        with _STARTING:
            # A query copies its session's settings when it is made, and no other place takes the number.
            before = conf.getConfString(SHUFFLE_PARTITIONS) if conf.contains(SHUFFLE_PARTITIONS) else None
            conf.setConfString(SHUFFLE_PARTITIONS, str(self._parallelism))
            try:
                return self._stream.start(self._checkpoints.folder())
            finally:
                if before is None:
                    conf.unsetConf(SHUFFLE_PARTITIONS)
                else:
                    conf.setConfString(SHUFFLE_PARTITIONS, before)

    def close(self) -> None:
        """Remove what was made for it, after its end."""
        self._checkpoints.remove()
