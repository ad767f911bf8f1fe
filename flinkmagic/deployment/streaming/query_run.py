"""One start of a streaming query, by Spark's own writer, and its end."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from flinkmagic.deployment.stages.stage_threads import StageThreads
from flinkmagic.planning.clones import SHUFFLE_PARTITIONS

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from flinkmagic.capturing.streams.deferred_stream import DeferredStream

_LOG = logging.getLogger(__name__)

_STARTING = threading.Lock()
"""Held while a query copies the settings of its session."""


class QueryRun:
    """Starts a query on a thread that then waits for its end.

    Parameters
    ----------
    stream : DeferredStream
        What to start.
    spark : SparkSession
        The user's session, to which the query belongs as it would after a plain start.
    checkpoint : str or None
        The folder for its checkpoints, if the job made one.
    parallelism : int
        How many partitions its shuffles, and its state, have unless the checkpoint says otherwise.
    pool : str or None
        The scheduler pool of its batches.
    on_started, on_ended : callable
        Called on that thread: with Spark's query; with what ended it, None if it ended or was stopped.
    """

    def __init__(
        self,
        stream: DeferredStream,
        spark: SparkSession,
        *,
        checkpoint: str | None,
        parallelism: int,
        pool: str | None,
        on_started: Callable[[Any], None],
        on_ended: Callable[[BaseException | None], None],
    ) -> None:
        self.stream = stream
        self._spark = spark
        self._checkpoint = checkpoint
        self._parallelism = parallelism
        self._pool = pool
        self._on_started, self._on_ended = on_started, on_ended
        self._lock = threading.Lock()
        self._java: Any = None
        self._is_stopped = False

    def start(self, threads: StageThreads) -> None:
        """Begin, and return immediately."""
        self._threads = threads
        threads.start(f"flinkmagic-query-{self.stream.name}", self._run)

    def stop(self) -> None:
        """Stop the query, also one that is only about to start; return immediately."""
        with self._lock:
            if self._is_stopped:
                return
            self._is_stopped = True
            if self._java is not None:
                self._threads.start(f"flinkmagic-stop-{self.stream.name}", self._stop)

    def _run(self) -> None:
        failure: BaseException | None = None
        try:
            java = self._started()
            with self._lock:
                self._java = java
                if self._is_stopped:
                    self._threads.start(f"flinkmagic-stop-{self.stream.name}", self._stop)
            self._on_started(java)
            java.awaitTermination()
        except Exception as error:  # noqa: BLE001 - told to whoever waits for the query
            failure = error
        self._on_ended(failure)

    def _started(self) -> Any:
        self._spark.sparkContext.setLocalProperty("spark.scheduler.pool", self._pool)  # type: ignore[arg-type]
        conf = self._spark._jsparkSession.sessionState().conf()
        with _STARTING:
            # A query copies its session's settings when it is made, and no other place takes the number.
            before = conf.getConfString(SHUFFLE_PARTITIONS) if conf.contains(SHUFFLE_PARTITIONS) else None
            conf.setConfString(SHUFFLE_PARTITIONS, str(self._parallelism))
            try:
                return self.stream.start(self._checkpoint)
            finally:
                if before is None:
                    conf.unsetConf(SHUFFLE_PARTITIONS)
                else:
                    conf.setConfString(SHUFFLE_PARTITIONS, before)

    def _stop(self) -> None:
        try:
            self._java.stop()
        except Exception as error:  # noqa: BLE001 - its end, with what ended it, comes to the thread that waits
            _LOG.warning("Spark did not stop the query %s quietly: %s", self.stream.name, error)
