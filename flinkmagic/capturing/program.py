"""What a cell did, as plain records: the program that planning compiles and the session keeps.

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
    """One call of the user's that made a DataFrame.

    Attributes
    ----------
    index : int
        Position in the program.
    method : str
        The method's name: ``where``, ``agg``, ``parquet``.
    text : str
        The call as it was written, shortened: ``groupBy("hour").agg(F.avg("dep_delay"))``.
    location : SourceLocation
        Where it was called.
    inputs : tuple of int
        Frame numbers of the DataFrames that it was called on and with (keys of `Program.frames`).
    output : int
        Frame number of the DataFrame that it made.
    output_expr_ids : tuple of int
        Expression ids of those output attributes that appeared with this call first: the key by which an operator
        of the physical plan is given back to the call that asked for it.
    """

    index: int
    method: str
    text: str
    location: SourceLocation
    inputs: tuple[int, ...]
    output: int
    output_expr_ids: tuple[int, ...]


@dataclass(frozen=True, eq=False)
class Use:
    """A DataFrame of another program that a program continues from.

    Attributes
    ----------
    what : str
        The name that the other program gave it, or the call that made it.
    program : Program
        The other program.
    """

    what: str
    program: Program

    def __str__(self) -> str:
        where = f", {self.program.cell.label}" if self.program.cell is not None else ""
        return f"{self.what} of {self.program.name or 'an unnamed program'}{where}"


@dataclass(frozen=True)
class ReadBefore:
    """What earlier actions have done with a DataFrame that they have read; columns are told by their positions.

    Attributes
    ----------
    kept : frozenset of int, optional
        The columns of it that are kept; None if none are.
    asked : tuple of frozenset of int
        For actions that could have kept but a few columns, and have not, these columns.
    may_be_whole : bool
        Whether all of its columns may be kept; if not, still those that are asked for.
    """

    kept: frozenset[int] | None = None
    asked: tuple[frozenset[int], ...] = ()
    may_be_whole: bool = True


@dataclass(eq=False)
class Program:
    """What a cell did.

    Attributes
    ----------
    spark : SparkSession
        The session whose calls were captured.
    name : str, optional
        The name that the user gave.
    cell : CellSource, optional
        The captured cell, where there was one.
    writes : tuple of DeferredWrite
        The pending writes, in program order.
    results : dict of str to DataFrame
        For a program without writes: the DataFrames that it bound to names and did nothing else with.
    variables : dict of str to DataFrame
        All DataFrames that the program bound to names.
    calls : tuple of RecordedCall
        In the order in which they returned.
    frames : dict of int to DataFrame
        The DataFrames that writes, names or two and more calls refer to; the rest was released.
    used : frozenset of int
        Frame numbers of the DataFrames that the program has read the rows of, or has handed on: shown,
        counted, cached, registered as a view, written, given to a function. What it continues from is in `calls`.
    actions : int
        How many actions have run while it was captured.
    skipped : tuple of SkippedWrite
        Writes with mode ``ignore`` whose path existed.
    settlements : tuple of Settlement
        Writes that had to be run while the cell was running, because a later line needed them.
    immediate : tuple of ImmediateStatement
        Lines that changed rows when they were met: MERGE, UPDATE, DELETE, scripts, and writes that cannot be put off.
    streams : tuple of DeferredStream
        The streaming queries that start when its graph runs.
    started_streams : tuple of ImmediateStatement
        Lines that have started a streaming query.
    awaited_metrics : tuple of AwaitedMetrics
        The observations that wait for a write of this program.
    local_rdds : frozenset of int
        The ids of the RDDs that `createDataFrame` made of rows of this process, here or in an earlier program.
    marks : dict of int to OperatorOptions
        By frame number, what `with_options` asked for.
    selections : dict of int to Selection
        By frame number, of which DataFrame it has which rows: the parent is computed once for all of its selections.
    session : SessionSnapshot, optional
        The session at the end of the program, for its results.
    complete : bool
        False while the program is being captured, and forever if it raised.
    uses : tuple of Use
        DataFrames of earlier programs that it goes on from.
    parts : tuple of Program
        Of a merged program: those that it consists of.
    namespace : mutable mapping, optional
        Where its names are bound, if the capture was given a namespace: its names may later refer to kept rows.
    result_sessions : mapping of str to SessionSnapshot
        Of a merged program: by the name of a result the session at the end of the program that it comes from.
    registry : FrameRegistry
        Numbers DataFrame objects by identity.
    reread : mapping of DataFrame to ReadBefore
        Of an action's program: the DataFrames that earlier actions have read.
    sources : reuse.source_columns.SourceQuery, optional
        Of an action's program: the text sources of which kept columns may be read.
    stops_early : bool
        Of an action's program: whether it may be done before it has read all rows, as ``toLocalIterator`` may.
    """

    spark: SparkSession
    name: str | None = None
    cell: CellSource | None = None
    writes: tuple[DeferredWrite, ...] = ()
    results: dict[str, DataFrame] = field(default_factory=dict)
    variables: dict[str, DataFrame] = field(default_factory=dict)
    calls: tuple[RecordedCall, ...] = ()
    frames: dict[int, DataFrame] = field(default_factory=dict)
    used: frozenset[int] = frozenset()
    actions: int = 0
    skipped: tuple[SkippedWrite, ...] = ()
    settlements: tuple[Settlement, ...] = ()
    immediate: tuple[ImmediateStatement, ...] = ()
    streams: tuple[DeferredStream, ...] = ()
    started_streams: tuple[ImmediateStatement, ...] = ()
    awaited_metrics: tuple[AwaitedMetrics, ...] = ()
    local_rdds: frozenset[int] = frozenset()
    marks: dict[int, OperatorOptions] = field(default_factory=dict)
    selections: dict[int, Selection] = field(default_factory=dict)
    session: SessionSnapshot | None = None
    complete: bool = False
    uses: tuple[Use, ...] = ()
    parts: tuple[Program, ...] = ()
    namespace: MutableMapping[str, Any] | None = field(default=None, repr=False)
    result_sessions: Mapping[str, SessionSnapshot | None] = field(default_factory=dict)
    registry: FrameRegistry = field(default_factory=FrameRegistry, repr=False)
    reread: Mapping[DataFrame, ReadBefore] = field(default_factory=dict, repr=False)
    stops_early: bool = False
    sources: Any = field(default=None, repr=False)

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
