"""Keeps text sources (CSV, JSON, text) as columns while queries read them.

Parsing text takes longer than most of what is then done with it, and notebooks parse the same files for each action.
Queries keep it in memory as column batches while they read it themselves, so no stage is added and nothing is read for
its own sake. There are two ways:

- Slices: all columns of a part of the rows (``planning/java/KeptSlices.java``, where the plan that runs is made). One
  query after the other adds a slice, until all is kept.
- Computed columns: what is costly to compute of the columns, and cannot raise, with the columns that are read beside it
  (``planning/java/SourceColumns.java``, a rule of the optimiser of our clones of the session).

The rules:

1. What is kept belongs to the rows of a source: to its files as they were listed, by length and modification time, its
   schema, its options, and the settings. No DataFrame and no view counts. It is read only while the files are still the
   same.
2. The first query that reads a source reads it as plain Spark does. The next ones keep slices as large as the caller
   allows (`room`): of a source of 100 MiB of which a tenth may be kept, 10 MiB. The sources of one query share what it
   allows, by their lengths. Of lines that are not parsed nothing is kept: they are read as fast from their files.
3. The first query that computes something of a source computes it as plain Spark does. When it is computed again, it is
   kept, with all columns of that query, if the caller allows what that costs: storing 5 of 20 columns is a quarter of
   storing all, and each column that is computed of rows which a filter of the query removes costs as much as storing
   all. Other columns that are kept stay, unless these hold them. Below a DataFrame whose rows the query keeps, nothing
   is kept.
4. A query that may stop early keeps nothing, and a query that asks for the names of files reads the files.
5. If a query that reads or keeps columns fails, nothing of their source is kept again.
6. What is kept are retained results (`retained_results`): bounded, listed and released with them.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from flinkmagic.jvm.block_storage import lack_of_room, memory_for_rows, stored_bytes
from flinkmagic.jvm.contexts import kept_for_context
from flinkmagic.jvm.java import elements, execution_of
from flinkmagic.planning.java_classes import CLASSES
from flinkmagic.planning.plan_reader import name_of_run
from flinkmagic.reuse.result_keys import ResultKeys
from flinkmagic.reuse.retained_results import RetainedResult, retained_results

if TYPE_CHECKING:
    from py4j.java_gateway import JavaGateway, JavaObject
    from pyspark import SparkContext
    from pyspark.sql import DataFrame

PARSED_A_SECOND = 100 * 2**20
"""How many bytes of text one core parses in a second, if a few of the columns are needed; seen on 4.3.0 with CSV."""

KEPT_A_SECOND = 30 * 2**20
"""How many bytes of text one core turns into kept columns in a second, if all of them are kept."""

STORED_A_SECOND = 80 * 2**20
"""How many bytes of text one core stores as columns in a second that it has parsed anyway.

