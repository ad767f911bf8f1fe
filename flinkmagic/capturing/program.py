"""Records what a cell did: the program that planning compiles and the session keeps.

Nothing here starts Spark work. A `Program` is handed out when the capture starts and is complete once it has ended
without an error. If the cell raised, it stays empty, so that nothing of a failed cell can be registered.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, MutableMapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from flinkmagic.capturing.lineage import Lineage

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from flinkmagic.capturing.session_snapshot import SessionSnapshot
    from flinkmagic.capturing.source_code.source_location import CellSource
    from flinkmagic.capturing.streams.deferred_stream import DeferredStream
    from flinkmagic.capturing.writes.awaited_metrics import AwaitedMetrics
    from flinkmagic.capturing.writes.deferred_write import DeferredWrite, ImmediateStatement, Settlement, SkippedWrite


@dataclass(frozen=True)
class EagerWork:
    """What a program did while it was being captured."""

    actions: int = 0
    """How many actions have run."""
    settlements: tuple[Settlement, ...] = ()
    """Writes that had to run before the end of the cell, because a later line needed them."""
    skipped: tuple[SkippedWrite, ...] = ()
    """Writes with mode ``ignore`` whose path existed."""
    statements: tuple[ImmediateStatement, ...] = ()
    """Lines that changed rows when they were met: MERGE, UPDATE, DELETE, scripts, and writes that cannot be put off."""
    streams: tuple[ImmediateStatement, ...] = ()
    """Lines that have started a streaming query."""

    @property
    def writes(self) -> tuple[DeferredWrite, ...]:
        """The writes that have run, in the order in which they were settled."""
        return tuple(write for settlement in self.settlements for write in settlement.writes)


@dataclass(frozen=True, eq=False)
class Use:
    """A DataFrame of another program that a program continues from."""

    what: str
    """The name that the other program gave it, or the call that made it."""
    program: Program

    def __str__(self) -> str:
        where = f", {self.program.cell.label}" if self.program.cell is not None else ""
        return f"{self.what} of {self.program.name or 'an unnamed program'}{where}"


@dataclass(eq=False)
class Program:
    """What a cell did."""

    # -- where it stands --

    spark: SparkSession
    name: str | None = None
    cell: CellSource | None = None
    """None if the code is not a cell's."""
    namespace: MutableMapping[str, Any] | None = field(default=None, repr=False)
    """Where its names are bound, if the capture was given a namespace: its names may later refer to kept rows."""
    complete: bool = False
    """False while the program is being captured, and forever if it raised."""

    # -- what it has defined and done --

    lineage: Lineage = field(default_factory=Lineage)
    variables: dict[str, DataFrame] = field(default_factory=dict)
    """All DataFrames that the program bound to names."""
    eager: EagerWork = EagerWork()

    # -- its sinks: what is still to be computed --

    writes: tuple[DeferredWrite, ...] = ()
    """The pending writes, in program order."""
    awaited_metrics: tuple[AwaitedMetrics, ...] = ()
    """The observations that wait for one of them."""
    streams: tuple[DeferredStream, ...] = ()
    """The streaming queries that start when its graph runs."""
    results: dict[str, DataFrame] = field(default_factory=dict)
    """For a program without writes: the DataFrames that it bound to names and did nothing else with."""
    session: SessionSnapshot | None = None
    """The session at the end of the program, for its results."""
    asked: int | None = None
    """Of an action's program: the frame that the action was called on, of which its result is made.

    The calls that made it label the operators. It is a number, as a DataFrame that a graph refers to counts as one that
    later actions may read again.
    """

    # -- other programs --

    uses: tuple[Use, ...] = ()
    """The DataFrames of earlier programs that it continues from."""
    parts: tuple[Program, ...] = ()
    """Of a merged program: the programs that it consists of."""
    result_sessions: Mapping[str, SessionSnapshot | None] = field(default_factory=dict)
    """Of a merged program: by the name of a result, the session at the end of the program that it comes from."""

    def frame_of(self, df: DataFrame) -> int | None:
        """Return the number of a DataFrame object (compared by identity), None if it is not of this program."""
        return self.lineage.registry.number(df)

    def names_of(self, frame: int) -> tuple[str, ...]:
        """Return the names of a frame after the program; of one that it was given, those that the user had for it."""
        df = self.lineage.frames.get(frame)
        if df is None:
            return ()
        names = tuple(name for name, bound in self.variables.items() if bound is df)
        if names or any(call.output == frame for call in self.lineage.calls):
            return names
        # IPython's own names begin with an underscore.
        return tuple(name for name, value in (self.namespace or {}).items() if value is df and name[:1] != "_")

    def given(self, also: Iterable[int] = ()) -> dict[int, DataFrame]:
        """Return, by their numbers, the DataFrames that it continues from and that no call of it has made.

        Parameters
        ----------
        also : iterable of int
            Frames that count as those do from which calls, writes and streams continue.
        """
        calls = self.lineage.calls
        used = {number for call in calls for number in call.inputs}.union(also)
        used.update(write.frame for write in self.writes)
        used.update(stream.frame for stream in self.streams)
        used.difference_update(call.output for call in calls)
        return {number: df for number, df in self.lineage.registry.living().items() if number in used}

    def result_session(self, result: str) -> SessionSnapshot | None:
        """Return the session as it was when a result was defined."""
        return self.result_sessions.get(result, self.session)

    def release_metrics(self, writes: Iterable[DeferredWrite]) -> None:
        """Let observations wait for the metrics that come with writes of this program: these have begun to run."""
        commands = [write.command for write in writes]
        for part in (self, *self.parts):
            for metrics in part.awaited_metrics:
                if any(metrics.write.command is command for command in commands):
                    metrics.release()
