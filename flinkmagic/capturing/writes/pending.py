"""Holds a program's pending writes, by rules that keep deferral from changing what the plain cell would do.

1. A write that overwrites what it reads, or what another query of the job reads, is refused: Spark deletes first.
2. Writes to overlapping places keep the order of the program, and a write that adds files where an earlier one reads
   comes after it, unless that one's plan has listed its files already.
3. Functions that are not known to be pure may read what any other write writes: such a write comes after the earlier
   ones, and before the later ones. Not so where two writes run the same ones: these do not read what they write.
4. A line that reads or changes the place of a pending write, or changes what a pending write reads, needs that write
   done: it is deployed first, or the line is refused. So does one that changes anything that such functions may read.

A DataFrame over files lists them when it is made, and plain Spark reads exactly those afterwards: it does not see files
that are appended later, deferred or not. Reading such a DataFrame is therefore free while the pending writes only
add files. That ends where Spark's cache holds data, because a write renews cached plans, listings included.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from enum import Enum
from typing import Any

from flinkmagic.capturing.source_code.source_location import SourceLocation
from flinkmagic.capturing.writes.deferred_write import DeferredWrite, Settlement, WriteFacts
from flinkmagic.capturing.writes.listed_inputs import pruned_sources
from flinkmagic.capturing.writes.real_paths import Folders
from flinkmagic.capturing.writes.targets import Source, Target, overlapping
from flinkmagic.errors.capturing import OverwritesInputError, PendingWriteError


class Cause(str, Enum):
    """What kind of line needs pending writes done."""

    SPARK = "spark"
    """An action, a reader, a command, another write: something that goes through Spark's Python API."""
    FILE = "file"
    DATABASE = "database"
    PROCESS = "process"
    SOCKET = "socket"
    JVM = "jvm"
    RDD = "rdd"
    CACHE = "cache"
    ACCUMULATOR = "accumulator"
    BROADCAST = "broadcast"
    STREAM = "stream"
    STOP = "stop"
    THREAD = "thread"
    HANDLER = "handler"
    """A write inside a ``try`` that has handlers."""
    EXCEPTION = "exception"
    SESSION = "session"
    """A write of a capture that defers nothing."""

    def __str__(self) -> str:
        return self.value


@dataclass(frozen=True)
class Effects:
    """What a line that runs immediately reads and changes."""

    reads: tuple[Source, ...] = ()
    changes: tuple[Target, ...] = ()
    unknown: bool = False
    """Whether it may read and change anything."""
    fresh: bool = True
    """Whether it lists files again, so that it would miss what pending writes only add."""
    cause: Cause = Cause.SPARK
    unseen_by_functions: bool = False
    """Whether functions that are not known to be pure cannot read what it changes, or that was asked already."""


