"""Records what a cell did: the program that planning compiles and the session keeps.

Nothing here starts Spark work. A `Program` is handed out when the capture starts and is complete once it has ended
without an error. If the cell raised, it stays empty, so that nothing of a failed cell can be registered.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, MutableMapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from flinkmagic.capturing.frames import FrameRegistry

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from flinkmagic.capturing.operator_options import OperatorOptions
    from flinkmagic.capturing.selections import Selection
    from flinkmagic.capturing.session_snapshot import SessionSnapshot
    from flinkmagic.capturing.source_code.source_location import CellSource, SourceLocation
    from flinkmagic.capturing.streams.deferred_stream import DeferredStream
    from flinkmagic.capturing.writes.awaited_metrics import AwaitedMetrics
    from flinkmagic.capturing.writes.deferred_write import DeferredWrite, ImmediateStatement, Settlement, SkippedWrite


@dataclass(frozen=True)
class RecordedCall:
    """One call of the user's that made a DataFrame."""

    index: int
    """Position in the program."""
    method: str
    """For example ``where``, ``agg``, ``parquet``."""
    text: str
    """The call as it was written, shortened: ``groupBy("hour").agg(F.avg("dep_delay"))``."""
    location: SourceLocation
    inputs: tuple[int, ...]
    """Frame numbers of the DataFrames that it was called on and with (keys of `Program.frames`)."""
    output: int
    """Frame number of the DataFrame that it made."""
    output_expr_ids: tuple[int, ...]
    """Expression ids of those output attributes that appeared with this call first: the key by which an operator of the
    physical plan is given back to the call that asked for it."""


@dataclass(frozen=True, eq=False)
class Use:
    """A DataFrame of another program that a program continues from."""

    what: str
    """The name that the other program gave it, or the call that made it."""
    program: Program

    def __str__(self) -> str:
        where = f", {self.program.cell.label}" if self.program.cell is not None else ""
        return f"{self.what} of {self.program.name or 'an unnamed program'}{where}"


@dataclass(frozen=True)
class ReadBefore:
    """What earlier actions have done with a DataFrame that they have read; columns are identified by position."""

    kept: frozenset[int] | None = None
    """The columns that are kept; None if none are."""
    asked: tuple[frozenset[int], ...] = ()
    """The columns of each action that could have kept only a few, and has not."""
    may_be_whole: bool = True
    """Whether all columns may be kept; if not, those that are asked for still may."""


