"""Makes keys of answers that hold in later processes: of `result_keys` those that are durable, and what they leave out.

A process never sees some things change that affect rows, and another process may find them changed:

1. The versions of Spark, Python, Java and of the libraries that make Python's objects of rows; flinkmagic's own files.
2. Places: the time zones of both sides, locale and charset of the JVM, the master and its default parallelism, by which
   rows lie in partitions.
3. Jars: those of Spark, and those that the session brings.
4. Installed packages, for what Python functions use. They count by the names and times of their metadata: a package
   that is installed again counts as another one. This says nothing of the machines of a cluster, nor of another Python,
   so queries with Python functions have a durable key only if the tasks run in this process's own Python, locally.

Files are durable if their store tells when they changed: local ones do (`FileListings.java`). So are only those formats
of Spark's that read nothing beside the listed files. What has an identity in one process only (RDDs, broadcast
variables, a cache of the user's that was filled before anybody looked) is not durable.
"""

from __future__ import annotations

import hashlib
import json
import os
import platform
import shutil
import sys
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING

from flinkmagic.jvm.contexts import kept_for_context

if TYPE_CHECKING:
    from pyspark import SparkContext

    from flinkmagic.reuse.result_keys import ResultKey

_LIBRARIES = ("numpy", "pandas", "pyarrow", "pyspark")
_PROPERTIES = (
    "file.encoding", "java.vendor", "java.version", "java.vm.version", "os.arch", "user.country", "user.language",
)  # fmt: skip
_SETTINGS = (
    "spark.driver.extraClassPath", "spark.driver.extraJavaOptions", "spark.executor.extraClassPath",
    "spark.executor.extraJavaOptions", "spark.jars", "spark.jars.packages", "spark.submit.pyFiles",
)  # fmt: skip
_METADATA = (".dist-info", ".egg-info", ".egg-link", ".pth")
_SOURCES = (".java", ".py")
_LOCAL_TIME = Path("/etc/localtime")


class DurableKeys:
    """The durable keys of one SparkContext."""

    def __init__(self, sc: SparkContext) -> None:
        self._sc = sc
        self._versions = _versions(sc)
        self._packages = installed_packages()

    def of(self, key: ResultKey) -> str | None:
        """Return the durable key of what a key stands for; None if there is none."""
        if not key.is_durable:
            return None
        packages = ""
        if key.runs_python:
            # Installed since the session began: workers may hold either version.
            if not self._runs_here() or installed_packages() != self._packages:
                return None
            packages = self._packages
        return self.of_text(key.digest, packages)

    def of_text(self, *texts: str) -> str:
        """Return a key that other processes share for which the same texts mean the same."""
        parts = [texts, self._versions, self._sc.defaultParallelism, _local_time()]
        return hashlib.sha256(json.dumps(parts).encode()).hexdigest()

    def _runs_here(self) -> bool:
        """Return whether Python functions surely run in this interpreter, whose packages are known."""
        found = shutil.which(self._sc.pythonExec)
        if found is None or not str(self._sc.master).startswith("local"):
            return False
        worker, own = Path(found), Path(sys.executable)
        return worker.parent == own.parent and worker.resolve() == own.resolve()


@kept_for_context
def durable_keys(sc: SparkContext) -> DurableKeys:
    """Return the durable keys of a SparkContext."""
    return DurableKeys(sc)


def _versions(sc: SparkContext) -> list[object]:
    """Return what stays the same as long as a SparkContext lives, and affects rows (1 to 3)."""
    assert sc._jvm is not None
    java = sc._jvm.java
    jars = sc.getConf().get("spark.jars", "") or ""
    home = os.environ.get("SPARK_HOME") or str(Path(sys.modules["pyspark"].__file__ or "").parent)
    return [
        [sc.version, sys.version, platform.machine()],
        [_stamp(path) for path in sorted(Path(__file__).parents[1].rglob("*.[pj]*")) if path.suffix in _SOURCES],
        [_version_of(name) for name in _LIBRARIES],
        [str(java.lang.System.getProperty(name)) for name in _PROPERTIES],
        [str(java.util.TimeZone.getDefault().getID()), str(java.util.Locale.getDefault())],
        [sc.master, *(sc.getConf().get(name, "") or "" for name in _SETTINGS)],
        [_stamp(Path(one.removeprefix("file:"))) for one in [f"{home}/jars", *jars.split(",")] if one],
    ]


def _version_of(name: str) -> str:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return ""


def _stamp(path: Path) -> list[object]:
    """Return what tells a file, or the names in a folder, from former ones; also that it is not there."""
    try:
        told = path.stat()
    except OSError:
        return [str(path)]
    return [str(path), told.st_size, told.st_mtime_ns]


def _local_time() -> list[object]:
    """Return the process's time zone, by name and by rules."""
    rules = hashlib.sha256(_LOCAL_TIME.read_bytes()).hexdigest() if _LOCAL_TIME.is_file() else ""
    return [os.environ.get("TZ", ""), rules]


def installed_packages() -> str:
    """Return a digest of what is installed where this process imports from; a few milliseconds."""
    found = sorted(f"{entry.path} {entry.stat().st_mtime_ns}" for folder in set(sys.path) for entry in _in(folder))
    return hashlib.sha256("\n".join(found).encode("utf-8", "surrogateescape")).hexdigest()


def _in(folder: str) -> Iterator[os.DirEntry[str]]:
    try:
        with os.scandir(folder or ".") as entries:
            yield from [entry for entry in entries if entry.name.endswith(_METADATA)]
    except OSError:  # an archive, or a folder that is not there: modules in it count by their sources
        return
