"""Tells who asked for a run."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from flinkmagic.planning.clones import KeptClones


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
    """Where the rows of results are kept, by PySpark's names; empty is Spark's default."""
    clones: KeptClones | None = field(default=None, repr=False)
    """The clones of the session on which jobs with the same options were planned."""


GRAPH = RunOrigin()
LINE = RunOrigin(is_line=True)
