"""A write whose failure a handler waits for runs on its line."""

from __future__ import annotations

import contextlib
import runpy
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from flinkmagic.capturing.capture import capture
from flinkmagic.capturing.program import Program
from flinkmagic.capturing.source_code.handlers import handler_of
from flinkmagic.errors.capturing import HandledWriteError

CODE = """
import contextlib

def outside(look):
    return look()

def inside(look):
    try:
        found = look()
    except ValueError:
        found = look()
    else:
        pass
    return found

def after(look):
    try:
        pass
    except ValueError:
        pass
    return look()

def cleaned(look):
    try:
        return look()
    finally:
        pass

def nested(look):
    try:
        try:
            return look()
        finally:
            pass
    except (OSError,
            ValueError):
        pass

def suppressed(look):
    with open(__file__), contextlib.suppress(OSError):
        return look()

def inner(look):
    try:
        def run():
            return look()
    except ValueError:
        pass
    return run()

def comprehended(look):
    try:
        return [look() for _ in "1"][0]
    except ValueError:
        pass
"""


def _frames_handlers() -> list[int | None]:
    frame, found = sys._getframe(1), []
    while frame is not None and frame.f_code.co_filename == "code":
        found.append(handler_of(frame, CODE))
        frame = frame.f_back
    return found


@pytest.mark.parametrize(
    ("name", "line"),
    [("outside", None), ("inside", 8), ("after", None), ("cleaned", None), ("nested", 30), ("suppressed", 40),
     ("inner", None), ("comprehended", 52)],
)  # fmt: skip
def test_handlers_are_those_around_the_running_line(name: str, line: int | None) -> None:
    namespace: dict[str, Any] = {"__file__": __file__}
    exec(compile(CODE, "code", "exec"), namespace)
    found = [handler for handler in namespace[name](_frames_handlers) if handler is not None]
    assert found == ([] if line is None else [line])


TRY = """
try:
    spark.range(0, 3, 1, 1).write.parquet(at('x'))
except Exception as error:
    caught = error
"""
CALLED = """
def save():
    spark.range(0, 3, 1, 1).write.parquet(at('x'))
try:
    save()
except Exception as error:
    caught = error
"""


@pytest.mark.parametrize("source", [TRY, CALLED], ids=["cell", "function"])
class TestAWriteInATry:
    def test_runs_on_its_line(self, cell: Any, source: str) -> None:
        before = "spark.range(1).write.parquet(at('w'))\n"
        program = cell.capture(before + source + "done = at\nspark.range(1).write.parquet(at('y'))", deploying=True)
        assert [settlement.cause for settlement in program.eager.settlements] == ["handler", "handler"]
        assert cell.deployed == ["w", "x"]
        assert [write.name for write in program.writes] == ["y"]

    def test_is_refused_where_writes_are_put_off(self, cell: Any, source: str) -> None:
        with pytest.raises(HandledWriteError, match="is in the try of cell 3, line"):
            cell.capture(source)
        assert cell.made() == set()

    def test_reaches_its_handler_with_what_spark_refuses(self, cell: Any, numbers: Any, source: str) -> None:
        numbers("x", 2)
        cell.capture(source)
        assert type(cell.namespace["caught"]).__name__ == "AnalysisException"
        assert cell.rows("x") == [0, 1]


def test_a_block_counts_only_what_begins_in_it(spark: Any, tmp_path: Any) -> None:
    try:
        with capture(spark) as program:
            spark.range(1).write.parquet(str(tmp_path / "x"))
    except ValueError:
        pytest.fail("nothing raises it")
    assert len(program.writes) == 1


def test_a_try_in_a_block_counts(spark: Any, tmp_path: Any) -> None:
    def block() -> None:
        with capture(spark):
            try:
                spark.range(1).write.parquet(str(tmp_path / "x"))
            except ValueError:
                pytest.fail("nothing raises it")

    with pytest.raises(HandledWriteError):
        block()


def test_a_block_that_another_function_begins_counts_from_there(spark: Any, tmp_path: Any) -> None:
    @contextlib.contextmanager
    def captured() -> Iterator[Program]:
        with capture(spark) as program:
            yield program

    try:
        with captured() as program:
            spark.range(1).write.parquet(str(tmp_path / "x"))
    except ValueError:
        pytest.fail("nothing raises it")
    assert len(program.writes) == 1


MANAGERS = """
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
def test_context_managers_that_heed_exceptions(tmp_path: Path, manager: str) -> None:
    assert _handlers_around(tmp_path, manager) == [MANAGERS.count("\n", 0, MANAGERS.index("with MANAGER")) + 1]


@pytest.mark.parametrize(
    "manager",
    ["cleaning()", "entered()", "Timer()", "tools.timer", "unknown['manager']", "tempfile.TemporaryDirectory()",
     "ThreadPoolExecutor(1)", "open(__file__)"],
)  # fmt: skip
def test_context_managers_that_heed_none(tmp_path: Path, manager: str) -> None:
    assert _handlers_around(tmp_path, manager) == []


def _handlers_around(folder: Path, manager: str) -> list[int]:
    file = folder / "code.py"
    file.write_text(MANAGERS.replace("MANAGER", manager), encoding="utf-8")
    source, found = file.read_text(encoding="utf-8"), []

    def look() -> None:
        frame: Any = sys._getframe(1)
        while frame is not None and frame.f_code.co_filename == str(file):
            line = handler_of(frame, source)
            found.extend([] if line is None else [line])
            frame = frame.f_back

    runpy.run_path(str(file))["run"](look)
    return found
