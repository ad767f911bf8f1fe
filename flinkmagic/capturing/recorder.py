"""Notes what a cell does while it runs: its DataFrame calls, its writes, what its names mean afterwards."""

from __future__ import annotations

import threading
import weakref
from collections.abc import Iterable, Mapping, MutableMapping
from types import FrameType
from typing import Any

from pyspark.sql import DataFrame

from flinkmagic.capturing.capture_listener import CaptureListener
from flinkmagic.capturing.capture_mode import CaptureMode
from flinkmagic.capturing.frames import FrameRegistry
from flinkmagic.capturing.merging import link
from flinkmagic.capturing.operator_options import OperatorOptions
from flinkmagic.capturing.program import Program, RecordedCall
from flinkmagic.capturing.results import name_results
from flinkmagic.capturing.selections import Selected, Selection
from flinkmagic.capturing.session_snapshot import SessionSnapshot
from flinkmagic.capturing.source_code.source_location import SourceLocation
from flinkmagic.capturing.source_code.source_reader import SourceReader, expr_ids
from flinkmagic.capturing.streams.pending_streams import PendingStreams
from flinkmagic.capturing.writes.awaited_metrics import await_metrics
from flinkmagic.capturing.writes.captured_session import CapturedSession
from flinkmagic.capturing.writes.deferral import Deferral
from flinkmagic.capturing.writes.deferred_write import DeferredWrite, ImmediateStatement
from flinkmagic.capturing.writes.pending import Cause, check_overwrites
from flinkmagic.capturing.writes.targets import Source
from flinkmagic.errors.base import add_note
from flinkmagic.jvm.java import is_stopped


