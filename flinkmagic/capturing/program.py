"""What a cell did, as plain records: the program that planning compiles and the session keeps.

Nothing here starts Spark work. A `Program` is handed out when the capture starts and is complete when it has ended
well; where the cell raised it stays empty, so that nothing of a failed cell can be registered.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, MutableMapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from flinkmagic.capturing import capture_reader
from flinkmagic.capturing.frames import FrameRegistry
from flinkmagic.jvm.java import text_map

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from flinkmagic.capturing.observations import AwaitedMetrics
    from flinkmagic.capturing.operator_options import OperatorOptions
    from flinkmagic.capturing.targets import Source, Target


@dataclass(frozen=True)
class CellSource:
    """The cell that is being captured.

    Attributes
    ----------
    label : str
        How the cell is named to people: ``cell 3``, or a file's name.
    filename : str
        The file name that the cell's frames carry (IPython's compile cache makes one for each cell).
    source : str
        The text that was compiled under that name: its line numbers are those of the frames.
    labels : mapping of str to str
        File names of other cells and their labels, for calls that go through functions defined there.
    """

    label: str
    filename: str
    source: str
    labels: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class SourceLocation:
    """A line of the user's.

    Attributes
    ----------
    cell : str
        The label of the cell, or the file's name.
    filename : str
        The file name of the frame.
    line : int
        Counted from 1; in a method chain over many lines the one where the method's name stands (Python 3.11 and
        newer; else the line that Python reports).
    code : str
        That line's text, stripped.
    called_from : SourceLocation, optional
        The line of the captured cell from which this one was reached, where this one is elsewhere.
    """

    cell: str
    filename: str
    line: int
    code: str
    called_from: SourceLocation | None = None

    def __str__(self) -> str:
        here = f"{self.cell}, line {self.line}"
        return here if self.called_from is None else f"{here} (called from {self.called_from})"


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
    attribute_expr_ids : tuple of int
        Expression ids of all output attributes.
    """

    index: int
    method: str
    text: str
    location: SourceLocation
    inputs: tuple[int, ...]
    output: int
    output_expr_ids: tuple[int, ...]
    attribute_expr_ids: tuple[int, ...]


@dataclass(frozen=True)
class SessionSnapshot:
    """What of the session a write depends on, as it stood on the write's own line.

    Temporary views and functions are not part of it: the write's analysed plan holds what they were.

    Attributes
    ----------
    conf : mapping of str to str
        The session's SQL configuration.
    catalog, database : str
        Current catalog and namespace (its parts joined by dots).
    hadoop : mapping of str to str
        What was set of the Hadoop configuration, which all sessions of the context share.
    """

    conf: Mapping[str, str]
    catalog: str
    database: str
    hadoop: Mapping[str, str] = field(default_factory=dict)

    def apply_to(self, jconf: Any) -> None:
        """Bring the SQL configuration of a *clone* of the session to this state; never that of the user's own."""
        current = text_map(jconf.getAllConfs())
        for key in current.keys() - self.conf.keys():
            jconf.unsetConf(key)
        for key, value in self.conf.items():
            if current.get(key) != value:
                jconf.setConfString(key, value)
        self.apply_hadoop_to(jconf)

    def apply_hadoop_to(self, jconf: Any) -> None:
        """Let a clone of the session work by the Hadoop settings of this state, whatever was set since.

        A session's entries go before those of the shared Hadoop configuration. An entry cannot say that nothing is set:
        what was set only later gets Hadoop's own default, or none, which Hadoop takes for the default of a truth value.
        """
        now = capture_reader.hadoop_settings()
        later = {key for key in now.keys() - self.hadoop.keys() if key not in self.conf}
        before = {**capture_reader.hadoop_defaults(sorted(later)), **self.hadoop}
        for key in before.keys() - self.conf.keys():
            value = before[key]
            if value is None and now[key].lower() in ("true", "false"):
                value = ""
            if value is not None and value != now.get(key):
                jconf.setConfString(key, value)


