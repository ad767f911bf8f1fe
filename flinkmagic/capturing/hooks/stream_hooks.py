"""Hooks the start of streams, and waiting for them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from flinkmagic.capturing.hooks.call_hooks import Args, Hook, Kwargs
from flinkmagic.capturing.source_code.source_reader import user_frame
from flinkmagic.capturing.writes.pending import Cause, Effects

if TYPE_CHECKING:
    from flinkmagic.capturing.recorder import Recorder


def entries() -> Iterator[tuple[type, str, type[Hook]]]:
    """Yield the methods and the hook of each."""
    from pyspark.sql.streaming import DataStreamWriter, StreamingQueryManager

    for name in ("start", "toTable"):
        yield DataStreamWriter, name, StreamStart
    yield DataStreamWriter, "foreachBatch", ForeachBatch
    for name in ("active", "get", "awaitAnyTermination"):
        yield StreamingQueryManager, name, StreamWait


class StreamStart(Hook):
    """`start` and `toTable`: deferred in a capture of mode streaming; otherwise they settle what is pending."""

    def before(self, recorder: Recorder, args: Args, kwargs: Kwargs) -> None:
        if recorder.pending:
            recorder.pending.settle(Effects(unknown=True, cause=Cause.STREAM), recorder.location())

    def call(self, recorder: Recorder, args: Args, kwargs: Kwargs) -> Any:
        location, text = recorder.location(), recorder.source.call_text(user_frame(), self.method, args[1:], kwargs)
        recorder.use([args[0]._df])
        if not recorder.streams.is_deferred_here():
            query = self.original(*args, **kwargs)
            recorder.note_stream(text, location)
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
        given = args[1] if len(args) > 1 else kwargs.get("func")
        if not callable(given) or not recorder.streams.is_deferred_here():
            return args, kwargs
        function = recorder.streams.batch_function(args[0], given)
        return ((args[0], function, *args[2:]), kwargs) if len(args) > 1 else (args, {**kwargs, "func": function})


class StreamWait(Hook):
    """What looks at the session's queries, or waits for one of them: those of the cell must have started."""

    def before(self, recorder: Recorder, args: Args, kwargs: Kwargs) -> None:
        if recorder.pending and self.method == "awaitAnyTermination":
            recorder.pending.settle(Effects(unknown=True, cause=Cause.STREAM), recorder.location())
        has_begun = recorder.streams.have_begun and self.method != "awaitAnyTermination"
        if recorder.streams.waiting and not has_begun:
            recorder.streams.start()
