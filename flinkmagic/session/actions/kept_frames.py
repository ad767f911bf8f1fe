"""Decides which DataFrames' rows are kept because later actions may read them again. Writes count as actions here.

1. The first action that reads a DataFrame plans it as plain Spark does, with its own columns and filters pushed down.
2. The next one that computes part of it computes all of it, if that is worth its cost, and keeps its rows for all later
   ones (`planning.boundaries`, rule 5).
3. Of a DataFrame with expressions that may raise, only those columns are kept that the action computes for all rows
   anyway (`planning.boundaries`, rule 8); if these are few, only when they are asked for again (rule 5 there). Other
   columns that cannot raise are kept with them if all together may be staked.
4. A DataFrame of which so many rows were counted that keeping them would cost more than the session may stake now
   (`keeping_budget`) is not kept, until the session may stake more. They are counted by the stages that read them, or
   are as many as those of another one from which it is made row by row. One that may have many more rows than what it
   is made from (``crossJoin``, ``explode``) is not kept before an action has counted them.
5. What failed while it was being kept is not kept again.
6. What the user caches Spark keeps: our rows are released.
7. What has no key, because its rows could differ each time, is always planned as plain Spark does.
8. Rows that an earlier process has stored (`durable_rows`) count as kept from the first action on that reads them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary, WeakSet

from flinkmagic.capturing.merging import spanning
from flinkmagic.jvm.contexts import kept_for_context
from flinkmagic.jvm.java import java_list, logical_plan
from flinkmagic.planning.java_classes import CLASSES
from flinkmagic.planning.run_origin import ReadBefore
from flinkmagic.reuse.result_keys import NoKey, ResultKey
from flinkmagic.reuse.retained_results import retained_results
from flinkmagic.session.actions.keeping_budget import KeepingBudget

if TYPE_CHECKING:
    from pyspark import SparkContext
    from pyspark.sql import DataFrame, SparkSession

    from flinkmagic.capturing.program import Program
    from flinkmagic.planning.sinks import PlannedBoundary
    from flinkmagic.reuse.durable_rows import DurableRows
    from flinkmagic.session.actions.action_graph import LineGraph
    from flinkmagic.session.job import Job

KEPT_A_SECOND = 25 * 2**20
"""How many bytes of rows, by the default sizes of their types, one core keeps in a second.

