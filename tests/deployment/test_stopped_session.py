"""A SparkContext that is stopped: under a job, which ends by name, and by a cell, which goes on plainly."""

from __future__ import annotations

from pathlib import Path

import pytest
from own_process import told_by

pytestmark = pytest.mark.long


def told_of(script, folder):
    return told_by(str(Path(__file__).with_name(script)), str(folder))


@pytest.fixture(scope="module")
def stopped(tmp_path_factory):
    """What became of jobs whose sessions were stopped, one after the other, by how they were to end."""
    found = told_of("stopped_process.py", tmp_path_factory.mktemp("stopped"))
    assert "bug in flinkmagic" not in found.warnings
    return found.value


@pytest.fixture(scope="module")
def stopping(tmp_path_factory):
    """What cells left that stop their session, by the line that stops it and the magic's option."""
    return told_of("stopping_process.py", tmp_path_factory.mktemp("stopping")).value


@pytest.mark.parametrize("restart", ["none", "fixed-delay:2:100ms"])
def test_a_job_ends_with_its_session(stopped, restart):
    found = stopped[f"running {restart}"]
    assert found["status"] == "FAILED"
    assert found["seconds"] < 20
    assert found["errors"] == [
        "The Spark session ended while 'waiting' was running on it (its SparkContext was stopped). "
        "Start a session and run it again."
    ]
    assert "has been stopped. Start a session, and run the cells" in found["again"]


def test_a_job_that_was_cancelled_just_before_is_canceled(stopped):
    found = stopped["cancelled none"]
    assert (found["status"], found["errors"]) == ("CANCELED", [])
    assert found["seconds"] < 20


@pytest.mark.parametrize("line", ["spark.stop()", "with spark.sparkContext: pass"])
def test_a_cell_that_stops_its_session_goes_on_as_a_plain_one(stopping, line):
    assert stopping[f"{line} --run"] == [["NoneType", "NoneType", "NoneType"], [3, 5, 6, 3], ["a", "b", "c"]]


def test_without_run_the_stop_is_refused(stopping):
    assert stopping["spark.stop() "] == [["PendingWriteError"], None, []]
