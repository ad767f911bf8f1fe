"""Executors and a worker of a real cluster are killed under a job; the stories are those of the benchmark."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
KINDS = ("map", "between", "write", "worker")

pytestmark = [pytest.mark.long, pytest.mark.timeout(600)]


def told_of(*kinds):
    """One run of each kind, in a process of their own: this one has a session already."""
    told = subprocess.run(
        [sys.executable, "-m", "tests.benchmarks", "cluster-faults", "--rounds", "1", "--stories", "--kinds", *kinds],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=580,
        check=False,
    )
    assert told.returncode == 0, told.stderr[-4000:]
    lines = [json.loads(line) for line in told.stdout.splitlines() if line.startswith("{")]
    assert [line["kind"] for line in lines[:-1]] == list(kinds)
    return {line["kind"]: line for line in lines[:-1]}


@pytest.fixture(scope="module")
def stories():
    return told_of(*KINDS, "boundary", "retained")


def executions(story, number):
    """By subtask of the vertex of that number, (state, executor, error) of its executions."""
    return list(story["executions"].values())[number]


@pytest.mark.parametrize("kind", KINDS)
def test_the_rows_are_exact_and_no_restart_was_spent(stories, kind):
    story = stories[kind]
    assert (story["status"], story["exact"], story["restarts"]) == ("FINISHED", True, 0)
    assert all(subtask[-1][0] == "FINISHED" for number in range(3) for subtask in executions(story, number))
    assert story["losses"]


@pytest.mark.parametrize("kind", ["map", "worker"])
def test_what_ran_on_a_lost_executor_failed_and_what_it_had_made_is_made_once_more(stories, kind):
    story = stories[kind]
    victim = story["victim"]
    lost = [subtask for subtask in executions(story, 0) if len(subtask) > 1]
    assert lost
    for subtask in lost:
        assert subtask[0][1] == victim
        assert subtask[-1][1] != victim
    for subtask in lost:
        state, _, error = subtask[0]
        assert state == "FINISHED" or (state == "FAILED" and f"The executor {victim} is lost" in error)
    # Three tasks were finished when it was killed, one of them on it.
    assert any(subtask[0][0] == "FINISHED" for subtask in lost)
    taken_back = {task[1] for task in story["tasks"] if task[6] == "Resubmitted"}
    remade = [subtask for subtask in lost if subtask[0][0] == "FINISHED"]
    assert taken_back.issuperset(executions(story, 0).index(subtask) for subtask in remade)


def test_outputs_of_a_finished_stage_are_made_by_new_executions(stories):
    story = stories["between"]
    first = executions(story, 0)
    lost = {number for number, subtask in enumerate(first) if subtask[0][1] == story["victim"]}
    assert lost
    assert {number for number, subtask in enumerate(first) if len(subtask) > 1} == lost
    assert all(subtask[0][0] == "FINISHED" for subtask in first)
    remade = [task for task in story["tasks"] if task[5] == "recovery"]
    assert {task[1] for task in remade} == lost
    assert {(task[0], task[2]) for task in remade} == {(next(iter(story["executions"])), 1)}


def test_a_write_goes_on_elsewhere(stories):
    story = stories["write"]
    victim, between = story["victim"], list(story["executions"])[1]
    lost = [execution for subtask in executions(story, 2) for execution in subtask[:-1]]
    assert any(executor == victim for _, executor, _ in lost)
    for state, executor, error in lost:
        assert state == "FAILED"
        # Whoever reads on another executor may miss what the victim had made for it.
        assert f"The executor {victim} is lost" in error if executor == victim else f"The output of {between}" in error


def test_rows_that_were_kept_for_two_sinks_and_lost_are_there_for_both(stories):
    story = stories["boundary"]
    assert (story["status"], story["exact"], story["restarts"]) == ("FINISHED", True, 0)
    assert all(subtask[-1][0] == "FINISHED" for number in range(5) for subtask in executions(story, number))
    assert story["losses"]
    assert story["victim"] not in {task[4] for task in story["tasks"] if task[5] == "recovery"}


def test_a_copy_that_spark_runs_beside_a_slow_task_belongs_to_the_same_execution():
    story = told_of("straggler")["straggler"]
    assert (story["status"], story["exact"], story["losses"]) == ("FINISHED", True, [])
    assert all(len(subtask) == 1 for number in range(3) for subtask in executions(story, number))
    first = next(iter(story["executions"]))
    copies = [task for task in story["tasks"] if task[:2] == [first, 0]]
    assert [(attempt, state, speculative) for _, _, attempt, state, _, _, _, speculative in copies] == [
        (0, "CANCELED", False),
        (1, "FINISHED", True),
    ]
    assert copies[0][6] == "TaskKilled"


def test_outputs_that_were_retained_and_lost_with_an_executor_are_computed_again(stories):
    story = stories["retained"]
    assert story["reused_before"] > 0
    assert (story["status"], story["exact"], story["restarts"]) == ("FINISHED", True, 0)
    assert story["reused_after"] < story["reused_before"]
    assert story["victim"] not in story["ran_on"]
