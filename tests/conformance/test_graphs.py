"""The graphs against those that Flink made of the same topologies, one test for each level."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from flinkmagic.graph.compilation import Compilation, compile_topology
from flinkmagic.graph.json_report import report_graphs

CASES = Path(__file__).parent / "cases"


@cache
def golden(name: str) -> dict[str, Any]:
    return json.loads((CASES / f"{name}.golden.json").read_text())


@cache
def compiled(name: str) -> Compilation:
    return compile_topology((CASES / f"{name}.json").read_text())


@cache
def report(name: str) -> dict[str, Any]:
    return report_graphs(compiled(name))


def cases(*, refused: bool = False, section: str = "name") -> list[str]:
    names = sorted(str(path.relative_to(CASES))[: -len(".golden.json")] for path in CASES.rglob("*.golden.json"))
    return [name for name in names if ("error" in golden(name)) == refused and section in golden(name)]


def bag(items: list[Any]) -> list[str]:
    """Forget an order that Flink does not define."""
    return sorted(json.dumps(item, sort_keys=True) for item in items)


def groups(items: list[list[Any]]) -> list[list[str]]:
    return sorted(bag(group) for group in items)


def without(record: dict[str, Any], *names: str) -> dict[str, Any]:
    return {name: value for name, value in record.items() if name not in names}


@pytest.mark.parametrize("name", cases(section="stream_graph"))
def test_stream_graph(name: str) -> None:
    ours, flinks = report(name)["stream_graph"], golden(name)["stream_graph"]
    assert ours.keys() == flinks.keys()
    for part in ("nodes", "edges", "sources", "sinks", "iterations"):
        assert bag(ours[part]) == bag(flinks[part])
    for part in ours.keys() - {"nodes", "edges", "sources", "sinks", "iterations", "operator_ids"}:
        assert ours[part] == flinks[part]


@pytest.mark.parametrize("name", cases(section="stream_graph"))
def test_operator_ids(name: str) -> None:
    flinks = golden(name)["stream_graph"]["operator_ids"]
    # The tail of an iteration without feedback edges is no part of the job: Flink has no id for it.
    assert report(name)["stream_graph"]["operator_ids"] == {node: id for node, id in flinks.items() if id}


@pytest.mark.parametrize("name", cases(section="job_graph"))
def test_job_graph(name: str) -> None:
    ours, flinks = report(name)["job_graph"], golden(name)["job_graph"]
    legacy = "schedule_mode" in flinks
    # Flink 1.11 numbered a chain from 0, and had no chained sources.
    unlike = ("id", "chain_index") if legacy else ("id",)
    only_new = ("forward", "broadcast") if legacy else ()
    vertices, flinks_vertices = ([without(v, *unlike) for v in graph["vertices"]] for graph in (ours, flinks))
    assert bag(vertices) == bag(flinks_vertices)
    assert bag([without(e, *only_new) for e in ours["edges"]]) == bag(flinks["edges"])
    for part in ours.keys() - {"vertices", "edges"}:
        assert ours[part] == flinks[part]


@pytest.mark.parametrize("name", cases(section="execution_graph"))
def test_execution_graph(name: str) -> None:
    ours, flinks = report(name)["execution_graph"], golden(name)["execution_graph"]
    for part in ("job_vertices", "vertices", "inputs"):
        assert bag(ours[part]) == bag(flinks[part])
    assert groups(ours["regions"]) == groups(flinks["regions"])


@pytest.mark.parametrize("name", cases(section="slot_sharing"))
def test_slot_sharing(name: str) -> None:
    assert groups(report(name)["slot_sharing"]) == groups(golden(name)["slot_sharing"])


@pytest.mark.parametrize("name", cases(refused=True))
def test_refusal(name: str) -> None:
    error = report(name)["error"]
    assert error["stage"] == golden(name)["error"]["stage"]
    assert error["message"]
    assert "\n" not in error["message"]


def test_the_cases_are_all_there() -> None:
    assert len(cases()) == 74
    assert len(cases(refused=True)) == 30
    assert sum("execution_graph" in golden(name) for name in cases()) == 69
