"""Which map outputs of a shuffle exist, according to Spark's driver.

`SparkEnv.mapOutputTracker` is read as a field: py4j looks up all methods of an object's class to call one, and one
method of `SparkEnv` on 4.3.0 names a class that PySpark's distribution does not have (com.google.protobuf), so that
calling any of them breaks the connection. Seen on 3.5.9 and 4.3.0.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

from flinkmagic.jvm.java import static_method

if TYPE_CHECKING:
    from py4j.java_gateway import JavaObject
    from pyspark import SparkContext


_TRACKERS: WeakKeyDictionary[SparkContext, Any] = WeakKeyDictionary()


class MapOutputs:
    """Spark's `MapOutputTrackerMaster`, asked two questions.

    Parameters
    ----------
    sc : SparkContext
        The session's.
    """

    def __init__(self, sc: SparkContext) -> None:
        if sc not in _TRACKERS:
            environment = static_method(sc._jvm, "java.lang.Class", "forName")("org.apache.spark.SparkEnv")
            field = environment.getDeclaredField("mapOutputTracker")
            field.setAccessible(True)
            _TRACKERS[sc] = field.get(sc._jsc.sc().env())
        self._tracker = _TRACKERS[sc]

    def are_complete(self, dependency: JavaObject, tasks: int) -> bool:
        """Return whether the outputs of all `tasks` map tasks of a shuffle exist."""
        return bool(self._tracker.getNumAvailableOutputs(dependency.shuffleId()) == tasks)

    def statistics(self, dependency: JavaObject) -> JavaObject:
        """Return how many bytes each partition of a finished shuffle has (``MapOutputStatistics``)."""
        return self._tracker.getStatistics(dependency)
