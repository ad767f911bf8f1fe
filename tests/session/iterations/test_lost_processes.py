"""Loops that lose an executor in a superstep, or the kernel between two: what is done stays done."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]

pytestmark = pytest.mark.long


def process(*arguments):
    command = [sys.executable, "-m", "tests.session.iterations.loop_process", *map(str, arguments)]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=280, check=False)


def told(done):
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads(done.stdout.splitlines()[-1])


def rows_after(supersteps):
    """The state of the loop of `loop_process`, by hand: sums by key, doubled in each superstep."""
    return [[k, sum(range(k, 60, 6)) * 2**supersteps, supersteps] for k in range(6)]


def test_an_executor_that_is_killed_in_a_superstep_repeats_that_one_and_not_the_loop(tmp_path):
    story = told(process("cluster", tmp_path))
    assert len(story["killed"]) == 1
    assert (story["status"], story["rows"]) == ("FINISHED", rows_after(5))
    assert story["calls"] == 5, "the step is called once a superstep"
    numbers, tasks = zip(*story["supersteps"], strict=True)
    assert numbers == (1, 2, 3, 4, 5)
    assert tasks[2] > tasks[1], "what was lost in the third superstep ran again in it"
    assert tasks[1] == tasks[3] == tasks[4]


def test_another_kernel_goes_on_from_the_last_superstep_of_one_that_was_killed(tmp_path):
    first = process("kernel", tmp_path, "dies")
    assert first.returncode == -9, first.stderr[-3000:]
    [folder] = tmp_path.iterdir()
    assert sorted(path.name for path in folder.iterdir()) == ["2.parquet", "superstep.json"]
    story = told(process("kernel", tmp_path))
    assert [number for number, _ in story["supersteps"]] == [3, 4, 5]
    assert (story["status"], story["rows"]) == ("FINISHED", rows_after(5))
    assert story["calls"] == 4, "one to know the loop by its first superstep, and one for each that is left"
    assert story["left"] == 0
