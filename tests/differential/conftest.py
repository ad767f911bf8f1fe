"""Runs a test file's notebooks in a process of their own."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]


class Differences:
    """What differs in each notebook, as a process tells it that runs them in this order.

    They run in a process of their own: what they leave in a session (a database, a stopped context) is nothing for the
    session that other tests share. It is one process for all of them: to start Java and warm it up takes as long as ten
    notebooks. Each test waits for its own notebook only.

    Parameters
    ----------
    names : list of str
        Of the notebooks.
    log : Path
        A file for what the process warns of.
    """

    def __init__(self, names: list[str], log: Path) -> None:
        self._names, self._log = names, log
        command = [sys.executable, "-m", "tests.differential", *names]
        with log.open("w") as stderr:
            self._process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=stderr, text=True)
        self._told: dict[str, list[str]] = {}

    def of(self, name: str) -> list[str]:
        """What differs in a notebook."""
        while name not in self._told:
            if (line := self._line()).startswith("{") and "name" in (one := json.loads(line)):
                self._told[one["name"]] = one["differences"]
        return self._told[name]

    def _line(self) -> str:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise EOFError(f"the process has ended: {self._log.read_text()[-4000:]}")
        return line

    def close(self) -> None:
        """Let the process end, which has its files to remove; end it where a notebook is still to come."""
        if not self._told.keys() >= set(self._names):
            self._process.kill()
        self._process.communicate(timeout=60)


@pytest.fixture(scope="module")
def differences(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Differences]:
    """Those of the notebooks that were chosen, on a command line for example."""
    items: list[Any] = request.session.items
    chosen = [item.callspec.params["notebook"].name for item in items if item.path == request.path]
    told = Differences(chosen, tmp_path_factory.mktemp("differential") / "log")
    yield told
    told.close()
