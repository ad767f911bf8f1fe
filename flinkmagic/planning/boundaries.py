"""Chooses, before anything is planned, which of the user's DataFrames are computed once for several sinks.

Equal exchanges of several sinks are found after planning, but often a shared upstream has none: each sink pushes its
own filters and columns down into it. So a DataFrame that several sinks use is planned by itself if that pays, and its
consumers are planned on its rows, which are kept (a *boundary*):

1. What uses what is read off the analysed plans: Spark puts the plan of a DataFrame, the very object, into the plans
   of what is made of it (see ``LogicalCuts.java``). Recorded calls would not do: some make plans that do not hold their
   input's, and then there is nothing to replace.
2. Candidates are the *junctions*: DataFrames at which the ways to the sinks part. In ``a -> b -> (two sinks)`` that is
   ``b``; keeping ``a`` too would keep rows that one consumer reads once. What one sink uses twice is none: Spark reuses
   exchanges within a query.
3. Sources first, each junction is planned over the boundaries below it and is one where it is *worth keeping*: its
   plan holds a shuffle, Python functions, a join that compares all rows with all, or a source whose rows may be others
   when it is read again. A junction that only filters and projects columns of files, or of a boundary's rows, is none:
   every consumer's own column pruning and filter push-down is worth more. Neither is one that joins them with what is
   broadcast: the broadcast is an equal exchange of all consumers and is made once anyway, and looking rows up in it
   costs less than keeping all columns of them (seen: the quickstart's ``late`` kept 1.02 of plain Spark's time, read
   again by each consumer 0.73).
4. What the user has cached is left to Spark's cache, together with all that it is made from.
5. A query of one action has no junctions. What earlier actions have read, and this one reads, counts as one: the next
   actions may read it again. Of such DataFrames the uppermost is kept, and each that was kept before. One that was not
   worth keeping is not asked about again. If only some of its columns may be kept (rule 8), they are kept when they
   are asked for again: the next action may as well ask for others. To look at one of which nothing may be kept takes
   several plans. So `_MOST_LOOKS` actions that read it do so, and one where only what is made of it is refused.
6. What the program splits (`split`, `side_output`, ``randomSplit``) is one as soon as two of its selections are used,
   be it by one sink, whatever it holds: it may be nondeterministic, and each row belongs to what it was selected for.
7. Sinks share nothing if the session's configuration differs on their lines: it may affect results.
8. Keeping evaluates nothing that plain Spark would not have evaluated by then. A DataFrame whose plan is *total*
   (see ``TotalExpressions.java``) is kept whole: nobody can notice. Of any other one those columns are kept that its
   sinks read, and only if the optimised plan of the first of these sinks computes them for all rows by itself (see
   ``FrameParts.java``): else a filter, a guard, a join or a limit of that sink may be what keeps a division, a cast
   or a Python function from raising. If it raises, plain Spark writes this sink and the later ones no more than we
   do. Columns that only later sinks read may hold nothing partial besides; what else is total is kept with them.
   Rows that are kept already may be read by everyone. What is split (rule 6), and what ``share="always"`` asks for,
   is kept whole.
9. Where little disk, or little of Spark's memory for rows, is free, nothing more is kept but what is split: the query's
   own shuffles need the disk. While the user keeps rows in memory (``cache()``, ``persist()``), ours are kept on disk
   alone: in memory they could evict those.

What is kept may be nondeterministic (``rand``, ``uuid``, a nondeterministic UDF). Plain Spark then gives each sink
other rows; here all sinks of a run see the same ones, as after ``persist()``. Nothing is shared across runs.

The rows are kept by an ``InMemoryRelation`` that is put into the consumers' plans directly. Spark's own cache manager
never learns of it: it would serve the rows, unasked, to every session and every equal query, even after a file was
appended. ``Dataset.persist`` was rejected for that reason, even on a clone of the session. A ``LogicalRDD`` over the
rows hides their columns and statistics from the optimiser, and its RDD can be made only by starting jobs.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary, WeakSet

from pyspark import StorageLevel

from flinkmagic.jvm.block_storage import lack_of_room
from flinkmagic.jvm.contexts import jvm_context
from flinkmagic.jvm.java import java_list, logical_plan
from flinkmagic.options import DEFAULT_STORAGE_LEVEL
from flinkmagic.planning.java_classes import CLASSES
from flinkmagic.planning.partitions import HIDDEN_SHUFFLES
from flinkmagic.planning.plan_reader import PYTHON_OPERATORS, SHUFFLE_EXCHANGE, name_of_run

if TYPE_CHECKING:
    from py4j.java_gateway import JavaObject
    from pyspark import SparkContext
    from pyspark.sql import DataFrame

    from flinkmagic.capturing.program import Program
    from flinkmagic.options import JobOptions, Sharing
    from flinkmagic.planning.clones import SessionClone, SessionClones
    from flinkmagic.planning.requests import SinkRequest
    from flinkmagic.planning.run_origin import LineQuery, ReadBefore

_SHUFFLES = HIDDEN_SHUFFLES | {SHUFFLE_EXCHANGE}
_ALL_WITH_ALL = frozenset({"BroadcastNestedLoopJoinExec", "CartesianProductExec"})
_MULTIPLYING = _ALL_WITH_ALL | {"GenerateExec"}
_READ_ONCE = {
    "RowDataSourceScanExec": "its source may give other rows when it is read again",
    "PythonRDD": "its rows come from Python",
    "ShuffledRDD": "its rows come from a shuffle of RDDs",
    "ShuffledRowRDD": "its rows come from a shuffle",
    "JdbcRDD": "its source may give other rows when it is read again",
    "JDBCRDD": "its source may give other rows when it is read again",
}
"""Why the rows of a leaf, or of an RDD in its lineage, should be read once."""
_FILE_SCANS = "org.apache.spark.sql.execution.datasources.v2."
_ROW_BY_ROW = frozenset({"CoalesceExec", "FilterExec", "ProjectExec", "RangeExec", "UnionExec"})
_MAKES_ROWS_OTHERS = re.compile(r"Exec$(?<!ScanExec)(?<!ColumnarToRowExec)(?<!WholeStageCodegenExec)(?<!RelationExec)")
"""Operators, except scans and what only passes a scan's rows on."""


