"""What `start()` returns while the start is deferred: a `StreamingQuery` that begins when its graph runs."""

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
    """A streaming query that starts when its graph runs; from then on it is that query.

    Whatever is asked of a query goes to its Java half (seen in PySpark 3.5 and 4.3), so whatever is asked before needs
    the start. A restarted query has a new Java half; a graph that runs again gives it the query of that run.

    Parameters
    ----------
    name : str
        The query's name in its graph.
    location : SourceLocation
        The line of the start.
    need_start : callable
        Starts it, or raises what says that it has not been started.
    """

    def __init__(self, name: str, location: SourceLocation, need_start: Callable[[], None]) -> None:
        self.need_start = need_start
        self._name, self._location = name, location
        self._lock = threading.Lock()
        self._begun: Future[Any] | None = None
        self._ended: Future[None] | None = None

    @property
    def _jsq(self) -> Any:
        return self._started().result()

    def _started(self) -> Future[Any]:
        if self._begun is None:
            self.need_start()
        begun = self._begun
        assert begun is not None
        return begun

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
        if timeout is not None and timeout <= 0:
            raise ValueError("timeout must be positive")
        self._started()
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

    def submitted(self) -> None:
        """Note that its graph has been run."""
        with self._lock:
            self._begun, self._ended = Future(), Future()

    def started(self, java_query: Any) -> None:
        """Note that it has started, or started again."""
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
