"""Ends the Python workers of cancelled tasks immediately.

A task that waits for a Python worker (a sleeping or long-computing UDF) does not notice its interruption; Spark lets
such a worker live for 2 to 4 seconds (``BasePythonRunner.MonitorThread``). Spark's own way of ending it is called
immediately here (``java/PythonWorkers.java``), in the JVM that runs the task:

- In local mode that is the driver's.
- On a cluster a thread on each executor does it (``java/PythonWorkerWatch.java``). Its source travels in a Spark job
  with a task for each executor, as does the source that Spark generates for a query, and is compiled there: no jar is
  added to the session. The job goes to Spark before a stage with Python workers does, for the executors that exist
  then; nothing waits for it, and only the time of a cancellation depends on it.

Executors that come later or have no free slot at that time, and a JVM whose Spark has no such method, keep Spark's own
time. So does a task of several Python functions in a row on a Spark that does not know whether a worker was returned by
its task (3.5). A worker that is starting up cannot be ended at all. Seen on 3.5.9 and 4.3.0.
"""

from __future__ import annotations

import logging
import math
import threading
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from py4j.protocol import Py4JError

from flinkmagic.deployment.java_classes import CLASSES
from flinkmagic.jvm.contexts import jvm_context, kept_for_context
from flinkmagic.jvm.driver_classes import java_source
from flinkmagic.jvm.java import java_array, scala_object, scala_seq, static_method, texts

if TYPE_CHECKING:
    from py4j.java_gateway import JavaObject
    from pyspark import SparkContext

_LOG = logging.getLogger(__name__)

_ROUNDS_S = (0.05, 0.05, 0.1, 0.1, 0.2, *([0.3] * 100))
"""Waits between looks: the interruption takes a moment to reach a task, and a starting worker cannot be ended yet."""
IDLE_S = 1800
"""How long the thread on an executor stays if no task has a Python worker."""
TAGS = "flinkmagic-"
"""How the tags of all deployments begin."""
WATCH_TAG = "flinkmagic-watch"
"""The tag of the job that starts the threads, which belongs to no vertex."""


def end_python_workers(sc: SparkContext, tag: str, is_over: Callable[[], bool]) -> None:
    """End the workers of cancelled tasks under a tag, on its own thread; `is_over` says when no task is left.

    Nothing is left to do on a cluster, see `PythonWorkerWatch`, or if the session is gone.
    """
    try:
        if not jvm_context(sc).isLocal():
            return
        workers: Any = CLASSES.new_instance(sc._gateway, "PythonWorkers", tag, False)
    except (Py4JError, OSError, AttributeError) as gone:
        _LOG.debug("there are no Python workers under %s, the session is gone: %s", tag, gone)
        return

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


class PythonWorkerWatch:
    """Makes the executors of a cluster end the Python workers of interrupted tasks; from any thread.

    One for each SparkContext, see `of`.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._asked: dict[str, float] = {}
        self._last: JavaObject | None = None
        self._missed: set[str] = set()
        self._is_refused = False

    @staticmethod
    @kept_for_context
    def of(sc: SparkContext) -> PythonWorkerWatch:
        """Return the instance of a session's SparkContext."""
        return PythonWorkerWatch()

    def start(self, sc: SparkContext, enter: Callable[[str, str], None]) -> None:
        """Submit the job for those executors that were not asked lately; do nothing in local mode.

        `enter` sets the calling thread's properties for a tag and a description. Returns without waiting for the job,
        and raises nothing.
        """
        try:
            with self._lock:
                if not self._is_refused and not jvm_context(sc).isLocal():
                    self._settle(sc)
                    self._ask(sc, enter)
        except Exception as refused:  # noqa: BLE001 - no stage may fail for it, and PySpark has errors beside py4j's
            tell = _LOG.debug if sc._jsc is None else _LOG.warning  # a stopped session has no workers
            tell("Python workers of cancelled tasks will live for some seconds: Spark itself ends them: %s", refused)

    def _settle(self, sc: SparkContext) -> None:
        """Ask again those executors that the last job did not reach: they had no free slot in time."""
        if self._last is None or not self._last.isDone():
            return
        last, self._last = self._last, None
        try:
            last.get()
        except Exception:
            self._is_refused = True
            raise
        for job in last.jobIds():
            info = sc.statusTracker().getJobInfo(job)
            for stage in info.stageIds if info is not None else ():
                self._missed -= set(texts(jvm_context(sc).statusStore().executorSummary(stage, 0).keySet()))
        for executor in self._missed:
            self._asked.pop(executor, None)

    def _ask(self, sc: SparkContext, enter: Callable[[str, str], None]) -> None:
        now = time.monotonic()
        executors = texts(jvm_context(sc).getExecutorIds())
        missing = [one for one in executors if now - self._asked.get(one, -math.inf) >= IDLE_S / 2]
        if missing and self._last is None:
            self._asked |= dict.fromkeys(missing, now)
            self._missed = set(missing)
            enter(WATCH_TAG, "flinkmagic: end the Python workers of cancelled tasks immediately")
            self._last = _submit(sc, missing)


def _submit(sc: SparkContext, executors: list[str]) -> JavaObject:
    """Run ``PythonWorkerWatch.java`` in one task for each executor, on that executor if it has a slot in time."""
    jvm: Any = sc._jvm
    partitions = jvm.java.util.ArrayList()
    for executor in executors:
        host = str(jvm_context(sc).statusStore().executorSummary(executor).hostPort()).rpartition(":")[0]
        # The form in which Spark writes a preference for one executor (`ExecutorCacheTaskLocation`).
        partitions.add(jvm.scala.Tuple2(executor, scala_seq(jvm, [f"executor_{host}_{executor}"])))
    anything = scala_object(jvm, "scala.reflect.ClassTag").apply(jvm.java.lang.Class.forName("java.lang.Object"))
    rdd = jvm_context(sc).makeRDD(scala_seq(jvm, partitions), anything)
    started = rdd.mapPartitionsWithEvaluator(_evaluator(sc), anything)
    return started.toJavaRDD().countAsync()


def _evaluator(sc: SparkContext) -> JavaObject:
    """Return what makes a task compile a source and ask it for rows; on 3.5.9 its constructor takes only the source."""
    jvm: Any = sc._jvm
    no_comments = static_method(jvm, "org.apache.spark.api.python.PythonUtils", "toScalaMap")(jvm.java.util.HashMap())
    code = jvm.org.apache.spark.sql.catalyst.expressions.codegen.CodeAndComment(_source(), no_comments)
    metric = static_method(jvm, "org.apache.spark.sql.execution.metric.SQLMetrics", "createMetric")(
        jvm_context(sc), "duration"
    )
    references = java_array(jvm, TAGS, str(IDLE_S * 1000))
    factory = jvm.java.lang.Class.forName("org.apache.spark.sql.execution.WholeStageCodegenEvaluatorFactory")
    constructor = factory.getConstructors()[0]
    if constructor.getParameterTypes()[0].getSimpleName() == "Either":
        code = jvm.scala.util.Right(code)
    return constructor.newInstance(java_array(jvm, code, metric, references))


def _source() -> str:
    """Return the body of one class, with another class inside it: neither has a package of its own."""
    package = "flinkmagic.deployment"
    workers, watch = (java_source(package, name) for name in ("PythonWorkers", "PythonWorkerWatch"))
    workers = workers.replace(f"package {package};", "")
    return workers.replace("public class PythonWorkers", "static final class PythonWorkers") + watch