_NOT_WORTH: WeakSet[DataFrame] = WeakSet()
"""DataFrames that an action or a job has read, and that were not worth keeping."""

_MOST_LOOKS = 3
"""More than one: an action may have a guard of its own, and the next one may ask for other columns."""

_REFUSED: WeakKeyDictionary[DataFrame, int] = WeakKeyDictionary()
"""How many actions have looked at a DataFrame of which they could keep nothing by rule 8."""


@dataclass(frozen=True, eq=False)
class Boundary:
    """A DataFrame that is computed once for several sinks."""

    frame: int
    """The program's number of it."""
    dataframes: tuple[DataFrame, ...]
    """Those that have its plan."""
    name: str
    """The user's name for it, else the call that made it."""
    why: str
    """Why it is worth keeping."""
    scope: str
    """The session state under which it is planned."""
    dataset_id: str
    """Names its rows, in graphs and in Spark's storage; no other rows have this name."""
    query_execution: JavaObject = field(repr=False)
    known_by: JavaObject = field(repr=False)
    """The physical plan by which its rows are known, whether or not columns of its text sources are kept."""
    relation: JavaObject = field(repr=False)
    """The ``InMemoryRelation`` on which its consumers are planned."""
    columns: frozenset[int]
    """The positions of the columns that it holds; the others are null, and nobody reads them (rule 8)."""
    is_computed_anyway: bool
    """Whether plain Spark computes just these, too, for the first sink that reads it: what raises raises in both."""
    reads_columns: bool = False
    """Whether its plan may read kept columns of text sources, and is another one than that by which it is known."""
    multiplies: bool = False
    """Whether it may have many more rows than what it is made from."""

    @property
    def plan(self) -> JavaObject:
        """The physical plan that computes it."""
        return self.relation.cacheBuilder().cachedPlan()