A column that is computed besides, such as one group of a regular expression, takes at most as long as to store all.
"""

COMPUTED_A_SECOND = 200 * 2**20
"""How many bytes of text one core goes through in a second to compute one column of them, at least of what is kept."""

LEAST_BYTES = 2**18
"""Smaller sources are read faster than anything else can be done about them."""

MEMORY_SHARE = 0.5
"""Of the memory that Spark has for cached rows, what the text of one source may take at most."""


_SLICES = " by slices"
"""The end of the keys of slices: computed columns of the same source are another result."""


@dataclass(frozen=True)
class Source:
    """A text source that a query reads."""

    key: str
    name: str
    """Its files, as the user gave them, without their folder."""
    bytes: int
    """The length of its files."""
    is_kept: bool
    """Whether columns of it are kept."""
    reads: int
    """How many queries have read it from its files."""


class SourceColumns:
    """The kept columns of one SparkContext's text sources; see `of`."""

    def __init__(self, gateway: JavaGateway | None) -> None:
        self.rule: Any = CLASSES.new_instance(gateway, "SourceColumns")
        self.store: Any = CLASSES.new_instance(gateway, "ColumnStore")
        self.slices: Any = CLASSES.new_instance(gateway, "KeptSlices")
        self.reads: dict[str, int] = {}
        """By the key of a source, how many queries have read it from its files."""
        self.given_up: set[str] = set()
        """The keys of sources of which nothing is kept any more."""

    @staticmethod
    @kept_for_context
    def of(sc: SparkContext) -> SourceColumns:
        """Return those of a SparkContext; from any thread."""
        return SourceColumns(sc._gateway)

    def query(self, df: DataFrame, room: Callable[[Source], float]) -> SourceQuery | None:
        """Return what a query may read of kept columns; None if it reads no text source that is worth it.

        Parameters
        ----------
        room : callable
            How many seconds it may cost to keep something of a source, if the query reads no other one (rule 2).
        """
        execution, sc = execution_of(df), df.sparkSession.sparkContext
        leaves = self.rule.sources(execution)
        if leaves is None:
            return None
        keys = ResultKeys(sc)
        found: list[tuple[JavaObject, Source]] = []
        for leaf in elements(leaves):
            length, _, paths = str(self.rule.files(leaf)).partition(" ")
            key = keys.of_source(leaf, execution) if int(length) >= LEAST_BYTES else ""
            if key and key not in self.given_up:
                name = os.path.basename(paths.rstrip("/"))
                found.append((leaf, Source(key, name, int(length), self._is_kept(key), self.reads.get(key, 0))))
        rooms = {source.key: room(source) if _fits(sc, source.bytes) else 0.0 for _, source in found}
        whole = sum({source.key: source.bytes for _, source in found if rooms[source.key]}.values())
        query = SourceQuery(self, sc)
        for leaf, source in found:
            query.add(leaf, source, rooms[source.key] * source.bytes / whole if whole else 0.0)
        return query if query.sources else None

    def _is_kept(self, key: str) -> bool:
        return bool(self.store.isKept(key)) or int(self.slices.bytes(key)) > 0

    def retained_slices(self, source: Source) -> RetainedResult:
        """Return what is kept of a source's rows as a retained result."""
        return RetainedResult(
            key=source.key + _SLICES,
            kind="columns",
            graph=source.name,
            what=f"columns of {source.name}",
            for_session=True,
            computed=self.slices,
            bytes=int(self.slices.stored(source.key)),
            let_go=partial(self.slices.forget, source.key),
        )


