"""Notes what a cell does while it runs: its DataFrame calls, its writes, what its names mean afterwards."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from pyspark.sql import DataFrame

from flinkmagic.capturing.capture_listener import CaptureListener, DeployingListener, StreamStartingListener
from flinkmagic.capturing.capture_mode import CaptureMode
from flinkmagic.capturing.lineage import CallRecorder
from flinkmagic.capturing.merging import link
from flinkmagic.capturing.program import EagerWork, Program
from flinkmagic.capturing.results import name_results
from flinkmagic.capturing.source_code.source_reader import SourceReader
from flinkmagic.capturing.streams.deferred_stream import DeferredStream
from flinkmagic.capturing.streams.pending_streams import PendingStreams
from flinkmagic.capturing.writes.awaited_metrics import await_metrics
from flinkmagic.capturing.writes.captured_session import CapturedSession
from flinkmagic.capturing.writes.deferral import Deferral
from flinkmagic.capturing.writes.deferred_write import DeferredWrite
from flinkmagic.capturing.writes.pending import Cause, check_overwrites
from flinkmagic.capturing.writes.targets import Source
from flinkmagic.errors.base import add_note
from flinkmagic.errors.capturing import ListenerRequiredError
from flinkmagic.jvm.java import is_stopped


class Recorder(CapturedSession):
    """Notes the calls of one `capture`, and decides on each write and each line that touches one.

    Only the user's own calls come here, not those that PySpark makes to serve them: `hooks.patches` sees to that.
    """

    def __init__(
        self, program: Program, mode: CaptureMode, listener: CaptureListener, earlier: tuple[Program, ...]
    ) -> None:
        deploy: Callable[[], None] | None = None
        begin: Callable[[DeferredStream], None] | None = None
        if mode.deploys:
            if not isinstance(listener, DeployingListener):
                raise ListenerRequiredError(mode.value, DeployingListener.__name__)
            deploy = functools.partial(self._deploy_pending, listener)
        if mode is CaptureMode.STREAMING_RUN:
            if not isinstance(listener, StreamStartingListener):
                raise ListenerRequiredError(mode.value, StreamStartingListener.__name__)
            begin = listener.start_stream
        super().__init__(program.spark, SourceReader(program.cell), deploy)
        self.program = program
        self.mode = mode
        self.listener = listener
        self._earlier = earlier
        registry = program.lineage.registry
        self.calls = CallRecorder(registry, (one.lineage for one in earlier))
        self.writes = Deferral(self, registry, mode, listener.write_deferred, listener.ran_plainly)
        self.streams = PendingStreams(self, registry, program.name, mode.is_streaming, begin, deploy)
        self.observations: list[Any] = []
        """Those that the cell has given to DataFrames."""
        self.awaited: list[DeferredWrite] = list(listener.awaited())
        """The writes of earlier captures whose targets the cell has not read yet."""

    def read(self, sources: Iterable[Source]) -> None:
        """Report a read of what earlier captures are still to write."""
        for source in sources:
            for write in [write for write in self.awaited if source.overlaps(write.facts.target)]:
                self.awaited.remove(write)
                self.listener.awaited_read(self.location(), write)

    def _deploy_pending(self, listener: DeployingListener) -> None:
        check_overwrites(self.pending.writes)
        listener.run_pending(self._so_far(with_sinks=True))

    def so_far(self) -> Program:
        """Return what the cell has done until now, without its writes."""
        return self._so_far(with_sinks=False)

    def _so_far(self, *, with_sinks: bool) -> Program:
        program = Program(self.spark, self.program.name, self.program.cell)
        self._fill(program)
        if not with_sinks:
            program.writes = program.streams = ()
        link(program, self._earlier)
        return program

    def _fill(self, program: Program) -> None:
        program.lineage = self.calls.lineage()
        program.eager = EagerWork(
            self.calls.actions,
            tuple(self.pending.settlements),
            tuple(self.writes.skipped),
            tuple(self.writes.immediate),
            tuple(self.streams.started),
        )
        program.writes, program.streams = tuple(self.pending.writes), tuple(self.streams.waiting)
        program.session = self.last_snapshot()
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
