"""Whether what is pending is going to be planned over data that Spark's cache holds."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from flinkmagic.capturing.capture_reader import leaves_of

if TYPE_CHECKING:
    from flinkmagic.capturing.program import DeferredWrite


def reads_cached(spark: Any, writes: Iterable[DeferredWrite]) -> bool:
    """Whether one of the writes reads cached rows, which would be computed again once they are let go of."""
    cache = spark._jsparkSession.sharedState().cacheManager()
    if cache.isEmpty():
        return False
    return any(
        leaf.kind == "InMemoryRelation"
        for write in writes
        for leaf in leaves_of(cache.useCachedData(write.df._jdf.queryExecution().analyzed()))
    )
