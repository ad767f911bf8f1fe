"""Describes what the stages of a planned job leave for later jobs: how to take it, and how to use it there.

A shuffle's, broadcast's or subquery's result is Spark's own node of the plan as it ran; as long as it is referenced,
its shuffle files (its value) live, and another plan can read it through a ``ReusedExchangeExec``, which maps the output
attributes. A boundary's is the builder of its cached rows. A result's rows are kept elsewhere (`reuse.job_rows`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from flinkmagic.planning.stage_handles import ResultKind, StageHandle

if TYPE_CHECKING:
    from py4j.java_gateway import JavaObject
    from pyspark.sql import DataFrame

    from flinkmagic.planning.appended_stages import AppendedRelation, AppendedShuffle


@dataclass(frozen=True, eq=False)
class StageResult:
    """What one stage leaves behind."""

    handle: StageHandle
    plan: JavaObject = field(repr=False)
    """The ``SparkPlan`` as it was planned; its rows are what a key is made of."""
    names: tuple[str, ...] = ()
    """For a result or a write: what else identifies its rows, such as the names of their columns."""
    sink: int = -1
    """The index of the sink, of a result or a write."""
    target: str = ""
    """For a write to files: the folder that it writes to, if all that it leaves behind can be seen there."""
    computed: Callable[[], JavaObject | None] = field(default=lambda: None, repr=False)
    """Spark's object, once the stage has run."""
    over: Callable[[JavaObject], JavaObject | None] | None = field(default=None, repr=False)
    """Of a boundary: the builder of its rows over files that have them in the same partitions and order
    (``RowFiles.Stored``), to be adopted; None if those cannot be the same partitions."""
    adopt: Callable[[JavaObject], None] = field(default=lambda _: None, repr=False)
    """Takes such an object of an earlier job: the plans of this job then use it in place of the stage. Call it before
    any stage of the job has run."""
    appended: AppendedShuffle | AppendedRelation | None = field(default=None, repr=False)
    """Of a shuffle, or a boundary: lets what earlier jobs have made be a part of it."""
    dataframes: tuple[DataFrame, ...] = field(default=(), repr=False)
    """Of a boundary: the user's whose rows it has."""
    columns: frozenset[int] = frozenset()
    """Of a boundary: the positions of their columns that it has."""

    @property
    def kind(self) -> ResultKind:
        """What it is; a write leaves its files behind, and nothing here."""
        return self.handle.kind