Seen on 4.3.0 with two or three cores: in JVMs that had just started, and for seven columns, mostly texts, also later.
"""

_MOST = 50
"""At most so many DataFrames are looked for in a query, the last read first."""

_MOST_ASKED = 8
"""At most so many actions that asked for a few columns of a DataFrame are remembered."""


class KeptFrames:
    """The DataFrames that actions on one SparkContext have read, and of which of them rows are kept; see `of`."""

    def __init__(self, budget: KeepingBudget) -> None:
        self.budget = budget
        # The most rows that were counted, and the seconds of the last action.
        self._rows: WeakKeyDictionary[DataFrame, int] = WeakKeyDictionary()
        self._seconds: WeakKeyDictionary[DataFrame, float] = WeakKeyDictionary()
        self._multiplied: WeakSet[DataFrame] = WeakSet()
        # The bytes of a row, column by column.
        self._widths: WeakKeyDictionary[DataFrame, tuple[int, ...]] = WeakKeyDictionary()
        # The positions of the columns that are kept; None if none are.
        self._kept: WeakKeyDictionary[DataFrame, frozenset[int] | None] = WeakKeyDictionary()
        self._asked: WeakKeyDictionary[DataFrame, tuple[frozenset[int], ...]] = WeakKeyDictionary()
        self._never: WeakSet[DataFrame] = WeakSet()
        # Those of which stored rows were looked for.
        self._recalled: WeakSet[DataFrame] = WeakSet()
        # The keys under which rows were kept last.
        self._keys: WeakKeyDictionary[DataFrame, ResultKey] = WeakKeyDictionary()
        self._cores = 1  # of the session, as the last line found them

    @staticmethod
    @kept_for_context
    def of(sc: SparkContext) -> KeptFrames:
        """Return the DataFrames of a SparkContext."""
        return KeptFrames(KeepingBudget.of(sc))

    def recall(self, program: Program, df: DataFrame, durable: DurableRows | None) -> None:
        """Look for stored rows of a DataFrame, and of those that it is made from (rule 8)."""
        if durable is None or not durable.are_any:
            return
        for one in _read_by(program, df):
            if one in self._recalled or one in self._never or self._kept.get(one) is not None:
                continue
            self._recalled.add(one)
            columns = durable.columns_of(one)
            if columns is not None:
                self._put(one, columns)

    def within_reach(self, sc: SparkContext) -> Mapping[DataFrame, ReadBefore]:
        """Return the DataFrames that a query may use."""
        reach = list(self._kept.items())[-_MOST:]
        if reach:
            self._cores = max(1, sc.defaultParallelism)
        return {
            df: ReadBefore(columns, self._asked.get(df, ()), may_be_whole=self._cost(df) <= self._room(df))
            for df, columns in reach
            if columns is not None or self._may_stake(df)
        }

    def _may_stake(self, df: DataFrame) -> bool:
        """Return whether what actions asked of a DataFrame, or all of it, may be kept now (rule 4)."""
        if df in self._multiplied and df not in self._rows:
            return False
        asked = self._asked.get(df, ())
        cost = max(self._cost(df, columns) for columns in asked) if asked else self._cost(df)
        return cost <= self._room(df)

    def _room(self, df: DataFrame) -> float:
        return self.budget.room(self._seconds.get(df, 0.0))

    def _cost(self, df: DataFrame, columns: frozenset[int] | None = None) -> float:
        """Return the seconds that keeping columns of a DataFrame, or all, costs; 0.0 if its rows were not counted."""
        rows = self._rows.get(df, 0)
        if not rows:
            return 0.0
        if df not in self._widths:
            self._widths[df] = tuple(map(int, self._parts(df).widths(df._jdf.schema()).split()))
        widths = self._widths[df]
        width = sum(widths if columns is None else (widths[column] for column in columns))
        return rows * width / (KEPT_A_SECOND * self._cores)

    @staticmethod
    def _parts(df: DataFrame) -> Any:
        return CLASSES.shared_instance(df.sparkSession.sparkContext._gateway, "FrameParts")

    def note(
        self,
        graph: LineGraph,
        job: Job,
        df: DataFrame,
        seconds: float,
        count: int | None,
        durable: DurableRows | None,
    ) -> None:
        """Note what an action on a DataFrame, or a write of it, has read and kept.

        Parameters
        ----------
        count : int, optional
            How many rows the DataFrame has, if that was asked.
        """
        for one, columns in graph.asked.items():
            self._asked[one] = (*self._asked.get(one, ()), columns)[-_MOST_ASKED:]
        not_retained = job.not_retained()
        for boundary in graph.boundaries:
            if boundary.name not in not_retained:
                self._account(boundary, job)
                if durable is not None:
                    self._note_stored(boundary, durable)
                for one in boundary.dataframes:
                    self._put(one, boundary.columns)
        read = [one for one in _read_by(graph.program, df) if one not in self._never]
        for one in read:
            self._put(one, self._kept.get(one))
            if self._kept[one] is None:
                rows = count if one is df and count is not None else graph.rows_of(one)
                self._seconds[one] = seconds
                if rows is not None:
                    # Of two counts one was taken behind a filter of that action's.
                    self._rows[one] = max(rows, self._rows.get(one, 0))
        self._count_by_others([one for one in read if one not in self._rows], df.sparkSession.sparkContext._jvm)

    def _count_by_others(self, uncounted: Sequence[DataFrame], jvm: Any) -> None:
        """Note how many rows those of some DataFrames have that are made, row by row, from one that was counted."""
        counted = list(self._rows)[-_MOST:]
        if not counted or not uncounted:
            return
        plans = [java_list(jvm, map(logical_plan, some)) for some in (uncounted, counted)]
        for one, place in zip(uncounted, map(int, self._parts(counted[0]).sameRows(*plans).split()), strict=True):
            if place >= 0:
                self._rows[one] = self._rows[counted[place]]

    def _account(self, boundary: PlannedBoundary, job: Job) -> None:
        """Note what keeping a DataFrame has cost or saved; several objects may have its plan."""
        name = next((self._keys[df].digest for df in boundary.dataframes if df in self._keys), "")
        if all(self._kept.get(df) is None for df in boundary.dataframes):
            self.budget.stake(name, max(self._cost(df, boundary.columns) for df in boundary.dataframes))
        else:
            self.budget.pays(name, job.saved_seconds)

    def _note_stored(self, boundary: PlannedBoundary, durable: DurableRows) -> None:
        """Let later processes know of rows that were just kept, and are going to be stored."""
        kept = [df for df in boundary.dataframes if df in self._keys and self._kept.get(df) is None]
        for df in kept[:1]:
            result = retained_results(df.sparkSession.sparkContext).find("", self._keys[df].digest, of_session=True)
            if result is not None and result.durable_key:
                durable.note_later(df, boundary.columns, result)

    def leave_to_spark(self, spark: SparkSession) -> None:
        """Release the rows of DataFrames that the user has cached since (rule 6)."""
        kept = [df for df, columns in self._kept.items() if columns is not None]
        if not kept:
            return
        manager = spark._jsparkSession.sharedState().cacheManager()
        if manager.isEmpty():
            return
        cached = [df for df in kept if manager.lookupCachedData(df._jdf).isDefined()]
        gone = {self._keys.pop(df).digest for df in cached if df in self._keys}
        self._kept.update((df, None) for df in cached)
        retained_results(spark.sparkContext).drop(lambda result: result.key in gone)

    def _put(self, df: DataFrame, columns: frozenset[int] | None) -> None:
        self._kept.pop(df, None)  # what was read last stands last
        self._kept[df] = columns

    def give_up(self, graph: LineGraph) -> None:
        """Never keep again what a query would have kept (rule 5)."""
        for boundary in graph.boundaries:
            self._never_keep(boundary)

    def _never_keep(self, boundary: PlannedBoundary) -> None:
        for df in boundary.dataframes:
            self._never.add(df)
            self._kept.pop(df, None)

    def revise(self, graph: LineGraph, durable: DurableRows | None) -> bool:
        """Check what a query would keep; return whether it has to be compiled again without some of it.

        Kept rows that it does not use, and what it is the first to keep, are noted in the graph.
        """
        if not graph.boundaries:
            return False
        store, is_revised = retained_results(graph.spark.sparkContext), False
        keys, kept = graph.kept_keys()
        for boundary, key in kept:
            if isinstance(key, NoKey):
                is_revised = True
                self._never_keep(boundary)
                continue
            former = [self._keys[df] for df in boundary.dataframes if df in self._keys]
            self._keys.update((df, key) for df in boundary.dataframes)
            are_new = all(self._kept.get(df) is None for df in boundary.dataframes)
            was_counted = any(df in self._rows for df in boundary.dataframes)  # when all of its rows were computed
            if are_new and was_counted:
                graph.first_kept.add(boundary.name)
            if boundary.multiplies:
                self._multiplied.update(boundary.dataframes)
                is_revised |= not any(self._may_stake(df) or self._keeps(df) for df in boundary.dataframes)
            if any(self._keeps(df, boundary.columns) for df in boundary.dataframes):
                is_gone = store.find("", key.digest, of_session=True) is None
                if is_gone and durable is not None:
                    is_gone = not durable.has(key, boundary.dataframes, boundary.columns)
                is_revised |= is_gone
                if is_gone:
                    if former:  # else it is another process that had kept them
                        graph.unused[boundary.name] = store.why_gone(former[0], key, keys.changed_file)
                    self._kept.update((df, None) for df in boundary.dataframes)
        return is_revised

    def _keeps(self, df: DataFrame, columns: frozenset[int] = frozenset()) -> bool:
        kept = self._kept.get(df)
        return kept is not None and kept >= columns


def _read_by(program: Program, df: DataFrame) -> Iterable[DataFrame]:
    """Return a DataFrame and those that it is made from, as far as they are still referred to."""
    whole = spanning(program)
    number = whole.frame_of(df)
    living = whole.lineage.registry.living()
    ancestors = whole.lineage.ancestors([number]) if number is not None else set()
    return [df, *(living[each] for each in sorted(ancestors) if each in living)]
