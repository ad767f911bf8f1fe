"""A process is killed with SIGKILL amid a job; another one takes the job up from the folder that is left."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from flinkmagic.scheduling.job_status import JobStatus
from flinkmagic.scheduling.recovery.job_graph_store import JobGraphStore

SCRIPT = Path(__file__).with_name("takeover_process.py")
JOB_ID = "0123456789abcdef0123456789abcdef"
STAGE_1 = {f"Source: Stage1 ({n}/4)" for n in range(1, 5)}
STAGE_3 = {f"Stage3 ({n}/3)" for n in range(1, 4)}
STAGE_5 = {f"Sink: Stage5 ({n}/2)" for n in range(1, 3)}


def start(folder: Path, pace_s: float, stop_after: int = -1) -> subprocess.Popen[str]:
    arguments = [str(SCRIPT), str(folder), str(pace_s), str(stop_after)]
    return subprocess.Popen([sys.executable, *arguments], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


def lines_until(process: subprocess.Popen[str], event: str, count: int = 1) -> list[dict[str, Any]]:
    """Read until so many events of a kind came, or the process is at its end."""
    assert process.stdout is not None
    found = []
    for line in process.stdout:
        found.append(json.loads(line))
        if sum(entry["event"] == event for entry in found) == count:
            return found
    return found


def tasks(lines: list[dict[str, Any]], event: str) -> set[str]:
    return {line["task"] for line in lines if line["event"] == event}


@pytest.mark.parametrize("finished_before", [1, 5, 8])
def test_a_job_goes_on_in_another_process_after_a_kill(tmp_path: Path, finished_before: int) -> None:
    first = start(tmp_path, 0.0, finished_before)
    second = None
    try:
        begun = lines_until(first, "finished", finished_before)
        assert len(tasks(begun, "finished")) == finished_before
        second = start(tmp_path, 0.001)
        refused = [{"event": "refused", "error": "JobLedElsewhereError"}]
        assert lines_until(second, "refused") == refused  # the first one lives
        second.wait(10)
        os.kill(first.pid, signal.SIGKILL)
        assert first.wait(10) == -signal.SIGKILL
        noted = JobGraphStore(tmp_path / "jobs").read(JOB_ID)
        second = start(tmp_path, 0.001)
        rest = lines_until(second, "over")
    finally:
        for process in (first, second):
            if process is not None:
                process.kill()
                process.wait(10)
    assert rest[-1] == {"event": "over", "status": "FINISHED"}
    statuses = [line["status"] for line in rest if line["event"] == "status"]
    assert statuses == ["CREATED", "RECONCILING", "RUNNING", "FINISHED"]
    # what was noted as finished was not run again, all the rest was
    assert len(noted.finished) >= finished_before - 1
    assert len(tasks(rest, "running")) == 9 - len(noted.finished)
    assert tasks(rest, "finished") == STAGE_1 | STAGE_3 | STAGE_5
    stored = JobGraphStore(tmp_path / "jobs").read(JOB_ID)
    assert stored.status is JobStatus.FINISHED
    assert len(stored.finished) == 9


def test_results_that_died_with_the_process_are_made_again(tmp_path: Path) -> None:
    first = start(tmp_path, 0.002)
    try:
        lines_until(first, "finished", 5)
        os.kill(first.pid, signal.SIGKILL)
        first.wait(10)
    finally:
        first.kill()
    for partition in (tmp_path / "shuffle").iterdir():
        partition.unlink()
    second = start(tmp_path, 0.0)
    try:
        rest = lines_until(second, "over")
    finally:
        second.kill()
        second.wait(10)
    assert rest[-1] == {"event": "over", "status": "FINISHED"}
    assert tasks(rest, "running") == STAGE_1 | STAGE_3 | STAGE_5
