"""Captures what PySpark code does, as a context manager."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, MutableMapping
from contextvars import Token
from types import TracebackType
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from flinkmagic.capturing.capture_listener import CaptureListener
from flinkmagic.capturing.capture_mode import CaptureMode
from flinkmagic.capturing.driver.java_classes import CLASSES
from flinkmagic.capturing.hooks import patches
from flinkmagic.capturing.program import Program
from flinkmagic.capturing.recorder import Recorder
from flinkmagic.capturing.results import bound_frames
from flinkmagic.capturing.source_code.source_location import CellSource, remember
from flinkmagic.capturing.source_code.source_reader import user_frame
from flinkmagic.errors.capturing import SparkConnectSessionError
from flinkmagic.errors.usage import InvalidValueError
from flinkmagic.jvm.java import is_connect


class capture:  # noqa: N801 - reads as the statement that it is used in
    """Capture what PySpark code does, with its writes deferred.

    Within the ``with`` block Spark analyses and checks each write, and the write is put off; everything else runs as
    usual. A line that touches a pending write, or that may touch anything, needs those writes done: they are deployed
    first, or the line is refused before it has any effect (`mode`).

    The block's own thread is captured, and so are the threads that it starts: their writes run immediately. If the
    block raises, pending writes are deployed too, or the error says that they will not run; nothing is registered. An
    interrupt drops pending writes.

    Parameters
    ----------
    spark : SparkSession
        A classic session.
    location : CellSource, optional
        The cell that the code is. By default lines are numbered by their files.
    namespace : mapping, optional
        Where the block binds its names; by default the variables of the function, or module, around the block.
    earlier : iterable of Program, optional
        Programs that were captured before, oldest first: the block may continue from their DataFrames, whose operators
        keep their labels.
    mode : CaptureMode
        What becomes of writes and starts of streaming queries; as text mostly {"batch", "streaming"}.
    listener : CaptureListener, optional
        Provides what lines need, and hears of what they do: a `DeployingListener` for a mode that deploys.

    Raises
    ------
    SparkConnectSessionError
        For a Spark Connect session.
    InvalidValueError
        If there is no such mode.
    ListenerRequiredError
        If the mode needs another kind of listener.
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
        namespace: Mapping[str, Any] | None = None,
        earlier: Iterable[Program] = (),
        mode: CaptureMode | str = CaptureMode.BATCH,
        listener: CaptureListener | None = None,
    ) -> None:
        if is_connect(spark):
            raise SparkConnectSessionError
        modes = [each.value for each in CaptureMode]
        if mode not in modes:
            raise InvalidValueError(str(mode), f"one of {', '.join(modes)}", "mode")
        self._program = Program(
            spark,
            name=name,
            cell=location,
            namespace=namespace if isinstance(namespace, MutableMapping) else None,
        )
        if location is not None:
            remember(location)
        self._recorder = Recorder(self._program, CaptureMode(mode), listener or CaptureListener(), tuple(earlier))
        self._namespace = namespace
        self._before: dict[str, DataFrame] = {}
        self._token: Token[Any]

    def __enter__(self) -> Program:
        # A JVM that does not compile our classes says so before anything is captured.
        CLASSES.shared_instance(self._program.spark.sparkContext._gateway, "CaptureReader")
        self._before = bound_frames(self._variables())
        self._recorder.source.begin(user_frame())
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
