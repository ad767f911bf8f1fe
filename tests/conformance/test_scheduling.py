"""Scheduling, failover and recovery against what Flink did with the same topologies."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from flinkmagic.cli.scheduling_trace import scheduling_sections
from flinkmagic.graph.compilation import compile_topology

CASES = Path(__file__).parent / "cases"


@cache
def golden(name: str) -> dict[str, Any]:
    return json.loads((CASES / f"{name}.golden.json").read_text())


@cache
def sections(name: str) -> dict[str, Any]:
    job_graph = compile_topology((CASES / f"{name}.json").read_text()).job_graph
    assert job_graph is not None
    return scheduling_sections(job_graph)


def cases(section: str) -> list[str]:
    names = sorted(str(path.relative_to(CASES))[: -len(".golden.json")] for path in CASES.rglob("*.golden.json"))
    return [name for name in names if golden(name).get(section) is not None]


def unordered(value: Any) -> Any:
    """Forget the order of sets: lists of lists."""
    if isinstance(value, list) and value and all(isinstance(item, list) for item in value):
        return sorted(map(json.dumps, value))
    return {key: unordered(item) for key, item in value.items()} if isinstance(value, dict) else value


def by_vertex(entries: list[dict[str, Any]]) -> dict[str, Any]:
    return {json.dumps(entry["vertex"]): unordered(entry) for entry in entries}


@pytest.mark.parametrize("name", cases("scheduling_trace"))
def test_scheduling_trace(name: str) -> None:
    assert sections(name)["scheduling_trace"] == golden(name)["scheduling_trace"]


@pytest.mark.parametrize("name", cases("failover"))
def test_failover(name: str) -> None:
    assert by_vertex(sections(name)["failover"]) == by_vertex(golden(name)["failover"])


@pytest.mark.parametrize("name", cases("failover_midway"))
def test_failover_midway(name: str) -> None:
    ours, flinks = sections(name)["failover_midway"], golden(name)["failover_midway"]
    assert by_vertex(ours["restarts"]) == by_vertex(flinks["restarts"])
    for part in ("after_finishes", "states", "tracked_partitions"):
        assert unordered(ours[part]) == unordered(flinks[part])


@pytest.mark.parametrize("section", ["recovery", "recovery_partition_lost"])
@pytest.mark.parametrize("name", cases("recovery"))
def test_recovery(name: str, section: str) -> None:
    ours, flinks = sections(name)[section], golden(name)[section]
    assert (ours is None) == (flinks is None)
    if flinks is not None:
        assert unordered(ours["restart_set"]) == unordered(flinks["restart_set"])
        assert {**ours, "restart_set": None} == {**flinks, "restart_set": None}


def test_what_is_left_out_is_left_out_by_flink_too() -> None:
    for name in cases("scheduling_trace"):
        missing = {section for section, value in sections(name).items() if value is None}
        assert missing == {section for section in sections(name) if golden(name)[section] is None}


def test_the_cases_are_all_there() -> None:
    counts = [len(cases(section)) for section in ("scheduling_trace", "failover", "recovery")]
    assert counts == [69, 63, 62]
