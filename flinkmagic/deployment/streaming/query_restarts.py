"""Starts a streaming query, for the first time and again after a failure.

Whether it is started again is up to the job's restart strategy (`SessionRestarts`), from where up to its checkpoint
(`QueryCheckpoints`); the query is then started by Spark's own writer (`QueryStarter`). The scheduler hears of the end
of a query, and asks for its restart, by the `query_board`.
"""

from __future__ import annotations

import logging
import shutil
import tempfile
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from flinkmagic.deployment.stages.spark_jobs import require_pinned_threads
from flinkmagic.errors.deployment import SessionLostError
from flinkmagic.errors.streaming import StreamRestartError
from flinkmagic.planning.clones import SHUFFLE_PARTITIONS
from flinkmagic.scheduling.failover.restart_strategy import RestartBackoffTimeStrategy

if TYPE_CHECKING:
    from pyspark import SparkContext
    from pyspark.sql import SparkSession

    from flinkmagic.capturing.streams.deferred_stream import DeferredStream


_LOG = logging.getLogger(__name__)
_TRIES = 20
_PAUSE_S = 0.1


class SessionRestarts:
    """A restart strategy that gives up when the session is gone, and counts the failure of a query once.

    A query's tasks fail together, with the same error.
    """

    def __init__(self, strategy: RestartBackoffTimeStrategy) -> None:
        self._strategy = strategy
        self.is_session_gone = False
        self._last: BaseException | None = None

    def notify_failure(self, cause: BaseException) -> bool:
        self.is_session_gone = self.is_session_gone or isinstance(cause, SessionLostError)
        if cause is self._last:
            return False
        self._last = cause
        return self._strategy.notify_failure(cause)

    def can_restart(self) -> bool:
        return not self.is_session_gone and self._strategy.can_restart()

    def backoff_ms(self) -> float:
        return self._strategy.backoff_ms()


class QueryCheckpoints:
    """Keeps what a query has done over the restarts of its job; at the job's end nothing of it remains.

    A query whose sink begins empty with each start (memory, unless its mode is complete) gets a new folder each time:
    it starts over, and its table has exact rows. On a cluster Spark makes the folder, and such a query is not
    restarted.

    Raises
    ------
    StreamRestartError
        If it has no checkpoint location, and executors cannot read this machine's folders to restart it.
    """

    def __init__(self, stream: DeferredStream, sc: SparkContext, *, restarts: bool) -> None:
        self._stream = stream
        self._is_local = (sc.master or "").startswith("local")
        self._made: list[Path] = []
        if restarts and not stream.checkpoint and not self._is_local:
            raise StreamRestartError(stream.name, stream.location)

    def folder(self) -> str | None:
        """Return the folder for the next start of the query; None if it has one, or Spark makes, or demands, one."""
        if self._stream.checkpoint or not self._is_local or not self._stream.is_scratch:
            return None
        if self._stream.starts_over or not self._made:
            self._made.append(Path(tempfile.mkdtemp(prefix="flinkmagic-query-")))
        return self._made[-1].as_uri()

    def remove(self) -> None:
        """Remove what was made; a task that Spark has just ended may still write there for a moment."""
        for folder in self._made:
            for _ in range(_TRIES):
                shutil.rmtree(folder, ignore_errors=True)
                if not folder.exists():
                    break
                time.sleep(_PAUSE_S)
            else:
                _LOG.warning("The folder %s of a query that is over could not be removed.", folder)
        self._made.clear()


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