class SourceQuery:
    """A query that reads text sources; made by `SourceColumns.query`."""

    def __init__(self, columns: SourceColumns, sc: SparkContext) -> None:
        self._columns = columns
        self._sc = sc
        self._cores = max(1, sc.defaultParallelism)
        self._planning: Any = CLASSES.new_instance(sc._gateway, "ColumnPlanning", columns.store)
        self._planned: list[tuple[Source, Any]] = []
        """Each source with what its planning says of it."""
        self.slices: Any = columns.slices.reading(self._planning)
        """How its plans read scans of files."""

    @property
    def sources(self) -> list[Source]:
        """What it reads."""
        return [source for source, _ in self._planned]

    def add(self, leaf: JavaObject, source: Source, room: float) -> None:
        """Let it read what is kept of a source, and spend some seconds on keeping more of it."""
        name = name_of_run(f"columns of {source.name}")
        share, passes = (room / self.seconds(source, rate) for rate in (KEPT_A_SECOND, STORED_A_SECOND))
        self._planned.append((source, self._planning.know(leaf, source.key, name, source.bytes, share, passes)))

    def seconds(self, source: Source, rate: int) -> float:
        """Return how long it takes for all of a source at so many bytes a second and core."""
        return source.bytes / (rate * self._cores)

    @contextmanager
    def planned(self, state: JavaObject, level: Callable[[], JavaObject], *, keeps: bool = True) -> Iterator[None]:
        """Let what this thread plans on a session's state read kept columns, and keep more of them.

        Parameters
        ----------
        level : callable
            The storage level at which they are kept.
        keeps : bool
            Whether more may be kept of the sources that it plans to read, now and later in this query.
        """
        self._columns.rule.open(self._planning, state, level(), keeps)
        try:
            yield
        finally:
            self._columns.rule.close()

    def relations(self) -> list[JavaObject]:
        """Return the ``InMemoryRelation`` s that its plan may read."""
        return elements(self._planning.relations())

    def read(self) -> list[Source]:
        """Return the sources of which its plan reads kept columns."""
        return [source for source, known in self._planned if known.isRead() or self.slices.reads(source.key)]

    def spared(self) -> list[tuple[Source, float]]:
        """Return the sources of which it has read kept columns, each with the seconds that this has spared.

        A stage whose result was there has read none.
        """
        found = []
        for source, known in self._planned:
            if self.slices.hasRead(known):
                part = 1.0 if known.isRead() else int(self.slices.reads(source.key)) / source.bytes
                seconds = part * self.seconds(source, PARSED_A_SECOND)
                found.append((source, seconds + known.computedRead() * self.seconds(source, COMPUTED_A_SECOND)))
        return [(source, seconds) for source, seconds in found if seconds]

    def sliced(self) -> list[Source]:
        """Return the sources of which its plan keeps a part of the rows."""
        return [source for source in self.sources if self.slices.fills(source.key)]

    def kept(self) -> list[Source]:
        """Return the sources of which its plan keeps computed columns."""
        return [source for source, known in self._planned if known.isKept()]

    def has_kept(self) -> list[Source]:
        """Return the sources of which it has kept computed columns, once it has run."""
        return [source for source, known in self._planned if known.isKept() and self.slices.hasRead(known)]

    def has_sliced(self) -> list[Source]:
        """Return the sources of which it has kept a part of the rows, once it has run."""
        return [source for source in self.sliced() if self.slices.keeps(source.key)]

    def from_files(self, *, takes_few: bool) -> list[Source]:
        """Return the sources that it reads from their files, and whole.

        `takes_few` says whether it may not read all if Spark plans it itself.
        """
        found = []
        read = self.read()
        for source, known in self._planned:
            is_whole = known.isReadWhole()
            if source not in read and (not takes_few if is_whole is None else is_whole):
                found.append(source)
        return found

    def ended(self, *, takes_few: bool) -> list[tuple[Source, float]]:
        """Note that the query is over: what it has kept whole is there for others, anything else is released.

        Returns each source of which it has kept something, and how many seconds that has cost.
        """
        for source in self.from_files(takes_few=takes_few):
            self._columns.reads[source.key] = source.reads + 1
        found, contained = [], set[str]()
        for source, known in self._planned:
            known.note()
            if not known.isKept():
                continue
            filling = known.filling()
            builder = filling.relation().cacheBuilder()
            if not builder.isCachedColumnBuffersLoaded():
                builder.clearCache(False)
                continue
            contained.update(f"{source.key} {name}" for name in known.hand().split())
            retained_results(self._sc).add(self._retained(source, filling))
            found.append((source, float(known.cost()) * self.seconds(source, STORED_A_SECOND)))
        retained_results(self._sc).drop(lambda one: one.key in contained)
        for source in self.sliced():
            if self.slices.hand(source.key):
                retained_results(self._sc).add(self._columns.retained_slices(source))
                share = int(self.slices.fills(source.key)) / source.bytes
                found.append((source, share * self.seconds(source, KEPT_A_SECOND)))
        return found

    def give_up(self) -> None:
        """Release what it reads and keeps, and keep nothing of these sources again: a query failed with it."""
        store = retained_results(self._sc)
        given_up = {source.key for source in (*self.read(), *self.kept(), *self.sliced())}
        self._columns.given_up |= given_up
        store.drop(lambda one: one.kind == "columns" and one.key.partition(" ")[0] in given_up)
        for source, known in self._planned:
            if known.isKept():
                known.filling().relation().cacheBuilder().clearCache(False)
            self.slices.drop(source.key)

    def _retained(self, source: Source, filling: JavaObject) -> RetainedResult:
        builder = filling.relation().cacheBuilder()

        def let_go() -> None:
            self._columns.store.forget(source.key, builder)
            builder.clearCache(False)

        return RetainedResult(
            key=f"{source.key} {filling.name()}",
            kind="columns",
            graph=source.name,
            what=f"columns of {source.name}",
            for_session=True,
            computed=builder,
            bytes=stored_bytes(self._sc, builder.cachedColumnBuffers().id()),
            let_go=let_go,
        )


def _fits(sc: SparkContext, length: int) -> bool:
    """Return whether the columns of so much text may be kept, with the memory and the disk that there is."""
    return length <= memory_for_rows(sc)[0] * MEMORY_SHARE and not lack_of_room(sc)
