"""Planning's few Java classes, compiled inside the session's driver.

They lie in ``java/`` as source and are compiled by Janino, the compiler that Spark ships for the code that it
generates for queries: no jar to build, nothing to put on the class path. One call of theirs does what takes hundreds
of calls over the gateway. Seen on Spark 3.5 and 4.3 (Janino 3.1.9).
"""

from __future__ import annotations

import threading
import uuid
from importlib.resources import files
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

from py4j.protocol import Py4JError

from flinkmagic.errors import DriverClassesRefusedError

if TYPE_CHECKING:
    from py4j.java_gateway import JavaObject
    from pyspark import SparkContext

_SOURCES = (
    "LeafPartitions",
    "PlanReader",
    "AdaptiveJoins",
    "CoalescedReads",
    "PlanRebuilder",
    "LogicalCuts",
    "PlanKinds",
    "PlanKeys",
    "CommandRows",
)
"""In the order in which they use each other."""

_LOCK = threading.Lock()
# By gateway, which stands for the JVM: a SparkContext that is stopped and started again keeps its JVM.
_COMPILED: WeakKeyDictionary[Any, dict[str, JavaObject]] = WeakKeyDictionary()


def new_instance(sc: SparkContext, name: str) -> JavaObject:
    """An object of one of planning's Java classes, which are compiled once in a JVM.

    Raises
    ------
    DriverClassesRefusedError
        Where this JVM does not let us compile.
    """
    gateway = sc._gateway
    assert gateway is not None
    with _LOCK:
        if gateway not in _COMPILED:
            _COMPILED[gateway] = _compile(sc)
        return _COMPILED[gateway][name].newInstance()


def _compile(sc: SparkContext) -> dict[str, JavaObject]:
    jvm = sc._jvm
    assert jvm is not None
    # py4j remembers methods by a class's name: classes of this process's earlier loads must not bear the same.
    package = f"flinkmagic.planning.p{uuid.uuid4().hex}"
    loader = jvm.org.apache.spark.util.Utils.getContextOrSparkClassLoader()
    compiled = {}
    for name in _SOURCES:
        source = (files("flinkmagic.planning") / "java" / f"{name}.java").read_text(encoding="utf-8")
        source = source.replace("package flinkmagic.planning;", f"package {package};")
        try:
            compiler = jvm.org.codehaus.janino.SimpleCompiler()
            compiler.setParentClassLoader(loader)
            compiler.cook(source)
        except (Py4JError, TypeError) as refusal:  # TypeError: py4j found no such class, but a package
            raise DriverClassesRefusedError(name, str(refusal)) from refusal
        loader = compiler.getClassLoader()
        compiled[name] = loader.loadClass(f"{package}.{name}")
    return compiled
