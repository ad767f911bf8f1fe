from __future__ import annotations

import argparse
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from flinkmagic.cli import compile as command
from flinkmagic.errors import usage as errors

Run = Callable[..., int]
GOOD: dict[str, Any] = {
    "name": "good",
    "default_parallelism": 2,
    "transformations": [
        {"id": 1, "kind": "source", "name": "read"},
        {"id": 2, "kind": "partition", "partitioner": "hash", "inputs": [1]},
        {"id": 3, "kind": "sink", "name": "write <&>", "inputs": [2]},
    ],
}
REFUSED = {"name": "refused", "transformations": []}


@pytest.fixture
def run() -> Run:
    parser = argparse.ArgumentParser()
    command.add_parser(parser.add_subparsers())
    return lambda *words: command.run(parser.parse_args(["compile", *map(str, words)]))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Two topologies, an answer beside one of them, and something else."""
    inner = tmp_path / "cases" / "invalid"
    inner.mkdir(parents=True)
    (tmp_path / "cases" / "good.json").write_text(json.dumps(GOOD))
    (tmp_path / "cases" / "good.golden.json").write_text("{}")
    (tmp_path / "cases" / "notes.txt").write_text("none")
    (inner / "refused.json").write_text(json.dumps(REFUSED))
    return tmp_path / "cases"


def written(out: Path) -> list[str]:
    return sorted(str(path.relative_to(out)) for path in out.rglob("*") if path.is_file())


def test_a_folder_is_compiled_with_its_relative_paths(run: Run, folder: Path, tmp_path: Path) -> None:
    assert run(folder, "--out", tmp_path / "out") == 0
    assert written(tmp_path / "out") == ["good.json", "invalid/refused.json"]
    good = json.loads((tmp_path / "out" / "good.json").read_text())
    assert list(good)[:5] == ["name", "stream_graph", "job_graph", "execution_graph", "slot_sharing"]
    assert {"failover", "failover_midway", "scheduling_trace", "recovery"} <= set(good)
    assert [vertex["name"] for vertex in good["job_graph"]["vertices"]] == ["Source: read", "Sink: write <&>"]
    assert good["execution_graph"]["regions"] == [[[1, 0], [1, 1], [3, 0], [3, 1]]]
    refused = json.loads((tmp_path / "out" / "invalid" / "refused.json").read_text())
    assert refused["error"]["stage"] == "stream_graph"
    assert refused["error"]["message"].startswith("The program 'refused' has no operators")


def test_files_keep_their_paths_within_their_common_folder(run: Run, folder: Path, tmp_path: Path) -> None:
    assert run(folder / "good.json", folder / "invalid" / "refused.json", "--out", tmp_path / "out") == 0
    assert written(tmp_path / "out") == ["good.json", "invalid/refused.json"]
    assert run(folder / "invalid" / "refused.json", "--out", tmp_path / "one") == 0
    assert written(tmp_path / "one") == ["refused.json"]


def test_one_topology_is_printed(run: Run, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(folder / "good.json") == 0
    assert json.loads(capsys.readouterr().out)["name"] == "good"


def test_a_mistake_is_one_line_and_the_others_go_on(
    run: Run, folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "bad.json").write_text('{"name": 3}')
    (folder / "latin.json").write_bytes(b'{"name": "\xe4"}')
    assert run(folder, folder / "missing.json", "--out", tmp_path / "out") == 1
    assert written(tmp_path / "out") == ["good.json", "invalid/refused.json"]
    remedy = "Correct it; flinkmagic/graph/topology.md describes the format."
    assert capsys.readouterr().err.splitlines() == [
        f"{folder / 'bad.json'}: the topology: lacks 'transformations'. {remedy}",
        f"{folder / 'latin.json'}: byte 10: no UTF-8. {remedy}",
        f"{folder / 'missing.json'} cannot be read: No such file or directory. Name a topology file.",
    ]


@pytest.mark.parametrize("view", command.VIEWS)
def test_a_view_is_drawn_in_each_format(run: Run, folder: Path, capsys: pytest.CaptureFixture[str], view: str) -> None:
    starts = {"svg": "<svg ", "dot": "digraph ", "text": "good · ", "json": "{"}
    for form in command.FORMATS:
        assert run(folder / "good.json", "--view", view, "--format", form) == 0
        drawn = capsys.readouterr().out
        assert drawn.startswith(starts[form])
        if form in ("svg", "dot", "text"):
            assert "write" in drawn
        if form == "svg":
            assert "write &lt;&amp;&gt;" in drawn


def test_a_view_as_json_is_its_section(run: Run, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run(folder / "good.json", "--view", "regions", "--format", "json")
    assert json.loads(capsys.readouterr().out) == {
        "regions": [[[1, 0], [1, 1], [3, 0], [3, 1]]],
        "slot_sharing": [[[1, 0], [3, 0]], [[1, 1], [3, 1]]],
    }
    run(folder / "good.json", "--view", "stream", "--format", "json")
    assert [node["id"] for node in json.loads(capsys.readouterr().out)["nodes"]] == [1, 3]


def test_a_view_of_a_refused_graph_tells_why(
    run: Run, folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(folder, "--view", "job", "--out", tmp_path / "out") == 1
    assert written(tmp_path / "out") == ["good.txt"]
    assert "has no operators" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "error", "problem"),
    [
        (["--format", "svg"], errors.FormatWithoutViewError, "--format needs --view"),
        (["invalid"], errors.SeveralTopologiesError, "cannot be printed together"),
    ],
)
def test_words_that_do_not_fit_together(run: Run, folder: Path, words: list[str], error: type, problem: str) -> None:
    words = [str(folder / word) if word == "invalid" else word for word in words]
    with pytest.raises(error, match=problem):
        run(folder / "good.json", *words)


def test_an_empty_folder_is_told(run: Run, tmp_path: Path) -> None:
    with pytest.raises(errors.NoTopologyFileError, match="no topology"):
        run(tmp_path)
