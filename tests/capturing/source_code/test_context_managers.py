"""Which context managers of the user's do something about an exception."""

from __future__ import annotations

import runpy
import sys
from pathlib import Path
from typing import Any

import pytest

from flinkmagic.capturing.source_code.handlers import handler_of

CODE = """
import contextlib, tempfile
from concurrent.futures import ThreadPoolExecutor

@contextlib.contextmanager
def swallowing():
    try:
        yield
    except ValueError:
        pass

@contextlib.contextmanager
def cleaning():
    try:
        yield
    finally:
        pass

@contextlib.contextmanager
def entered():
    with cleaning():
        yield

class Timer:
    def __enter__(self): return self
    def __exit__(self, *raised): self.over = True

class Silent(Timer):
    def __exit__(self, *raised): return True

class RollsBack(Timer):
    def __exit__(self, kind, error, trace):
        self.over = kind is None

class Tools:
    Silent, timer = Silent, Timer()

silent, tools = Silent(), Tools()
unknown = {"manager": Timer()}

def run(look):
    with MANAGER:
        return look()
"""


@pytest.mark.parametrize(
    "manager",
    ["swallowing()", "Silent()", "silent", "RollsBack()", "tools.Silent()", "cleaning(), Silent()",
     "contextlib.ExitStack()"],
)  # fmt: skip
def test_that_heed_exceptions(tmp_path: Path, manager: str) -> None:
    assert _handlers(tmp_path, manager) == [CODE.count("\n", 0, CODE.index("with MANAGER")) + 1]


@pytest.mark.parametrize(
    "manager",
    ["cleaning()", "entered()", "Timer()", "tools.timer", "unknown['manager']", "tempfile.TemporaryDirectory()",
     "ThreadPoolExecutor(1)", "open(__file__)"],
)  # fmt: skip
def test_that_heed_none(tmp_path: Path, manager: str) -> None:
    assert _handlers(tmp_path, manager) == []


def _handlers(folder: Path, manager: str) -> list[int]:
    file = folder / "code.py"
    file.write_text(CODE.replace("MANAGER", manager), encoding="utf-8")
    source, found = file.read_text(encoding="utf-8"), []

    def look() -> None:
        frame: Any = sys._getframe(1)
        while frame is not None and frame.f_code.co_filename == str(file):
            line = handler_of(frame, source)
            found.extend([] if line is None else [line])
            frame = frame.f_back

    runpy.run_path(str(file))["run"](look)
    return found
