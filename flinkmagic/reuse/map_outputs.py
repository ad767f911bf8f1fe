"""Tells which map outputs of a shuffle exist, according to Spark's driver. Seen on 3.5.9 and 4.3.0."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from flinkmagic.jvm.contexts import kept_for_context
from flinkmagic.jvm.java import of_environment

if TYPE_CHECKING:
    from py4j.java_gateway import JavaObject
    from pyspark import SparkContext


@kept_for_context
def _tracker(sc: SparkContext) -> Any:
    return of_environment(sc, "mapOutputTracker")


class MapOutputs:
    """Asks Spark's `MapOutputTrackerMaster` about shuffles."""

    def __init__(self, sc: SparkContext) -> None:
        self._tracker = _tracker(sc)

    def are_complete(self, dependency: JavaObject, tasks: int) -> bool:
        """Return whether the outputs of all `tasks` map tasks of a shuffle exist."""
        return bool(self._tracker.getNumAvailableOutputs(dependency.shuffleId()) == tasks)

    def statistics(self, dependency: JavaObject) -> JavaObject:
        """Return how many bytes each partition of a finished shuffle has (``MapOutputStatistics``)."""
        return self._tracker.getStatistics(dependency)
