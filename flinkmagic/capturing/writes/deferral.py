"""Takes writes over: defers each, skips it as Spark would, or runs it immediately if it cannot be deferred.

A write is deferred if Spark makes a command for it that `command_facts` knows. Spark analyses the command on the
write's own line and on its own plan, so each of Spark's refusals appears there.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, TypeVar

from flinkmagic.capturing.capture_mode import CaptureMode
from flinkmagic.capturing.driver.impurity import functions_of
from flinkmagic.capturing.session_snapshot import SessionSnapshot
from flinkmagic.capturing.source_code.source_location import SourceLocation
from flinkmagic.capturing.writes import write_commands
from flinkmagic.capturing.writes.command_facts import facts_of, in_full
from flinkmagic.capturing.writes.deferred_write import DeferredWrite, ImmediateStatement, SkippedWrite, WriteFacts
from flinkmagic.capturing.writes.listed_inputs import pruned_sources
from flinkmagic.capturing.writes.pending import Cause, Effects
from flinkmagic.capturing.writes.sparks_errors import release_log, sparks_own, withheld_log
from flinkmagic.capturing.writes.tables import named_table
from flinkmagic.capturing.writes.targets import Source, Target, overlapping, sources_of
from flinkmagic.capturing.writes.writer_calls import (
    NoCommandError,
    WriterCall,
    is_transactional,
    path_option,
    writer_field,
)
from flinkmagic.errors.actions import OwnInputOverwrittenError
from flinkmagic.errors.base import is_from_signal
from flinkmagic.errors.capturing import (
    HandledWriteError,
    NotDeployedError,
    OverwritesInputError,
    ThreadWriteError,
    UndeferrableWriteError,
)
from flinkmagic.errors.streaming import BatchWriteInStreamError
from flinkmagic.free_names import free_name
from flinkmagic.jvm.java import execution_of, simple_name

if TYPE_CHECKING:
    from flinkmagic.capturing.frames import FrameRegistry
    from flinkmagic.capturing.writes.captured_session import CapturedSession

_T = TypeVar("_T")
_COARSE = 5
"""Linux's CLOCK_REALTIME_COARSE, which Python does not name."""
_DESCRIPTORS = "/proc/self/fd"