@dataclass(eq=False)
class _Frame:
    """DataFrames of the program that share one analysed plan."""

    number: int
    plan: JavaObject
    dataframes: list[DataFrame]


@dataclass(frozen=True, eq=False)
class _WholeFrame:
    """A DataFrame that is worth keeping, as it is planned whole."""

    number: int
    """The number that the cuts give its plan."""
    frame: _Frame
    plan: JavaObject
    """Its analysed plan over the boundaries below it."""
    query_execution: JavaObject
    why: str
    multiplies: bool


@dataclass(eq=False)
class _Scope:
    """Sinks that are planned under one configuration (rule 7), and what their boundaries are chosen among."""

    name: str
    """The session state under which they are planned."""
    clone: SessionClone
    """The session on which they are planned."""
    cuts: JavaObject
    """The ``LogicalCuts`` of their plans."""
    sinks: list[SinkRequest]
    frames: Mapping[int, _Frame]
    """The user's DataFrames, by the numbers that the cuts give their plans, as all that follows."""
    split: frozenset[int]
    """What is split (rule 6)."""
    used: list[tuple[int, ...]]
    """For each sink the DataFrames that it uses directly."""
    order: list[int]
    """The DataFrames that the sinks use, directly or through others, sources first."""
    below: dict[int, Sequence[int]]
    """For each of these those that it uses directly."""
    level: JavaObject
    """Where rows are kept."""
    cut: set[int] = field(default_factory=set)
    """The boundaries so far."""
    over_cut: dict[tuple[SinkRequest, frozenset[int]], JavaObject] = field(default_factory=dict)
    """What sinks are planned as, by the boundaries below them: one candidate after the other asks for the same."""

    @property
    def for_one(self) -> bool:
        """Whether there is one sink only, as in an action's query (rule 5)."""
        return len(self.sinks) == 1

    def readers(self, number: int) -> list[SinkRequest]:
        """Return the sinks that use a DataFrame, directly or through others."""
        return [self.sinks[at] for at, first in enumerate(self.used) if _reaches(first, number, self.below)]

    def is_over_boundary(self, number: int) -> bool:
        """Return whether a DataFrame is made from a boundary."""
        return any(_reaches(self.below[number], one, self.below) for one in self.cut)


