"""Records the writes of a cell: those that wait, those with nothing to do, those that ran early."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from flinkmagic.capturing.session_snapshot import SessionSnapshot
    from flinkmagic.capturing.source_code.source_location import SourceLocation
    from flinkmagic.capturing.writes.targets import Source, Target


def _nothing() -> None:
    pass


@dataclass(frozen=True)
class WriteFacts:
    """What is known about a write before it runs."""

    format: str
    """As Spark shows it: ``parquet``, ``csv``, ``jdbc``; for a table of another catalog that catalog's name."""
    mode: str
    """``append``, ``overwrite``, ``errorifexists`` or ``ignore``."""
    target: Target
    """Where it goes, comparable with other targets and sources."""
    label: str
    """The target, as readable text: its path as Spark resolved it, with scheme; for a table its full name."""
    name: str
    """A name for the sink: the last part of the path, or the table's name."""
    options: Mapping[str, str] = field(default_factory=dict)
    """All of a write to files, as each may change what is in them; of others those that hold no secrets."""
    partition_by: tuple[str, ...] = ()
    """Names of the partition columns."""
    takes_folder: bool = False
    """Whether it makes a table over a folder that lies there, whose data it replaces in any mode."""
    dynamic: bool = False
    """Whether it overwrites only the partitions that there are rows for."""
    defines: bool = False
    """Whether it makes the table's entry in the catalog, or makes it again."""
    runs_now: bool = False
    """Whether plain Spark is to run it immediately, which refuses it or does what cannot be put off."""
    exists: Callable[[], bool] | None = None
    """Returns whether the target is there now; None if only the source knows, when it runs."""
    taken: Callable[[], Exception] = RuntimeError
    """Returns Spark's own error for a target that is there and must not be."""
    check: Callable[[], None] = _nothing
    """Has Spark refuse what it can refuse before it runs."""
    check_format: Callable[[], None] = _nothing
    """Has the file format do the same. The answer depends on `format`, `options`, `partition_by`, the rows' schema and
    the session's configuration alone."""

    @property
    def overwrites(self) -> bool:
        """Whether data at the target are gone afterwards."""
        return self.mode == "overwrite" or self.takes_folder


@dataclass(frozen=True)
class DeferredWrite:
    """A write that Spark has analysed and that has not run yet.

    Spark's writer would have run `command` immediately. The record holds it as Spark itself made it, so that committer,
    options and refusals stay Spark's own.
    """

    index: int
    """Position among the program's writes, in program order."""
    name: str
    """Of the sink, unique within the program; made of `facts.name`."""
    df: DataFrame
    frame: int
    """The number of `df` (key of `Lineage.frames`)."""
    command: Any
    """Spark's analysed command, its query being the analysed plan of `df`."""
    kind: str
    """The command's class, without the package."""
    facts: WriteFacts
    """Where it goes, and how."""
    sources: tuple[Source, ...]
    """What the query reads, as far as its analysed plan shows it."""
    text: str
    """The call as it was written."""
    called: str
    """The JVM's method that plain PySpark calls for it, as py4j's errors name it: ``o45.parquet``."""
    location: SourceLocation
    session: SessionSnapshot
    """As it was on that line; equal snapshots are one object."""
    after: tuple[int, ...] = ()
    """Indices of earlier writes of the program that must have ended before this one starts."""
    taken_at_ms: int = 0
    """When its line ran, in milliseconds since the epoch."""
    impure: frozenset[str] = frozenset()
    """The parts of its query's code that are not known to be pure: they may read what other writes write."""
    pruned: tuple[Source, ...] | None = None
    """What it reads of `sources`, where that was found out: Spark skips partitions that a filter excludes."""

    @property
    def reads(self) -> tuple[Source, ...]:
        """What must not be lost before the write has run."""
        return self.sources if self.pruned is None else self.pruned

    def __str__(self) -> str:
        return f"the write to {self.facts.label} ({self.location})"


@dataclass(frozen=True)
class SkippedWrite:
    """A write that does nothing, as in a plain run: mode ``ignore``, and the path exists."""

    path: str
    location: SourceLocation


@dataclass(frozen=True)
class ImmediateStatement:
    """A line that changed rows while the cell was running, because it could not be put off."""

    text: str
    location: SourceLocation


@dataclass(frozen=True)
class Settlement:
    """Pending writes that were deployed before the end of the cell, because a line needed them done."""

    location: SourceLocation
    cause: str
    """What kind of line it was: a value of `pending.Cause`."""
    writes: tuple[DeferredWrite, ...]
    """In program order."""