class Deferral:
    """Decides on each write of one capture.

    Parameters
    ----------
    on_deferred : callable
        Called for each deferred write with the number of those that are pending.
    on_plain : callable
        Called with the line and the text of a write that plain Spark has done, the error that is the reason, and how
        many seconds it took.
    """

    def __init__(
        self,
        session: CapturedSession,
        frames: FrameRegistry,
        mode: CaptureMode,
        on_deferred: Callable[[int], None],
        on_plain: Callable[[SourceLocation, str, Exception, float], None],
    ) -> None:
        self._session, self._frames, self._mode = session, frames, mode
        self._on_deferred, self._on_plain = on_deferred, on_plain
        self.skipped: list[SkippedWrite] = []
        """The writes that had nothing to do."""
        self.immediate: list[ImmediateStatement] = []
        """The lines that have changed rows already."""
        self._pending = session.pending
        self._names: set[str] = set()
        self._checked: dict[tuple[object, ...], SessionSnapshot] = {}
        self._ran = 0

    def take(self, df: Any, call: WriterCall, text: str) -> None:
        """Take over a write.

        A write on another thread than the cell's own runs immediately, and so does one whose failure a handler waits
        for.

        Raises
        ------
        ThreadWriteError, HandledWriteError
            If it would have to run immediately, and may not.
        """
        if self.must_run(call.method):
            call.run()
            self.note_immediate(text)
        else:
            self.arrange(text, lambda: self._take(df, call, text), call.run)

    def note_immediate(self, text: str) -> None:
        """Note that the running line has changed rows already."""
        self.immediate.append(ImmediateStatement(text, self._session.location()))

    def must_run(self, method: str) -> bool:
        """Return whether a write has to run now because it is on another thread; what is pending has run then.

        Raises
        ------
        ThreadWriteError
            If it may not.
        """
        if self._session.threads.is_own():
            return False
        if not self._pending.can_deploy:
            raise self._pending.refused(ThreadWriteError(method, self._session.location()))
        self._session.settle(Effects(unknown=True, cause=Cause.THREAD))
        return True

    def arrange(self, text: str, take: Callable[[], _T], run: Callable[[], _T]) -> _T:
        """Take writes over, and run them on their line if a handler waits for what they raise or nothing is deferred.

        Parameters
        ----------
        run : callable
            Writes as plain Spark does; called where nothing is deferred and `take` refuses to defer.

        Raises
        ------
        HandledWriteError
            If they may not run there.
        BatchWriteInStreamError
            If the sinks of the capture are streaming queries.
        """
        if self._mode.is_streaming and self._session.threads.is_own():
            raise self._pending.refused(BatchWriteInStreamError(self._session.location()))
        with self._pending.lock:
            if self._mode is CaptureMode.LINES:
                return self._arrange_immediate(text, take, run)
            handler = self._session.handler()
            return take() if handler is None else self._arrange_handled(handler, take)

    def _arrange_immediate(self, text: str, take: Callable[[], _T], run: Callable[[], _T]) -> _T:
        """Take writes over and deploy them; where that fails before anything has run, plain Spark is asked to write."""
        pending = self._pending
        ran = self._ran, len(pending.settlements)
        try:
            with withheld_log():
                result = take()
            if pending.writes:
                self._deploy(Cause.SESSION, pending.writes[-1])
            return result
        except Exception as error:  # noqa: BLE001 - raised again, or what plain Spark raises instead
            has_failed = pending.unheeded is not None and not isinstance(error, NotDeployedError)
            if has_failed or (self._ran, len(pending.settlements)) != ran or is_from_signal(error):
                pending.unheeded = None
                release_log(error)
                raise sparks_own(error) from None
            refusal = error
        pending.writes.clear()
        pending.unheeded = None
        began = time.monotonic()
        result = run()
        self._on_plain(self._session.location(), text, refusal, time.monotonic() - began)
        return result

    def _arrange_handled(self, handler: SourceLocation, take: Callable[[], _T]) -> _T:
        """Take writes over so that what Spark refuses, and what fails, reaches the handler as in a plain run."""
        if self._pending.can_deploy:
            # The handler is not for the failures of other writes.
            self._session.settle(Effects(unknown=True, cause=Cause.HANDLER))
        before = len(self._pending.writes)
        result = take()
        if len(self._pending.writes) == before:
            return result
        write = self._pending.writes[-1]
        if not self._pending.can_deploy:
            del self._pending.writes[before:]
            raise self._pending.refused(HandledWriteError(write.facts.label, write.location, handler))
        self._deploy(Cause.HANDLER, write)
        return result

    def _deploy(self, cause: Cause, write: DeferredWrite) -> None:
        """Deploy what is pending; raise what Spark raised."""
        try:
            self._pending.deploy(write.location, cause, "is", write)
            self._ran += 1
        except NotDeployedError:
            raise
        except Exception as error:  # noqa: BLE001 - raised again as what Spark raised
            self._ran += 1
            self._pending.unheeded = None
            # PySpark ends its traceback in the frames of the user's function; our own are dropped by the hook.
            raise sparks_own(error) from None

    def _take(self, df: Any, call: WriterCall, text: str) -> None:
        spark: Any = df.sparkSession
        try:
            command = self._command(spark, df, call)
            facts = None if command is None else facts_of(spark, df, call, command)
        except NoCommandError:
            if self._mode is not CaptureMode.FOREACH_BATCH:
                raise UndeferrableWriteError(call.method, spark.version, self._session.location()) from None
            command = facts = None
        if facts is None or facts.runs_now:
            self._run_now(df, call, facts, text)
        else:
            self.defer(df, command, facts, text, call.called)

    def defer(self, df: Any, command: Any, facts: WriteFacts, text: str, called: str) -> None:
        """Put an analysed command, whose query is `df`, off, or skip it as Spark would skip it."""
        location = self._session.location()
        if facts.mode in ("errorifexists", "ignore") and self._is_taken(facts):
            if facts.mode == "errorifexists":
                raise facts.taken() from None
            self.skipped.append(SkippedWrite(facts.label, location))
            return
        write = self._deferred(df, command, facts, text, called, location)
        self._pending.writes.append(write)
        self._on_deferred(len(self._pending.writes))
        if any(overlapping(write.sources, file) for file in _files_open_for_writing()):
            # No event reports what is written through an open file.
            self._pending.deploy(location, Cause.FILE, "has a file open that is read by", write)

    def _deferred(
        self, df: Any, command: Any, facts: WriteFacts, text: str, called: str, location: SourceLocation
    ) -> DeferredWrite:
        """Return the write, once all is checked that can be."""
        analysed = execution_of(df).analyzed()
        session = self._session.snapshot(df.sparkSession)
        sources = sources_of(analysed)
        impure = functions_of(analysed).impure()
        facts.check()
        self._check_format(df, facts, session)
        pruned = self._refuse_own_input(df, facts, sources, location)
        after = self._pending.order(facts, sources, location, impure)
        return DeferredWrite(
            index=len(self._pending.writes),
            name=self._sink_name(facts.name),
            df=df,
            frame=self._frames.keep(df),
            command=command,
            kind=simple_name(command),
            facts=facts,
            sources=sources,
            text=text,
            called=called,
            location=location,
            session=session,
            after=after,
            taken_at_ms=_file_clock_ms(),
            impure=impure,
            pruned=pruned,
        )

    def _command(self, spark: Any, df: Any, call: WriterCall) -> Any:
        """Return Spark's analysed command; None if there is none that could be put off.

        Analysis looks the table up, so a pending write that makes the table has to come first. Not so for
        ``saveAsTable`` in the session's own catalog, whose command looks when it runs.
        """
        if call.table is None:
            made = call.command(spark, df)
        else:
            table = named_table(self._session.spark, call.table)
            if is_transactional(spark, str(table.table).split(".")[0]):
                return None
            if call.method != "saveAsTable":
                self._wait_for_table(table)
            made = call.command(spark, df)
            if made is not None and simple_name(made) != "SaveAsV1TableCommand" and self._wait_for_table(table):
                made = call.command(spark, df)
        if made is None:
            return None
        command = write_commands.analysed(spark, made)
        return command if call.table is None else in_full(spark, command)

    def _wait_for_table(self, table: Target) -> bool:
        return self._pending.define(table) and self._session.settle(Effects(reads=(table.as_source(),)))

    def _run_now(self, df: Any, call: WriterCall, facts: WriteFacts | None, text: str) -> None:
        if self._pending:
            sources = sources_of(execution_of(df).analyzed())
            changes = self._changes(call) if facts is None else (facts.target,)
            self._session.settle(Effects(sources, changes or (), changes is None, fresh=False))
        self._ran += 1
        call.run()
        self.note_immediate(text)

    def _changes(self, call: WriterCall) -> tuple[Target, ...] | None:
        """Return what a write that runs immediately changes; None if that is unknown."""
        source = writer_field(call.jwrite, "source")
        if source is not None and source.lower() == "noop":
            return ()
        places = []
        path = path_option(call.jwrite) if call.path is None else call.path
        if path is not None:
            places.append(self._session.resolver.target(path))
        if call.table is not None:
            places.append(named_table(self._session.spark, call.table))
        return tuple(places) or None

    def _is_taken(self, facts: WriteFacts) -> bool:
        """Return whether the target will exist when this write runs."""
        if facts.exists is None:
            return False
        answer = self._pending.exists_by_then(facts.target, facts.exists())
        if isinstance(answer, bool):
            return answer
        self._session.settle(Effects(reads=(facts.target.as_source(),)))
        return facts.exists()

    def _refuse_own_input(
        self, df: Any, facts: WriteFacts, sources: tuple[Source, ...], location: SourceLocation
    ) -> tuple[Source, ...] | None:
        """Refuse a write that deletes what it reads; return what it reads of its sources, if that had to be asked."""
        if not facts.overwrites or facts.dynamic or not overlapping(sources, facts.target):
            return None
        pruned = pruned_sources(df)
        source = overlapping(sources if pruned is None else pruned, facts.target)
        if source is not None and self._mode is CaptureMode.LINES:
            # Nothing is put off: Spark may well have read all before it deletes, and does what it does in a plain run.
            raise OwnInputOverwrittenError
        if source is not None:
            raise OverwritesInputError(facts.label, location, str(source), "its own query")
        return pruned

    def _check_format(self, df: Any, facts: WriteFacts, session: SessionSnapshot) -> None:
        """Check with a file format, once for all similar writes: those of a loop mostly are."""
        options = tuple(sorted(facts.options.items()))
        schema = df._jdf.schema().json()
        alike = (facts.format, options, facts.partition_by, schema, id(session))
        if alike not in self._checked:
            facts.check_format()
            self._checked[alike] = session  # held, so that no other session gets its id

    def _sink_name(self, base: str) -> str:
        name = free_name(os.path.splitext(base)[0] or "sink", self._names)
        self._names.add(name)
        return name


def _files_open_for_writing() -> Iterator[Target]:
    """Return the files that this process has open for writing; none if the system does not tell (only Linux does)."""
    if not os.path.isdir(_DESCRIPTORS):
        return
    for name in os.listdir(_DESCRIPTORS):
        path = os.path.join(_DESCRIPTORS, name)
        try:
            if os.lstat(path).st_mode & 0o200:  # the link may be written through
                file = os.readlink(path)
                if os.path.isfile(file):
                    yield Target(path="file:" + file)
        except FileNotFoundError:  # the descriptor that listed the folder
            continue


def _file_clock_ms() -> int:
    """Return the time of the clock that dates files: Linux's lies some milliseconds behind."""
    return int((time.clock_gettime(_COARSE) if sys.platform == "linux" else time.time()) * 1000)
