"""Our own Java classes, compiled inside the session's driver.

Their sources are in ``java/`` of a package and are compiled by Janino, the compiler that Spark ships for the code that
it generates for queries: no jar to build, nothing to put on the class path. One call of such a class does the work of
tens or hundreds of gateway calls. They also do what py4j cannot: a SparkListener implemented in Python lags by seconds
and throws at exit, and some of Spark's functions take a Scala function. Seen on Spark 3.5.9 and 4.3.0 (Janino 3.1.9).
"""

from __future__ import annotations

import threading
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib.resources import files
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

from py4j.protocol import Py4JError, Py4JNetworkError

from flinkmagic.errors.deployment import DriverClassesRefusedError
from flinkmagic.jvm.java import java_array, java_class, java_words

if TYPE_CHECKING:
    from py4j.java_gateway import JavaGateway, JavaObject

_COMPILER = "org.codehaus.janino.SimpleCompiler"


@dataclass
class _Compiled:
    """What one JVM has compiled for a package.

    Attributes
    ----------
    package : str
        py4j remembers methods by a class's name: classes of earlier loads into the JVM must not have the same one.
    loader : JavaObject
        The loader of the class that was compiled last: it sees all earlier ones.
    constructors : dict
        By class, its only constructor. py4j's ``jvm.Name(...)`` does not see it, as its loader is Janino's.
    nothing : JavaObject
        An array of no arguments.
    shared : dict
        By class, the object that all callers share.
    """

    package: str
    loader: JavaObject
    nothing: JavaObject
    constructors: dict[str, JavaObject] = field(default_factory=dict)
    shared: dict[str, JavaObject] = field(default_factory=dict)


class DriverClasses:
    """The Java classes of one Python package, each compiled once per JVM, when it is first asked for.

    Parameters
    ----------
    package : str
        The Python package that holds ``java/``; the sources name it as theirs, too.
    classes : sequence of str
        The names of the classes. Each has one constructor.
    uses : mapping of str to sequence of str, optional
        Which other classes of the package a class names.
    filled : sequence of str
        The classes that are asked for with text for places in their source.
    """

    def __init__(
        self,
        package: str,
        classes: Sequence[str],
        uses: Mapping[str, Sequence[str]] | None = None,
        filled: Sequence[str] = (),
    ) -> None:
        self._package = package
        self._classes = frozenset(classes)
        self._uses = uses or {}
        self._filled = frozenset(filled)
        # Code that is notified of what a thread does (files that it opens, calls of the JVM) may ask for a class
        # meanwhile.
        self._lock = threading.RLock()
        # By gateway, of which a JVM has one: a SparkContext that is stopped and started again keeps its JVM.
        self._compiled: WeakKeyDictionary[Any, _Compiled] = WeakKeyDictionary()

    def new_instance(
        self, gateway: JavaGateway | None, name: str, *arguments: Any, filled: Mapping[str, str] | None = None
    ) -> JavaObject:
        """Make an object of one of the classes.

        Parameters
        ----------
        gateway : JavaGateway
            The gateway of the session's JVM.
        name : str
            The class.
        *arguments
            The arguments of its constructor.
        filled : mapping of str to str, optional
            Text for places in its source that only the running version of Spark can determine.

        Raises
        ------
        DriverClassesRefusedError
            If this JVM does not let us compile.
        """
        assert gateway is not None  # a classic session has one
        with self._lock:
            compiled = self._compile(gateway, name, filled or {})
        given = java_array(gateway.jvm, *arguments) if arguments else compiled.nothing
        return compiled.constructors[name].newInstance(given)

    def shared_instance(self, gateway: JavaGateway | None, name: str) -> JavaObject:
        """Return the one object of a class of which a JVM needs no more than one.

        Raises
        ------
        DriverClassesRefusedError
            If this JVM does not let us compile.
        """
        assert gateway is not None
        with self._lock:
            compiled = self._compile(gateway, name, {})
            if name not in compiled.shared:
                compiled.shared[name] = compiled.constructors[name].newInstance(compiled.nothing)
            return compiled.shared[name]

    def compile_all(self, gateway: JavaGateway | None) -> None:
        """Compile the classes, except those whose text only the running version of Spark can complete.

        Raises
        ------
        DriverClassesRefusedError
            If this JVM does not let us compile.
        """
        assert gateway is not None
        for name in sorted(self._classes):
            if name not in self._filled:
                with self._lock:  # not for all of them: others may wait for one
                    self._compile(gateway, name, {})

    def _compile(self, gateway: JavaGateway, name: str, filled: Mapping[str, str]) -> _Compiled:
        compiled = self._compiled.get(gateway)
        if compiled is None:
            utils = java_class(gateway.jvm, "org.apache.spark.util.Utils")
            package, loader = f"{self._package}.p{uuid.uuid4().hex}", utils.getContextOrSparkClassLoader()
            compiled = _Compiled(package, loader, java_array(gateway.jvm))
            self._compiled[gateway] = compiled
        if name in compiled.constructors:
            return compiled
        if name not in self._classes:
            raise LookupError(f"{name} is no Java class of {self._package}")
        for used in self._uses.get(name, ()):
            self._compile(gateway, used, {})
        source = self._source(name, compiled.package)
        for place, text in filled.items():
            source = source.replace(place, text)
        try:
            compiler = java_class(gateway.jvm, _COMPILER)()
            compiler.setParentClassLoader(compiled.loader)
            compiler.cook(source)
        except Py4JNetworkError:  # the JVM is gone, and has not refused anything
            raise
        except TypeError as refusal:  # py4j takes the name of a class that does not exist for that of a package
            raise DriverClassesRefusedError(name, f"there is no class {_COMPILER}") from refusal
        except Py4JError as refusal:
            raise DriverClassesRefusedError(name, java_words(str(refusal))) from refusal
        compiled.loader = compiler.getClassLoader()
        constructors = compiled.loader.loadClass(f"{compiled.package}.{name}").getConstructors()
        compiled.constructors[name] = constructors[0]
        return compiled

    def _source(self, name: str, package: str) -> str:
        return java_source(self._package, name).replace(f"package {self._package};", f"package {package};")


def java_source(package: str, name: str) -> str:
    """Return the text of a Java file in ``java/`` of a Python package."""
    return (files(package) / "java" / f"{name}.java").read_text(encoding="utf-8")
