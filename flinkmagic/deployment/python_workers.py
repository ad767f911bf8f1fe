"""Python workers of cancelled tasks, ended at once.

A task that waits for a Python worker (a sleeping or long-computing UDF) does not notice its interruption; Spark lets
such a worker live for 2 to 4 seconds (``BasePythonRunner.MonitorThread``). Spark's own way of ending it is called right
away here (``java/PythonWorkers.java``), in the JVM that runs the task:

- In local mode that is the driver's.
- On a cluster a thread on each executor does it (``java/ExecutorWatch.java``). Its source travels in a Spark job with a
  task for each executor, as the source of the code does that Spark generates for a query, and is compiled there: no jar
  is added to the session. The job goes to Spark before a stage with Python workers does, on the executors that are
  there then; nothing waits for it, and nothing but the time of a cancellation hangs on it.

Executors that come later, and a JVM whose Spark has no such way, keep Spark's own time. A worker that is starting up
cannot be ended by anybody. Seen on 3.5.9 and 4.3.0.
"""

from __future__ import annotations

import logging
import math
import threading
import time
from collections.abc import Callable
from importlib.resources import files
from typing import TYPE_CHECKING, Any, ClassVar
from weakref import WeakKeyDictionary

from py4j.protocol import Py4JError

from flinkmagic.capturing.java import items, scala_object, static_method
from flinkmagic.deployment.java_classes import constructor_of, new_instance

if TYPE_CHECKING:
    from py4j.java_gateway import JavaObject
    from pyspark import SparkContext

_LOG = logging.getLogger(__name__)

_ROUNDS_S = (0.05, 0.05, 0.1, 0.1, 0.2, *([0.3] * 100))
"""Waits between looks: the interruption takes a moment to reach a task, and a starting worker cannot be ended yet."""
IDLE_S = 600
"""How long the thread on an executor stays where no task has a Python worker."""
TAGS = "flinkmagic-"
"""What the tags of all deployments begin with."""
WATCH_TAG = "flinkmagic-watch"
"""Of the job that starts the threads; it belongs to the session, not to a job of ours."""


def end_python_workers(sc: SparkContext, tag: str, is_over: Callable[[], bool]) -> None:
    """End the workers of cancelled tasks under a tag, on a thread of its own; `is_over` says when no task is left.

    On a cluster nothing is left to do: see `ExecutorWatch`.
    """
    if not sc._jsc.sc().isLocal():
        return
    constructor = constructor_of(sc, "PythonWorkers")
    if constructor is None:
        return
    workers = new_instance(sc, constructor, tag, False)

    def look() -> None:
        for wait_s in _ROUNDS_S:
            threading.Event().wait(wait_s)
            try:
                if workers.end() == 0 and is_over():
                    return
            except (Py4JError, OSError, AttributeError) as refused:
                _LOG.debug("Spark is left to end the Python workers under %s itself: %s", tag, refused)
                return

    threading.Thread(target=look, name=f"{tag}-python-workers", daemon=True).start()


class ExecutorWatch:
    """Sees to it that the executors of a cluster end the Python workers of interrupted tasks; from any thread.

    Parameters
    ----------
    sc : SparkContext
        The session's.
    """

    _OF_SESSIONS: ClassVar[WeakKeyDictionary[SparkContext, ExecutorWatch]] = WeakKeyDictionary()

    def __init__(self, sc: SparkContext) -> None:
        self._sc = sc
        self._is_needed = not sc._jsc.sc().isLocal()
        self._lock = threading.Lock()
        self._asked: dict[str, float] = {}

    @classmethod
    def of(cls, sc: SparkContext) -> ExecutorWatch:
        """The one of a session."""
        return cls._OF_SESSIONS.setdefault(sc, cls(sc))

    def start(self, enter: Callable[[str, str], None]) -> None:
        """Submit the job for those executors that were not asked lately; nothing in local mode.

        `enter` sets the calling thread's properties for a tag and a description. Returns without waiting for the job.
        """
        if not self._is_needed:
            return
        try:
            missing = self._take(_executors(self._sc))
            if missing:
                enter(WATCH_TAG, "flinkmagic: end the Python workers of cancelled tasks at once")
                _submit(self._sc, missing)
        except (Py4JError, TypeError, AttributeError) as refused:
            _LOG.debug("Spark is left to end Python workers itself: %s", refused)

    def _take(self, executors: list[tuple[str, str]]) -> list[tuple[str, str]]:
        with self._lock:
            now = time.monotonic()
            missing = [pair for pair in executors if now - self._asked.get(pair[0], -math.inf) >= IDLE_S / 2]
            self._asked.update((executor, now) for executor, _ in missing)
            return missing


def _executors(sc: SparkContext) -> list[tuple[str, str]]:
    """The executors that Spark has now, each by its id and host; without the driver."""
    summaries = items(sc._jsc.sc().statusStore().executorList(True))
    hosts = [(str(summary.id()), str(summary.hostPort()).rpartition(":")[0]) for summary in summaries]
    return [(executor, host) for executor, host in hosts if executor != "driver"]


def _submit(sc: SparkContext, executors: list[tuple[str, str]]) -> None:
    """Run ``ExecutorWatch.java`` in one task for each executor, on that one where it has a slot in time."""
    jvm: Any = sc._jvm
    to_seq = static_method(jvm, "org.apache.spark.api.python.PythonUtils", "toSeq")
    partitions = jvm.java.util.ArrayList()
    for executor, host in executors:
        # The form in which Spark writes a preference for one executor (`ExecutorCacheTaskLocation`).
        preferred = static_method(jvm, "java.util.List", "of")(f"executor_{host}_{executor}")
        partitions.add(jvm.scala.Tuple2(executor, to_seq(preferred)))
    anything = scala_object(jvm, "scala.reflect.ClassTag").apply(jvm.java.lang.Class.forName("java.lang.Object"))
    rdd = sc._jsc.sc().makeRDD(to_seq(partitions), anything)
    started = rdd.mapPartitionsWithEvaluator(_evaluator(sc), anything)
    started.toJavaRDD().countAsync()


def _evaluator(sc: SparkContext) -> JavaObject:
    """What has a task compile a source and ask it for rows; its constructor took the source alone until 4.3."""
    jvm: Any = sc._jvm
    no_comments = static_method(jvm, "org.apache.spark.api.python.PythonUtils", "toScalaMap")(jvm.java.util.HashMap())
    code = jvm.org.apache.spark.sql.catalyst.expressions.codegen.CodeAndComment(_source(), no_comments)
    metric = static_method(jvm, "org.apache.spark.sql.execution.metric.SQLMetrics", "createMetric")(
        sc._jsc.sc(), "duration"
    )
    references = static_method(jvm, "java.util.List", "of")(TAGS, str(IDLE_S * 1000)).toArray()
    factory = jvm.java.lang.Class.forName("org.apache.spark.sql.execution.WholeStageCodegenEvaluatorFactory")
    constructor = factory.getConstructors()[0]
    if constructor.getParameterTypes()[0].getSimpleName() == "Either":
        code = jvm.scala.util.Right(code)
    return constructor.newInstance(static_method(jvm, "java.util.List", "of")(code, metric, references).toArray())


def _source() -> str:
    java = files("flinkmagic.deployment") / "java"
    names = ("PythonWorkers", "ExecutorWatch")
    workers, watch = ((java / f"{name}.java").read_text(encoding="utf-8") for name in names)
    return workers.replace("public class PythonWorkers", "static final class PythonWorkers") + watch
