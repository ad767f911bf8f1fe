"""Follows, cancels and records the Spark jobs that a call of the user's runs by itself.

Its Spark jobs are found by a job tag that the calling thread has while the call lasts (Spark 3.5 and newer; seen on
3.5 and 4.3). Spark's status tracker knows what the driver's listeners have been told, so it lags by some tenths of a
second, and more after an executor was silent.
"""

from __future__ import annotations

import logging
import threading
import time
import uuid
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from py4j.protocol import Py4JError

from flinkmagic.deployment.stages.spark_jobs import cancel_jobs
from flinkmagic.deployment.watching.call_events import PREFIX, CallEvents, listen, take
from flinkmagic.errors.base import FlinkMagicError

if TYPE_CHECKING:
    from pyspark import SparkContext

_LOG = logging.getLogger(__name__)

_TAGS = "spark.job.tags"
"""`SparkContext.SPARK_JOB_TAGS`: names, with commas between them."""

_CANCEL_AGAIN_S = 0.2
"""A call may have several jobs, one after another; Spark cancels those that run."""

RECORDED_S = 1.0
"""What a shorter call did is not asked for: that takes some ten milliseconds."""


@dataclass(frozen=True)
class WorkProgress:
    """The progress of a call."""

    tasks: int
    """How many tasks the stages have that have begun."""
    active: int
    """How many of the tasks run."""
    finished: int
    """How many of the tasks are finished."""


class CallWork:
    """Follows the Spark jobs of one call, and cancels them; callable from any thread."""

    def __init__(self, sc: SparkContext) -> None:
        self._sc = sc
        self._tag = f"{PREFIX}{uuid.uuid4().hex}"
        self._over = threading.Event()
        self._lock = threading.Lock()
        self.is_cancelled = False
        """Whether `cancel` was called while the call lasted."""
        self.is_followed = False
        """Whether `progress` was asked for while the call lasted."""
        self.events: CallEvents | None = None
        """What Spark has reported of a call that is over, unless it was short."""

    @contextmanager
    def entered(self) -> Iterator[None]:
        """Put the jobs of this thread under the call's tag, beside the tags of the user's."""
        with self._for_findings_alone():
            listen(self._sc)
        before = self._sc.getLocalProperty(_TAGS)
        self._sc.setLocalProperty(_TAGS, f"{before},{self._tag}" if before else self._tag)
        began = time.time()
        try:
            yield
        finally:
            with self._lock:
                self._over.set()
            self._sc.setLocalProperty(_TAGS, before)  # type: ignore[arg-type] # None removes it
            self._record(began, time.time())

    def wait(self, seconds: float) -> bool:
        """Wait for the end of the call; return whether it has ended."""
        return self._over.wait(seconds)

    def progress(self) -> WorkProgress | None:
        """Return how far the call is; None if it is over, or its driver has gone."""
        with self._lock:
            if self._over.is_set():
                return None
            self.is_followed = True
        try:
            return self._read()
        except (Py4JError, AttributeError):
            if self._is_gone():
                return None
            raise

    def cancel(self) -> None:
        """Cancel the call's jobs, those included that it has yet to begin; nothing if it is over."""
        with self._lock:
            if self.is_cancelled or self._over.is_set():
                return
            self.is_cancelled = True
        threading.Thread(target=self._cancel_until_over, name="flinkmagic-cancel", daemon=True).start()

    def end(self) -> None:
        """Cancel the jobs of a call that its own thread leaves."""
        if not self._is_gone():
            cancel_jobs(self._sc, self._tag)

    def _cancel_until_over(self) -> None:
        while not self._is_gone():
            cancel_jobs(self._sc, self._tag)
            if self._over.wait(_CANCEL_AGAIN_S):
                return

    def _record(self, began: float, ended: float) -> None:
        if ended - began >= RECORDED_S:
            with self._for_findings_alone():
                self.events = take(self._sc, self._tag, 1000 * began, 1000 * ended)

    @contextmanager
    def _for_findings_alone(self) -> Iterator[None]:
        """Let the call stand, whatever fails here: only findings lack what Spark reports of it."""
        try:
            yield
        except (Py4JError, OSError, AttributeError, FlinkMagicError, ValueError, zlib.error) as error:
            if not self._is_gone():
                _LOG.warning("What Spark did for a call could not be read, so findings do without it: %s", error)

    def _is_gone(self) -> bool:
        """Return whether the context was stopped, or its JVM has ended: the call itself raises then."""
        if self._sc._jsc is None:
            return True
        try:
            return bool(self._sc._jsc.sc().isStopped())
        except Py4JError:
            return True

    def _read(self) -> WorkProgress:
        tracker: Any = self._sc._jsc.sc().statusTracker()
        jobs = [tracker.getJobInfo(job) for job in tracker.getJobIdsForTag(self._tag)]
        ids = {stage for job in jobs if job.isDefined() for stage in job.get().stageIds()}
        infos = [tracker.getStageInfo(stage) for stage in ids]
        # A stage that is skipped has neither a submission time nor tasks that are done.
        begun = [info.get() for info in infos if info.isDefined() and info.get().submissionTime() > 0]
        return WorkProgress(
            sum(stage.numTasks() for stage in begun),
            sum(stage.numActiveTasks() for stage in begun),
            sum(stage.numCompletedTasks() for stage in begun),
        )
