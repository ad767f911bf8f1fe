"""Provides the threads on which stages run, and on which a deployment calls the driver's JVM beside them.

In PySpark's pinned mode a new thread costs a connection to the driver's JVM and a thread there, for which the first
call of each stage would wait: several milliseconds, of which a small job with a new thread for each stage has three or
four.
"""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable

IDLE = "flinkmagic-idle"
"""The name of a thread that waits for a stage."""

_Work = tuple[str, Callable[[], None]]
"""The name of a stage, and what runs it."""


class StageThreads:
    """Runs each stage on a thread that has nothing else to do at the time.

    A thread that has ended one stage takes the next, be it another job's. What Spark knows of a JVM's thread (local
    properties, active session) is still that of the stage before when a stage begins: it sets its own
    (`JobProperties.enter`), and what does not must start no Spark job.

    They are daemon threads, unlike those of `concurrent.futures`: Python ends even if Spark does not answer one.

    Parameters
    ----------
    idle_s : float
        How long a thread waits for a stage before it ends.
    """

    def __init__(self, idle_s: float = 60.0) -> None:
        self._idle_s = idle_s
        self._work: queue.SimpleQueue[_Work] = queue.SimpleQueue()
        self._lock = threading.Lock()
        self._idle = 0
        """How many threads wait for work that nobody has begun to put there."""

    def start(self, name: str, body: Callable[[], None]) -> None:
        """Run `body`, which raises nothing, on a thread that has this name from when it begins until it ends."""
        with self._lock:
            is_taken = self._idle > 0
            self._idle -= is_taken
        self._work.put((name, body))
        if not is_taken:
            threading.Thread(target=self._serve, name=IDLE, daemon=True).start()

    def _serve(self) -> None:
        thread = threading.current_thread()
        # A thread that has just ended its stage may take the work for which this one was made: then this one is idle.
        while (work := self._next()) is not None:
            thread.name = work[0]
            work[1]()
            del work  # what it refers to is not to stay while the thread waits
            thread.name = IDLE
            with self._lock:
                self._idle += 1

    def _next(self) -> _Work | None:
        while True:
            try:
                return self._work.get(timeout=self._idle_s)
            except queue.Empty:
                with self._lock:
                    if self._idle > 0:
                        self._idle -= 1
                        return None
                # Somebody counts on a thread that waits, and is about to put work there.


STAGE_THREADS = StageThreads()
"""Those of all jobs of this process: a thread's connection serves one job after the other."""
