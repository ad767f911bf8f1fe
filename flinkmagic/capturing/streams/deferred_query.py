"""Provides what `start()` returns in mode streaming: a `StreamingQuery` that starts when its graph runs, or before."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future
from concurrent.futures import TimeoutError as FutureTimeoutError
from typing import TYPE_CHECKING, Any

from pyspark.sql.streaming import StreamingQuery

if TYPE_CHECKING:
    from flinkmagic.capturing.source_code.source_location import SourceLocation


class DeferredQuery(StreamingQuery):
    """A streaming query that starts when its graph runs.

    Every request to a query goes to its Java half (seen in PySpark 3.5 and 4.3), so a request before then needs the
    start. A restarted query has a new Java half; a graph that runs again gives it the query of that run.

    Where a cell runs as soon as it is compiled, the query starts on its line, and a job takes it over later.

    Parameters
    ----------
    name : str
        The query's name in its graph.
    need_start : callable
        Starts it, or raises the error that it has not been started.
    """

    def __init__(self, name: str, location: SourceLocation, need_start: Callable[[], None]) -> None:
        self.need_start = need_start
        self.need_job: Callable[[], None] | None = None
        """Makes the job that takes the query over; None if the cell makes none any more."""
        self._name, self._location = name, location
        self._lock = threading.Lock()
        self._begun: Future[Any] | None = None
        self._ended: Future[None] | None = None
        self._start: object = None
        self._has_job = False

    @property
    def _jsq(self) -> Any:
        return self._started().result()

    def _started(self) -> Future[Any]:
        if self._begun is None:
            self.need_start()
        begun = self._begun
        assert begun is not None
        return begun

    def _taken_over(self) -> bool:
        """Return whether a job knows of its end, which is shown while one waits; let one take it over if it can be."""
        self._started()
        if self._start is not None and self.need_job is not None:
            self.need_job()
        return self._has_job

    def processAllAvailable(self) -> None:  # noqa: N802 - Spark's name
        """Wait until all that is there now has been processed."""
        self._taken_over()
        super().processAllAvailable()

    def awaitTermination(self, timeout: int | None = None) -> bool | None:  # noqa: N802 - Spark's name
        """Wait until the query has ended for good: a restart is no end.

        Parameters
        ----------
        timeout : int, optional
            Return after so many seconds, with whether it has ended.

        Raises
        ------
        StreamingQueryException
            What ended it.
        """
        is_refused = timeout is not None and timeout <= 0
        if is_refused or not self._taken_over():
            return super().awaitTermination(timeout)
        ended = self._ended
        assert ended is not None
        try:
            ended.result(timeout)
        except FutureTimeoutError:
            if ended.done():
                raise
            return False
        return None if timeout is None else True

    # -- for what runs it ------------------------------------------------------------------------------

    def begun(self, java_query: Any, start: object) -> None:
        """Note that it has started, and how: for the job that is to take it over."""
        with self._lock:
            self._begun, self._ended = Future(), Future()
            self._start, self._has_job = start, False
            self._begun.set_result(java_query)

    def start_to_take_over(self) -> Any:
        """Return how it has started, if no job has taken it over yet; else None."""
        return self._start

    def taken_over(self, *, has_job: bool = True) -> None:
        """Note that a job has it from now on; or that none will, and it is Spark's alone."""
        with self._lock:
            self._has_job, self._start = has_job, None

    def started(self, java_query: Any) -> None:
        """Note that it has started again."""
        with self._lock:
            begun = self._begun
            if begun is None or begun.done():
                begun = self._begun = Future()
            begun.set_result(java_query)

    def ended(self, error: BaseException | None) -> None:
        """Note that it has ended for good."""
        with self._lock:
            for future in (self._begun, self._ended):
                if future is None or future.done():
                    continue
                if error is not None:
                    future.set_exception(error)
                elif future is self._ended:
                    future.set_result(None)
                else:
                    future.cancel()

    def __repr__(self) -> str:
        state = "deferred" if self._begun is None else "started" if self._begun.done() else "starting"
        return f"<DeferredQuery {self._name} ({self._location}): {state}>"
