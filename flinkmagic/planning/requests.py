"""Lists what to plan: one request for each write of a program, and each DataFrame whose rows are to stay.

``saveAsTable``, the ``create`` and ``replace`` of tables, and writes to sources of version 1 (JDBC) are commands
without children: they hide their query from Spark's planner, which plans it only when they run, inside their own plan.
To make the query's stages part of the job, the query is planned separately, and the command runs over its rows
(`CommandRows.java`). The guards against overwriting an input check the original command beforehand: over rows they
would be blind. Seen on 4.3.0; on 3.5.9 for sources of version 1.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from flinkmagic.capturing.program import Program
from flinkmagic.errors.capturing import NoResultError, SparkConnectSessionError, StreamingFrameError
from flinkmagic.errors.usage import NotAProgramError
from flinkmagic.jvm.java import execution_of, is_connect
from flinkmagic.planning.sinks import SinkKind

if TYPE_CHECKING:
    from py4j.java_gateway import JavaObject

    from flinkmagic.capturing.session_snapshot import SessionSnapshot
    from flinkmagic.capturing.source_code.source_location import SourceLocation
    from flinkmagic.capturing.writes.deferred_write import DeferredWrite


@dataclass(frozen=True, eq=False)
class SinkRequest:
    """A write, or a DataFrame whose rows are to stay in the session."""

    name: str
    """Unique within the job."""
    kind: SinkKind
    logical_plan: JavaObject
    """The analysed plan of the write's own command (but see `command`), or of the query."""
    snapshot: SessionSnapshot | None = None
    """The session as it was on its line; None means as it is now."""
    frame: int | None = None
    """The program's number of the DataFrame."""
    write: DeferredWrite | None = None
    location: SourceLocation | None = None
    schema_json: str = ""
    command: JavaObject | None = None
    """For a write whose command hides its query from planning: the command. `logical_plan` is its query then."""
    collected: bool = False
    """Whether an action collects its rows as they come, and nothing keeps them: a limit on top then reads only as many
    partitions as it needs, without a shuffle."""

    @property
    def after(self) -> tuple[int, ...]:
        """Positions of the earlier sinks that must have ended before this one starts."""
        return self.write.after if self.write is not None else ()

    @property
    def label(self) -> str:
        """What the sink is called in graphs."""
        return f"{self.write.facts.format} {self.name}" if self.write else self.name

    @property
    def rows_names(self) -> tuple[str, ...]:
        """What identifies the rows besides the plan that computes them: the names of columns, the write's options."""
        if self.write is None:
            return ("result", self.schema_json)
        facts = self.write.facts
        options = ",".join(f"{key}={value}" for key, value in sorted(facts.options.items()))
        how = (facts.format, facts.mode, options, ",".join(facts.partition_by), str(facts.dynamic), facts.label)
        return ("write", self.write.df.schema.json(), *how)


def as_program(given: Any) -> Program:
    """Return a program as it is, and of DataFrames one that knows nothing of the calls that made them.

    They have their own names in a mapping, else they are ``result``, or ``result1`` and so on.

    Raises
    ------
    NotAProgramError
        If one is no DataFrame.
    NoResultError
        If there is none.
    """
    if isinstance(given, Program):
        return given
    if isinstance(given, Mapping):
        named = dict(given)
    elif isinstance(given, Sequence) and not isinstance(given, str):
        named = {f"result{number}": frame for number, frame in enumerate(given, start=1)}
    else:
        named = {"result": given}
    for frame in named.values():
        if not (hasattr(frame, "schema") and hasattr(frame, "isStreaming")):
            raise NotAProgramError(frame)
    if not named:
        raise NoResultError("job")
    return Program(next(iter(named.values())).sparkSession, results=named, complete=True)


def requests_of(program: Program, *, collected: bool) -> list[SinkRequest]:
    """Return a program's writes in order, then its results (a writing program has results only if it is merged)."""
    return [*map(_write_request, program.writes), *_result_requests(program, collected)]


def _write_request(write: DeferredWrite) -> SinkRequest:
    query = hidden_query(write.command, write.kind)
    return SinkRequest(
        name=write.name,
        kind="write",
        logical_plan=write.command if query is None else query,
        snapshot=write.session,
        frame=write.frame,
        write=write,
        location=write.location,
        command=None if query is None else write.command,
    )


def _result_requests(program: Program, collected: bool) -> Iterator[SinkRequest]:
    for name, frame in program.results.items():
        if is_connect(frame):
            raise SparkConnectSessionError
        if frame.isStreaming:
            raise StreamingFrameError(name)
        number = program.frame_of(frame)
        if number is None:
            number = program.asked
        calls = [call for call in program.lineage.calls if call.output == number]
        yield SinkRequest(
            name=name,
            kind="result",
            # Not its analysed plan: what spark.sql("INSERT ...") answers would be that command again.
            logical_plan=execution_of(frame).commandExecuted(),
            snapshot=program.result_session(name),
            frame=number,
            location=calls[-1].location if calls else None,
            schema_json=frame.schema.json(),
            collected=collected,
        )


_HIDE_THEIRS = frozenset(
    {
        "CreateDataSourceTableAsSelectCommand",
        "CreateTableAsSelect",
        "InsertIntoDataSourceCommand",
        "ReplaceTableAsSelect",
        "SaveAsV1TableCommand",
        "SaveIntoDataSourceCommand",
    }
)
INTO_RELATION = frozenset({"AppendData", "OverwriteByExpression", "OverwritePartitionsDynamic"})
"""Commands that hand rows to a source of version 2, which may be one of the user's own in Python."""


def hidden_query(command: JavaObject, kind: str) -> JavaObject | None:
    """Return the analysed query of a command of a class that hides it; None if Spark plans it with the command."""
    if kind in _HIDE_THEIRS or (kind in INTO_RELATION and not _takes_batches(command.table())):
        return command.query()
    return None


def _takes_batches(relation: Any) -> bool:
    """Return whether tasks write a table of version 2; one with only the write of version 1 gets a DataFrame."""
    return "BATCH_WRITE" in {str(capability) for capability in relation.table().capabilities()}
