"""Reports a job's stages and tasks, by a listener inside the driver's JVM (``java/TaskMonitor.java``).

Polling Spark's status store instead would cost 80 to 90 ms a poll, and report the same later and without shuffle ids.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from py4j.protocol import Py4JError

from flinkmagic.deployment.java_classes import CLASSES
from flinkmagic.deployment.stages.stage_runner import EARLY
from flinkmagic.deployment.stages.stage_threads import STAGE_THREADS
from flinkmagic.deployment.watching.task_events import ApplicationEnded, ContextStoppedError, TaskEvent, parse_lines
from flinkmagic.jvm.contexts import jvm_context

if TYPE_CHECKING:
    from pyspark import SparkContext

_LOG = logging.getLogger(__name__)

EventConsumer = Callable[[Sequence[TaskEvent]], None]
LossConsumer = Callable[[BaseException], None]


class TaskMonitor:
    """Delivers, on its own thread and in Spark's order, the events of jobs whose tag begins with a prefix.

    A SparkListener writes them as lines, which are drained with one call. The call waits inside the JVM, so that news
    arrives immediately and no thread polls.

    Parameters
    ----------
    prefix : str
        How the tags of the job begin.

    Raises
    ------
    DriverClassesRefusedError
        If this JVM does not let us compile the listener.
    """

    WAIT_MS = 500
    """How long one call waits for the first line; at worst `stop` waits as long."""
    GATHER_MS = 100
    """How long it then waits for more (but not after a marker): a call costs as much as many lines."""

    def __init__(self, sc: SparkContext, prefix: str) -> None:
        self._sc = sc
        self._listener: Any = CLASSES.new_instance(sc._gateway, "TaskMonitor", prefix)
        self._stopping = threading.Event()
        self._over = threading.Event()
        self._over.set()

    def start(self, on_events: EventConsumer, on_loss: LossConsumer) -> None:
        """Start to listen. `on_loss` is called once if the session goes away."""
        self._listener.listenTo(jvm_context(self._sc))
        self._over.clear()
        STAGE_THREADS.start("flinkmagic-task-monitor", partial(self._run, on_events, on_loss))

    def await_submission(self, tags: Sequence[str], timeout_ms: int) -> None:
        """Wait until Spark has received a job under each of some tags, or `flush` was called with the tag as token."""
        self._listener.awaitSubmission(" ".join(tags), EARLY, timeout_ms)

    def count_rows(self, tag: str, metrics: str) -> None:
        """Count what the tasks of a stage under a tag read by metrics of Spark's, not by the batches of kept rows."""
        self._listener.countRows(tag, metrics)

    def flush(self, token: str) -> None:
        """Deliver ``Marker(token)`` after all that Spark has reported so far."""
        # Spark posts the end of a task before it completes the job's future.
        self._listener.mark(token)

    def stop(self) -> None:
        """Stop listening; what was reported is delivered first. Not to be called by what it delivers to."""
        if self._stopping.is_set():
            return
        self._stopping.set()
        # The thread that stops it may have no connection to the JVM, and need none.
        STAGE_THREADS.start("flinkmagic-wake", self._wake)
        self._over.wait(10)

    def _wake(self) -> None:
        try:
            self._listener.wake()
        except (Py4JError, OSError, AttributeError) as gone:
            _LOG.debug("the session was stopped before its task monitor: %s", gone)

    def _run(self, on_events: EventConsumer, on_loss: LossConsumer) -> None:
        try:
            self._deliver(on_events, on_loss)
        finally:
            self._leave_bus()
            self._over.set()

    def _leave_bus(self) -> None:
        try:
            jvm_context(self._sc).removeSparkListener(self._listener)
        except (Py4JError, OSError, AttributeError) as gone:
            _LOG.debug("the session was stopped before its task monitor: %s", gone)

    def _deliver(self, on_events: EventConsumer, on_loss: LossConsumer) -> None:
        while True:
            last = self._stopping.is_set()
            try:
                text = self._listener.drain(0 if last else self.WAIT_MS, 0 if last else self.GATHER_MS)
            except (Py4JError, OSError, AttributeError) as gone:
                if not last:
                    on_loss(gone)
                return
            events = list(parse_lines(text))
            if events:
                on_events(events)
            if any(isinstance(event, ApplicationEnded) for event in events):
                on_loss(ContextStoppedError())
                return
            if last:
                return
