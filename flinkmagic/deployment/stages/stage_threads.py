"""Provides the threads on which the stages of one deployment run."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable


class StageThreads:
    """Runs each stage on a thread that has nothing else to do at the time.

    A thread that has ended one stage takes the next. In PySpark's pinned mode a new thread costs a connection to the
    driver's JVM and a thread there, for which the first job of each stage would wait.

    They are daemon threads, unlike those of `concurrent.futures`: Python ends even if Spark does not answer one.
    """

    def __init__(self) -> None:
        self._waiting: queue.SimpleQueue[tuple[str, Callable[[], None]] | None] = queue.SimpleQueue()
        self._lock = threading.Lock()
        self._idle = 0
        self._is_closed = False

    def start(self, name: str, body: Callable[[], None]) -> None:
        """Run `body`, which raises nothing, on a thread that has this name meanwhile."""
        with self._lock:
            is_taken = self._idle > 0
            if is_taken:
                self._idle -= 1
        if is_taken:
            self._waiting.put((name, body))
        else:
            threading.Thread(target=self._serve, args=(name, body), name=name, daemon=True).start()

    def close(self) -> None:
        """End the threads that wait, and the others when their stage has ended."""
        with self._lock:
            self._is_closed = True
            idle, self._idle = self._idle, 0
        for _ in range(idle):
            self._waiting.put(None)

    def _serve(self, name: str, body: Callable[[], None]) -> None:
        work: tuple[str, Callable[[], None]] | None = (name, body)
        while work is not None:
            threading.current_thread().name, body = work
            body()
            with self._lock:
                if self._is_closed:
                    return
                self._idle += 1
            work = self._waiting.get()
