"""What an RDD reads, as far as its lineage shows it.

A DataFrame that was made of an RDD (``df.rdd.map(f).toDF()``) has no source in its plan, but it reads files all the
same. Only files that are certain to be read are told: of a scan a sample of its files, of a Hadoop input its folders.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from flinkmagic.capturing.java import items, simple_name

_RDDS = 200
"""How much of a lineage is looked at; one that was never cut by a checkpoint may be endless."""
_FILES = 32
"""How many partitions of a scan are asked for their first file."""
_SEPARATOR = re.compile(r"(?<!\\),")
_HADOOP_INPUTS = ("mapreduce.input.fileinputformat.inputdir", "mapred.input.dir")


def rdd_paths(rdd: Any) -> Iterator[tuple[str, bool]]:
    """Paths that a Java RDD reads, and whether its files have been listed; a checkpointed RDD reads none."""
    seen: set[int] = set()
    open_ = [rdd]
    while open_ and len(seen) < _RDDS:
        current = open_.pop()
        number = current.id()
        if number in seen:
            continue
        seen.add(number)
        yield from _own_paths(current)
        open_ += [dependency.rdd() for dependency in items(current.dependencies())]


def _own_paths(rdd: Any) -> Iterator[tuple[str, bool]]:
    kind = simple_name(rdd)
    if kind == "FileScanRDD":
        partitions = rdd.filePartitions()
        count = partitions.size()
        for i in range(0, count, max(1, count // _FILES)):
            for file in partitions.apply(i).files()[:1]:
                yield file.filePath().toPath().toString(), True
    elif kind in ("HadoopRDD", "NewHadoopRDD", "WholeTextFileRDD", "BinaryFileRDD"):
        conf = rdd.getJobConf() if kind == "HadoopRDD" else rdd.getConf()
        folders = next(filter(None, map(conf.get, _HADOOP_INPUTS)), "")
        yield from ((folder.replace("\\,", ","), False) for folder in _SEPARATOR.split(folders) if folder)