@dataclass(eq=False)
class Program:
    """What a cell did."""

    spark: SparkSession
    name: str | None = None
    cell: CellSource | None = None
    """None if the code is not a cell's."""
    writes: tuple[DeferredWrite, ...] = ()
    """The pending writes, in program order."""
    results: dict[str, DataFrame] = field(default_factory=dict)
    """For a program without writes: the DataFrames that it bound to names and did nothing else with."""
    variables: dict[str, DataFrame] = field(default_factory=dict)
    """All DataFrames that the program bound to names."""
    calls: tuple[RecordedCall, ...] = ()
    """In the order in which they returned."""
    frames: dict[int, DataFrame] = field(default_factory=dict)
    """The DataFrames that writes, names or several calls refer to; the others were released."""
    used: frozenset[int] = frozenset()
    """Frame numbers of the DataFrames whose rows the program has read, or that it has handed on: shown, counted,
    cached, registered as a view, written, given to a function. What it continues from is in `calls`."""
    actions: int = 0
    """How many actions have run while it was captured."""
    skipped: tuple[SkippedWrite, ...] = ()
    """Writes with mode ``ignore`` whose path existed."""
    settlements: tuple[Settlement, ...] = ()
    """Writes that had to run before the end of the cell, because a later line needed them."""
    immediate: tuple[ImmediateStatement, ...] = ()
    """Lines that changed rows when they were met: MERGE, UPDATE, DELETE, scripts, and writes that cannot be put off."""
    streams: tuple[DeferredStream, ...] = ()
    """The streaming queries that start when its graph runs."""
    started_streams: tuple[ImmediateStatement, ...] = ()
    """Lines that have started a streaming query."""
    awaited_metrics: tuple[AwaitedMetrics, ...] = ()
    """The observations that wait for a write of this program."""
    local_rdds: frozenset[int] = frozenset()
    """The ids of the RDDs that `createDataFrame` made of rows of this process, here or in an earlier program."""
    marks: dict[int, OperatorOptions] = field(default_factory=dict)
    """By frame number, what `with_options` asked for."""
    selections: dict[int, Selection] = field(default_factory=dict)
    """By frame number, which rows of which DataFrame a frame has: the parent is computed once for all of its
    selections."""
    session: SessionSnapshot | None = None
    """The session at the end of the program, for its results."""
    complete: bool = False
    """False while the program is being captured, and forever if it raised."""
    uses: tuple[Use, ...] = ()
    """The DataFrames of earlier programs that it continues from."""
    parts: tuple[Program, ...] = ()
    """Of a merged program: the programs that it consists of."""
    namespace: MutableMapping[str, Any] | None = field(default=None, repr=False)
    """Where its names are bound, if the capture was given a namespace: its names may later refer to kept rows."""
    result_sessions: Mapping[str, SessionSnapshot | None] = field(default_factory=dict)
    """Of a merged program: by the name of a result, the session at the end of the program that it comes from."""
    registry: FrameRegistry = field(default_factory=FrameRegistry, repr=False)
    reread: Mapping[DataFrame, ReadBefore] = field(default_factory=dict, repr=False)
    """Of an action's program: the DataFrames that earlier actions have read."""
    stops_early: bool = False
    """Of an action's program: whether it may end before it has read all rows, as ``toLocalIterator`` may."""
    sources: Any = field(default=None, repr=False)
    """A `reuse.source_columns.SourceQuery`. Of an action's program: the text sources of which kept columns may be
    read."""

    @property
    def deployed(self) -> tuple[DeferredWrite, ...]:
        """The writes that were run while the cell was running, in the order in which they were settled."""
        return tuple(write for settlement in self.settlements for write in settlement.writes)

    def frame_of(self, df: DataFrame) -> int | None:
        """Return the number of a DataFrame object (compared by identity), None if it is not of this program."""
        return self.registry.number(df)

    def release_metrics(self, writes: Iterable[DeferredWrite]) -> None:
        """Let observations wait for the metrics that come with writes of this program: these have begun to run."""
        commands = [write.command for write in writes]
        for part in (self, *self.parts):
            for metrics in part.awaited_metrics:
                if any(metrics.write.command is command for command in commands):
                    metrics.release()

    def result_session(self, result: str) -> SessionSnapshot | None:
        """Return the session as it was when a result was defined."""
        return self.result_sessions.get(result, self.session)

    def ancestors(self, frames: Iterable[int]) -> set[int]:
        """Return the frames that these were made from, directly or through others."""
        inputs = {call.output: call.inputs for call in self.calls}
        found: set[int] = set()
        waiting = [below for frame in frames for below in inputs.get(frame, ())]
        while waiting:
            frame = waiting.pop()
            if frame not in found:
                found.add(frame)
                waiting += inputs.get(frame, ())
        return found

    def names_of(self, frame: int) -> tuple[str, ...]:
        """Return the names of a frame after the program; of one that it was given, those that the user had for it."""
        df = self.frames.get(frame)
        if df is None:
            return ()
        names = tuple(name for name, bound in self.variables.items() if bound is df)
        if names or any(call.output == frame for call in self.calls):
            return names
        # IPython's own names begin with an underscore.
        return tuple(name for name, value in (self.namespace or {}).items() if value is df and name[:1] != "_")

    def given(self) -> dict[int, DataFrame]:
        """Return, by their numbers, the DataFrames that its calls continue from and that no call of it has made."""
        made = {call.output for call in self.calls}
        used = {number for call in self.calls for number in call.inputs}
        used |= {write.frame for write in self.writes} | {stream.frame for stream in self.streams}
        return {number: df for number, df in self.registry.living().items() if number in used - made}

    def calls_by_expr_id(self) -> dict[int, RecordedCall]:
        """Return the first call that produced each expression id."""
        return {expr_id: call for call in reversed(self.calls) for expr_id in call.output_expr_ids}
