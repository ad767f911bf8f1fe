"""Finds what Spark raised inside an error about a failed job."""

from __future__ import annotations

import re
from collections.abc import Iterator

from py4j.protocol import Py4JError, Py4JJavaError
from pyspark.errors import PySparkException

from flinkmagic.errors.deployment import VertexFailedError

_CANCELLED = re.compile(r"(?:^|SparkException: )(?:\[SPARK_JOB_CANCELLED\] )?Job \d+ cancelled\b")
"""How the error begins with which such a job ends: on 4.x it has a class."""


def sparks_own(error: BaseException) -> BaseException:
    """Return what Spark raised inside an error about a failed job; the error itself if Spark raised nothing.

    py4j's error is one that PySpark has no class for: it has asked the JVM about each of its classes already, which
    takes longer than many a line.
    """
    return next((cause for cause in _causes(error) if isinstance(cause, (PySparkException, Py4JJavaError))), error)


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
