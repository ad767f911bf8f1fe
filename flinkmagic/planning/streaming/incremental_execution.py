"""Makes the physical plan of a streaming query that has not started, as Spark's `explain` does.

Spark's internals, as seen on 3.5.9 and 4.3.0: ``IncrementalExecution`` lies in ``execution.streaming``, from 4.1 on in
``execution.streaming.runtime``; its constructor has 10 parameters on 3.5 and 16 on 4.3. The first ten are the same; the
eleventh says whether it is the first batch, and the rest has defaults, which Scala keeps in static methods.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from py4j.java_gateway import JavaClass
from py4j.protocol import Py4JError

from flinkmagic.capturing.writes.writer_calls import writer_field
from flinkmagic.errors.streaming import NO_INCREMENTAL_EXECUTION, StreamingVersionError
from flinkmagic.jvm.java import execution_of, java_class, java_words, option, scala_object, static_method

if TYPE_CHECKING:
    from py4j.java_gateway import JavaObject

    from flinkmagic.capturing.streams.deferred_stream import DeferredStream

_PACKAGES = (
    ("execution.streaming.runtime", "execution.streaming.checkpointing"),
    ("execution.streaming", "execution.streaming"),
)
"""Those of ``IncrementalExecution`` and ``WatermarkPropagator``, and of ``OffsetSeqMetadata``; newest first."""

_OWN = 10


def unstarted_plan(stream: DeferredStream, session: JavaObject) -> JavaObject:
    """Return the physical plan that a query would have, planned with the settings of a Java session.

    Raises
    ------
    StreamingVersionError
        If this version of Spark makes it in another way.
    """
    jvm: Any = stream.df.sparkSession._jvm
    version = stream.df.sparkSession.version
    try:
        found = _classes(jvm)
        if found is None:
            raise StreamingVersionError(version, NO_INCREMENTAL_EXECUTION)
        execution, metadata, propagator = found
        run_id = static_method(jvm, "java.util.UUID", "randomUUID")()
        given = [
            session,
            execution_of(stream.df).analyzed(),
            writer_field(stream.writer, "outputMode"),
            "<unknown>",
            run_id,
            run_id,
            0,
            option(jvm, None),
            metadata(0, 0, scala_object(jvm, "scala.collection.immutable.Map").empty()),
            propagator.noop(),
        ]
        constructor = max(
            java_class(jvm, "java.lang.Class").forName(execution._fqn, True, _loader(jvm)).getConstructors(),
            key=lambda one: one.getParameterCount(),
        )
        count = constructor.getParameterCount()
        if count > _OWN:
            given.append(False)
        defaults = (getattr(execution, f"$lessinit$greater$default${place}")() for place in range(_OWN + 2, count + 1))
        return execution(*given, *defaults).executedPlan()
    except (Py4JError, TypeError, AttributeError) as error:
        raise StreamingVersionError(version, java_words(str(error)).splitlines()[0]) from error


def _classes(jvm: Any) -> tuple[Any, Any, Any] | None:
    for package, metadata in _PACKAGES:
        found = java_class(jvm, f"org.apache.spark.sql.{package}.IncrementalExecution")
        if isinstance(found, JavaClass):
            propagator = java_class(jvm, f"org.apache.spark.sql.{package}.WatermarkPropagator")
            return found, java_class(jvm, f"org.apache.spark.sql.{metadata}.OffsetSeqMetadata"), propagator
    return None


def _loader(jvm: Any) -> Any:
    return java_class(jvm, "org.apache.spark.util.Utils").getContextOrSparkClassLoader()
