"""The listener tells all of a job's stages and tasks, and nothing of other jobs."""

from __future__ import annotations

import threading
import time
import uuid

import pytest

from flinkmagic.deployment.watching.task_events import (
    ExecutorAdded,
    JobEnded,
    JobStarted,
    Marker,
    TaskEnded,
    TaskStarted,
    parse_lines,
)
from flinkmagic.deployment.watching.task_monitor import TaskMonitor
from flinkmagic.errors.base import InvariantViolatedError


class Heard:
    """Collects events, and waits for a marker."""

    def __init__(self):
        self.events, self.lost, self._tokens = [], [], {}

    def __call__(self, events):
        self.events.extend(events)
        for event in events:
            if isinstance(event, Marker):
                self._tokens.setdefault(event.token, threading.Event()).set()

    def wait_for(self, token):
        return self._tokens.setdefault(token, threading.Event()).wait(20)

    def of(self, kind):
        return [event for event in self.events if isinstance(event, kind)]


@pytest.fixture
def monitored(spark):
    """A monitor, what it heard, and the tag that it listens for."""
    prefix = f"flinkmagic-{uuid.uuid4().hex[:8]}-"
    monitor = TaskMonitor(spark.sparkContext, prefix)
    heard = Heard()
    monitor.start(heard, heard.lost.append)
    yield monitor, heard, f"{prefix}v0"
    monitor.stop()
    assert heard.lost == []


def run_tagged(spark, tag, action):
    """Run an action on a thread of its own under a tag, and hand back what it gave or raised."""
    outcome = []

    def run():
        spark.sparkContext._jsc.sc().addJobTag(tag)
        try:
            outcome.append(action())
        except Exception as error:  # noqa: BLE001 - the outcome of the action, whatever it is
            outcome.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    return outcome[0]


def test_tells_all_of_a_job_in_order(spark, monitored):
    monitor, heard, tag = monitored
    rdd = spark.sparkContext.parallelize(range(100), 4).map(lambda x: (x % 3, x)).groupByKey(2)
    assert run_tagged(spark, tag, rdd.count) == 3
    monitor.flush("end")
    assert heard.wait_for("end")

    (job,) = heard.of(JobStarted)
    assert (job.tag, len(job.stages), job.final_stage.tasks) == (tag, 2, 2)
    assert heard.of(JobEnded)[0].succeeded
    assert sorted(stage.tasks for stage in job.stages) == [2, 4]
    ends = heard.of(TaskEnded)
    first, last = sorted(stage.stage_id for stage in job.stages)
    assert last == job.final_stage.stage_id
    assert sorted((end.started.stage_id, end.started.partition) for end in ends) == [
        *((first, partition) for partition in range(4)),
        *((last, partition) for partition in range(2)),
    ]
    assert {end.started.task_id for end in ends} == {start.task_id for start in heard.of(TaskStarted)}
    assert all(end.status == "SUCCESS" and end.started.executor == "driver" for end in ends)
    assert all(end.finished_ms >= end.started.launched_ms > 1.6e12 for end in ends)
    written = sum(end.metrics.rows_out for end in ends if end.started.stage_id == first)
    assert written == sum(end.metrics.rows_in for end in ends if end.started.stage_id == last) > 0
    kinds = [type(event) for event in heard.events if not isinstance(event, ExecutorAdded)]
    assert (kinds[0], kinds[-1]) == (JobStarted, Marker)


@pytest.mark.parametrize("suffix", ["", "-early"])
def test_a_submission_is_waited_for_until_spark_has_a_job_under_the_tag(spark, suffix):
    prefix = f"turn{suffix}-"
    monitor = TaskMonitor(spark.sparkContext, prefix)
    monitor.start(lambda events: None, lambda loss: None)
    try:
        one, other = f"{prefix}one", f"{prefix}other"
        over = threading.Event()

        def wait():
            monitor.await_submission([one, other], 60_000)
            over.set()

        waiting = threading.Thread(target=wait)
        waiting.start()
        run_tagged(spark, one + suffix, spark.sparkContext.parallelize([1], 1).count)
        assert not over.wait(0.2)
        # What ends without a job lets the others go on, too.
        monitor.flush(other)
        assert over.wait(30)
        waiting.join()
        start = time.monotonic()
        monitor.await_submission([one, f"{prefix}never"], 100)
        assert 0.09 < time.monotonic() - start < 30
    finally:
        monitor.stop()


def test_tells_why_a_task_failed(spark, monitored):
    monitor, heard, tag = monitored

    def fail(x):
        raise ValueError(f"tab\there, back\\slash, and ünïcode {x}")

    raised = run_tagged(spark, tag, spark.sparkContext.parallelize([7], 1).map(fail).collect)
    assert "ünïcode 7" in str(raised)
    monitor.flush("end")
    assert heard.wait_for("end")
    (end,) = heard.of(TaskEnded)
    assert (end.status, end.reason) == ("FAILED", end.reason)
    assert "ValueError: tab\there, back\\slash, and ünïcode 7\n" in end.error
    assert "Traceback" in end.error
    assert not heard.of(JobEnded)[0].succeeded


def test_does_not_hear_of_other_jobs(spark, monitored):
    monitor, heard, _ = monitored
    spark.sparkContext.parallelize(range(10), 2).count()
    monitor.flush("end")
    assert heard.wait_for("end")
    assert heard.of(JobStarted) == heard.of(TaskStarted) == []


def test_the_listener_names_the_shuffle_that_a_stage_writes(spark):
    sc, heard, tag = spark.sparkContext, Heard(), f"flinkmagic-{uuid.uuid4().hex}"
    monitor = TaskMonitor(sc, tag)
    monitor.start(heard, heard.lost.append)
    try:
        run_tagged(spark, tag, sc.parallelize(range(8), 2).map(lambda x: (x, x)).groupByKey(2).count)
        monitor.flush("end")
        assert heard.wait_for("end")
    finally:
        monitor.stop()
    (job,) = heard.of(JobStarted)
    first, last = sorted(job.stages)
    assert first.shuffle_id is not None
    assert last.shuffle_id is None
    assert job.final_stage == last


def test_a_stopped_listener_is_off_the_bus(spark):
    bus = spark.sparkContext._jsc.sc().listenerBus()
    monitor = TaskMonitor(spark.sparkContext, "flinkmagic-none-")
    heard = Heard()
    monitor.start(heard, heard.lost.append)
    assert bus.listeners().contains(monitor._listener)
    monitor.stop()
    monitor.stop()
    assert not bus.listeners().contains(monitor._listener)
    assert heard.lost == []


def test_reads_every_kind_of_line():
    text = (
        "J\t3\tt-v1\t\nA\t4\t8\nD\t4\tlost\\nall\n\n"
        "E\t1\t0\t2\t1\t9\t4\t100\t1\t180\tFAILED\t\tFetchFailed:5:1\ta\\\\n\\tb\nM\tx\n"
    )
    job, added, removed, end, marker = parse_lines(text)
    assert (job.stages, job.final_stage) == ((), None)
    assert (added.executor, added.cores, removed.reason) == ("4", 8, "lost\nall")
    assert (end.started.task_id, end.started.speculative) == (9, True)
    assert (end.metrics, end.reason, end.error) == (None, "FetchFailed:5:1", "a\\n\tb")
    assert marker == Marker("x")


def test_a_line_of_an_unknown_kind_is_an_error():
    with pytest.raises(InvariantViolatedError, match=r"known kinds, not 'Q\\t1'"):
        list(parse_lines("Q\t1\n"))
