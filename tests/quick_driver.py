"""Takes two slow things out of a driver that runs thousands of small queries for tests; what they do stays the same.

Sessions of the tests' own processes and kernels, which are as a user's, do without.
"""

from __future__ import annotations

import os
from typing import Any

from flinkmagic.jvm.driver_classes import DriverClasses

_CLASSES = DriverClasses("tests")


def quicken(spark: Any) -> None:
    """Spare a session's driver the processes that Hadoop starts and the methods that py4j looks up again."""
    _CLASSES.new_instance(spark.sparkContext._gateway, "RememberedMethods")
    if os.name == "posix":
        _set_permissions_in_process(spark)


def _set_permissions_in_process(spark: Any) -> None:
    """Let the JVM set the permissions of local files itself, where Hadoop starts a `chmod` for each.

    Hadoop keeps one file system by scheme and user: all that the JVM opens from here on is the one that is put there,
    and no configuration says so.
    """
    jvm = spark._jvm
    files, local = jvm.org.apache.hadoop.fs.FileSystem, jvm.java.net.URI("file:///")
    ours = _CLASSES.shared_instance(spark.sparkContext._gateway, "InProcessLocalFileSystem").getClass()
    conf = jvm.org.apache.hadoop.conf.Configuration(spark._jsc.hadoopConfiguration())
    conf.setClassLoader(ours.getClassLoader())
    conf.set("fs.file.impl", ours.getName())
    files.get(local, conf).close()  # which takes Hadoop's own out
    assert files.get(local, conf).getClass() == ours
