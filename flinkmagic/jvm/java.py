"""Small helpers for reading the driver's JVM.

Each call over the gateway costs both sides 50 µs or more: py4j looks up again any method that is not among the last
hundred of its thread, which takes milliseconds if a class has many.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterable
from typing import Any
from weakref import WeakKeyDictionary

from py4j.java_gateway import JavaClass
from py4j.protocol import Py4JError

from flinkmagic.jvm.contexts import jvm_context


@functools.lru_cache(maxsize=64)
def java_class(jvm: Any, name: str) -> Any:
    """Return a Java class by its full name. Finding it step by step would cost one call for each part of the name."""
    return getattr(jvm, name)


@functools.lru_cache(maxsize=64)
def scala_object(jvm: Any, name: str) -> Any:
    """Return a Scala object whose class has no static methods that forward to it."""
    return getattr(java_class(jvm, name + "$"), "MODULE$")


@functools.lru_cache(maxsize=128)
def static_method(jvm: Any, name: str, method: str) -> Any:
    """Return a static method; asking a Java class for it would cost a call each time."""
    return getattr(java_class(jvm, name), method)


def session_state(spark: Any) -> Any:
    """Return the Java ``SessionState`` of a PySpark session, which keeps it as long as it lives."""
    known = _SESSION_STATES.get(spark)
    if known is None:
        known = _SESSION_STATES[spark] = spark._jsparkSession.sessionState()
    return known


_SESSION_STATES: WeakKeyDictionary[Any, Any] = WeakKeyDictionary()


def is_connect(value: Any) -> bool:
    """Return whether a session or a DataFrame is Spark Connect's: from PySpark 4 on, only its module tells."""
    return type(value).__module__.startswith("pyspark.sql.connect")


def is_stopped(spark: Any) -> bool:
    """Return whether the context of a session has been stopped, by PySpark or in the JVM."""
    sc = spark.sparkContext
    try:
        context = jvm_context(sc)
    except AttributeError:  # PySpark has stopped it, and maybe only just now, from another thread
        return True
    return bool(context.isStopped())


def is_gone(spark: Any) -> bool:
    """Return whether the context of a session is stopped, or its JVM does not answer."""
    try:
        return is_stopped(spark)
    except (Py4JError, OSError):
        return True


def java_words(text: str) -> str:
    """Return the message of a JVM error, without the sentence about the call, or the stage, that met it."""
    return _PY4J_FRAME.sub("", text)


_PY4J_FRAME = re.compile(r"\AAn error occurred while (?:calling \S+|running a stage\.)\s*:\s*")


def of_environment(sc: Any, part: str) -> Any:
    """Return a part of the driver's ``SparkEnv``, such as its ``blockManager``.

    It is read as a field: py4j looks up all methods of an object's class to call one, and one method of `SparkEnv` on
    4.3.0 names a class that PySpark's distribution does not have (com.google.protobuf), so that calling any of them
    breaks the connection. Seen on 3.5.9 and 4.3.0.
    """
    environment = static_method(sc._jvm, "java.lang.Class", "forName")("org.apache.spark.SparkEnv")
    field = environment.getDeclaredField(part)
    field.setAccessible(True)
    return field.get(jvm_context(sc).env())


def option(jvm: Any, value: Any) -> Any:
    """Return a Scala ``Option``: None is empty."""
    return static_method(jvm, "scala.Option", "apply")(value)


@functools.lru_cache(maxsize=4)
def _skip_commands(jvm: Any) -> Any:
    """Return the mode in which a command is analysed and planned, but not run."""
    return java_class(jvm, "org.apache.spark.sql.execution.CommandExecutionMode").SKIP()


def query_execution(jvm: Any, state: Any, logical_plan: Any) -> Any:
    """Return Spark's ``QueryExecution`` of a logical plan in a session with this state; no command in it is run."""
    return state.executePlan(logical_plan, _skip_commands(jvm))


_LOGICAL_PLANS: WeakKeyDictionary[Any, Any] = WeakKeyDictionary()
_EXECUTIONS: WeakKeyDictionary[Any, Any] = WeakKeyDictionary()


def logical_plan(df: Any) -> Any:
    """Return the analysed plan of a classic DataFrame, which stays the same object as long as the DataFrame lives."""
    plan = _LOGICAL_PLANS.get(df)
    if plan is None:
        plan = _LOGICAL_PLANS[df] = df._jdf.logicalPlan()
    return plan


def execution_of(df: Any) -> Any:
    """Return the ``QueryExecution`` of a classic DataFrame, which stays the same object as long as that lives."""
    execution = _EXECUTIONS.get(df)
    if execution is None:
        execution = _EXECUTIONS[df] = df._jdf.queryExecution()
    return execution


@functools.lru_cache(maxsize=4)
def dataset_class(jvm: Any) -> Any:
    """Return the class of a classic session's Datasets."""
    classic = java_class(jvm, "org.apache.spark.sql.classic.Dataset")  # since 4.0
    return classic if isinstance(classic, JavaClass) else java_class(jvm, "org.apache.spark.sql.Dataset")


def dataset_of(jvm: Any, session: Any, plan: Any) -> Any:
    """Return a Dataset of a classic Java session over a logical plan."""
    return _of_rows(jvm)(session, plan)


@functools.lru_cache(maxsize=4)
def _of_rows(jvm: Any) -> Any:
    return dataset_class(jvm).ofRows


def java_array(jvm: Any, *values: Any) -> Any:
    """Return a Java array of objects; none of them is null."""
    return static_method(jvm, "java.util.List", "of")(*values).toArray()


def scala_seq(jvm: Any, values: Any) -> Any:
    """Return a Scala ``Seq`` of the elements of a list."""
    return static_method(jvm, "org.apache.spark.api.python.PythonUtils", "toSeq")(values)


def java_list(jvm: Any, values: Iterable[Any]) -> Any:
    """Return a Java list for reading alone; none of its elements is null."""
    left = list(values)
    of = static_method(jvm, "java.util.List", "of")  # of ten at most: one call, where each `add` would be one
    if len(left) <= 10:
        return of(*left)
    made = java_class(jvm, "java.util.ArrayList")()
    for start in range(0, len(left), 10):
        made.addAll(of(*left[start : start + 10]))
    return made


def elements(array: Any) -> list[Any]:
    """Return the elements of a Java array.

    The end of a Java iterator is an exception, which PySpark looks at with some seventy calls: do not iterate lists.
    """
    return [array[i] for i in range(len(array))]


def items(seq: Any) -> list[Any]:
    """Return the elements of a Scala ``Seq``."""
    return [seq.apply(i) for i in range(seq.size())]


def texts(seq: Any) -> list[str]:
    """Return the elements of a Scala collection as text, in one call."""
    return [text for text in seq.mkString("\x01").split("\x01") if text]


def text_map(scala_map: Any) -> dict[str, str]:
    """Return a Scala map of texts as a dict, in one call."""
    entries = (entry.partition(" -> ") for entry in texts(scala_map))
    return {key: value for key, _, value in entries}


def simple_name(jobject: Any) -> str:
    """Return the name of an object's class, without its package and without Scala's ``$``; in one call."""
    return str(_class_name(jobject._gateway_client)(jobject))


@functools.lru_cache(maxsize=4)
def _class_name(client: Any) -> Any:
    # On 3.5.9 and 4.3.0; JavaObject.getClass() would leave an object behind for each name.
    return JavaClass("org.apache.spark.util.Utils", client).getFormattedClassName
