"""How much room there is where Spark keeps blocks.

Seen with Spark 3.5 to 4.3: ``Utils.getConfiguredLocalDirs``.
"""

from __future__ import annotations

import os
import shutil
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

from flinkmagic.jvm.java import static_method

if TYPE_CHECKING:
    from pyspark import SparkContext


def free_disk(sc: SparkContext) -> int | None:
    """Return the bytes that are free where the driver keeps its blocks, on the fullest of the disks.

    None if none of the directories can be seen from here, as with a driver on another machine.
    """
    known = _DIRECTORIES.get(sc)
    if known is None:
        configured = static_method(sc._jvm, "org.apache.spark.util.Utils", "getConfiguredLocalDirs")
        known = _DIRECTORIES[sc] = tuple(configured(sc._jsc.sc().conf()))
    return min((shutil.disk_usage(path).free for path in known if os.path.isdir(path)), default=None)


_DIRECTORIES: WeakKeyDictionary[SparkContext, tuple[str, ...]] = WeakKeyDictionary()
"""They stay the same as long as a context lives."""
