"""Records a streaming query that starts when its cell's graph runs, and the function that it calls for each batch."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from flinkmagic.capturing.streams.deferred_query import DeferredQuery
from flinkmagic.capturing.streams.stream_writers import copied

if TYPE_CHECKING:
    from py4j.java_gateway import JavaObject
    from pyspark.sql import DataFrame

    from flinkmagic.capturing.session_snapshot import SessionSnapshot
    from flinkmagic.capturing.source_code.source_location import SourceLocation

SCRATCH_SINKS = frozenset({"memory", "console", "foreach", "foreachbatch", "noop"})
"""The sinks for which Spark makes a folder for checkpoints if there is none (on 3.5.9 and 4.3.0)."""

BatchCall = Callable[["DataFrame", int], Any]


class BatchFunction:
    """A user's function of a `foreachBatch`, which the job that runs its query may carry out.

    Spark calls it for each batch.
    """

    def __init__(self, function: BatchCall) -> None:
        self.function = function
        self.carry_out: Callable[[BatchCall, DataFrame, int], None] | None = None
        """Is given the function, the batch and its number, and returns when the batch is done. None: the function is
        called."""

    def __call__(self, batch: DataFrame, batch_id: int) -> None:
        if self.carry_out is None:
            self.function(batch, batch_id)
        else:
            self.carry_out(self.function, batch, batch_id)


@dataclass(frozen=True, eq=False)
class DeferredStream:
    """A streaming query that starts later."""

    index: int
    """Position among the program's streams."""
    name: str
    """Its query name, else its sink and its place; unique within the program."""
    df: DataFrame
    """What it writes."""
    frame: int
    """The number of `df` (key of `Lineage.frames`)."""
    text: str
    """The call as it was written."""
    location: SourceLocation
    format: str
    output_mode: str
    target: str
    """Its path, table or query name."""
    checkpoint: str
    """Its checkpoint location; empty if there is none."""
    session: SessionSnapshot
    """As it was on the line of the start."""
    query: DeferredQuery
    """What the cell got from the start."""
    writer: JavaObject = field(repr=False)
    """Spark's own, with its settings."""
    method: str = "start"
    """The method of `writer` that starts it."""
    arguments: tuple[Any, ...] = ()
    batches: BatchFunction | None = None
    """Of a `foreachBatch`: its function."""

    @property
    def is_scratch(self) -> bool:
        """Whether its sink is one for which Spark needs no checkpoint location."""
        return self.method == "start" and self.format.lower() in SCRATCH_SINKS

    @property
    def is_refused(self) -> bool:
        """Whether Spark surely refuses to start it."""
        has_no_name = self.is_scratch and self.format.lower() == "memory" and not self.target
        return has_no_name or not (self.checkpoint or self.is_scratch)

    @property
    def starts_over(self) -> bool:
        """Whether its sink begins empty with each start: Spark refuses to resume such a sink from a checkpoint."""
        return self.is_scratch and self.format.lower() == "memory" and self.output_mode != "complete"

    def start(self, checkpoint: str | None) -> JavaObject:
        """Start it by Spark's own writer; return Spark's query."""
        writer = copied(self.df.sparkSession._jvm, self.df, self.writer)
        if checkpoint is not None:
            writer = writer.option("checkpointLocation", checkpoint)
        return getattr(writer, self.method)(*self.arguments)
