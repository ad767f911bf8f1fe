"""Speeds up the compilation of the code that Spark generates for queries.

What Spark has compiled is kept, for other class loaders and for later kernels. A twentieth of the time of an ordinary
notebook goes into compiling that code (seen: 210 times in one of 20 s on two cores, of 74 different texts). Spark keeps
100 classes and, in local mode, compiles each text twice (``GeneratedCode.java``). The files lie beside those of our own
classes (`jvm.class_files`), under the same rules: they are of no use but to save time, and are read only if nobody else
can have written them.
"""

from __future__ import annotations

import hashlib
import logging
import shutil
import uuid
from pathlib import Path
from typing import TYPE_CHECKING, Any

from platformdirs import user_cache_path

from flinkmagic.jvm.class_files import is_users_alone
from flinkmagic.jvm.driver_classes import driver_versions
from flinkmagic.jvm.java import java_class
from flinkmagic.reuse.java_classes import CLASSES

if TYPE_CHECKING:
    from pyspark import SparkContext

_LOG = logging.getLogger(__name__)

_MOST_FILES = 64
_MOST_BYTES = 64 << 20
_MOST_FOLDERS = 4
"""Of other versions of Spark or Java, and of other jars; those that were used last stay."""

_OWN_LOADERS = ("spark.driver.userClassPathFirst", "spark.executor.userClassPathFirst")
"""Under these settings a name of Spark's may be a class of the user's."""


def keep_generated_code(sc: SparkContext) -> None:
    """Keep what a driver compiles, and find what was kept: once for a JVM, and for its life.

    Raises
    ------
    DriverClassesRefusedError
        If this JVM does not let us compile.
    """
    gateway = sc._gateway
    assert gateway is not None  # a classic session has one
    conf = sc.getConf()
    if conf.get("spark.sql.codegen.cache.maxEntries") == "0" or "true" in map(conf.get, _OWN_LOADERS):
        return
    class_path = java_class(gateway.jvm, "java.lang.System").getProperty("java.class.path")
    digest = hashlib.sha256("\0".join((*driver_versions(gateway.jvm), str(class_path))).encode()).hexdigest()
    folder = user_cache_path("flinkmagic") / "generated" / digest[:32]
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        folder.touch()
        for old in sorted(folder.parent.iterdir(), key=lambda path: path.stat().st_mtime)[:-_MOST_FOLDERS]:
            shutil.rmtree(old)
        read = _newest(folder) if is_users_alone(folder) else None
    except OSError as error:
        _LOG.debug("generated code is not kept: %s", error)
        return
    if read is not None:
        generated: Any = CLASSES.shared_instance(gateway, "GeneratedCode")
        generated.install("\n".join(map(str, read)), str(folder / f"{uuid.uuid4().hex}.code"))


def _newest(folder: Path) -> list[Path]:
    """Return the files that are read, those that were used last first; delete the others."""
    used = sorted(folder.glob("*.code"), key=lambda path: path.stat().st_mtime, reverse=True)
    read: list[Path] = []
    size = 0
    for path in filter(is_users_alone, used):
        size += path.stat().st_size
        if len(read) == _MOST_FILES or size > _MOST_BYTES:
            path.unlink(missing_ok=True)
        else:
            read.append(path)
    return read
