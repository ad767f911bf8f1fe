"""The second way to hear of tasks: Spark's status store, polled.

Used where the driver's JVM does not compile our listener. Slower (a poll each `INTERVAL_S`) and a little poorer:
a task that starts and ends between two polls is reported as both at once, and stages carry no shuffle id. The store's
records are fetched as JSON, one call for a stage's tasks instead of one for each field. Seen on 3.5.9 and 4.3.0.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from py4j.protocol import Py4JError

from flinkmagic.deployment.task_events import (
    ContextStoppedError,
    JobEnded,
    JobStarted,
    Marker,
    StageCompleted,
    StageRef,
    StageSubmitted,
    TaskEnded,
    TaskEvent,
    TaskMetrics,
    TaskStarted,
)

if TYPE_CHECKING:
    from pyspark import SparkContext

    from flinkmagic.deployment.task_monitor import EventConsumer, LossConsumer

_TASKS_OVER = frozenset({"SUCCESS", "FAILED", "KILLED"})


class StatusStoreMonitor:
    """Polls the status store of a session for the jobs under the tags that are watched.

    Parameters
    ----------
    sc : SparkContext
        The session's.
    """

    INTERVAL_S = 0.1
    LONGEST_FLUSH_S = 10.0
    """How long a flush waits for the store to say that the watched jobs are over."""
    MOST_TASKS = 1_000_000

    def __init__(self, sc: SparkContext) -> None:
        jvm = sc._jvm
        assert jvm is not None
        self._context = sc._jsc.sc()
        self._store = self._context.statusStore()
        self._tracker = self._context.statusTracker()
        self._json = jvm.com.fasterxml.jackson.databind.ObjectMapper()
        self._json.registerModule(jvm.com.fasterxml.jackson.module.scala.DefaultScalaModule())
        self._no_statuses = jvm.java.util.ArrayList()
        self._no_quantiles = sc._gateway.new_array(jvm.double, 0)  # type: ignore[union-attr]
        self._lock = threading.Lock()
        self._tags: set[str] = set()
        self._flushes: list[tuple[str, str, float]] = []
        self._wake, self._stopping = threading.Event(), threading.Event()
        self._thread: threading.Thread | None = None
        # Touched by the polling thread only.
        self._jobs: dict[int, tuple[str, tuple[int, ...]]] = {}
        self._jobs_over: set[int] = set()
        self._settled: set[int] = set()
        self._stages: dict[tuple[int, int], bool] = {}
        self._tasks: dict[int, bool] = {}

    def start(self, on_events: EventConsumer, on_loss: LossConsumer) -> None:
        self._thread = threading.Thread(
            target=self._run, args=(on_events, on_loss), name="flinkmagic-task-monitor", daemon=True
        )
        self._thread.start()

    def watch(self, tag: str) -> None:
        with self._lock:
            self._tags.add(tag)

    def await_submission(self, tags: Sequence[str], timeout_ms: int) -> None:
        """Nothing to wait for: a poll would come later than the submission. So Spark may change the order."""

    def flush(self, token: str, tag: str) -> None:
        with self._lock:
            self._flushes.append((token, tag, time.monotonic() + self.LONGEST_FLUSH_S))
        self._wake.set()

    def stop(self) -> None:
        self._stopping.set()
        self._wake.set()
        if self._thread is not None and self._thread is not threading.current_thread():
            self._thread.join(10)

    def _run(self, on_events: EventConsumer, on_loss: LossConsumer) -> None:
        while True:
            last = self._stopping.is_set()
            try:
                events = list(self.poll())
            except (Py4JError, OSError, AttributeError) as gone:
                if not last:
                    on_loss(gone)
                return
            if events:
                on_events(events)
            if last:
                return
            if self._context.isStopped():
                on_loss(ContextStoppedError())
                return
            self._wake.wait(self.INTERVAL_S)
            self._wake.clear()

    def poll(self) -> Iterator[TaskEvent]:
        """What is new since the last poll."""
        with self._lock:
            tags, flushes = list(self._tags), list(self._flushes)
        for tag in tags:
            for job_id in self._tracker.getJobIdsForTag(tag):
                if job_id not in self._settled:
                    yield from self._poll_job(job_id, tag)
        quiet = {tag for _, tag, _ in flushes if self._is_quiet(tag)}
        done = [flush for flush in flushes if flush[1] in quiet or time.monotonic() > flush[2]]
        with self._lock:
            self._flushes = [flush for flush in self._flushes if flush not in done]
            self._tags.difference_update(quiet)
        for token, _, _ in done:
            yield Marker(token)

    def _is_quiet(self, tag: str) -> bool:
        """Whether all that is known under the tag is over in the store too."""
        return all(job in self._settled for job, (of, _) in self._jobs.items() if of == tag)

    def _poll_job(self, job_id: int, tag: str) -> Iterator[TaskEvent]:
        job = self._as_json(self._store.job(job_id))
        if job_id not in self._jobs:
            self._jobs[job_id] = (tag, tuple(job["stageIds"]))
            attempts = {stage: self._attempts(stage) for stage in job["stageIds"]}
            refs = (StageRef(stage, None, a[-1]["numTasks"] if a else 0) for stage, a in attempts.items())
            yield JobStarted(job_id, float(job["submissionTime"] or 0), tag, tuple(refs))
        over = job["status"] in ("SUCCEEDED", "FAILED")
        # What a task made after its job was given up counts for nothing, so that news comes first.
        if job["status"] == "FAILED":
            yield from self._job_ended(job_id, job)
        stages = self._jobs[job_id][1]
        for stage in sorted(stages):
            for attempt in self._attempts(stage):
                yield from self._poll_stage(attempt, tag)
        if job["status"] == "SUCCEEDED":
            yield from self._job_ended(job_id, job)
        if over and all(done for (stage, _), done in self._stages.items() if stage in stages):
            self._settled.add(job_id)

    def _job_ended(self, job_id: int, job: dict[str, Any]) -> Iterator[TaskEvent]:
        if job_id not in self._jobs_over:
            self._jobs_over.add(job_id)
            yield JobEnded(job_id, float(job["completionTime"] or 0), job["status"] == "SUCCEEDED")

    def _attempts(self, stage: int) -> list[dict[str, Any]]:
        found = self._store.stageData(stage, False, self._no_statuses, False, self._no_quantiles)
        return sorted(self._as_json(found), key=lambda attempt: attempt["attemptId"])

    def _poll_stage(self, attempt: dict[str, Any], tag: str) -> Iterator[TaskEvent]:
        key = (attempt["stageId"], attempt["attemptId"])
        if attempt["status"] in ("PENDING", "SKIPPED") or self._stages.get(key):
            return
        if key not in self._stages:
            self._stages[key] = False
            yield StageSubmitted(*key, float(attempt["submissionTime"] or 0), attempt["numTasks"], None, tag)
        over = attempt["status"] in ("COMPLETE", "FAILED")
        tasks = self._as_json(self._store.taskList(*key, self.MOST_TASKS))
        for task in tasks:
            yield from self._task_news(key, task)
        if over and all(self._tasks[task["taskId"]] for task in tasks):
            self._stages[key] = True
            yield StageCompleted(*key, float(attempt["completionTime"] or 0), attempt["failureReason"] or "")

    def _task_news(self, stage: tuple[int, int], task: dict[str, Any]) -> Iterator[TaskEvent]:
        task_id = task["taskId"]
        started = TaskStarted(
            *stage,
            task["index"] if task["partitionId"] < 0 else task["partitionId"],
            task["attempt"],
            task_id,
            task["executorId"],
            float(task["launchTime"]),
            task["speculative"],
        )
        if task_id not in self._tasks:
            self._tasks[task_id] = False
            yield started
        if task["status"] in _TASKS_OVER and not self._tasks[task_id]:
            self._tasks[task_id] = True
            error = task["errorMessage"] or ""
            finished = started.launched_ms + (task["duration"] or 0)
            yield TaskEnded(started, finished, task["status"], _metrics(task), error.split("(", 1)[0], error)

    def _as_json(self, record: Any) -> Any:
        return json.loads(self._json.writeValueAsString(record))


def _metrics(task: dict[str, Any]) -> TaskMetrics | None:
    metrics = task["taskMetrics"]
    if metrics is None:
        return None
    read, written = metrics["shuffleReadMetrics"], metrics["shuffleWriteMetrics"]
    return TaskMetrics(
        metrics["inputMetrics"]["recordsRead"] + read["recordsRead"],
        metrics["outputMetrics"]["recordsWritten"] + written["recordsWritten"],
        metrics["inputMetrics"]["bytesRead"] + read["remoteBytesRead"] + read["localBytesRead"],
        metrics["outputMetrics"]["bytesWritten"] + written["bytesWritten"],
        metrics["memoryBytesSpilled"],
        metrics["diskBytesSpilled"],
        metrics["executorRunTime"],
        metrics["jvmGcTime"],
        metrics["resultSize"],
    )
