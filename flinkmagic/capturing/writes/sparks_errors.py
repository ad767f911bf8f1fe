"""Finds what Spark raised inside an error about a failed job, and holds back PySpark's log of what is not raised."""

from __future__ import annotations

import importlib.util
import logging
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import ClassVar

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


class _WithheldLog:
    """What PySpark has logged of a thread's errors since `withheld_log` began on it."""

    _open: ClassVar[list[_WithheldLog]] = []
    """Those of blocks that are not over, on any thread; the loggers hold records back as long as there is one."""
    _made: ClassVar[list[str]] = []
    """The loggers that were made for that. They would go on to write to what was `sys.stderr` then, which may be that
    of one cell only."""
    _lock: ClassVar[threading.Lock] = threading.Lock()

    def __init__(self) -> None:
        self._thread = threading.get_ident()
        self._records: list[logging.LogRecord] = []

    def begin(self) -> None:
        with self._lock:
            if not self._open:
                self._made.extend(name for name in _LOGGERS if name not in logging.root.manager.loggerDict)
                for name in _LOGGERS:
                    _query_context_logger(name).addFilter(self._pass_on)
            self._open.append(self)

    def end(self) -> None:
        with self._lock:
            self._open.remove(self)
            if not self._open:
                for name in _LOGGERS:
                    _query_context_logger(name).removeFilter(self._pass_on)
                for name in self._made:
                    logging.root.manager.loggerDict.pop(name, None)
                self._made.clear()

    @classmethod
    def _pass_on(cls, record: logging.LogRecord) -> bool:
        """Return whether a record is to be logged; else the innermost block of its thread has it."""
        with cls._lock:
            log = next((one for one in reversed(cls._open) if one._thread == record.thread), None)
        if log is not None:
            log._records.append(record)
        return log is None

    def release(self) -> None:
        """Log what was held back."""
        for record in self._records:
            logger = _query_context_logger(record.name)
            logger.propagate = False  # as PySpark does
            logger.handle(record)
        self._records.clear()


_LOG = "_flinkmagic_log"
"""The attribute of an error that has left a `withheld_log`: what was logged of it, which refers to the error itself."""


@contextmanager
def withheld_log() -> Iterator[None]:
    """Hold back what PySpark logs of errors after which something else may run, which logs its own.

    Where an error that has left the block is raised after all, call `release_log`.
    """
    if not _LOGS:
        yield
        return
    log = _WithheldLog()
    log.begin()
    try:
        yield
    except SPARKS_ERRORS as error:
        vars(error).setdefault(_LOG, log)
        raise
    finally:
        log.end()


def release_log(error: BaseException | None) -> None:
    """Log what was held back of an error that is raised now, and of what has caused it."""
    for cause in _causes(error):
        log = vars(cause).pop(_LOG, None)
        if log is not None:
            log.release()


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
