"""Who asked for a run, and what is known of the query of a line."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from flinkmagic.planning.clones import KeptClones


@dataclass(frozen=True)
class ReadBefore:
    """What earlier actions have done with a DataFrame that they have read; columns are identified by position."""

    kept: frozenset[int] | None = None
    """The columns that are kept; None if none are."""
    asked: tuple[frozenset[int], ...] = ()
    """The columns of each action that could have kept only a few, and has not."""
    may_be_whole: bool = True
    """Whether all columns may be kept; if not, those that are asked for still may."""


@dataclass(frozen=True)
class LineQuery:
    """What is known of the one query of a session's line, an action or a write, besides its plan."""

    reread: Mapping[DataFrame, ReadBefore] = field(default_factory=dict, repr=False)
    """The DataFrames that earlier actions have read."""
    sources: Any = field(default=None, repr=False)
    """A `reuse.source_columns.SourceQuery`: the text sources of which kept columns may be read."""
    stops_early: bool = False
    """Whether it may end before it has read all rows, as ``toLocalIterator`` may."""


NO_QUERY = LineQuery()


@dataclass(frozen=True)
class RunOrigin:
    """Who asked for a run: a graph of the user's if nothing is set, else a line, an action, a batch or a superstep.

    It is given to what compiles, and everything below reads it there.
    """

    is_line: bool = False
    """Whether a line of the user's is what runs: Spark's jobs then keep the group and the description that it has."""
    is_part: bool = False
    """Whether it is a part of another job, as a stream's batch is: lists of jobs do not show it."""
    collects: bool = False
    """Whether an action collects the rows of results as they come, and nothing keeps them: a limit on top then reads
    only as many partitions as it needs, without a shuffle."""
    result_level: str = ""
    """The storage level of results that Spark's cache is not to know, by PySpark's name; empty lets it keep them."""
    query: LineQuery = NO_QUERY
    """Of a session's line."""
    clones: KeptClones | None = field(default=None, repr=False)
    """The clones of the session on which jobs with the same options were planned."""


GRAPH = RunOrigin()
LINE = RunOrigin(is_line=True)