class Recorder(CapturedSession):
    """Notes the calls of one `capture`, and decides on each write and each line that touches one.

    Only the user's own calls come here, not those that PySpark makes to serve them: `hooks.patches` sees to that.
    """

    def __init__(
        self,
        program: Program,
        mode: CaptureMode,
        listener: CaptureListener,
        earlier: tuple[Program, ...] = (),
    ) -> None:
        deploy = self._deploy_pending if mode.deploys else None
        super().__init__(program.spark, SourceReader(program.cell), deploy)
        self.program = program
        self.mode = mode
        self.listener = listener
        self.local_rdds = {number for program in earlier for number in program.local_rdds}
        self.observations: list[Any] = []
        self.awaited: list[DeferredWrite] = list(listener.awaited())
        self._earlier = earlier
        self.ended = False
        """Whether the session has been stopped: no more calls are noted then."""
        self.threads = {self.thread}
        self._depths = threading.local()
        self.frames: FrameRegistry = program.registry
        self.grouped_text: MutableMapping[Any, str] = weakref.WeakKeyDictionary()
        self.views: dict[str, DataFrame] = {}
        begin = listener.start_stream if mode is CaptureMode.STREAMING_RUN else None
        self.streams = PendingStreams(self.spark, self.frames, program.name, mode.is_streaming, begin, deploy)
        self.writes = Deferral(self, self.frames, mode, listener.write_deferred, listener.ran_plainly)
        self._recording = threading.Lock()  # a cell's threads make calls simultaneously
        self._calls: list[RecordedCall] = []
        self._seen_ids: set[int] = set()
        self._marks: dict[int, OperatorOptions] = {}
        self._selections: dict[int, Selection] = {}
        self._used: set[int] = set()
        self._actions = 0
        self._started: list[ImmediateStatement] = []
        self._closing: SessionSnapshot | None = None

    @property
    def depth(self) -> int:
        """How many hooks this thread is in: calls that it makes there serve the outermost one."""
        return getattr(self._depths, "depth", 0)

    @depth.setter
    def depth(self, depth: int) -> None:
        self._depths.depth = depth

    def begin(self, frame: FrameType | None) -> None:
        """Note the frame in which the captured code runs."""
        self.source.begin(frame)

    def record(
        self, method: str, text: str, location: SourceLocation, inputs: Iterable[DataFrame], output: DataFrame
    ) -> None:
        """Note that a call made a DataFrame."""
        with self._recording:
            self._record(method, text, location, tuple(inputs), output)

    def _record(
        self, method: str, text: str, location: SourceLocation, inputs: tuple[DataFrame, ...], output: DataFrame
    ) -> None:
        for df in inputs:
            if self.frames.number(df) is None:
                self._seen_ids.update(expr_ids(df._jdf))
        numbers = tuple(dict.fromkeys(self.frames.use(df) for df in inputs))
        ids = expr_ids(output._jdf)
        new = tuple(i for i in ids if i not in self._seen_ids)
        self._seen_ids.update(new)
        number = self.frames.add(output)
        self._calls.append(RecordedCall(len(self._calls), method, text, location, numbers, number, new))

    def use(self, frames: Iterable[DataFrame]) -> None:
        """Note that rows of frames are read, or that other code is given them: none of them is a result then."""
        with self._recording:
            self._used.update(map(self.frames.add, frames))

    def read(self, sources: Iterable[Source]) -> None:
        """Report a read of what earlier captures are still to write."""
        for source in sources:
            for write in [write for write in self.awaited if source.overlaps(write.facts.target)]:
                self.awaited.remove(write)
                self.listener.awaited_read(self.location(), write)

    def ran(self) -> None:
        """Note that an action has run."""
        with self._recording:
            self._actions += 1

    def mark(self, df: DataFrame, options: OperatorOptions) -> None:
        """Note the options for the operators of a frame; a frame that was made before is known from here on."""
        number = self.frames.number(df)
        is_known = any(call.output == number for call in self._calls) if number is not None else False
        if not is_known and all(program.frame_of(df) is None for program in self._earlier):
            assert options.location is not None
            ids = expr_ids(df._jdf)
            number, self._seen_ids = self.frames.add(df), self._seen_ids.union(ids)
            index, text = len(self._calls), options.location.code
            self._calls.append(RecordedCall(index, "with_options", text, options.location, (), number, ids))
        number = self.frames.add(df)
        self._marks[number] = options.over(self._marks.get(number))

    def select(self, parent: DataFrame, df: DataFrame, selected: Selected) -> None:
        """Note that a frame has some rows of another."""
        with self._recording:
            self._selections[self.frames.keep(df)] = Selection(self.frames.keep(parent), selected)

    def close(self) -> None:
        """Note the session's state for the last time: it is about to be stopped."""
        self._closing = self.snapshot(self.spark)

    def closed(self) -> None:
        """Note no more calls if the session has been stopped now."""
        self.ended = is_stopped(self.spark)
        if not self.ended:
            self._closing = None

    def pending_impurity(self) -> bool:
        """Return whether a function of a pending write may touch files, clocks or chance."""
        return any(write.impure for write in self.pending.writes)

    def note_stream(self, text: str, location: SourceLocation) -> None:
        """Note that a line has started a streaming query."""
        with self._recording:
            self._started.append(ImmediateStatement(text, location))

    def _deploy_pending(self) -> None:
        check_overwrites(self.pending.writes)
        partial = Program(self.spark, self.program.name, self.program.cell, registry=self.frames)
        self._fill(partial)
        link(partial, self._earlier)
        self.listener.run_pending(partial)

    def so_far(self) -> Program:
        """Return what the cell has done until now, without its writes."""
        partial = Program(self.spark, self.program.name, self.program.cell, registry=self.frames)
        self._fill(partial)
        partial.writes = partial.streams = ()
        link(partial, self._earlier)
        return partial

    def _fill(self, program: Program) -> None:
        program.writes = tuple(self.pending.writes)
        program.calls = tuple(self._calls)
        program.used, program.actions = frozenset(self._used), self._actions
        program.skipped, program.settlements = tuple(self.writes.skipped), tuple(self.pending.settlements)
        program.immediate = tuple(self.writes.immediate)
        program.streams, program.started_streams = tuple(self.streams.waiting), tuple(self._started)
        program.local_rdds = frozenset(self.local_rdds)
        program.marks = dict(self._marks)
        program.selections = dict(self._selections)
        program.session = self._closing or self.snapshot(self.spark)
        program.frames = dict(self.frames.kept)
        program.complete = True

    def finish(self, before: Mapping[str, Any], after: Mapping[str, Any]) -> None:
        """Complete the program of a block that ended without an error.

        Raises
        ------
        OverwritesInputError
            If the job as a whole would overwrite what it reads.
        PendingWriteError
            If a line was refused, and the code around it has dropped the error.
        """
        self.source.end()
        if self.pending.unheeded is not None and self.mode is not CaptureMode.LINES:
            raise self.pending.unheeded
        check_overwrites(self.pending.writes)
        self._fill(self.program)
        self.streams.close()
        has_results = self.mode is not CaptureMode.LINES
        name_results(self.program, before, self._without_rebound(before, after), has_results=has_results)
        if self.ended or is_stopped(self.spark):
            self.program.results = {}
        self.program.awaited_metrics = await_metrics(self.observations, self.program.writes, self.program.name)
        link(self.program, self._earlier)

    def fail(self, error: BaseException) -> None:
        """Leave things as a plain cell would whose line raises `error`: run the writes before that line.

        Raises
        ------
        JobFailedError
            If what was pending has failed.
        """
        self.source.end()
        if self.streams.waiting:
            self._fail_streams(error)
        writes = tuple(self.pending.writes)
        if not writes:
            return
        listed = "; ".join(f"{write.facts.label} ({write.location})" for write in writes)
        if isinstance(error, KeyboardInterrupt):
            add_note(error, f"Captured before the interrupt, and dropped: the writes to {listed}.")
        elif self.pending.can_deploy:
            line = self.source.raised_at(error.__traceback__)
            self.pending.deploy(line, Cause.EXCEPTION, "raises after the write to", writes[0])
        else:
            add_note(error, f"Captured before this line, and not going to run: the writes to {listed}.")

    def _fail_streams(self, error: BaseException) -> None:
        """Make the job of what has started before the line that has raised, or say that it will not start.

        What has started runs on after an interrupt, too.
        """
        if self.streams.have_begun:
            self.streams.start()
            return
        listed = "; ".join(f"{stream.name} ({stream.location})" for stream in self.streams.waiting)
        add_note(error, f"Captured before this line, and not going to run: the streams {listed}.")
        self.streams.close()

    def _without_rebound(self, before: Mapping[str, Any], after: Mapping[str, Any]) -> dict[str, Any]:
        """Return the later names without the changes of a job that ended meanwhile: they may refer to retained rows."""

        def is_same(old: DataFrame, new: DataFrame) -> bool:
            numbers = [(program.frame_of(old), program.frame_of(new)) for program in self._earlier]
            return any(one is not None and one == other for one, other in numbers)

        return {
            name: before[name] if name in before and is_same(before[name], df) else df for name, df in after.items()
        }
