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


def test_a_server_opens_the_quickstart(tmp_path: Path) -> None:
    environment = {**os.environ, "NB_PYTHON_PREFIX": str(tmp_path)}
    subprocess.run([ROOT / "binder" / "postBuild"], env=environment, check=True, cwd=tmp_path)
    settings = json.loads((tmp_path / "etc/jupyter/jupyter_server_config.json").read_text())
    for app in ("ServerApp", "LabApp", "JupyterNotebookApp"):
        url = settings[app]["default_url"]
        assert url.startswith("/lab/tree/")
        assert (ROOT / url.removeprefix("/lab/tree/")).is_file()