class PendingWrites:
    """The writes of one program that have not run yet, in program order.

    Parameters
    ----------
    deploy : callable, optional
        Runs all of them and returns when that is done. None: a line that needs them is refused.
    """

    def __init__(self, spark: Any, deploy: Callable[[], None] | None) -> None:
        self._spark = spark
        self._deploy = deploy
        self.writes: list[DeferredWrite] = []
        self.settlements: list[Settlement] = []
        """What was deployed so far."""
        self.unheeded: BaseException | None = None
        """What a line was refused with, or what ended a deployment that a line needed; raised again at the cell's
        end."""
        self.lock = threading.RLock()
        """Held while a line is judged and what it needs is deployed: threads of a cell may need the same writes."""
        self._apart = Folders(self._is_apart)
        self._judged_for: tuple[int, DeferredWrite | None] = (0, None)

    def __bool__(self) -> bool:
        return bool(self.writes)

    def settle(self, effects: Effects, location: Callable[[], SourceLocation]) -> bool:
        """Make sure that a line may run now; True if pending writes were deployed for it.

        Parameters
        ----------
        location : callable
            Returns the line; called only where a write is touched.

        Raises
        ------
        PendingWriteError
            If they may not be deployed.
        """
        with self.lock:
            for write in self.writes:
                touches = self._touches(effects, write)
                if touches is not None:
                    self.deploy(location(), effects.cause, touches, write)
                    return True
        return False

    def define(self, place: Target) -> bool:
        """Return whether one of them makes a table, or a table of a namespace."""
        return any(write.facts.defines and write.facts.target.overlaps(place) for write in self.writes)

    def are_apart_from(self, path: str) -> bool:
        """Return whether an absolute local path certainly lies where no pending write has anything.

        A quick answer for files that are touched by the hundred: False says only that `settle` has to judge.
        """
        judged_for = len(self.writes), self.writes[-1] if self.writes else None
        if self._judged_for[0] != judged_for[0] or self._judged_for[1] is not judged_for[1]:
            self._apart.forget()
            self._judged_for = judged_for
        return self._apart.hold(path)

    def _is_apart(self, folder: str) -> bool:
        place = Source(path=f"file:{folder}")
        places = (place for write in self.writes for place in (write.facts.target, *write.sources))
        return not self.are_impure and not any(map(place.overlaps, places))

    @property
    def are_impure(self) -> bool:
        """Whether a function of one of them may touch files, clocks or chance."""
        return any(write.impure for write in self.writes)

    @property
    def can_deploy(self) -> bool:
        """Whether a line that needs pending writes gets them."""
        return self._deploy is not None

    def deploy(self, location: SourceLocation, cause: Cause, touches: str, write: DeferredWrite) -> None:
        """Deploy all pending writes, because a line touches one of them.

        Raises
        ------
        PendingWriteError
            If they may not be deployed.
        """
        if self._deploy is None:
            raise self.refused(PendingWriteError(location, location.code, touches, write.facts.label, write.location))
        with self.lock:
            writes = tuple(self.writes)
            try:
                self._deploy()
            except BaseException as error:
                self.unheeded = error
                raise
            finally:
                self.writes.clear()  # whatever became of them: none is tried twice
            self.settlements.append(Settlement(location, cause.value, writes))

    def refused(self, error: Exception) -> Exception:
        """Note that a line was refused, or failed because of an earlier line's write; return the error.

        The line may be where such errors are dropped: by a library that takes every exception of a file for a
        missing one, in a thread. The cell must not go on as if the line had done its work.
        """
        self.unheeded = error
        return error

    def _touches(self, effects: Effects, write: DeferredWrite) -> str | None:
        if effects.unknown:
            return "may read or change"
        if any(self._reads_pending(source, write, effects.fresh) for source in effects.reads):
            return "reads"
        if any(target.overlaps(write.facts.target) for target in effects.changes):
            return "changes"
        for target in effects.changes:
            if any(target.overlaps(source) for source in write.sources):
                return f"changes {target}, which is an input of the write to"
        if effects.changes and write.impure and not effects.unseen_by_functions:
            return f"changes {effects.changes[0]}, which may be read by a Python function of the write to"
        return None

    def _reads_pending(self, source: Source, write: DeferredWrite, fresh: bool) -> bool:
        if not source.overlaps(write.facts.target):
            return False
        return fresh or write.facts.overwrites or not self._sees_listed_files(source)

    def _sees_listed_files(self, source: Source) -> bool:
        return source.listed and self._spark._jsparkSession.sharedState().cacheManager().isEmpty()

    def exists_by_then(self, target: Target, now: bool) -> DeferredWrite | bool:
        """Return whether a path will exist when the pending writes are done; the deciding write, if that is open."""
        exists = now
        for write in self.writes:
            if write.facts.target == target or target.holds(write.facts.target):
                exists = True
            elif write.facts.target.holds(target) and (not exists or write.facts.overwrites):
                return write
        return exists

    def order(
        self, facts: WriteFacts, sources: Iterable[Source], location: SourceLocation, impure: frozenset[str]
    ) -> tuple[int, ...]:
        """Return the pending writes that a new one has to follow; deploy some first if rule 3 asks for it.

        A write that replaces only the partitions that it has rows for moves its files in when all have been written,
        and comes after what reads the others.

        Raises
        ------
        PendingWriteError, OverwritesInputError
            If they may not be deployed.
        """
        target, overwrites = facts.target, facts.overwrites
        if self.settle(Effects(reads=tuple(sources), fresh=False), lambda: location):
            return ()
        for place, write in enumerate(self.writes):
            read = self._lost(place, target) if overwrites and not facts.dynamic else None
            if read is not None:
                if self._deploy is None:
                    raise OverwritesInputError(str(target), location, str(read), write)
                self.deploy(location, Cause.SPARK, f"overwrites {read}, which is an input of the write to", write)
                return ()
        return tuple(
            write.index
            for write in self.writes
            if write.impure != impure
            or write.facts.target.overlaps(target)
            or any(s.overlaps(target) and (overwrites or not self._sees_listed_files(s)) for s in write.sources)
        )

    def _lost(self, place: int, target: Target) -> Source | None:
        """Return what a pending write reads of a target that is going to be overwritten."""
        write = self.writes[place]
        read = overlapping(write.reads, target)
        if read is None or write.pruned is not None:
            return read
        pruned = pruned_sources(write.df)
        if pruned is None:
            return read
        self.writes[place] = replace(write, pruned=pruned)
        return overlapping(pruned, target)


def check_overwrites(writes: Iterable[DeferredWrite], readers: Mapping[str, Iterable[Source]] | None = None) -> None:
    """Refuse a job that overwrites what it reads (rule 1); to be called before any part of it runs.

    A write that replaces only the partitions that it has rows for (``partitionOverwriteMode=dynamic``) may read its
    own target, as in plain Spark: files are moved in when all rows have been written. What comes before it may, too.

    Parameters
    ----------
    readers : mapping of str to iterable of Source, optional
        What further queries of the job read (results), by name.

    Raises
    ------
    OverwritesInputError
        Naming the write, and who reads its target.
    """
    writes = list(writes)
    queries: list[tuple[Any, Iterable[Source]]] = [(write, write.reads) for write in writes]
    queries += [(f"the result {name}", sources) for name, sources in (readers or {}).items()]
    for write in writes:
        if not write.facts.overwrites:
            continue
        for reader, sources in queries:
            if write.facts.dynamic and (reader is write or _comes_before(reader, write)):
                continue
            source = overlapping(sources, write.facts.target)
            if source is not None:
                who = "its own query" if reader is write else reader
                raise OverwritesInputError(write.facts.label, write.location, str(source), who)


def _comes_before(reader: Any, write: DeferredWrite) -> bool:
    return isinstance(reader, DeferredWrite) and reader.index in write.after