def read_conf(jsession: Any) -> dict[str, str]:
    """The SQL configuration of a Java session, in one call over the gateway."""
    return text_map(jsession.sessionState().conf().getAllConfs())


@dataclass(frozen=True)
class DeferredWrite:
    """A write that Spark has analysed and that nobody has run yet.

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
        Whether data that lie at the target are gone afterwards.
    dynamic : bool
        Whether only those partitions are overwritten that the query has rows for.
    defines : bool
        Whether it makes the table's entry in the catalog, or makes it anew.
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
    """A line that has changed rows while the cell was running, because it could not be put off."""

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


@dataclass(frozen=True, eq=False)
class Use:
    """A DataFrame of another program that a program goes on from.

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
        The DataFrames that writes, names or two and more calls refer to; the rest was let go of.
    used : frozenset of int
        Frame numbers of the DataFrames that the program has read the rows of, or has handed to somebody: shown,
        counted, cached, registered as a view, written, given to a function. What it has gone on from stands in `calls`.
    actions : int
        How many actions have run while it was captured.
    skipped : tuple of SkippedWrite
        Writes with mode ``ignore`` whose path existed.
    settlements : tuple of Settlement
        Writes that had to be run while the cell was running, because a later line needed them.
    immediate : tuple of ImmediateStatement
        Lines that changed rows when they were met: MERGE, UPDATE, DELETE, scripts, and writes that cannot be put off.
    awaited_metrics : tuple of AwaitedMetrics
        The observations that wait for a write of this program.
    local_rdds : frozenset of int
        The ids of the RDDs that `createDataFrame` made of rows of this process, here or in an earlier program.
    options : dict of int to OperatorOptions
        By frame number, what `with_options` asked for.
    session : SessionSnapshot, optional
        The session at the end of the program, for its results.
    complete : bool
        False while the program is being captured, and for ever where it raised.
    uses : tuple of Use
        DataFrames of earlier programs that it goes on from.
    parts : tuple of Program
        Of a merged program: those that it consists of.
    namespace : mutable mapping, optional
        Where its names are bound, if the capture was given a namespace: there names may come to stand for kept rows.
    result_sessions : mapping of str to SessionSnapshot
        Of a merged program: by the name of a result the session at the end of the program that it comes from.
    registry : FrameRegistry
        Numbers DataFrame objects by identity.
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
    awaited_metrics: tuple[AwaitedMetrics, ...] = ()
    local_rdds: frozenset[int] = frozenset()
    options: dict[int, OperatorOptions] = field(default_factory=dict)
    session: SessionSnapshot | None = None
    complete: bool = False
    uses: tuple[Use, ...] = ()
    parts: tuple[Program, ...] = ()
    namespace: MutableMapping[str, Any] | None = field(default=None, repr=False)
    result_sessions: Mapping[str, SessionSnapshot | None] = field(default_factory=dict)
    registry: FrameRegistry = field(default_factory=FrameRegistry, repr=False)

    @property
    def deployed(self) -> tuple[DeferredWrite, ...]:
        """The writes that were run while the cell was running, in the order in which they were settled."""
        return tuple(write for settlement in self.settlements for write in settlement.writes)

    def frame_of(self, df: DataFrame) -> int | None:
        """The number of a DataFrame object (compared by identity), None where it is not of this program."""
        return self.registry.number(df)

    def session_of(self, result: str) -> SessionSnapshot | None:
        """The session as it stood when a result was defined."""
        return self.result_sessions.get(result, self.session)

    def ancestors(self, frames: Iterable[int]) -> set[int]:
        """The frames that these were made from, directly or through others."""
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
        """The names that stand for a frame after the program."""
        df = self.frames.get(frame)
        return tuple(name for name, bound in self.variables.items() if bound is df) if df is not None else ()

    def calls_by_expr_id(self) -> dict[int, RecordedCall]:
        """For each expression id the call that produced it first."""
        return {expr_id: call for call in reversed(self.calls) for expr_id in call.output_expr_ids}