class Boundaries:
    """Chooses the boundaries of a job.

    Parameters
    ----------
    program : Program
        Of its DataFrames the boundaries are chosen; one of DataFrames that were not captured knows none.
    """

    def __init__(
        self,
        sc: SparkContext,
        clones: SessionClones,
        program: Program,
        options: JobOptions,
        query: LineQuery,
    ) -> None:
        self._sc = sc
        self._storage_level = options.storage_level
        self._clones = clones
        self._program = program
        self._query = query
        self._share = options.share
        self._shared_splits: set[int] = set()
        self._lack = ""  # of room for rows
        self.asked: dict[DataFrame, frozenset[int]] = {}
        """DataFrames of which only these columns, by their positions, could have been kept, and are not (rule 5)."""
        self._totality: Any = CLASSES.shared_instance(sc._gateway, "TotalPlans")
        self._parts: Any = CLASSES.shared_instance(sc._gateway, "FrameParts")
        self._kinds: Any = CLASSES.shared_instance(sc._gateway, "PlanKinds")

    def choose(self, requests: Sequence[SinkRequest]) -> tuple[list[Boundary], list[JavaObject]]:
        """Return the boundaries, those first that others read, and the requests' logical plans over their rows."""
        plans = [request.logical_plan for request in requests]
        chosen: list[Boundary] = []
        if self._share == "never" or not (self._program.lineage.frames or self._query.reread):
            return chosen, plans
        scopes: dict[str, list[int]] = {}
        for index, request in enumerate(requests):
            scopes.setdefault(self._clones.of(request.snapshot).name, []).append(index)
        for scope, sinks in scopes.items():
            split = self._split([requests[sink] for sink in sinks])
            if len(sinks) > 1 or self._query.reread or split:
                these = self._scope(scope, [requests[sink] for sink in sinks], split)
                chosen += self._chosen(these)
                self._shared_splits |= split
                for sink in sinks:
                    plans[sink] = these.cuts.rewrite(plans[sink], _may_read(requests[sink]))
        return chosen, plans

    def _cuts(self, clone: SessionClone) -> JavaObject:
        cuts = CLASSES.new_instance(self._sc._gateway, "LogicalCuts")
        cuts.open(clone.session, clone.session.sharedState().cacheManager())
        return cuts

    def _split(self, sinks: Sequence[SinkRequest]) -> frozenset[int]:
        """Return the frames of which several selections are used (rule 6)."""
        lineage = self._program.lineage
        if not lineage.selections or self._query.reread:
            return frozenset()
        own = {sink.frame for sink in sinks if sink.frame is not None}
        used = own | lineage.ancestors(own)
        parents = [one.parent for frame, one in lineage.selections.items() if frame in used]
        return frozenset(parent for parent in parents if parents.count(parent) > 1)

    def split_again(self, requests: Sequence[SinkRequest]) -> Iterator[str]:
        """Return, for what is split and shared by nothing, what the user should know."""
        for frame in sorted(self._split(requests) - self._shared_splits):
            name = self._name(frame, [self._program.lineage.frames[frame]])
            yield (
                f"{name} is split, and is computed for each selection, because nothing is shared (--share never, or "
                "another configuration on another line): if its rows are others each time, a row may be in several "
                "selections or in none."
            )

    def room_note(self) -> Iterator[str]:
        """Return that nothing is shared, if there is little room for rows."""
        if self._lack:
            yield (
                f"{self._lack[0].upper()}{self._lack[1:]}: no rows are kept for several readers (free some, or set "
                "spark.local.dir to a larger disk, or spark.driver.memory to more)."
            )

    def reading_columns(self, clone: SessionClone, *, keeps: bool = True) -> AbstractContextManager[None]:
        """Let what is planned on a clone read, and keep, columns of text sources, if the program has any."""
        sources = self._query.sources
        if sources is None:
            return nullcontext()
        planned: AbstractContextManager[None] = sources.planned(
            clone.state, lambda: self._level(self._cuts(clone)), keeps=keeps
        )
        return planned

    def _level(self, cuts: JavaObject) -> JavaObject:
        is_open = self._storage_level == DEFAULT_STORAGE_LEVEL
        on_disk = is_open and cuts.userKeepsRows(jvm_context(self._sc))
        return self._sc._getJavaStorageLevel(getattr(StorageLevel, "DISK_ONLY" if on_disk else self._storage_level))

    def _scope(self, name: str, sinks: list[SinkRequest], split: frozenset[int]) -> _Scope:
        """Gather what the boundaries of some sinks are chosen among; `split` are the program's numbers of frames."""
        clone = self._clones.of(sinks[0].snapshot)
        cuts = self._cuts(clone)
        frames = self._frames(cuts)
        selected = self._selected(cuts, split)
        level = self._level(cuts)
        used = [_numbers(cuts.directlyInside(sink.logical_plan, _may_read(sink))) for sink in sinks]
        order, below = _sources_first(used, lambda number: _numbers(cuts.directlyInside(frames[number].plan, False)))
        return _Scope(name, clone, cuts, sinks, frames, selected, used, order, below, level)

    def _chosen(self, scope: _Scope) -> Iterator[Boundary]:
        waiting, most_looks = self._candidates(scope), _MOST_LOOKS
        seen = set(waiting)
        while waiting:
            refused = []
            for number in [number for number in scope.order if number in waiting]:
                if self._was_looked_at(scope, number, most_looks):
                    refused.append(number)
                    continue
                whole = self._whole_frame(scope, number)
                if whole is None:
                    continue
                made = self._boundary(scope, whole)
                if made is None:
                    refused.append(number)
                    continue
                scope.cuts.cut(number, made.relation)
                scope.cut.add(number)
                yield made
            # What a refused one is made of may be kept in its place.
            waiting, most_looks = {one for number in refused for one in scope.below[number]} - seen, 1
            seen |= waiting

    def _was_looked_at(self, scope: _Scope, number: int, times: int) -> bool:
        """Return whether so many actions have looked at a DataFrame in vain (rule 5)."""
        frame = scope.frames[number]
        if not scope.for_one or number in scope.split or self._is_kept(frame):
            return False
        return any(_REFUSED.get(df, 0) >= times for df in frame.dataframes)

    def _is_kept(self, frame: _Frame) -> bool:
        return any(one.kept is not None for one in self._read_before(frame))

    def _candidates(self, scope: _Scope) -> set[int]:
        found = set(scope.split)
        lack = lack_of_room(self._sc)
        if scope.for_one and self._query.reread:
            found.update(self._read_again(scope, only_kept=bool(lack)))
        elif lack:
            self._lack = lack
        elif not scope.for_one:
            found.update(junctions(scope.used, scope.below.__getitem__))
        return found

    def _whole_frame(self, scope: _Scope, number: int) -> _WholeFrame | None:
        """Plan a DataFrame over the boundaries below it; return None if it is not worth keeping (rule 3)."""
        frame = scope.frames[number]
        may_recall = not scope.split and not scope.is_over_boundary(number)
        if may_recall and scope.for_one and self._share == "auto" and any(df in _NOT_WORTH for df in frame.dataframes):
            # To plan it again would tell what has changed since, such as a setting by which a join is no broadcast any
            # more, but takes longer than most of what is saved (rule 5).
            return None
        if self._is_left_out(scope, frame):
            return None
        plan = scope.cuts.rewrite(frame.plan, False)
        query_execution = self._clones.plan(plan, scope.clone)
        operators = self._operators(query_execution)
        why = worth_keeping(operators, self._share) or ("it is split" if number in scope.split else "")
        if why:
            multiplies = any(one.rpartition(".")[2] in _MULTIPLYING for one in operators)
            return _WholeFrame(number, frame, plan, query_execution, why, multiplies)
        if may_recall:
            _NOT_WORTH.update(frame.dataframes)
        return None

    def _operators(self, query_execution: JavaObject) -> list[str]:
        return str(self._kinds.of(query_execution.executedPlan())).splitlines()

    def _boundary(self, scope: _Scope, whole: _WholeFrame) -> Boundary | None:
        """Return the boundary that a candidate is; None if it is refused."""
        frame = whole.frame
        if not self._is_needed(scope, whole):
            return None
        name = self._name(frame.number, frame.dataframes)
        dataset_id = name_of_run(name)
        plan, query_execution, why = whole.plan, whole.query_execution, whole.why
        columns, is_firsts = _positions(frame), False
        is_whole = whole.number in scope.split or self._share == "always"
        if not is_whole and not self._totality.isTotal(query_execution.optimizedPlan()):
            relation = scope.cuts.relation(query_execution, frame.plan, dataset_id, scope.level)
            used_by = self._read_columns(scope, whole.number, relation)
            columns = self._computed_anyway(scope, whole, used_by)
            if not columns:
                if scope.for_one:
                    _REFUSED.update((df, _REFUSED.get(df, 0) + 1) for df in frame.dataframes)
                return None
            is_firsts = set(columns) == set(used_by[0][1])
            plan = self._parts.filled(plan, columns)
            query_execution = self._clones.plan(plan, scope.clone)
            why = worth_keeping(self._operators(query_execution), self._share)
            if not why:
                return None
        known_by = query_execution.executedPlan()
        reads_columns = self._query.sources is not None
        if reads_columns:
            # Its rows are kept: to keep what they are computed of costs as much again, and is read by few.
            with self.reading_columns(scope.clone, keeps=False):
                query_execution = self._clones.plan(plan, scope.clone)
                query_execution.executedPlan()
        return Boundary(
            frame=frame.number,
            dataframes=tuple(frame.dataframes),
            name=name,
            why=why,
            scope=scope.name,
            dataset_id=dataset_id,
            query_execution=query_execution,
            known_by=known_by,
            relation=scope.cuts.relation(query_execution, frame.plan, dataset_id, scope.level),
            columns=frozenset(columns),
            is_computed_anyway=is_firsts,
            reads_columns=reads_columns,
            multiplies=whole.multiplies,
        )

    def _is_needed(self, scope: _Scope, whole: _WholeFrame) -> bool:
        """Return whether a query computes a DataFrame at all (rule 5), or reads rows that are kept already."""
        if not self._may_be_left_out(scope, whole.frame):
            return True
        own = self._over_cut(scope, scope.sinks[0]).optimizedPlan()
        return bool(self._parts.readsFilesOf(own, whole.query_execution.optimizedPlan()))

    def _is_left_out(self, scope: _Scope, frame: _Frame) -> bool:
        """Return whether a query reads nothing of what a DataFrame is made from; the latter is not planned for it."""
        if not self._may_be_left_out(scope, frame):
            return False
        own = self._over_cut(scope, scope.sinks[0]).optimizedPlan()
        return bool(self._parts.readsNothingOf(own, frame.plan))

    def _may_be_left_out(self, scope: _Scope, frame: _Frame) -> bool:
        if not scope.for_one or self._is_kept(frame):
            return False
        return bool(self._parts.mayLeaveOut(scope.sinks[0].logical_plan))

    def _over_cut(self, scope: _Scope, sink: SinkRequest) -> JavaObject:
        """Return a sink as it is planned over the boundaries so far."""
        key = sink, frozenset(scope.cut)
        if key not in scope.over_cut:
            scope.over_cut[key] = self._planned(scope, sink)
        return scope.over_cut[key]

    def _planned(self, scope: _Scope, sink: SinkRequest) -> JavaObject:
        return self._clones.plan(scope.cuts.rewrite(sink.logical_plan, _may_read(sink)), scope.clone)

    def _read_columns(
        self, scope: _Scope, number: int, relation: JavaObject
    ) -> list[tuple[SinkRequest, tuple[int, ...]]]:
        """Return the sinks that read a DataFrame, in program order, each with the positions of what it reads of it.

        Parameters
        ----------
        relation : JavaObject
            Stands for the DataFrame's rows in the sinks' plans.
        """
        readers = scope.readers(number)
        scope.cuts.cut(number, relation)
        over = [self._planned(scope, sink) for sink in readers]
        scope.cuts.uncut(number)
        reads = [self._parts.read(each.executedPlan(), relation) for each in over]
        return [(sink, _numbers(read)) for sink, read in zip(readers, reads, strict=True) if read is not None]

    def _computed_anyway(
        self, scope: _Scope, whole: _WholeFrame, used_by: Sequence[tuple[SinkRequest, Sequence[int]]]
    ) -> list[int]:
        """Return the columns of a DataFrame that are computed for all of its rows anyway (rule 8).

        Parameters
        ----------
        used_by
            See `_read_columns`.
        """
        if not used_by:
            # Spark has dropped it (``where false``), or plans what reads it only as it runs (a recursive query).
            return []
        frame, plan, clone = whole.frame, whole.plan, scope.clone
        together = sorted({column for _, columns in used_by for column in columns})
        for known in self._read_before(frame):
            if known.kept is not None and known.kept.issuperset(together):
                return sorted(known.kept)
        if not together:
            return []
        every = self._optimized(plan, together, clone)
        first, columns = used_by[0]
        part = every if list(columns) == together else self._optimized(plan, columns, clone)
        own = self._over_cut(scope, first).optimizedPlan()
        stops_early = self._query.stops_early
        if not self._parts.computes(own, part, stops_early) or not self._parts.raiseAlike(part, every):
            return []
        everything = whole.query_execution.optimizedPlan()  # what is total besides costs nobody a failure
        may_be_whole = all(one.may_be_whole for one in self._read_before(frame))
        if may_be_whole and self._parts.raiseAlike(everything, every):
            return _positions(frame)
        return together if self._are_asked_again(frame, frozenset(together)) else []

    def _are_asked_again(self, frame: _Frame, columns: frozenset[int]) -> bool:
        """Return whether an earlier action has asked for these columns, too (rule 5); else note that this one has."""
        known = self._read_before(frame)
        if not known or any(columns <= asked for one in known for asked in one.asked):
            return True
        self.asked.update(dict.fromkeys(frame.dataframes, columns))
        return False

    def _read_before(self, frame: _Frame) -> list[ReadBefore]:
        reread = self._query.reread
        return [reread[df] for df in frame.dataframes if df in reread]

    def _optimized(self, plan: JavaObject, columns: Sequence[int], clone: SessionClone) -> JavaObject:
        return self._clones.plan(self._parts.only(plan, list(columns)), clone).optimizedPlan()

    def _selected(self, cuts: JavaObject, split: frozenset[int]) -> frozenset[int]:
        """Make known which rows selections have; return what is split, by its number among the plans."""
        found = set()
        lineage = self._program.lineage
        for frame, one in lineage.selections.items():
            if one.parent in split and frame in lineage.frames:
                parent, child = (cuts.frame(logical_plan(lineage.frames[number])) for number in (one.parent, frame))
                cuts.select(child, parent, one.selected.to_text())
                found.add(parent)
        return frozenset(found)

    def _read_again(self, scope: _Scope, *, only_kept: bool) -> list[int]:
        """Return the DataFrames that the next actions may read again, sources first (rule 5), or only those kept."""
        frames, (sink,), (used,) = scope.frames, scope.sinks, scope.used
        kept = {number for number, frame in frames.items() if self._is_kept(frame)}
        if not only_kept:
            stages: Any = CLASSES.shared_instance(self._sc._gateway, "SingleStages")
            query = sink.logical_plan if sink.write is None else logical_plan(sink.write.df)
            kept |= {one for one in used if not stages.passesOn(query, frames[one].plan)}
        return [number for number in scope.order if number in kept]

    def _frames(self, cuts: JavaObject) -> Mapping[int, _Frame]:
        found: dict[int, _Frame] = {}
        known, reread = self._program.lineage.frames, self._query.reread
        if reread:
            known = {self._program.lineage.registry.add(df): df for df in reread}
        numbers, frames = sorted(known), [known[number] for number in sorted(known)]
        plans = list(map(logical_plan, frames))
        registered = map(int, str(cuts.frames(java_list(self._sc._jvm, plans))).split())
        for number, df, plan, frame in zip(numbers, frames, plans, registered, strict=True):
            found.setdefault(frame, _Frame(number, plan, [])).dataframes.append(df)
        return found

    def _name(self, frame: int, dataframes: Sequence[DataFrame]) -> str:
        for df in dataframes:
            number = self._program.frame_of(df)
            names = self._program.names_of(number) if number is not None else ()
            if names:
                return names[0]
        calls = [call.text for call in self._program.lineage.calls if call.output == frame]
        return calls[-1] if calls else "a DataFrame"


