"""Python workers of cancelled tasks, ended at once where that is in our hands.

A task that waits for a Python worker (a sleeping or long-computing UDF) does not notice its interruption; Spark lets
such a worker live for 2 to 4 seconds. In local mode, where tasks run in the driver's JVM, Spark's own way of ending it
is called right away (``java/PythonWorkers.java``). On a cluster, and where the JVM's Spark has no such way, Spark's own
time holds. Seen on 3.5.9 and 4.3.0.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING

from py4j.protocol import Py4JError

from flinkmagic.deployment.java_classes import constructor_of, new_instance

if TYPE_CHECKING:
    from pyspark import SparkContext

_LOG = logging.getLogger(__name__)

_ROUNDS_S = (0.05, 0.05, 0.1, 0.1, 0.2, *([0.3] * 100))
"""Waits between looks: the interruption takes a moment to reach a task, and a starting worker cannot be ended yet."""


def end_python_workers(sc: SparkContext, tag: str, is_over: Callable[[], bool]) -> None:
    """End the workers of cancelled tasks under a tag, on a thread of its own; `is_over` says when no task is left."""
    if not sc._jsc.sc().isLocal():
        return
    constructor = constructor_of(sc, "PythonWorkers")
    if constructor is None:
        return
    workers = new_instance(sc, constructor, tag)

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
