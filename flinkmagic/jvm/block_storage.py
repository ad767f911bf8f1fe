"""How much room there is where Spark keeps blocks.

Seen with Spark 3.5 to 4.3: ``Utils.getConfiguredLocalDirs``.
"""

from __future__ import annotations

import os
import shutil
from typing import TYPE_CHECKING

from flinkmagic.jvm.java import static_method

if TYPE_CHECKING:
    from pyspark import SparkContext


def free_disk(sc: SparkContext) -> int | None:
    """Return the bytes that are free where the driver keeps its blocks, on the fullest of the disks.

    None if none of the directories can be seen from here, as with a driver on another machine.
    """
    directories = static_method(sc._jvm, "org.apache.spark.util.Utils", "getConfiguredLocalDirs")
    found = [path for path in directories(sc._jsc.sc().conf()) if os.path.isdir(path)]
    return min((shutil.disk_usage(path).free for path in found), default=None)