def _may_read(sink: SinkRequest) -> bool:
    """Return whether a sink whose query is a boundary reads it; a result that is kept keeps its rows itself."""
    return sink.kind == "write" or sink.collected


def _numbers(text: str) -> tuple[int, ...]:
    """Return numbers that Java has written: each element of an array would cost calls."""
    return tuple(map(int, text.split()))


def _positions(frame: _Frame) -> list[int]:
    return list(range(len(frame.dataframes[0].columns)))


def _reaches(first: Sequence[int], number: int, below: Mapping[int, Sequence[int]]) -> bool:
    waiting = list(first)
    seen = set(waiting)
    while waiting:
        each = waiting.pop()
        if each == number:
            return True
        waiting += [one for one in below.get(each, ()) if one not in seen]
        seen.update(waiting)
    return False


def junctions(sinks: Sequence[Sequence[int]], inside: Callable[[int], Sequence[int]]) -> list[int]:
    """Return the DataFrames at which the paths to several sinks part, sources first (rule 2).

    Parameters
    ----------
    sinks : sequence of sequence of int
        For each sink the DataFrames that it uses directly.
    inside : callable
        The DataFrames that a DataFrame uses directly.
    """
    order, below = _sources_first(sinks, inside)
    users: dict[int, list[int]] = {number: [] for number in order}
    for index, used in enumerate(sinks):
        for number in used:
            users[number].append(-1 - index)
    for number in order:
        for each in below[number]:
            users[each].append(number)
    ways: dict[int, set[int]] = {}
    for number in reversed(order):
        ways[number] = set()
        for user in users[number]:
            ways[number] |= {user} if user < 0 or len(ways[user]) > 1 else ways[user]
    return [number for number in order if len(ways[number]) > 1]


