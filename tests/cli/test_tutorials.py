"""The tutorials in a folder of the reader's own."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import nbformat
import pytest

from flinkmagic.cli import main, tutorials


def test_the_notebooks_and_their_text_are_laid_out(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["tutorials", "--no-lab", "--out", str(tmp_path / "here")]) == 0
    assert capsys.readouterr().out == f"The notebooks are in {tmp_path / 'here'}\n"
    source = tutorials.notebooks_folder()
    names = sorted(path.name for path in source.glob("*.ipynb"))
    assert names == sorted(path.name for path in (tmp_path / "here").glob("*.ipynb"))
    assert tutorials.FIRST in names
    assert (tmp_path / "here" / "standalone_cluster.py").read_text() == (source / "standalone_cluster.py").read_text()
    for name in names:
        nbformat.validate(nbformat.read(tmp_path / "here" / name, as_version=4))
    assert (tmp_path / "here" / "data" / "declaration.txt").stat().st_size > 5_000


def test_what_was_edited_is_kept(tmp_path: Path) -> None:
    notebook = tutorials.lay_out(tmp_path, keep=True)
    notebook.write_text("edited")
    assert tutorials.lay_out(tmp_path, keep=True).read_text() == "edited"
    assert tutorials.lay_out(tmp_path, keep=False).read_text() != "edited"


def test_without_jupyterlab_nothing_is_copied(monkeypatch: pytest.MonkeyPatch, capsys, tmp_path: Path) -> None:
    found = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name == "jupyterlab" else found(name))
    assert main(["tutorials", "--out", str(tmp_path / "here")]) == 1
    assert "Not installed: jupyterlab. Run: pip install 'flinkmagic[demo]'" in capsys.readouterr().err
    assert not (tmp_path / "here").exists()
