"""What a planned job ends in, and what its sinks share."""

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
    """A sink of a planned job.

    Attributes
    ----------
    index : int
        Position in program order.
    name : str
        Unique within the job.
    kind : {"write", "result", "stream"}
        What it is.
    target : str
        For a write, or a stream: where it goes. For a result: empty.
    location : SourceLocation, optional
        The line that asked for it.
    transformation_id : int
        Its SinkTransformation.
    variable : str
        A name of the DataFrame in the user's namespace; empty if there is none.
    write : DeferredWrite, optional
        Of a write: what was captured.
    facts : dict
        JSON-able facts for a summary: ``format``, ``mode``.
    only_reads : bool
        Of a result: whether it only reads, filters and projects, so that reading its kept rows would save nothing.
    """

    index: int
    name: str
    kind: SinkKind | Literal["stream"]
    target: str
    location: SourceLocation | None
    transformation_id: int
    variable: str = ""
    write: DeferredWrite | None = field(default=None, repr=False)
    facts: dict[str, Any] = field(default_factory=dict)
    only_reads: bool = False


@dataclass(frozen=True, eq=False)
class PlannedBoundary:
    """A DataFrame of the user's whose rows are computed once and kept, because several sinks use them.

    Attributes
    ----------
    name : str
        The user's name for it, else the call that made it.
    dataframes : tuple of DataFrame
        The very objects.
    columns : frozenset of int
        The positions of the columns that are kept.
    tail_id : int
        The last operator of its stage.
    sinks : tuple of int
        Indices of the sinks that use it, directly or through others.
    is_computed_anyway : bool
        Whether plain Spark computes just these columns, too, for the first sink that reads them.
    multiplies : bool
        Whether it may have many more rows than what it is made from.
    """

    name: str
    dataframes: tuple[DataFrame, ...]
    columns: frozenset[int]
    tail_id: int
    sinks: tuple[int, ...]
    is_computed_anyway: bool
    multiplies: bool = False

    @property
    def is_whole(self) -> bool:
        """Whether all columns are kept: else the rows stand for the DataFrame to its sinks only."""
        return len(self.columns) == len(self.dataframes[0].columns)


@dataclass(frozen=True)
class SharedStage:
    """A stage whose output several sinks use and that is computed once.

    Attributes
    ----------
    what : str
        The user's call that it computes, or Spark's operator.
    variable : str
        The user's name for what it computes, if there is one.
    sinks : tuple of str
        Names of the sinks that read it.
    why : str
        Why it is shared: ``equal exchanges``, or why a boundary is worth keeping: ``it holds a shuffle``.
    """

    what: str
    variable: str
    sinks: tuple[str, ...]
    why: str = "equal exchanges"
