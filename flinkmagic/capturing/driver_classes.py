"""Java classes of our own, compiled inside the session's driver.

They lie in ``java/`` of a package as source and are compiled by Janino, the compiler that Spark ships for the code
that it generates for queries: no jar to build, nothing to put on the class path. One call of theirs does what takes
tens or hundreds of calls over the gateway. Seen on Spark 3.5 and 4.3 (Janino 3.1.9).
"""

from __future__ import annotations

import threading
import uuid
from importlib.resources import files
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

from py4j.protocol import Py4JError

from flinkmagic.capturing.java import java_words
from flinkmagic.errors.deployment import DriverClassesRefusedError

if TYPE_CHECKING:
    from py4j.java_gateway import JavaGateway, JavaObject


class DriverClasses:
    """The Java classes of one Python package, compiled once in a JVM, when the first is asked for.

    Parameters
    ----------
    package : str
        The Python package in which ``java/`` lies; the sources name it as theirs, too.
    sources : tuple of str
        The classes, in the order in which they use each other.
    """

    def __init__(self, package: str, sources: tuple[str, ...]) -> None:
        self._package = package
        self._sources = sources
        self._lock = threading.Lock()
        # By gateway, which stands for the JVM: a SparkContext that is stopped and started again keeps its JVM.
        self._compiled: WeakKeyDictionary[Any, dict[str, JavaObject]] = WeakKeyDictionary()

    def new_instance(self, gateway: JavaGateway, name: str) -> JavaObject:
        """An object of one of the classes.

        Raises
        ------
        DriverClassesRefusedError
            Where this JVM does not let us compile.
        """
        with self._lock:
            if gateway not in self._compiled:
                self._compiled[gateway] = self._compile(gateway)
            return self._compiled[gateway][name].newInstance()

    def _compile(self, gateway: JavaGateway) -> dict[str, JavaObject]:
        jvm: Any = gateway.jvm
        # py4j remembers methods by a class's name: classes of this process's earlier loads must not bear the same.
        package = f"{self._package}.p{uuid.uuid4().hex}"
        loader = jvm.org.apache.spark.util.Utils.getContextOrSparkClassLoader()
        compiled = {}
        for name in self._sources:
            source = (files(self._package) / "java" / f"{name}.java").read_text(encoding="utf-8")
            source = source.replace(f"package {self._package};", f"package {package};")
            try:
                compiler = jvm.org.codehaus.janino.SimpleCompiler()
                compiler.setParentClassLoader(loader)
                compiler.cook(source)
            except (Py4JError, TypeError) as refusal:  # TypeError: py4j found no such class, but a package
                raise DriverClassesRefusedError(name, java_words(str(refusal))) from refusal
            loader = compiler.getClassLoader()
            compiled[name] = loader.loadClass(f"{package}.{name}")
        return compiled
