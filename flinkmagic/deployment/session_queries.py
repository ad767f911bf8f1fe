"""Writes as queries of the user's own session, so that its listeners hear of them as of a plain run's.

A write's command is planned and run on a clone of the session; Spark tells the listeners of the session to which the
`QueryExecution` belongs. So the execution is announced with one of the user's session that has the clone's plan, and
the clone's configuration holds inside. Seen on 3.5.9 (a constructor with 4 parameters) and 4.3.0 (8).
"""

from __future__ import annotations

import functools
import logging
from typing import TYPE_CHECKING, Any

from py4j.protocol import Py4JError

from flinkmagic.capturing.java import java_class, scala_object, simple_name, skip_commands
from flinkmagic.deployment.java_classes import constructor_of, new_instance

if TYPE_CHECKING:
    from py4j.java_gateway import JavaObject
    from pyspark import SparkContext

_LOG = logging.getLogger(__name__)
_QUERY_EXECUTION = "org.apache.spark.sql.execution.QueryExecution"
_NAMES = {
    "AppendData": "append",
    "CreateTableAsSelect": "create",
    "OverwriteByExpression": "overwrite",
    "OverwritePartitionsDynamic": "overwritePartitions",
    "ReplaceTableAsSelect": "replace",
}
_PRIMITIVES = {"boolean": "((Boolean) arguments[%d]).booleanValue()"}


def query_name(command: JavaObject) -> str:
    """What Spark calls the run of a command to listeners (its `QueryExecution.commandExecutionName`)."""
    return _NAMES.get(simple_name(command), "command")


def session_query(
    sc: SparkContext, planned: JavaObject, jsession: JavaObject, command: JavaObject, plan: JavaObject
) -> Any:
    """A `QueryExecution` of a session for a command whose physical plan was made elsewhere.

    Parameters
    ----------
    sc : SparkContext
        The session's.
    planned : py4j.java_gateway.JavaObject
        The `QueryExecution` with which the command was planned; it is the answer where no other can be made.
    jsession : py4j.java_gateway.JavaObject
        The user's Java session.
    command : py4j.java_gateway.JavaObject
        The command as it was analysed on the user's line.
    plan : py4j.java_gateway.JavaObject
        What is run.
    """
    types = _constructor_types(sc._jvm)
    casts = ", ".join(_PRIMITIVES.get(name, f"({name}) arguments[%d]") % i for i, name in enumerate(types))
    constructor = constructor_of(sc, "SessionQuery", {"/* arguments */": casts})
    if constructor is None:
        return planned
    try:
        return new_instance(sc, constructor, _arguments(sc, jsession, command, len(types)), plan)
    except Py4JError as error:
        _LOG.warning(
            "Listeners that were registered after the graph was compiled do not hear of its writes: this Spark makes "
            "its queries in another way (%s).",
            str(error).splitlines()[0],
        )
        return planned


@functools.lru_cache(maxsize=8)
def _constructor_types(jvm: Any) -> tuple[str, ...]:
    """The types that the constructor of this Spark's `QueryExecution` takes, in Java's words."""
    query_execution = java_class(jvm, "java.lang.Class").forName(_QUERY_EXECUTION)
    parameters = query_execution.getConstructors()[0].getParameterTypes()
    return tuple(parameter.getTypeName().replace("$", ".") for parameter in parameters)


def _arguments(sc: SparkContext, jsession: JavaObject, command: JavaObject, number: int) -> JavaObject:
    """The session, the plan, and the mode in which nothing runs by itself; the rest as Spark itself has it."""
    jvm = sc._jvm
    companion = scala_object(jvm, _QUERY_EXECUTION)
    given = {0: jsession, 1: command, 3: skip_commands(jvm)}
    arguments = java_class(jvm, "java.util.ArrayList")()
    for position in range(number):
        default = f"$lessinit$greater$default${position + 1}"
        arguments.add(given[position] if position in given else getattr(companion, default)())
    return arguments.toArray()


def in_session(sc: SparkContext, jsession: JavaObject, body: JavaObject) -> JavaObject:
    """A body that runs under a session's configuration, whichever is announced."""
    constructor = constructor_of(sc, "InSession")
    return body if constructor is None else new_instance(sc, constructor, jsession, body)
