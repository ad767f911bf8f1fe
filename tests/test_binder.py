"""The Binder image: what repo2docker would build, without a Docker engine."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


@pytest.fixture(scope="module")
def dockerfile(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The Dockerfile that repo2docker's dry run prints for a copy of what Binder reads."""
    copy = tmp_path_factory.mktemp("checkout")
    for name in ("binder", "notebooks"):
        shutil.copytree(ROOT / name, copy / name, ignore=shutil.ignore_patterns("*.parquet", "out"))
    shutil.copy(ROOT / "pyproject.toml", copy)
    done = subprocess.run(
        [sys.executable, "-m", "repo2docker", "--no-build", "--debug", "."],
        cwd=copy,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout + done.stderr


def test_the_image_has_java_and_dot(dockerfile: str) -> None:
    packages = (ROOT / "binder" / "apt.txt").read_text().split()
    assert {"graphviz", "openjdk-17-jre-headless"} <= set(packages)
    for package in packages:
        assert package in dockerfile


def test_the_image_installs_the_project(dockerfile: str) -> None:
    assert 'pip install --no-cache-dir -r "binder/requirements.txt"' in dockerfile
    assert (ROOT / "binder" / "requirements.txt").read_text().split() == ["-e", ".[lab]"]


def test_the_image_runs_post_build(dockerfile: str) -> None:
    assert "RUN ./binder/postBuild" in dockerfile
    assert os.access(ROOT / "binder" / "postBuild", os.X_OK)


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An environment after `postBuild`, with a cache folder of its own."""
    prefix = tmp_path_factory.mktemp("prefix")
    (prefix / "bin").mkdir()
    python = prefix / "bin" / "python"
    python.write_text(f'#!/bin/sh\nexec "{sys.executable}" "$@"\n')
    python.chmod(0o755)
    environment = {**os.environ, "NB_PYTHON_PREFIX": str(prefix), "XDG_CACHE_HOME": str(prefix / "cache")}
    subprocess.run([ROOT / "binder" / "postBuild"], env=environment, check=True, cwd=prefix)
    return prefix


@pytest.mark.long
def test_our_java_classes_are_compiled(built: Path) -> None:
    names = {path.name.rpartition("-")[0] for path in (built / "cache/flinkmagic/classes").iterdir()}
    assert {f"flinkmagic.{part}" for part in ("capturing.driver", "planning", "reuse", "deployment")} <= names


@pytest.mark.long
def test_a_server_opens_the_quickstart(built: Path) -> None:
    settings = json.loads((built / "etc/jupyter/jupyter_server_config.json").read_text())
    for app in ("ServerApp", "LabApp", "JupyterNotebookApp"):
        url = settings[app]["default_url"]
        assert url.startswith("/lab/tree/")
        assert (ROOT / url.removeprefix("/lab/tree/")).is_file()
