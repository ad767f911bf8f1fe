"""Compiles our own Java classes inside the session's driver.

Their sources are in ``java/`` of a package and are compiled by Janino, the compiler that Spark ships for the code that
it generates for queries. One call of such a class does the work of tens or hundreds of gateway calls. They also do what
py4j cannot: a SparkListener implemented in Python lags by seconds and throws at exit, and some of Spark's functions
take a Scala function. What was compiled once is kept for later kernels (`class_files`). Seen on Spark 3.5.9 and 4.3.0
(Janino 3.1.9).

They are compiled when needed, not shipped in a jar: the user's session already runs when we are loaded, and its class
path is closed; and they use Spark's internals, whose types differ from version to version (Scala 2.12 and 2.13 alone
make two jars of each). The same source compiles against what is there.

How to write them: no lambdas and no inferred types. Collections may be typed and walked by for-each, but to Janino a
method of theirs returns what it returns of all types: what `get` gives needs a cast, as does what comes from Scala.
`tests/java_lint.py` has javac look at them against the jars of one Spark, `tests/smoke/test_java_classes.py` compiles
each of them as it will be. What differs between versions of Spark is reached through ``Reflect``.
"""

from __future__ import annotations

import re
import threading
import uuid
from collections.abc import Mapping, Sequence
from functools import cached_property
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

from py4j.protocol import Py4JError, Py4JNetworkError

from flinkmagic.errors.base import InvariantViolatedError
from flinkmagic.errors.deployment import DriverClassesRefusedError
from flinkmagic.jvm.class_files import ClassFiles
from flinkmagic.jvm.java import elements, java_array, java_class, java_words, scala_object

if TYPE_CHECKING:
    from py4j.java_gateway import JavaGateway, JavaObject

_COMPILER = "org.codehaus.janino.SimpleCompiler"
_LOADER = "org.codehaus.commons.compiler.util.reflect.ByteArrayClassLoader"

_HOME = "flinkmagic.jvm"
SHARED = "Reflect"
"""The class of our own ``java/`` that all others may name; each package has a copy of it."""

_COMMENT = re.compile(r"/\*.*?\*/|//[^\n]*", re.DOTALL)

_IN_FILES = "p" + "0" * 32
"""In place of the last part of the package's name in kept class files: as long as what is put there."""


class _Compiled:
    """What one JVM has compiled for a package, or loaded.

    Parameters
    ----------
    package : str
        The package that the sources name as theirs. py4j remembers methods by a class's name: classes of earlier loads
        into the JVM must not have the same one, so each load has a package of its own.
    """

    def __init__(self, package: str, jvm: Any) -> None:
        self.jvm = jvm
        self._sources = package
        self._own = f"p{uuid.uuid4().hex}"
        # The loader of the class that was compiled last sees all earlier ones.
        self._loader: JavaObject = java_class(jvm, "org.apache.spark.util.Utils").getContextOrSparkClassLoader()
        self.constructors: dict[str, JavaObject] = {}
        """By class, its only constructor. py4j's ``jvm.Name(...)`` does not see it, as its loader is not the JVM's."""
        self.nothing: JavaObject = java_array(jvm)
        """An array of no arguments."""
        self.shared: dict[str, JavaObject] = {}
        """By class, the object that all callers share."""
        self.is_loaded = False
        """Whether an earlier kernel has compiled the classes."""
        self.classes: dict[str, bytes] = {}
        """The class files of what was compiled here."""

    def load(self, files: ClassFiles) -> bool:
        """Load the classes that an earlier kernel has kept; return whether there are any."""
        kept = files.read()
        if not kept:
            return False
        classes = java_class(self.jvm, "java.util.HashMap")()
        for name, content in kept.items():
            classes.put(name.replace(_IN_FILES, self._own), content.replace(_IN_FILES.encode(), self._own.encode()))
        try:
            self._loader = java_class(self.jvm, _LOADER)(classes, self._loader)
        except TypeError:  # no such class in this JVM: whether it compiles is told then
            return False
        return True

    def compile(self, name: str, source: str) -> dict[str, bytes]:
        """Compile a class, and return the class files to be kept.

        Raises
        ------
        DriverClassesRefusedError
            If this JVM does not let us compile.
        """
        try:
            compiler = java_class(self.jvm, _COMPILER)()
            compiler.setParentClassLoader(self._loader)
            compiler.cook(source.replace(f"package {self._sources};", f"package {self._sources}.{self._own};"))
        except Py4JNetworkError:  # the JVM is gone, and has not refused anything
            raise
        except TypeError as refusal:  # py4j takes the name of a class that does not exist for that of a package
            raise DriverClassesRefusedError(name, f"there is no class {_COMPILER}") from refusal
        except Py4JError as refusal:
            raise DriverClassesRefusedError(name, java_words(str(refusal))) from refusal
        self._loader = compiler.getClassLoader()
        found = {}
        for entry in elements(compiler.getBytecodes().entrySet().toArray()):
            content = entry.getValue().replace(self._own.encode(), _IN_FILES.encode())
            found[entry.getKey().replace(self._own, _IN_FILES)] = content
        return found

    def find(self, name: str) -> None:
        """Find the constructor of a class that was compiled or loaded."""
        [self.constructors[name]] = self._loader.loadClass(f"{self._sources}.{self._own}.{name}").getConstructors()


