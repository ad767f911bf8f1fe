"""Finds where Spark keeps blocks, and measures how much room there is and what rows take of it.

Seen with Spark 3.5 to 4.3: ``Utils.getConfiguredLocalDirs``, ``SparkContext.getExecutorMemoryStatus`` and
``getRDDStorageInfo``.
"""

from __future__ import annotations

import os
import shutil
from typing import TYPE_CHECKING

from flinkmagic.amounts import size
from flinkmagic.jvm.contexts import jvm_context, kept_for_context
from flinkmagic.jvm.java import of_environment, static_method, texts

if TYPE_CHECKING:
    from py4j.java_gateway import JavaObject
    from pyspark import SparkContext


LEAST_FREE_DISK = 2**30
"""The bytes that must be free on disk for rows to be kept."""

LEAST_FREE_MEMORY = 0.05
"""The share of Spark's memory for rows that must be free for rows to be kept."""


@kept_for_context
def driver_blocks(sc: SparkContext) -> JavaObject:
    """Return the driver's ``BlockManager``, which also finds the blocks of executors."""
    return of_environment(sc, "blockManager")


def lack_of_room(sc: SparkContext) -> str:
    """Return what is too little to keep rows, of disk or of memory; empty if there is enough."""
    disk = free_disk(sc)
    if disk is not None and disk < LEAST_FREE_DISK:
        return f"only {size(disk)} are free where Spark keeps its files"
    most, free = memory_for_rows(sc)
    if free < LEAST_FREE_MEMORY * most:
        return f"only {size(free)} of {size(most)} are free in Spark's memory for rows"
    return ""


def stored_bytes(sc: SparkContext, rdd: int) -> int:
    """Return how many bytes of a persisted RDD Spark has, in memory and on disk, by its number."""
    stored = (info for info in jvm_context(sc).getRDDStorageInfo() if info.id() == rdd)
    return sum(int(info.memSize()) + int(info.diskSize()) for info in stored)


def memory_for_rows(sc: SparkContext) -> tuple[int, int]:
    """Return how many bytes of memory Spark has for rows, over all executors, and how many of them are free."""
    executors = texts(jvm_context(sc).getExecutorMemoryStatus().values())
    pairs = [one.strip("()").split(",") for one in executors]
    return sum(int(most) for most, _ in pairs), sum(int(free) for _, free in pairs)


def free_disk(sc: SparkContext) -> int | None:
    """Return the bytes that are free where the driver keeps its blocks, on the fullest of the disks.

    None if none of the directories can be seen from here, as with a driver on another machine.
    """
    return min((shutil.disk_usage(path).free for path in _directories(sc) if os.path.isdir(path)), default=None)


@kept_for_context
def _directories(sc: SparkContext) -> tuple[str, ...]:
    """Return where blocks are kept; these folders stay the same as long as a context lives."""
    return tuple(
        static_method(sc._jvm, "org.apache.spark.util.Utils", "getConfiguredLocalDirs")(jvm_context(sc).conf())
    )
