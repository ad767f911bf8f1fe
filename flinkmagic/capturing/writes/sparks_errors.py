"""Finds what Spark raised inside an error about a failed job, and holds back PySpark's log of what is not raised."""

from __future__ import annotations

import importlib.util
import logging
import re
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

from py4j.protocol import Py4JError, Py4JJavaError
from pyspark.errors import PySparkException

from flinkmagic.errors.deployment import VertexFailedError

SPARKS_ERRORS = (PySparkException, Py4JJavaError)
"""What plain PySpark raises; py4j's error where PySpark converts none."""

_CANCELLED = re.compile(r"(?:^|SparkException: )(?:\[SPARK_JOB_CANCELLED\] )?Job \d+ cancelled\b")
"""How the error begins with which such a job ends: on 4.x it has a class."""
_LOGGERS = ("DataFrameQueryContextLogger", "SQLQueryContextLogger")
"""PySpark's, to which an error that has a query context is logged when it is made of Java's, not when it is raised."""
_LOGS = importlib.util.find_spec("pyspark.logger") is not None
"""Whether PySpark does: 3.5 does not."""


class WithheldLog:
    """What PySpark has logged of this thread's errors since `withheld_log` began."""

    def __init__(self) -> None:
        self._thread = threading.get_ident()
        self._records: list[logging.LogRecord] = []

    def hold(self, record: logging.LogRecord) -> bool:
        """Hold a record back if it is of this thread; return whether it is to be logged, as a `logging.Filter` does."""
        is_ours = record.thread == self._thread
        if is_ours:
            self._records.append(record)
        return not is_ours

    def release(self) -> None:
        """Log what was held back, because the error is raised."""
        for record in self._records:
            logger = _query_context_logger(record.name)
            logger.propagate = False  # as PySpark does
            logger.handle(record)
        self._records.clear()


@contextmanager
def withheld_log() -> Iterator[WithheldLog]:
    """Hold back what PySpark logs of errors after which plain Spark is asked again, and logs its own."""
    log = WithheldLog()
    with ExitStack() as stack:
        for name in _LOGGERS if _LOGS else ():
            if name not in logging.root.manager.loggerDict:
                # It would go on to write to what is `sys.stderr` now, which may be that of one cell only.
                stack.callback(logging.root.manager.loggerDict.pop, name, None)
            logger = _query_context_logger(name)
            logger.addFilter(log.hold)
            stack.callback(logger.removeFilter, log.hold)
        yield log


def _query_context_logger(name: str) -> logging.Logger:
    from pyspark.logger import PySparkLogger

    return PySparkLogger.getLogger(name)


def sparks_own(error: BaseException) -> BaseException:
    """Return what Spark raised inside an error about a failed job; the error itself if Spark raised nothing.

    py4j's error is one that PySpark has no class for: it has asked the JVM about each of its classes already, which
    takes longer than many a line.
    """
    return next((cause for cause in _causes(error) if isinstance(cause, SPARKS_ERRORS)), error)


def say_where(error: BaseException, doing: str) -> None:
    """Let py4j's error say what plain Spark was doing when it occurred: the call that it names is one of ours."""
    if isinstance(error, Py4JJavaError):
        error.errmsg = f"An error occurred while {doing}.\n"
        error.args = (error.errmsg, error.java_exception)


def is_cancelled(error: BaseException) -> bool:
    """Return whether a job failed because someone cancelled a job of Spark's: its group, a tag, its session."""
    try:
        return _CANCELLED.search(str(sparks_own(error))) is not None
    except (Py4JError, OSError):  # a text of the JVM's, which is gone
        return False


def failed_vertex(error: BaseException) -> str | None:
    """Return the name of the vertex that an error about a failed job names, if it names one."""
    return next((cause.vertex for cause in _causes(error) if isinstance(cause, VertexFailedError)), None)


def _causes(error: BaseException | None) -> Iterator[BaseException]:
    while error is not None:
        yield error
        error = error.__cause__
