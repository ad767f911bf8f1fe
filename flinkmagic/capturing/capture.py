"""The context manager that captures code."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, MutableMapping
from contextvars import Token
from types import TracebackType
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from flinkmagic.capturing.driver.java_classes import require_compiler
from flinkmagic.capturing.hooks import patches
from flinkmagic.capturing.hooks.action_call import ActionCall, ReadCall
from flinkmagic.capturing.program import Program
from flinkmagic.capturing.recorder import Recorder
from flinkmagic.capturing.results import bound_frames
from flinkmagic.capturing.source_code.cell_labels import remember
from flinkmagic.capturing.source_code.source_location import CellSource, SourceLocation
from flinkmagic.capturing.source_code.source_reader import user_frame
from flinkmagic.capturing.streams.deferred_stream import DeferredStream
from flinkmagic.capturing.writes.deferred_write import DeferredWrite
from flinkmagic.errors.capturing import SparkConnectSessionError


class capture:  # noqa: N801 - reads as the statement that it is used in
    """Capture what PySpark code does, with its writes deferred.

    Within the ``with`` block Spark analyses and checks each write, and the write is put off; everything else runs as
    usual. A line that touches a pending write, or that may touch anything, needs those writes done: they are deployed
    first (`run_pending`), or the line is refused before it has any effect.

    The block's own thread is captured, and so are the threads that it starts: their writes run immediately. If the
    block raises, pending writes are deployed too, or the error says that they will not run; nothing is registered. An
    interrupt drops pending writes.

    Parameters
    ----------
    spark : SparkSession
        A classic session.
    name : str, optional
        The program's name.
    location : CellSource, optional
        The cell, if the code is one. Otherwise lines are numbered by their files.
    run_pending : callable, optional
        Called with a `Program` of the pending writes when a line needs them; runs them and returns when they are done.
        Without it such a line is refused.
    namespace : mapping, optional
        Where the block binds its names; by default the variables of the function, or module, around the block.
    earlier : iterable of Program, optional
        Programs that were captured before, oldest first: the block may continue from their DataFrames, whose operators
        keep their labels.
    on_write : callable, optional
        Called for each deferred write with the number of pending writes.
    awaited : iterable of DeferredWrite, optional
        Writes that were captured before and have not run.
    on_awaited : callable, optional
        Called with a line that reads the target of an awaited write, and with that write.
    immediate : bool
        Nothing is deferred: each write is deployed on its own line through `run_pending`, which it needs. What a write
        raises is what plain Spark raises.
    mode : {"batch", "streaming"}
        With streaming, `start()` of a `DataStreamWriter` is deferred too, and batch writes are refused.
    on_plain : callable, optional
        With `immediate`, called with the line and the text of a write that could not be deployed, and why, once plain
        Spark has written it. `run_pending` raises `NotDeployedError` for such a write, or this package refuses it.
    on_action : callable, optional
        Called with each action of the block's own thread (an `ActionCall`); returns what the action returns.
    on_stream : callable, optional
        With `run_pending` and mode streaming: starts each stream (a `DeferredStream`) on the line of its start.
    on_read : callable, optional
        Called with each call of that thread that reads files (a `ReadCall`); returns the DataFrame.
    never_refuses : bool
        With `run_pending`: a write that cannot be put off runs on its line, once what is pending has run.

    Raises
    ------
    SparkConnectSessionError
        For a Spark Connect session.
    DriverClassesRefusedError
        If the session's JVM does not compile our Java classes. The block is not run.

    Examples
    --------
    >>> with capture(spark) as program:  # doctest: +SKIP
    ...     df = spark.range(3)
    ...     df.write.parquet("out")
    >>> program.writes[0].location.code  # doctest: +SKIP
    'df.write.parquet("out")'
    """

    def __init__(
        self,
        spark: SparkSession,
        *,
        name: str | None = None,
        location: CellSource | None = None,
        run_pending: Callable[[Program], object] | None = None,
        namespace: Mapping[str, Any] | None = None,
        earlier: Iterable[Program] = (),
        on_write: Callable[[int], None] | None = None,
        awaited: Iterable[DeferredWrite] = (),
        on_awaited: Callable[[SourceLocation, DeferredWrite], None] | None = None,
        immediate: bool = False,
        mode: str = "batch",
        on_plain: Callable[[SourceLocation, str, Exception], None] | None = None,
        on_action: Callable[[ActionCall], Any] | None = None,
        on_stream: Callable[[DeferredStream], object] | None = None,
        on_read: Callable[[ReadCall], DataFrame] | None = None,
        never_refuses: bool = False,
    ) -> None:
        if type(spark).__module__.startswith("pyspark.sql.connect"):
            raise SparkConnectSessionError
        self._program = Program(
            spark,
            name=name,
            cell=location,
            namespace=namespace if isinstance(namespace, MutableMapping) else None,
        )
        if location is not None:
            remember(location)
        self._recorder = Recorder(self._program, run_pending, tuple(earlier), on_write, immediate=immediate)
        self._recorder.streams.defers = mode == "streaming"
        self._recorder.streams.begin = on_stream
        self._recorder.on_plain = on_plain
        if on_awaited is not None:
            self._recorder.awaited, self._recorder.on_awaited = list(awaited), on_awaited
        self._recorder.on_action = on_action
        self._recorder.on_read = on_read
        self._recorder.never_refuses = never_refuses
        self._namespace = namespace
        self._before: dict[str, DataFrame] = {}
        self._token: Token[Any]

    def __enter__(self) -> Program:
        require_compiler(self._program.spark)
        self._before = bound_frames(self._variables())
        self._recorder.begin(user_frame())
        self._token = patches.activate(self._recorder)
        return self._program

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        patches.deactivate(self._recorder, self._token)
        if error is None:
            self._recorder.finish(self._before, bound_frames(self._variables()))
        else:
            self._recorder.fail(error)

    def _variables(self) -> Mapping[str, Any]:
        if self._namespace is not None:
            return self._namespace
        frame = user_frame()
        return {} if frame is None else frame.f_locals
