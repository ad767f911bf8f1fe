"""`flinkmagic simulate`."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from xml.etree import ElementTree

import pytest

from flinkmagic.cli import simulate
from flinkmagic.errors.usage import InvalidValueError, UnknownNameError, UnreadableFileError

CASES = Path(__file__).parents[1] / "conformance" / "cases"


def run(*arguments: str, case: str = "batch_default") -> int:
    parser = argparse.ArgumentParser()
    simulate.add_parser(parser.add_subparsers())
    return simulate.run(parser.parse_args(["simulate", str(CASES / f"{case}.json"), *arguments]))


def as_data(capsys: pytest.CaptureFixture[str], *arguments: str, case: str = "batch_default") -> dict:
    run("--format", "json", *arguments, case=case)
    return json.loads(capsys.readouterr().out)


def test_the_run_is_told_in_text(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("--task-managers", "2", "--slots", "3", case="docs_two_by_three_slots") == 0
    out = capsys.readouterr().out
    assert out.startswith("docs_two_by_three_slots: FINISHED\n")
    assert out.count("FINISHED\n") == 11
    assert "6 slots used to" in out
    assert "0 restarts" in out


def test_the_same_seed_prints_the_same(capsys: pytest.CaptureFixture[str]) -> None:
    shown = []
    for seed in ("7", "7", "8"):
        run("--seed", seed, "--faults", "4", "--events")
        shown.append(capsys.readouterr().out)
    assert shown[0] == shown[1] != shown[2]


def test_faults_are_made_as_asked(capsys: pytest.CaptureFixture[str]) -> None:
    data = as_data(
        capsys, "--task-managers", "2", "--slots", "3", "--task-seconds", "0.5", "--fail", "Window4:1@0.7s",
        "--lose-task-manager", "tm-1@1500ms+1s",
    )  # fmt: skip
    assert data["job_status"] == "FINISHED"
    assert [text.split(":")[0] for text in data["faults"]] == ["FailTask", "LoseTaskManager"]
    assert data["restarts"] >= 2
    assert set(data["final_states"].values()) == {"FINISHED"}


def test_task_times_by_name(capsys: pytest.CaptureFixture[str]) -> None:
    slow = as_data(capsys, "--slots", "20", "--task-seconds", "0.1", "--task-seconds", "Window4=30")
    quick = as_data(capsys, "--slots", "20", "--task-seconds", "0.1")
    assert slow["makespan_ms"] - quick["makespan_ms"] > 23_000


def test_a_job_that_fails_says_why_and_returns_one(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("--slots", "4", "--restart", "none", "--fail", "Window4:0@0s") == 1
    out = capsys.readouterr().out
    assert out.startswith("batch_default: FAILED")
    assert "last failure: Recovery is suppressed by NoRestartBackoffTimeStrategy" in out


def test_a_job_that_gets_stuck_says_so(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("--slots", "20", case="cycle_of_logical_regions_deadlock") == 1
    assert "stuck: regions wait for each other" in capsys.readouterr().out


def test_too_few_slots(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("--slots", "2", "--restart", "none", case="docs_two_by_three_slots") == 1
    assert "needs 6 slots together, and 2 became available" in capsys.readouterr().out


def test_a_picture_in_a_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    picture = tmp_path / "run.svg"
    assert run("--slots", "6", "--format", "svg", "--out", str(picture)) == 0
    assert capsys.readouterr().out == ""
    titles = [e.text or "" for e in ElementTree.parse(picture).iter("{http://www.w3.org/2000/svg}title")]
    assert titles[0] == "batch_default"
    assert len(titles) == 1 + 17


def test_the_chain_of_events_can_be_read(capsys: pytest.CaptureFixture[str]) -> None:
    run("--events", "--slots", "2")
    out = capsys.readouterr().out
    chain = ("declare 1 required", "asks tm-1 to offer", "accept 1 of 1", "deploy Source")
    places = [out.index(text) for text in chain]
    assert places == sorted(places)


def test_unbounded_sources_run_until_they_are_cancelled(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    topology = tmp_path / "endless.json"
    document = json.loads((CASES / "many_sinks.json").read_text())
    for transformation in document["transformations"]:
        if transformation["kind"] == "source":
            transformation["bounded"] = False
    topology.write_text(json.dumps(document))
    parser = argparse.ArgumentParser()
    simulate.add_parser(parser.add_subparsers())
    arguments = ["simulate", str(topology), "--slots", "20", "--run-for", "7s", "--format", "json"]
    assert simulate.run(parser.parse_args(arguments)) == 0
    data = json.loads(capsys.readouterr().out)
    assert data["job_status"] == "CANCELED"
    assert 7_000 <= data["makespan_ms"] < 7_100


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        (["--fail", "Window4@1s"], InvalidValueError, "'Window4@1s' is not VERTEX:SUBTASK@TIME"),
        (["--fail", "Window4:0@soon"], InvalidValueError, "'soon' is not a time such as 1.5s"),
        (["--fail", "Windau:0@1s"], UnknownNameError, "no vertex named 'Windau'.*Window4"),
        (["--lose-task-manager", "tm-1"], InvalidValueError, "'tm-1' is not NAME@TIME"),
        (["--lose-task-manager", "tm-7@1s"], UnknownNameError, "There are: tm-1"),
        (["--task-seconds", "Windau=3"], UnknownNameError, "no vertex named 'Windau'"),
    ],
)
def test_words_that_are_off_are_refused_with_what_would_do(arguments: list[str], error: type, message: str) -> None:
    with pytest.raises(error, match=message):
        run(*arguments)


def test_a_restart_strategy_is_checked_where_it_is_typed(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        run("--restart", "maybe")
    assert "--restart: must be none, fixed-delay:ATTEMPTS:DELAY, " in capsys.readouterr().err


def test_a_topology_that_is_not_there() -> None:
    with pytest.raises(UnreadableFileError, match=r"no_such\.json cannot be read: No such file"):
        run(case="no_such")
