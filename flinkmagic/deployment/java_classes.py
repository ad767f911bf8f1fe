"""Small Java classes of our own, compiled inside the session's driver.

A SparkListener that Python implements (over py4j callbacks) lags by seconds and throws at exit, and some of Spark's
functions take a Scala function, which py4j cannot make. So the few lines of Java that are needed lie in ``java/`` as
source and are compiled by Janino, the compiler that Spark ships for its generated code: no jar to build, nothing to
put on the class path. The driver alone needs them, but for what `python_workers` sends to executors. Seen on Spark
3.5.9 (Janino 3.1.9) and 4.3.0.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Mapping
from importlib.resources import files
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

from py4j.protocol import Py4JError

from flinkmagic.capturing.java import java_words, static_method

if TYPE_CHECKING:
    from py4j.java_gateway import JavaObject
    from pyspark import SparkContext

_LOG = logging.getLogger(__name__)
_LOCK = threading.Lock()
# By gateway, which stands for the JVM: a SparkContext that is stopped and started again keeps its JVM.
_COMPILED: WeakKeyDictionary[Any, dict[str, JavaObject | None]] = WeakKeyDictionary()


def constructor_of(sc: SparkContext, name: str, filled: Mapping[str, str] | None = None) -> JavaObject | None:
    """The one constructor of the class `name` of ``java/``, compiled once a JVM; None where it does not let us.

    `filled` gives text for places in its source that only the running version of Spark can tell.

    The reason of a refusal is logged once. Callers have a second way and must take it.
    """
    gateway = sc._gateway
    assert gateway is not None
    with _LOCK:
        compiled = _COMPILED.setdefault(gateway, {})
        if name not in compiled:
            try:
                compiled[name] = _compile(sc, name, filled or {})
            except (Py4JError, TypeError) as refusal:  # TypeError: py4j found no such class, but a package
                _LOG.warning(
                    "This JVM does not compile %s.java (%s); Spark's status store is polled instead, "
                    "and writes are not shown in the SQL tab.",
                    name,
                    java_words(str(refusal)).splitlines()[0] if str(refusal) else type(refusal).__name__,
                )
                compiled[name] = None
        return compiled[name]


def new_instance(sc: SparkContext, constructor: JavaObject, *arguments: Any) -> JavaObject:
    """An object of one of our classes.

    py4j's ``jvm.Name(...)`` does not see the class, as its loader is Janino's.
    """
    return constructor.newInstance(static_method(sc._jvm, "java.util.List", "of")(*arguments).toArray())


def _compile(sc: SparkContext, name: str, filled: Mapping[str, str]) -> JavaObject:
    source = (files("flinkmagic.deployment") / "java" / f"{name}.java").read_text(encoding="utf-8")
    for place, text in filled.items():
        source = source.replace(place, text)
    jvm = sc._jvm
    assert jvm is not None
    compiler = jvm.org.codehaus.janino.SimpleCompiler()
    compiler.setParentClassLoader(jvm.org.apache.spark.util.Utils.getContextOrSparkClassLoader())
    compiler.cook(source)
    return compiler.getClassLoader().loadClass(name).getConstructors()[0]