class DriverClasses:
    """The Java classes of one Python package, each compiled once per JVM, when it is first asked for.

    Parameters
    ----------
    package : str
        The Python package that holds ``java/``; the sources name it as theirs, too. Each class has one constructor. No
        two classes name each other.
    filled : sequence of str
        The classes that are asked for with text for places in their source.
    others : sequence of str
        Sources that are not to be compiled here.
    """

    def __init__(self, package: str, *, filled: Sequence[str] = (), others: Sequence[str] = ()) -> None:
        self._package = package
        self._filled = frozenset(filled)
        self._others = frozenset(others)
        # Code that is notified of what a thread does (files that it opens, calls of the JVM) may ask for a class
        # meanwhile.
        self._lock = threading.RLock()
        # By gateway, of which a JVM has one: a SparkContext that is stopped and started again keeps its JVM.
        self._compiled: WeakKeyDictionary[Any, _Compiled] = WeakKeyDictionary()

    @cached_property
    def _classes(self) -> frozenset[str]:
        sources = (Path(source.name) for source in (files(self._package) / "java").iterdir())
        return frozenset({SHARED, *(source.stem for source in sources if source.suffix == ".java")}) - self._others

    def new_instance(
        self, gateway: JavaGateway | None, name: str, *arguments: Any, filled: Mapping[str, str] | None = None
    ) -> JavaObject:
        """Make an object of one of the classes.

        Parameters
        ----------
        *arguments
            Of its constructor, three at most.
        filled : mapping of str to str, optional
            Text for places in its source that only the running version of Spark can determine.

        Raises
        ------
        DriverClassesRefusedError
            If this JVM does not let us compile; the other methods raise it too.
        """
        assert gateway is not None  # a classic session has one
        with self._lock:
            compiled = self._compile(gateway, name, filled or {})
        constructor = compiled.constructors[name]
        if not arguments:
            return constructor.newInstance(compiled.nothing)
        return self.shared_instance(gateway, SHARED).made(constructor, *arguments)

    def shared_instance(self, gateway: JavaGateway | None, name: str) -> JavaObject:
        """Return the one object of a class of which a JVM needs no more than one."""
        assert gateway is not None
        with self._lock:
            compiled = self._compile(gateway, name, {})
            if name not in compiled.shared:
                compiled.shared[name] = compiled.constructors[name].newInstance(compiled.nothing)
            return compiled.shared[name]

    def compile_all(self, gateway: JavaGateway | None) -> None:
        """Compile the classes, except those whose text only the running version of Spark can complete.

        They are kept for later kernels.
        """
        assert gateway is not None
        for name in sorted(self._classes - self._filled):
            with self._lock:  # not for all of them: others may wait for one
                compiled = self._compile(gateway, name, {})
                if compiled.is_loaded:
                    return
        self._files(compiled).write(compiled.classes)

    def _compile(self, gateway: JavaGateway, name: str, filled: Mapping[str, str]) -> _Compiled:
        compiled = self._compiled.get(gateway)
        if compiled is None:
            compiled = self._compiled[gateway] = _Compiled(self._package, gateway.jvm)
            compiled.is_loaded = compiled.load(self._files(compiled))
        if name in compiled.constructors:
            return compiled
        if name not in self._classes:
            raise InvariantViolatedError(f"{name} is a Java class of {self._package}")
        if not compiled.is_loaded or name in self._filled:
            source = java_source(self._package, name)
            for used in self._classes.intersection(re.findall(r"\w+", _COMMENT.sub("", source))) - {name}:
                self._compile(gateway, used, {})
            for place, text in filled.items():
                source = source.replace(place, text)
            if name not in self._filled:
                compiled.classes |= compiled.compile(name, source)
            else:
                files = ClassFiles(f"{self._package}.{name}", (*driver_versions(compiled.jvm), source))
                if not compiled.load(files):
                    files.write(compiled.compile(name, source))
        compiled.find(name)
        return compiled

    def _files(self, compiled: _Compiled) -> ClassFiles:
        sources = (java_source(self._package, name) for name in sorted(self._classes - self._filled))
        return ClassFiles(self._package, (*driver_versions(compiled.jvm), *sources))


def driver_versions(jvm: Any) -> tuple[str, ...]:
    """Return what code that is compiled in a driver depends on besides its source: the builds of Spark and Java."""
    spark = scala_object(jvm, "org.apache.spark.package")
    java = java_class(jvm, "java.lang.System").getProperty("java.version")
    return str(spark.SPARK_VERSION()), str(spark.SPARK_REVISION()), str(spark.SPARK_BUILD_DATE()), str(java)


def java_source(package: str, name: str) -> str:
    """Return the text of a Java file in ``java/`` of a Python package, or of the shared one, as one of that package."""
    home = _HOME if name == SHARED else package
    source = (files(home) / "java" / f"{name}.java").read_text(encoding="utf-8")
    return source.replace(f"package {home};", f"package {package};").replace(f"import {_HOME}.{SHARED};", "")
