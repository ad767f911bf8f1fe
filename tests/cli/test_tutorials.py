"""The tutorials in a folder of the reader's own."""

from __future__ import annotations

import importlib.util
import sys
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


@pytest.fixture
def lab(monkeypatch: pytest.MonkeyPatch):
    """What JupyterLab would be started with: its options, and its environment."""
    calls: list[tuple[list[str], dict[str, str]]] = []
    monkeypatch.setattr(
        tutorials.subprocess,
        "call",
        lambda command, env: calls.append((command[command.index("jupyterlab") + 2 :], env)),
    )
    return calls


@pytest.mark.parametrize(
    ("user", "options", "given"),
    [
        (1000, [], []),
        (1000, ["--", "--port", "8889"], ["--port", "8889"]),
        (0, [], ["--allow-root"]),
        (0, ["--", "--no-browser"], ["--allow-root", "--no-browser"]),
        (0, ["--", "--allow-root"], ["--allow-root"]),
        (0, ["--", "--ip=0.0.0.0"], ["--ip=0.0.0.0"]),  # reachable from elsewhere: root says so itself
        (0, ["--", "--ServerApp.ip=*"], ["--ServerApp.ip=*"]),
    ],
)
def test_jupyterlab_is_given_options_and_root_may_start_it(lab, monkeypatch, tmp_path, user, options, given) -> None:
    monkeypatch.setattr(tutorials.os, "geteuid", lambda: user)
    main(["tutorials", "--out", str(tmp_path), *options])
    assert lab[0][0] == given


def test_workers_run_the_labs_python_unless_told_otherwise(lab, monkeypatch, tmp_path) -> None:
    monkeypatch.delenv("PYSPARK_PYTHON", raising=False)
    monkeypatch.setenv("PYSPARK_DRIVER_PYTHON", "/other/python")
    main(["tutorials", "--out", str(tmp_path)])
    environment = lab[0][1]
    assert environment["PYSPARK_PYTHON"] == sys.executable
    assert environment["PYSPARK_DRIVER_PYTHON"] == "/other/python"
