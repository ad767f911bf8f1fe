"""A SparkContext that is stopped under a job ends it at once, by name, and no restart strategy clings to it."""

from __future__ import annotations

from pathlib import Path

import pytest
from own_process import told_by


def told(folder, *arguments):
    script = Path(__file__).with_name("stopped_process.py")
    found = told_by(str(script), str(folder), *arguments)
    assert "bug in flinkmagic" not in found.warnings
    return found.value


@pytest.mark.parametrize(
    ("end", "restart"), [("running", "none"), ("running", "fixed-delay:2:100ms"), ("polled", "none")]
)
def test_a_job_ends_with_its_session(tmp_path, end, restart):
    found = told(tmp_path, end, restart)
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
