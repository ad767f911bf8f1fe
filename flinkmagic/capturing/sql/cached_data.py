"""Judges lines that release cached rows: a pending write that would be computed from these has to run before.

A persisted DataFrame is computed once, from its sources as they were then. A write of it that runs after
``unpersist()`` would compute it again.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pyspark.errors import PySparkException

from flinkmagic.capturing.driver.capture_reader import cached_relations, leaves_of, lineage_holds
from flinkmagic.capturing.writes.pending import Cause, Effects
from flinkmagic.jvm.java import execution_of, query_execution, session_state

if TYPE_CHECKING:
    from flinkmagic.capturing.writes.captured_session import CapturedSession

_LETS_GO = Effects(unknown=True, cause=Cause.CACHE)
_NOTHING = Effects(cause=Cause.CACHE)


def cache_effects(captured: CapturedSession, jplan: Any = None) -> Effects:
    """Return what releasing cached data does to the pending writes.

    Parameters
    ----------
    jplan : JavaObject, optional
        The analysed plan whose cached rows are released (``df.unpersist()``); None for all of the cache
        (``clearCache()``, ``CLEAR CACHE``).
    """
    if captured.spark._jsparkSession.sharedState().cacheManager().isEmpty():
        return _NOTHING
    let_go = None if jplan is None else _kept_below(captured, jplan)
    for write in captured.pending.writes:
        used = _kept_below(captured, execution_of(write.df).analyzed())
        if used if let_go is None else used & let_go:
            return _LETS_GO
    return _NOTHING


def table_cache_effects(captured: CapturedSession, name: str) -> Effects:
    """Return the same for the rows of a table or a view (``uncacheTable``, ``UNCACHE TABLE``)."""
    if captured.spark._jsparkSession.sharedState().cacheManager().isEmpty():
        return _NOTHING
    try:
        plan = execution_of(captured.spark.table(name)).analyzed()
    except PySparkException:  # there is none: nothing is released, and Spark may be about to say so
        return _NOTHING
    return cache_effects(captured, plan)


def view_cache_effects(captured: CapturedSession, name: str, everywhere: bool) -> Effects:
    """Return the same for a temporary view that is dropped or replaced; `everywhere` means a global one."""
    catalog = session_state(captured.spark).catalog()
    view = catalog.getGlobalTempView(name) if everywhere else catalog.getTempView(name)
    return cache_effects(captured, view.get()) if view.isDefined() else _NOTHING


def rdd_cache_effects(captured: CapturedSession, rdd: Any) -> Effects:
    """Return the same for an RDD from which a pending write's DataFrame was made."""
    if not rdd.is_cached:
        return _NOTHING
    number = rdd.id()
    for write in captured.pending.writes:
        for leaf in leaves_of(execution_of(write.df).analyzed()):
            if leaf.kind in ("LogicalRDD", "ExternalRDD") and lineage_holds(leaf.jvm_leaf().rdd(), number):
                return _LETS_GO
    return _NOTHING


def _kept_below(captured: CapturedSession, jplan: Any) -> set[int]:
    """Return the cached data from which Spark would now compute an analysed plan."""
    served = query_execution(captured.spark._jvm, session_state(captured.spark), jplan).withCachedData()
    return cached_relations(served)
