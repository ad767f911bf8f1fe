"""Runs one start of a streaming query to its end."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from typing import Any

_LOG = logging.getLogger(__name__)


class QueryRun:
    """Starts a query on a thread that then waits for its end.

    Parameters
    ----------
    start : callable
        Starts it, or takes over what has been started; returns Spark's query.
    on_started, on_ended : callable
        Called on that thread: with Spark's query; with what ended it, None if it ended or was stopped.
    """

    def __init__(
        self,
        name: str,
        start: Callable[[], Any],
        *,
        on_started: Callable[[Any], None],
        on_ended: Callable[[BaseException | None], None],
    ) -> None:
        self._name = name
        self._start = start
        self._on_started, self._on_ended = on_started, on_ended
        self._lock = threading.Lock()
        self._java: Any = None
        self._is_stopped = False

    def start(self) -> None:
        """Begin, and return immediately."""
        self._begin("query", self._run)

    def stop(self) -> None:
        """Stop the query, also one that is only about to start; return immediately."""
        with self._lock:
            if self._is_stopped:
                return
            self._is_stopped = True
            if self._java is not None:
                self._begin("stop", self._stop)

    def _begin(self, what: str, body: Callable[[], None]) -> None:
        """Run something on a new thread: Spark's own threads of a query inherit what the JVM's thread has set."""
        threading.Thread(target=body, name=f"flinkmagic-{what}-{self._name}", daemon=True).start()

    def _run(self) -> None:
        failure: BaseException | None = None
        try:
            java = self._start()
            with self._lock:
                self._java = java
                if self._is_stopped:
                    self._begin("stop", self._stop)
            self._on_started(java)
            java.awaitTermination()
        except Exception as error:  # noqa: BLE001 - told to whoever waits for the query
            failure = error
        self._on_ended(failure)

    def _stop(self) -> None:
        try:
            self._java.stop()
        except Exception as error:  # noqa: BLE001 - its end, with what ended it, comes to the thread that waits
            _LOG.warning("Spark did not stop the query %s quietly: %s", self._name, error)
