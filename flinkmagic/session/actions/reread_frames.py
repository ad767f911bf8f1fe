"""The DataFrames that actions have read, and may read again.

1. The first action that reads a DataFrame plans it as plain Spark does, with its own columns and filters pushed down.
2. The next one that computes something of it computes it whole if it is worth that, and its rows are kept for all later
   ones (`planning.boundaries`, rule 5).
3. Of a DataFrame that evaluates what may raise only those columns are kept that the action computes for all rows
   anyway (`planning.boundaries`, rule 8).
4. What failed while it was being kept is not kept again.
5. What the user caches is Spark's to keep: ours is released.
6. What has no key, because its rows could be others each time, is planned as plain Spark does, always.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, ClassVar
from weakref import WeakKeyDictionary, WeakSet

from flinkmagic.capturing.merging import spanning
from flinkmagic.reuse.result_keys import NoKey
from flinkmagic.reuse.retained_results import retained_results

if TYPE_CHECKING:
    from pyspark import SparkContext
    from pyspark.sql import DataFrame, SparkSession

    from flinkmagic.capturing.program import Program
    from flinkmagic.session.actions.action_graph import ActionGraph
    from flinkmagic.session.job import Job

_MOST = 50
"""How many DataFrames are looked for in a query, the last read first."""


class RereadFrames:
    """The DataFrames that the actions on one SparkContext have read; see `of`."""

    _OF_CONTEXTS: ClassVar[WeakKeyDictionary[SparkContext, RereadFrames]] = WeakKeyDictionary()

    def __init__(self) -> None:
        # The positions of the columns that are kept; None if none are.
        self._kept: WeakKeyDictionary[DataFrame, frozenset[int] | None] = WeakKeyDictionary()
        self._never: WeakSet[DataFrame] = WeakSet()
        # The keys under which rows were kept last.
        self._digests: WeakKeyDictionary[DataFrame, str] = WeakKeyDictionary()

    @classmethod
    def of(cls, sc: SparkContext) -> RereadFrames:
        """Return those of a SparkContext."""
        return cls._OF_CONTEXTS.setdefault(sc, cls())

    def within_reach(self) -> Mapping[DataFrame, frozenset[int] | None]:
        """Return those that a query may use, each with the positions of the columns that were kept, if any were."""
        return dict(list(self._kept.items())[-_MOST:])

    def note(self, graph: ActionGraph, job: Job, df: DataFrame) -> None:
        """Note what an action that was called on a DataFrame has read and kept."""
        not_retained = job.not_retained()
        for boundary in graph.boundaries:
            if boundary.name not in not_retained:
                for one in boundary.dataframes:
                    self._put(one, boundary.columns)
        assert not isinstance(graph.program, dict)
        for one in _read_by(graph.program, df):
            if one not in self._never:
                self._put(one, self._kept.get(one))

    def leave_to_spark(self, spark: SparkSession) -> None:
        """Release the rows of what the user has cached since they were kept (rule 5)."""
        kept = [df for df, columns in self._kept.items() if columns is not None]
        if not kept:
            return
        manager = spark._jsparkSession.sharedState().cacheManager()
        if manager.isEmpty():
            return
        cached = [df for df in kept if manager.lookupCachedData(df._jdf).isDefined()]
        gone = {self._digests.pop(df, "") for df in cached}
        self._kept.update((df, None) for df in cached)
        retained_results(spark.sparkContext).drop(lambda result: result.key in gone)

    def _put(self, df: DataFrame, columns: frozenset[int] | None) -> None:
        self._kept.pop(df, None)  # what was read last stands last
        self._kept[df] = columns

    def give_up(self, graph: ActionGraph) -> None:
        """Never keep again what a query would have kept (rule 4)."""
        for boundary in graph.boundaries:
            for df in boundary.dataframes:
                self._never.add(df)
                self._kept.pop(df, None)

    def revise(self, graph: ActionGraph) -> bool:
        """Check what a query would keep; return whether it has to be compiled again without some of it."""
        store = retained_results(graph.spark.sparkContext)
        is_revised = False
        for boundary, key in graph.kept_keys():
            if isinstance(key, NoKey):
                is_revised = True
                for df in boundary.dataframes:
                    self._never.add(df)
                    self._kept.pop(df, None)
                continue
            self._digests.update((df, key.digest) for df in boundary.dataframes)
            if any(self._kept.get(df) is not None for df in boundary.dataframes):
                is_gone = store.find("", key.digest, of_session=True) is None
                is_revised |= is_gone
                if is_gone:
                    self._kept.update((df, None) for df in boundary.dataframes)
        return is_revised


def _read_by(program: Program, df: DataFrame) -> Iterable[DataFrame]:
    """Return the DataFrames that are still referred to among those that a DataFrame is made from, and itself."""
    whole = spanning(program)
    number = whole.frame_of(df)
    living = whole.registry.living()
    ancestors = whole.ancestors([number]) if number is not None else set()
    return [df, *(living[each] for each in sorted(ancestors) if each in living)]
