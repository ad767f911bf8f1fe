"""Hooks the start of streams, and waiting for them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from flinkmagic.capturing.call_arguments import Args, Kwargs, argument
from flinkmagic.capturing.hooks.call_hooks import Entry, Hook
from flinkmagic.capturing.source_code.source_reader import user_frame
from flinkmagic.capturing.writes.deferred_write import ImmediateStatement
from flinkmagic.capturing.writes.pending import Cause, Effects

if TYPE_CHECKING:
    from flinkmagic.capturing.recorder import Recorder


def entries() -> Iterator[Entry]:
    """Yield the methods and the hook factory of each."""
    from pyspark.sql.streaming import DataStreamWriter, StreamingQueryManager

    for name in ("start", "toTable"):
        yield DataStreamWriter, name, StreamStart
    yield DataStreamWriter, "foreachBatch", ForeachBatch
    for name in ("active", "get", "awaitAnyTermination"):
        yield StreamingQueryManager, name, StreamWait


class StreamStart(Hook):
    """`start` and `toTable`: deferred in a capture of mode streaming; otherwise they settle what is pending."""

    def before(self, recorder: Recorder, args: Args, kwargs: Kwargs) -> None:
        recorder.settle(Effects(unknown=True, cause=Cause.STREAM))

    def call(self, recorder: Recorder, args: Args, kwargs: Kwargs) -> Any:
        location, text = recorder.location(), recorder.source.call_text(user_frame(), self.method, args[1:], kwargs)
        recorder.calls.use([args[0]._df])
        if not recorder.streams.is_deferred_here():
            query = self.original(*args, **kwargs)
            recorder.streams.started.append(ImmediateStatement(text, location))
            return query
        return recorder.streams.defer(
            args[0],
            lambda: self.original(*args, **kwargs),
            text=text,
            location=location,
            session=recorder.snapshot(args[0]._df.sparkSession),
        )


class ForeachBatch(Hook):
    """`foreachBatch` in a capture of mode streaming: the job that runs the query carries its function out."""

    def arguments(self, recorder: Recorder, args: Args, kwargs: Kwargs) -> tuple[Args, Kwargs]:
        given = argument(args, kwargs, 1, "func")
        if not callable(given) or not recorder.streams.is_deferred_here():
            return args, kwargs
        function = recorder.streams.batch_function(args[0], given)
        return ((args[0], function, *args[2:]), kwargs) if len(args) > 1 else (args, {**kwargs, "func": function})


class StreamWait(Hook):
    """What looks at the session's queries, or waits for one of them: those of the cell must have started."""

    def before(self, recorder: Recorder, args: Args, kwargs: Kwargs) -> None:
        waits = self.method == "awaitAnyTermination"
        if waits:
            recorder.settle(Effects(unknown=True, cause=Cause.STREAM))
        if recorder.streams.waiting and (waits or not recorder.streams.have_begun):
            recorder.streams.start()
