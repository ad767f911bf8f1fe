"""Completes the user's observations (`DataFrame.observe`) with the metrics of a job's queries.

Plain Spark completes an `Observation` with the first query that has run the observed DataFrame; the queries of a job
run concurrently, in several plans, and some of them twice. The rules, as the code keeps them:

1. An observation that several sinks hold gets the metrics of the first finished one in the cell's order, whichever ends
   first.
2. An attempt that fails completes nothing while the job goes on.
3. At the job's end an observation that only failed sinks hold gets what they have collected, as after a plain query
   that fails; an observation whose operator never began is left to the next query.

The session's listeners receive the metrics with the queries that are announced to them (`session_queries`).
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException

from flinkmagic.deployment.java_classes import CLASSES

if TYPE_CHECKING:
    from py4j.java_gateway import JavaObject
    from pyspark.sql import SparkSession

    from flinkmagic.planning.stage_handles import ObservedQuery, StageHandle

_LOG = logging.getLogger(__name__)


class Observations:
    """Completes the observations that the sinks of one job hold."""

    def __init__(self, spark: SparkSession) -> None:
        self._spark = spark
        self._lock = threading.Lock()
        self._jvm: Any = None
        self._sinks: dict[str, list[ObservedQuery]] = {}
        self._metrics: dict[ObservedQuery, JavaObject] = {}

    def hold(self, sinks: Iterable[StageHandle | None]) -> None:
        """Keep the observations of sinks, in the cell's order, so that only the job completes them."""
        observed = [one.observed for one in sinks if one is not None and one.observed is not None]
        if not observed:
            return
        gateway = self._spark.sparkContext._gateway
        self._jvm = CLASSES.new_instance(gateway, "Observations", self._spark._jsparkSession)
        for query in observed:
            for name in self._jvm.hold(query.query):
                self._sinks.setdefault(name, []).append(query)

    def collect(self, handle: StageHandle) -> None:
        """Complete what can be completed now that a stage is done."""
        query = handle.observed
        try:
            if handle.collected is not None:
                handle.collected()
            if query is not None and self._jvm is not None:
                self._done(query)
        except (Py4JError, PySparkException):  # what the stage wrote is written
            _LOG.exception("A bug in flinkmagic: what %r observed is not reported; please report it.", handle.name)

    def _done(self, query: ObservedQuery) -> None:
        metrics = query.metrics.apply()
        with self._lock:
            self._metrics[query] = metrics
            for name, sinks in list(self._sinks.items()):
                if sinks[0] is query:  # rule 1
                    self._complete(name, metrics)

    def close(self) -> None:
        """Complete the remaining observations at the end of the job."""
        if self._jvm is None:
            return
        try:
            with self._lock:
                for name, sinks in list(self._sinks.items()):
                    self._complete_late(name, sinks)
                self._jvm.giveBack()
        except (Py4JError, OSError) as gone:
            _LOG.debug("no observation is completed, the session is gone: %s", gone)
        self._jvm = None

    def _complete_late(self, name: str, sinks: Sequence[ObservedQuery]) -> None:
        done = [self._metrics[sink] for sink in sinks if sink in self._metrics]
        if done:
            self._complete(name, done[0])
            return
        for sink in sinks:  # rule 3
            if self._jvm.complete(name, sink.metrics.apply()):
                return

    def _complete(self, name: str, metrics: JavaObject) -> None:
        del self._sinks[name]
        if not self._jvm.complete(name, metrics):
            self._jvm.completeWithNothing(name)
