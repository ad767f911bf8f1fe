"""What Spark raised, of an error about a failed job."""

from __future__ import annotations

from collections.abc import Iterator

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.errors.exceptions.captured import UnknownException, convert_exception

from flinkmagic.errors.deployment import VertexFailedError


def sparks_own(error: BaseException) -> BaseException:
    """Return what Spark raised inside an error about a failed job; the error itself if Spark raised nothing."""
    for cause in _causes(error):
        if isinstance(cause, PySparkException):
            return cause
        if isinstance(cause, Py4JJavaError):
            converted = convert_exception(cause.java_exception)
            return cause if isinstance(converted, UnknownException) else converted
    return error


def failed_vertex(error: BaseException) -> str | None:
    """Return the name of the vertex that an error about a failed job names, if it names one."""
    return next((cause.vertex for cause in _causes(error) if isinstance(cause, VertexFailedError)), None)


def _causes(error: BaseException | None) -> Iterator[BaseException]:
    while error is not None:
        yield error
        error = error.__cause__
