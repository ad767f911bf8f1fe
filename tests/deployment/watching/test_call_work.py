"""What a call runs at Spark by itself is found by its tag, and ended, however many jobs it has."""

from __future__ import annotations

import threading
import time
from pathlib import Path

import pytest
from pyspark.sql import functions as F

from flinkmagic.deployment.watching.call_work import CallWork

TAGS = "spark.job.tags"


@pytest.fixture
def naps(spark, tmp_path):
    """Rows of two tasks that sleep until `tmp_path / "go"` exists; each first makes a file, its partition's number."""
    folder = str(tmp_path)

    def nap(partition):
        Path(folder, str(partition)).touch()
        while not Path(folder, "go").exists():
            time.sleep(0.02)
        return partition

    return spark.range(0, 2, 1, 2).select(F.udf(nap, "long")(F.spark_partition_id()))


def until(condition):
    """Wait until a condition holds; return whether it came to."""
    deadline = time.monotonic() + 60
    while not (found := condition()) and time.monotonic() < deadline:
        time.sleep(0.05)
    return found


class Call:
    """A call on a thread of its own."""

    def __init__(self, work, run):
        self.error = None
        self._thread = threading.Thread(target=self._run, args=(work, run))
        self._thread.start()

    def _run(self, work, run):
        try:
            with work.entered():
                run()
        except Exception as error:  # noqa: BLE001 - whatever Spark raises
            self.error = error

    def join(self):
        self._thread.join(60)
        assert not self._thread.is_alive()


def test_the_tag_is_beside_the_users_and_only_while_the_call_lasts(spark):
    sc = spark.sparkContext
    sc.addJobTag("users")
    try:
        work = CallWork(sc)
        with work.entered():
            assert len(sc.getJobTags()) == 2
            with CallWork(sc).entered():
                assert len(sc.getJobTags()) == 3
        assert sc.getLocalProperty(TAGS) == "users"
    finally:
        sc.clearJobTags()
    with pytest.raises(ZeroDivisionError), work.entered():
        raise ZeroDivisionError
    assert sc.getLocalProperty(TAGS) is None


@pytest.mark.long
def test_progress_is_that_of_the_calls_own_tasks(spark, naps, tmp_path):
    work = CallWork(spark.sparkContext)
    other = CallWork(spark.sparkContext)
    assert not work.is_followed
    call = Call(work, naps.collect)
    with other.entered():
        assert until(lambda: work.progress().active == 2)
        assert work.progress().tasks == 2
        assert other.progress().tasks == 0
        assert not work.wait(0)
        (tmp_path / "go").touch()
        call.join()
    assert call.error is None
    assert work.wait(0)
    assert work.progress() is None
    assert work.is_followed


def test_a_cancel_ends_the_jobs_that_run_and_those_that_follow(spark, naps, tmp_path):
    work = CallWork(spark.sparkContext)
    ended = []

    def several():
        for _ in range(2):
            try:
                naps.collect()
            except Exception as error:  # noqa: BLE001 - whatever Spark raises
                ended.append(str(error))
        raise ValueError("several")

    call = Call(work, several)
    assert until((tmp_path / "0").exists)
    work.cancel()
    call.join()
    assert len(ended) == 2
    assert all("cancelled" in one for one in ended)
    assert work.is_cancelled
    assert spark.range(3).count() == 3, "nothing else is cancelled"


def test_a_call_that_is_over_is_not_cancelled(spark):
    work = CallWork(spark.sparkContext)
    with work.entered():
        assert spark.range(3).count() == 3
    work.cancel()
    assert not work.is_cancelled