def _sources_first(
    sinks: Sequence[Sequence[int]], inside: Callable[[int], Sequence[int]]
) -> tuple[list[int], dict[int, Sequence[int]]]:
    """Return the DataFrames that sinks use, directly or through others, and by DataFrame those that it uses itself."""
    below: dict[int, Sequence[int]] = {}
    order: list[int] = []
    waiting = [(number, False) for used in reversed(sinks) for number in reversed(used)]
    while waiting:
        number, done = waiting.pop()
        if done:
            order.append(number)
        elif number not in below:
            below[number] = inside(number)
            waiting.append((number, True))
            waiting += [(each, False) for each in reversed(below[number])]
    return order, below


def worth_keeping(kinds: Sequence[str], share: Sharing) -> str:
    """Return why a DataFrame is worth keeping (rule 3), empty if it is not.

    Parameters
    ----------
    kinds : sequence of str
        The classes of its physical operators, of version-2 scans, and of the RDDs that it reads.
    """
    names = [kind.rpartition(".")[2] for kind in kinds]
    if any(kind.startswith(PYTHON_OPERATORS) for kind in kinds):
        return "it calls Python functions"
    if not _SHUFFLES.isdisjoint(names):
        return "it holds a shuffle"
    if not _ALL_WITH_ALL.isdisjoint(names):
        return "it compares all rows with all"
    for kind, name in zip(kinds, names, strict=True):
        if name in _READ_ONCE:
            return _READ_ONCE[name]
        if name.endswith("Scan") and not kind.startswith(_FILE_SCANS):
            return "its source may give other rows when it is read again"
    if share == "always" and any(map(_MAKES_ROWS_OTHERS.search, names)):
        return "everything is shared"
    return ""


def only_reads(kinds: Sequence[str]) -> bool:
    """Return whether a plan of these operators only reads, filters and projects what can be read again at any time."""
    names = [kind.rpartition(".")[2] for kind in kinds]
    others = [name for name in names if _MAKES_ROWS_OTHERS.search(name) and name not in _ROW_BY_ROW]
    return not others and not worth_keeping(kinds, "auto")
