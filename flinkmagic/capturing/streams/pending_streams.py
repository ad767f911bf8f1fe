"""Defers the streaming queries of a program."""

from __future__ import annotations

import weakref
from collections.abc import Callable, MutableMapping
from typing import TYPE_CHECKING, Any

from pyspark.sql.streaming import StreamingQuery

from flinkmagic.capturing.streams.deferred_query import DeferredQuery
from flinkmagic.capturing.streams.deferred_stream import BatchCall, BatchFunction, DeferredStream
from flinkmagic.capturing.streams.stream_writers import DeferringStreamWriter, check_operations, copied, writer_options
from flinkmagic.capturing.writes.writer_calls import writer_field
from flinkmagic.errors.streaming import StreamNotStartedError
from flinkmagic.free_names import free_name

if TYPE_CHECKING:
    from flinkmagic.capturing.frames import FrameRegistry
    from flinkmagic.capturing.session_snapshot import SessionSnapshot
    from flinkmagic.capturing.source_code.source_location import SourceLocation
    from flinkmagic.capturing.writes.captured_session import CapturedSession
    from flinkmagic.capturing.writes.deferred_write import ImmediateStatement

_CHECKPOINTS = "spark.sql.streaming.checkpointLocation"
FOREACH_BATCH = "foreachBatch"
"""What Spark's writer calls the sink of such a function."""


class PendingStreams:
    """Defers the starts of a capture whose mode is streaming.

    Parameters
    ----------
    defers : bool
        Whether starts come here at all.
    begin : callable, optional
        Starts each query on its own line. None: none starts, and a line that needs one is refused.
    deploy : callable, optional
        Makes a job of what has started.
    """

    def __init__(
        self,
        session: CapturedSession,
        frames: FrameRegistry,
        name: str | None,
        defers: bool,
        begin: Callable[[DeferredStream], object] | None,
        deploy: Callable[[], None] | None,
    ) -> None:
        self.waiting: list[DeferredStream] = []
        """What is deferred, or has started and is in no job yet."""
        self.started: list[ImmediateStatement] = []
        """The lines that have started a query which does not come here."""
        self._defers = defers
        self._begin = begin
        self._session = session
        self._frames = frames
        self._name = name
        self._deploy = deploy
        self._names: set[str] = set()
        self._functions: MutableMapping[Any, BatchFunction] = weakref.WeakKeyDictionary()

    @property
    def have_begun(self) -> bool:
        """Whether each query starts on its own line."""
        return self._begin is not None

    def is_deferred_here(self) -> bool:
        """Return whether a start on this thread is deferred: other threads of a cell run what they say."""
        return self._defers and self._session.threads.is_own()

    def defer(
        self,
        writer: Any,
        start: Callable[[], object],
        *,
        text: str,
        location: SourceLocation,
        session: SessionSnapshot,
    ) -> StreamingQuery:
        """Let PySpark's `start` (or `toTable`) run up to the start itself; return what represents the query.

        What Spark refuses to start is refused here, by Spark: where queries start later, as far as that is certain.
        """
        java_half = DeferringStreamWriter(writer._jwrite)
        writer._jwrite = java_half
        try:
            start()
        finally:
            writer._jwrite = jwrite = java_half.jwrite
        assert java_half.call is not None
        method, arguments = java_half.call
        df, spark = writer._df, self._session.spark
        check_operations(spark._jvm, df, jwrite)
        source, output_mode = str(writer_field(jwrite, "source")), str(writer_field(jwrite, "outputMode").toString())
        query_name, path, checkpoint = writer_options(jwrite, "queryName", "path", "checkpointLocation")
        named = str(arguments[0]) if arguments else ""
        name = free_name(query_name or (named if method == "toTable" else source), self._names)
        stream = DeferredStream(
            index=len(self.waiting),
            name=name,
            df=df,
            frame=self._frames.keep(df),
            text=text,
            location=location,
            format="table" if method == "toTable" else source,
            output_mode=output_mode.lower(),
            target=named or path or query_name,
            checkpoint=checkpoint or str(spark.conf.get(_CHECKPOINTS, None) or ""),
            session=session,
            query=DeferredQuery(name, location, self.start),
            writer=copied(spark._jvm, df, jwrite),
            method=method,
            arguments=arguments,
            batches=self._functions.get(writer) if source == FOREACH_BATCH else None,
        )
        if self._begin is not None:
            self._begin(stream)
            stream.query.need_job = self.start
        elif stream.is_refused:
            return StreamingQuery(stream.start(None))
        self._names.add(name)
        self.waiting.append(stream)
        return stream.query

    def batch_function(self, writer: Any, function: BatchCall) -> BatchFunction:
        """Return what a writer is given for a function of `foreachBatch`."""
        made = self._functions[writer] = BatchFunction(function)
        return made

    def start(self) -> None:
        """Make a job of what has started, because a line needs it.

        Raises
        ------
        StreamNotStartedError
            If nothing has.
        """
        if self._deploy is None or not self.waiting:
            raise StreamNotStartedError([str(one.query._location) for one in self.waiting] or ["the query"], self._name)
        try:
            self._deploy()
        finally:
            self.waiting.clear()

    def close(self) -> None:
        """End the capture: what is still deferred starts when its graph runs."""
        for stream in self.waiting:
            stream.query.need_start, stream.query.need_job = _refuse(stream, self._name), None


def _refuse(stream: DeferredStream, graph: str | None) -> Callable[[], None]:
    def refuse() -> None:
        raise StreamNotStartedError([f"{stream.location}, {stream.name}"], graph)

    return refuse
