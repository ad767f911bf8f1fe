"""A SparkContext that is stopped: under a job, which ends by name, and by a cell, which goes on plainly."""

from __future__ import annotations

from pathlib import Path

import pytest
from own_process import told_by


def told(folder, *arguments):
    script = Path(__file__).with_name("stopped_process.py")
    found = told_by(str(script), str(folder), *arguments)
    assert "bug in flinkmagic" not in found.warnings
    return found.value


@pytest.mark.parametrize("restart", ["none", "fixed-delay:2:100ms"])
def test_a_job_ends_with_its_session(tmp_path, restart):
    found = told(tmp_path, "running", restart)
    assert found["status"] == "FAILED"
    assert found["seconds"] < 20
    assert found["errors"] == [
        "The Spark session ended while 'waiting' was running on it (its SparkContext was stopped). "
        "Start a session and run it again."
    ]
    assert "has been stopped. Start a session, and run the cells" in found["again"]


def test_a_job_that_was_cancelled_just_before_is_canceled(tmp_path):
    found = told(tmp_path, "cancelled", "none")
    assert (found["status"], found["errors"]) == ("CANCELED", [])
    assert found["seconds"] < 20


@pytest.mark.parametrize("line", ["spark.stop()", "with spark.sparkContext: pass"])
def test_a_cell_that_stops_its_session_goes_on_as_a_plain_one(tmp_path, line):
    script = Path(__file__).with_name("stopping_process.py")
    found = told_by(str(script), str(tmp_path), line, "--run").value
    assert found == [["NoneType", "NoneType", "NoneType"], [3, 5, 6, 3], ["a", "b", "c"]]


def test_without_run_the_stop_is_refused(tmp_path):
    script = Path(__file__).with_name("stopping_process.py")
    found = told_by(str(script), str(tmp_path), "spark.stop()", "").value
    assert found == [["PendingWriteError"], None, []]
