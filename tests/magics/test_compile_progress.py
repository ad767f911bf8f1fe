"""The bar of a cell with many sinks: there while it lasts, with the right numbers, and gone when it is over."""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Iterator
from typing import Any
from unittest import mock

import pytest

from flinkmagic.magics import compile_progress
from flinkmagic.magics.compile_progress import CompileProgress

LOOP = """\
%%flinkgraph days --parallelism 2
numbers = spark.range(0, 300, 1, 1)
for day in range(30):
    numbers.where(F.col("id") % 30 == day).write.mode("overwrite").parquet(f"days/{day}")
"""


class Recorded:
    """What a view was told, in order."""

    def __init__(self) -> None:
        self.told: list[Any] = []

    def update(self, done: int, total: int | None, text: str) -> None:
        self.told.append((done, total, text))

    def close(self) -> None:
        self.told.append("closed")


@pytest.fixture
def view(monkeypatch: pytest.MonkeyPatch) -> Recorded:
    recorded = Recorded()
    monkeypatch.setattr(compile_progress, "_view", lambda widget: recorded)
    return recorded


@contextlib.contextmanager
def _ticking(seconds: float) -> Iterator[None]:
    """Let so many seconds go by each time that the time is asked for."""
    with mock.patch.object(compile_progress, "time") as time:
        time.monotonic.side_effect = itertools.count(0.0, seconds)
        yield


def _go(writes: int, sinks: int, seconds: float) -> None:
    """A cell in which each step takes so many seconds."""
    with _ticking(seconds), CompileProgress("days") as progress:
        for write in range(1, writes + 1):
            progress.captured(write)
        for sink in range(1, sinks + 1):
            progress.planned(sink, sinks)


def test_many_sinks_that_take_their_time_are_counted(view: Recorded) -> None:
    _go(24, 24, seconds=0.5)
    assert view.told == [
        *[(n, None, f"days: {n} writes captured") for n in range(21, 25)],
        *[(n, 24, f"days: {n} of 24 sinks planned") for n in range(1, 25)],
        "closed",
    ]


def test_a_view_is_not_told_more_often_than_it_could_be_read(view: Recorded) -> None:
    _go(0, 101, seconds=0.125)
    assert [each[0] for each in view.told[:-1]] == [*range(8, 101, 2), 101]


@pytest.mark.parametrize(("sinks", "seconds"), [(20, 5.0), (300, 0.001)], ids=["few", "fast"])
def test_nothing_is_shown_of_what_is_over_soon(view: Recorded, sinks: int, seconds: float) -> None:
    _go(sinks, sinks, seconds)
    assert view.told == []


def test_it_is_gone_where_the_cell_raised(view: Recorded) -> None:
    with _ticking(2.0), contextlib.suppress(KeyError), CompileProgress("days") as progress:
        progress.captured(21)
        raise KeyError
    assert view.told == [(21, None, "days: 21 writes captured"), "closed"]


def test_a_terminal_gets_a_line_that_is_wiped_out(capsys: pytest.CaptureFixture[str]) -> None:
    _go(0, 22, seconds=0.7)
    lines = capsys.readouterr().out.split("\r")
    assert lines[1].strip() == "days: 2 of 22 sinks planned"
    assert lines[-3].strip() == "days: 22 of 22 sinks planned"
    assert (lines[-2].strip(), lines[-1]) == ("", "")


@pytest.fixture
def impatient(kernel: Any) -> Iterator[None]:
    """A kernel in which also what is over immediately is shown."""
    kernel.run("from flinkmagic.magics import compile_progress as cp; cp.PATIENCE_S = cp.UPDATE_S = 0.0")
    yield
    kernel.run("cp.PATIENCE_S, cp.UPDATE_S = 1.0, 0.25\n%config FlinkMagics.progress = 'widget'")


@pytest.mark.long
def test_a_notebook_shows_a_bar_until_the_graph_is_there(kernel: Any, impatient: None) -> None:
    cell = kernel.run(LOOP)
    assert cell.status == "ok", cell.error
    (graph,) = cell.displays  # the graph is where the bar was
    assert [update for update in cell.updates if "application/vnd.jupyter.widget-view+json" in update] == []
    bars = [update["text/html"] for update in cell.updates if "<progress" in update.get("text/html", "")]
    assert bars[0].startswith('<progress value="0" max="1"')  # how many writes there will be is not known
    said = "days: 30 of 30 sinks planned"
    assert bars[-1] == f'<progress value="30" max="30" aria-label="{said}"></progress> {said}'
    assert "days" in kernel.run("print(days.summary())").stdout
    assert "image/svg+xml" in graph or "text/html" in graph
    assert cell.stdout == ""


@pytest.mark.long
def test_a_notebook_without_widgets_shows_a_line(kernel: Any, impatient: None) -> None:
    kernel.run("%config FlinkMagics.progress = 'line'")
    cell = kernel.run(LOOP)
    assert cell.status == "ok", cell.error
    told = [bundle["text/plain"] for bundle in cell.updates if set(bundle) == {"text/plain"}]
    assert "days: 21 writes captured" in told
    assert told[0] == "days: the cell is captured …"
    assert told[-2:] == ["days: 30 of 30 sinks planned", "days: its graphs are drawn …"]
    assert "image/svg+xml" in cell.displays[0]


@pytest.mark.long
def test_a_cell_says_at_once_that_it_is_captured_and_its_graph_takes_the_line_s_place(kernel: Any) -> None:
    one = "spark.range(3).groupBy('id').count().write.mode('overwrite').json('one')"
    cell = kernel.run(f"%%flinkgraph one\nprint('during')\n{one}")
    assert cell.status == "ok", cell.error
    assert [bundle["text/plain"] for bundle in cell.updates][:3] == [
        "one: the cell is captured …", "one: Spark plans …", "one: its graphs are drawn …"
    ]  # fmt: skip
    (graph,) = cell.displays
    assert "image/svg+xml" in graph
    failed = kernel.run(f"%%flinkgraph failed\n{one}\n1 / 0")
    assert failed.error_name == "ZeroDivisionError"
    assert failed.displays == [{"text/plain": ""}]
    ran = kernel.run(f"%%flinkgraph one --run\n{one}")
    (shown,) = ran.displays
    assert ran.updates[0] == {"text/plain": "one: the cell is captured …"}
    assert "FINISHED" in shown["text/plain"]
    assert "%flinkshow one" in shown["text/plain"]
    assert "%flinkshow one" in shown["text/html"]
    assert "Timeline of one" in shown["text/html"]
