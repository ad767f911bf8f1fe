"""Reads what the operators of a stage have measured, once it has run (``java/StageMetrics.java``)."""

from __future__ import annotations

import json
import zlib
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from flinkmagic.jvm.contexts import jvm_context
from flinkmagic.jvm.java import is_gone
from flinkmagic.planning.java_classes import CLASSES

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Metrics = Mapping[str, Any]
"""Spark's SQL metrics above zero, by Spark's names. A scan of files also has their ``paths`` (the roots), which
``partitions`` of them it reads (a condition), the ``partitionColumns``, the ``format``, and whether it is
``splittable``. A scan of a cache has the number of its RDD (``cacheId``), of its partitions (``cachePartitions``), of
those that are there (``cachedPartitions``), and their bytes in memory (``cachedBytes``) and on disk
(``cachedOnDisk``)."""

NOTHING: Metrics = {}


@dataclass(frozen=True)
class StageMetrics:
    """The measures of one stage; none of a stage that has not run, or was over soon."""

    operators: Mapping[int, Metrics] = field(default_factory=dict)
    """By the number of an operator's node."""
    top: Metrics = field(default_factory=dict)
    """Of what is above all operators: the exchange that the stage writes, or the write's command."""
    words: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    """By a metric's name, what Spark's UI calls it, and of which kind it is: ``sum`` (a number), ``size`` (bytes),
    ``timing`` (ms), ``nsTiming`` (ns), ``average``."""

    @classmethod
    def of(cls, deflated: bytes) -> StageMetrics:
        """Read what the driver has told."""
        answer = json.loads(zlib.decompress(deflated))
        top = answer.pop("top", NOTHING)
        words = {name: (called, kind) for name, (called, kind) in answer.pop("words", {}).items()}
        return cls({int(number): metrics for number, metrics in answer.items()}, top, words)


def caches_in(metrics: Iterable[StageMetrics]) -> frozenset[int]:
    """Return the numbers of the caches that some stages have read."""
    return frozenset(one["cacheId"] for each in metrics for one in each.operators.values() if "cacheId" in one)


def reads_of_dropped_caches(spark: SparkSession, caches: Collection[int]) -> dict[int, int]:
    """Return how many stages have read each of some caches, as far as Spark remembers them; not of those still there.

    Parameters
    ----------
    caches : collection of int
        The numbers of their RDDs (``cacheId``). With the context that had them all are gone, and nothing is known.
    """
    if not caches or is_gone(spark):
        return {}
    metrics = CLASSES.shared_instance(spark.sparkContext._gateway, "StageMetrics")
    reads = str(metrics.readsOfDropped(jvm_context(spark.sparkContext), ",".join(map(str, caches)))).split(",")
    return {cache: int(number) for cache, number in zip(caches, reads, strict=True) if number != "-1"}
