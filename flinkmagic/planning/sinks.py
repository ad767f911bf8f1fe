"""Describes the sinks of a planned job, and what they share."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from flinkmagic.capturing.source_code.source_location import SourceLocation
    from flinkmagic.capturing.writes.deferred_write import DeferredWrite

SinkKind = Literal["write", "result"]


@dataclass(frozen=True, eq=False)
class PlannedSink:
    """A sink of a planned job."""

    index: int
    """Position in program order."""
    name: str
    """Unique within the job."""
    kind: SinkKind | Literal["stream"]
    target: str
    """For a write, or a stream: where it goes. For a result: empty."""
    location: SourceLocation | None
    """The line that asked for it."""
    transformation_id: int
    """Its SinkTransformation."""
    variable: str = ""
    """A name of the DataFrame in the user's namespace; empty if there is none."""
    write: DeferredWrite | None = field(default=None, repr=False)
    facts: dict[str, Any] = field(default_factory=dict)
    """JSON-able facts for a summary: ``format``, ``mode``."""
    only_reads: bool = False
    """Of a result: whether it only reads, filters and projects, so that reading its kept rows would save nothing."""


@dataclass(frozen=True, eq=False)
class PlannedBoundary:
    """A DataFrame of the user's whose rows are computed once and kept, because several sinks use them."""

    name: str
    """The user's name for it, else the call that made it."""
    dataframes: tuple[DataFrame, ...]
    """The very objects."""
    columns: frozenset[int]
    """The positions of the columns that are kept."""
    tail_id: int
    """The last operator of its stage."""
    sinks: tuple[int, ...]
    """Indices of the sinks that use it, directly or through others."""
    is_computed_anyway: bool
    """Whether plain Spark computes just these columns, too, for the first sink that reads them."""
    multiplies: bool = False
    """Whether it may have many more rows than what it is made from."""

    @property
    def is_whole(self) -> bool:
        """Whether all columns are kept: else the rows stand for the DataFrame to its sinks only."""
        return len(self.columns) == len(self.dataframes[0].columns)


@dataclass(frozen=True)
class SharedStage:
    """A stage whose output several sinks use and that is computed once."""

    what: str
    """The user's call that it computes, or Spark's operator."""
    variable: str
    """The user's name for what it computes, if there is one."""
    sinks: tuple[str, ...]
    """Names of the sinks that read it."""
    why: str = "equal exchanges"
    """Why it is shared: ``equal exchanges``, or why a boundary is worth keeping: ``it holds a shuffle``."""
