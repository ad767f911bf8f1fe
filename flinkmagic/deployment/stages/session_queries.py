"""Announces writes and results as queries of the user's own session, so that its listeners see them as in a plain run.

A write's command is planned and run on a clone of the session; Spark notifies the listeners of the session to which the
`QueryExecution` belongs. So the execution is announced with one of the user's session that has the clone's plan, and
the clone's configuration is active inside. Seen on 3.5.9 (a constructor with 4 parameters) and 4.3.0 (8).
"""

from __future__ import annotations

import functools
import logging
from typing import TYPE_CHECKING, Any

from py4j.protocol import Py4JError

from flinkmagic.deployment.java_classes import CLASSES
from flinkmagic.errors.deployment import DriverClassesRefusedError
from flinkmagic.jvm.java import java_words, option, static_method

if TYPE_CHECKING:
    from py4j.java_gateway import JavaObject
    from pyspark import SparkContext

_LOG = logging.getLogger(__name__)
_QUERY_EXECUTION = "org.apache.spark.sql.execution.QueryExecution"


def session_query(
    sc: SparkContext,
    planned: JavaObject,
    jsession: JavaObject,
    command: JavaObject,
    plan: JavaObject,
    metrics: JavaObject | None = None,
) -> Any:
    """Return a `QueryExecution` of a session for a command, or a query, whose physical plan was made elsewhere.

    Parameters
    ----------
    planned : py4j.java_gateway.JavaObject
        The `QueryExecution` with which the command was planned; it is returned if no other can be made.
    command : py4j.java_gateway.JavaObject
        The command as it was analysed on the user's line, or the query.
    metrics : py4j.java_gateway.JavaObject, optional
        If something is observed: a Scala function that returns the metrics by name.
    """
    try:
        made = query_over_plan(sc, jsession, command, plan)
    except (DriverClassesRefusedError, Py4JError) as error:
        # Rows and configuration are the same without it (`StageRunner.run_query`), so the write continues, and the log
        # says what is missing.
        _LOG.warning(
            "Listeners that were registered after the graph was compiled are not notified of its writes: this Spark "
            "makes its queries differently (%s).",
            java_words(str(error)).splitlines()[0],
        )
        return planned
    if metrics is not None:
        made.observe(metrics)
    return made


def query_over_plan(sc: SparkContext, jsession: JavaObject, query: JavaObject, plan: JavaObject) -> Any:
    """Return a `QueryExecution` of a session for an analysed query that is run by this physical plan.

    Raises
    ------
    DriverClassesRefusedError, Py4JError
        If this Spark makes its queries differently.
    """
    filled = {"/* arguments */": _arguments(sc._jvm)}
    return CLASSES.new_instance(sc._gateway, "SessionQuery", jsession, query, plan, filled=filled)


def run_as_query(sc: SparkContext, query_execution: JavaObject, name: str | None, body: JavaObject) -> Any:
    """Run a Scala function as a query that listeners know by this name of Spark's; return what it returns."""
    run = static_method(sc._jvm, "org.apache.spark.sql.execution.SQLExecution", "withNewExecutionId")
    return run(query_execution, option(sc._jvm, name), body)


@functools.lru_cache(maxsize=8)
def _arguments(jvm: Any) -> str:
    """Return the arguments of this Spark's `QueryExecution`, as Java text.

    They are the session, the command, and the mode in which nothing runs by itself; the rest as Spark itself has it.
    """
    query_execution = static_method(jvm, "java.lang.Class", "forName")(_QUERY_EXECUTION)
    types = query_execution.getConstructors()[0].getParameterTypes()
    given = {
        0: f"({types[0].getTypeName()}) session",
        1: f"({types[1].getTypeName()}) command",
        3: "org.apache.spark.sql.execution.CommandExecutionMode.SKIP()",
    }
    defaults = (f"QueryExecution$.MODULE$.$lessinit$greater$default${place + 1}()" for place in range(len(types)))
    return ", ".join(given.get(place, default) for place, default in enumerate(defaults))
