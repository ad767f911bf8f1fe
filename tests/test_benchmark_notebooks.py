"""The benchmark's notebooks: an expert adds what keeps and releases rows, and nothing else."""

from __future__ import annotations

import re

import pytest

from tests.benchmarks.notebooks.notebook import load, names

KEEPS = re.compile(r"(\w+\.(cache|persist|unpersist)\(\)|spark\.catalog\.(un)?cacheTable\(\"\w+\"\))")


def test_three_of_fourteen_have_nothing_to_reuse() -> None:
    found = [load(name) for name in names()]
    assert len(found) == 14
    controls = [one for one in found if one.control]
    assert len(controls) == 3
    assert not any(one.has_expert for one in controls)


@pytest.mark.parametrize("name", names())
def test_expert_adds_caching_only(name: str) -> None:
    notebook = load(name)
    for number, (cell, expert) in enumerate(zip(notebook.cells, notebook.expert, strict=True)):
        written, kept = cell.splitlines(), expert.splitlines()
        added = [line for line in kept if line not in written]
        assert [line for line in kept if line not in added] == written, number
        assert all(KEEPS.fullmatch(line) for line in added), number


@pytest.mark.parametrize("name", names())
def test_unordered_cells_exist(name: str) -> None:
    notebook = load(name)
    assert notebook.unordered <= set(range(len(notebook.cells)))
