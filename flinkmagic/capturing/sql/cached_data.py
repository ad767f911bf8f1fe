"""Lines that release cached rows: a pending write that would be computed from these has to be done before.

A DataFrame that was persisted is computed once, as its sources were then. A write of it that comes after
``unpersist()`` would compute it again.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pyspark.errors import PySparkException

from flinkmagic.capturing.driver.capture_reader import cached_relations, leaves_of, lineage_holds
from flinkmagic.capturing.writes.pending import Cause, Effects
from flinkmagic.jvm.java import query_execution, session_state

if TYPE_CHECKING:
    from flinkmagic.capturing.writes.captured_session import CapturedSession

_LETS_GO = Effects(unknown=True, cause=Cause.CACHE)
_NOTHING = Effects(cause=Cause.CACHE)


def cache_effects(captured: CapturedSession, jplan: Any = None) -> Effects:
    """What letting go of cached data does to the pending writes.

    Parameters
    ----------
    captured : CapturedSession
        Whose cached data it is.
    jplan : JavaObject, optional
        The analysed plan whose cached rows are released (``df.unpersist()``); all of the cache without it
        (``clearCache()``, ``CLEAR CACHE``).
    """
    if captured.spark._jsparkSession.sharedState().cacheManager().isEmpty():
        return _NOTHING
    let_go = None if jplan is None else _kept_below(captured, jplan)
    for write in captured.pending.writes:
        used = _kept_below(captured, write.df._jdf.queryExecution().analyzed())
        if used if let_go is None else used & let_go:
            return _LETS_GO
    return _NOTHING


def table_cache_effects(captured: CapturedSession, name: str) -> Effects:
    """The same of the rows of a table or a view (``uncacheTable``, ``UNCACHE TABLE``)."""
    if captured.spark._jsparkSession.sharedState().cacheManager().isEmpty():
        return _NOTHING
    try:
        plan = captured.spark.table(name)._jdf.queryExecution().analyzed()
    except PySparkException:  # there is none: nothing is released, and Spark may be about to say so
        return _NOTHING
    return cache_effects(captured, plan)


def view_cache_effects(captured: CapturedSession, name: str, everywhere: bool = False) -> Effects:
    """The same of a temporary view that is dropped or replaced; `everywhere` means a global one."""
    catalog = session_state(captured.spark).catalog()
    view = catalog.getGlobalTempView(name) if everywhere else catalog.getTempView(name)
    return cache_effects(captured, view.get()) if view.isDefined() else _NOTHING


def rdd_cache_effects(captured: CapturedSession, rdd: Any) -> Effects:
    """The same of an RDD that a pending write's DataFrame was made of."""
    if not rdd.is_cached:
        return _NOTHING
    number = rdd.id()
    for write in captured.pending.writes:
        for leaf in leaves_of(write.df._jdf.queryExecution().analyzed()):
            if leaf.kind in ("LogicalRDD", "ExternalRDD") and lineage_holds(leaf.jvm_leaf().rdd(), number):
                return _LETS_GO
    return _NOTHING


def _kept_below(captured: CapturedSession, jplan: Any) -> set[int]:
    """The cached data from which Spark would now compute an analysed plan."""
    served = query_execution(captured.spark._jvm, session_state(captured.spark), jplan).withCachedData()
    return cached_relations(served)
