"""Writes that were put off, as plain records: those that wait, those with nothing to do, those that ran early."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from flinkmagic.capturing.session_snapshot import SessionSnapshot
    from flinkmagic.capturing.source_code.source_location import SourceLocation
    from flinkmagic.capturing.writes.targets import Source, Target


@dataclass(frozen=True)
class DeferredWrite:
    """A write that Spark has analysed and that has not run yet.

    Spark's writer would have run `command` on the spot. The record holds it as Spark itself made it, so
    that committer, options and refusals stay Spark's own.

    Attributes
    ----------
    index : int
        Position among the program's writes, in program order.
    name : str
        A name for the sink, unique within the program: the last part of the path, or the table's name.
    df : DataFrame
        What is written.
    frame : int
        The number of `df` (key of `Program.frames`).
    jwrite : JavaObject
        The configured Java writer.
    command : JavaObject
        Spark's analysed command, its query being the analysed plan of `df`.
    kind : str
        The command's class, without its package.
    format : str
        As Spark shows it: ``parquet``, ``csv``, ``jdbc``; of a table of another catalog that catalog's name.
    mode : str
        ``append``, ``overwrite``, ``errorifexists`` or ``ignore``.
    options : mapping of str to str
        The writer's options.
    partition_by : tuple of str
        Names of the partition columns.
    path : str
        The path as Spark resolved it, with scheme; of a table its full name.
    target : Target
        Where it goes, comparable with other targets and sources.
    sources : tuple of Source
        What the query reads, as far as its analysed plan shows it.
    pruned : tuple of Source, optional
        What it reads of that, where it was found out: Spark leaves partitions out that a filter rules out.
    text : str
        The call as it was written.
    location : SourceLocation
        The line of the write.
    session : SessionSnapshot
        Configuration and current database of that line; equal snapshots are one object.
    overwrites : bool
        Whether data at the target are gone afterwards.
    dynamic : bool
        Whether only those partitions are overwritten that the query has rows for.
    defines : bool
        Whether it makes the table's entry in the catalog, or makes it again.
    after : tuple of int
        Indices of earlier writes of the program that must have ended before this one starts.
    taken_at_ms : int
        When its line ran, in milliseconds since the epoch.
    impure : frozenset of str
        What its query runs that is not known to be pure: functions may read what other writes write.
    """

    index: int
    name: str
    df: DataFrame
    frame: int
    jwrite: Any
    command: Any
    kind: str
    format: str
    mode: str
    options: Mapping[str, str]
    partition_by: tuple[str, ...]
    path: str
    target: Target
    sources: tuple[Source, ...]
    text: str
    location: SourceLocation
    session: SessionSnapshot
    overwrites: bool = False
    dynamic: bool = False
    defines: bool = False
    after: tuple[int, ...] = ()
    taken_at_ms: int = 0
    impure: frozenset[str] = frozenset()
    pruned: tuple[Source, ...] | None = None

    @property
    def reads(self) -> tuple[Source, ...]:
        """What must not be lost before the write has run."""
        return self.sources if self.pruned is None else self.pruned

    def __str__(self) -> str:
        return f"the write to {self.path} ({self.location})"


@dataclass(frozen=True)
class SkippedWrite:
    """A write that does nothing, as in a plain run: mode ``ignore``, and the path exists."""

    path: str
    text: str
    location: SourceLocation


@dataclass(frozen=True)
class ImmediateStatement:
    """A line that changed rows while the cell was running, because it could not be put off."""

    text: str
    location: SourceLocation


@dataclass(frozen=True)
class Settlement:
    """Pending writes that were deployed before the end of the cell, because a line needed them done.

    Attributes
    ----------
    location : SourceLocation
        The line.
    cause : str
        What kind of line it was: a value of `pending.Cause`.
    touches : str
        What the line does with the first write that it touches: ``reads``, ``changes``.
    writes : tuple of DeferredWrite
        What was deployed, in program order.
    """

    location: SourceLocation
    cause: str
    touches: str
    writes: tuple[DeferredWrite, ...]
