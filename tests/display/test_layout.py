from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Iterator
from itertools import combinations
from pathlib import Path

import pytest

from flinkmagic.display import layout_engine
from flinkmagic.display.layout import place
from flinkmagic.display.layout_engine import render_dot
from flinkmagic.display.placement import Box, LayoutRequest
from flinkmagic.errors.usage import LayoutEngineNotFoundError, LayoutFailedError

DIAMOND = LayoutRequest(
    sizes=((100, 40), (120, 50), (80, 30), (100, 40)),
    edges=((0, 1, 60, 20), (0, 2, 60, 20), (1, 3, 0, 0), (2, 3, 60, 20), (0, 1, 60, 20)),
    clusters=((50, 16, (1, 2)),),
)


@pytest.fixture
def fresh_engine(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The engine is looked for again, and what is found is forgotten afterwards."""
    from graphviz.backend import dot_command

    monkeypatch.setattr(dot_command, "DOT_BINARY", Path("dot"))
    layout_engine.use_own_command.cache_clear()
    yield
    layout_engine.use_own_command.cache_clear()


def test_positions_are_in_the_order_of_the_request() -> None:
    placed = place(DIAMOND)
    assert [(box.width, box.height) for box in placed.nodes] == list(DIAMOND.sizes)
    top, left, right, bottom = placed.nodes
    assert top.y + top.height < left.y
    assert left.y + left.height < bottom.y
    assert not left.meets(right)
    for (source, target, *_), route in zip(DIAMOND.edges, placed.routes, strict=True):
        start, end = placed.nodes[source], placed.nodes[target]
        assert start.meets(Box(*route.points[0], 0, 0), margin=3)
        assert end.meets(Box(*route.tip, 0, 0), margin=3)
        assert len(route.points) % 3 == 1
    assert [route.label is None for route in placed.routes] == [False, False, True, False, False]
    assert all(placed.clusters[0].meets(box) for box in (left, right))


def test_nothing_is_laid_out_without_nodes() -> None:
    assert place(LayoutRequest((), ())).nodes == ()


def test_without_dot_the_pip_installed_engine_draws(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, fresh_engine: None
) -> None:
    pytest.importorskip("pygraphviz")
    import graphviz

    monkeypatch.setenv("PATH", str(tmp_path))
    from graphviz.backend import dot_command

    svg = render_dot('digraph { a [label="<b>&amp;"]; a -> b [label="HASH"]; }', "svg")
    assert "&lt;b&gt;&amp;" in svg
    assert "HASH" in graphviz.Source("digraph { a -> b [label=HASH] }").pipe("svg").decode()
    assert "HASH" in svg
    assert Path(dot_command.DOT_BINARY).name.startswith("dot")
    assert Path(dot_command.DOT_BINARY).is_file()


def test_without_any_engine_it_is_said_what_to_install(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, fresh_engine: None
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(layout_engine.importlib.util, "find_spec", lambda name: None)
    assert not layout_engine.engine_available()
    with pytest.raises(LayoutEngineNotFoundError, match="pip install pygraphviz"):
        render_dot("digraph {}", "svg")


def test_what_graphviz_refuses_is_an_error_of_ours() -> None:
    with pytest.raises(LayoutFailedError):
        render_dot("digraph { a -> }", "svg")


def test_our_command_answers_the_version_and_refuses_what_it_does_not_know() -> None:
    pytest.importorskip("pygraphviz")
    script = Path(layout_engine.__file__).with_name("dot_command.py")
    version = subprocess.run([sys.executable, script, "-V"], capture_output=True, text=True, check=True)
    assert "graphviz version" in version.stderr
    refused = subprocess.run([sys.executable, script, "-Nx"], capture_output=True, text=True, check=False)
    assert refused.returncode == 2
    assert "-Nx" in refused.stderr


def test_layouts_from_several_threads_simultaneously() -> None:
    requests = [LayoutRequest(((100.0 + i, 40), (50, 50)), ((0, 1, 0, 0),)) for i in range(4)]
    found: dict[int, float] = {}

    def run(index: int) -> None:
        found[index] = place(requests[index]).nodes[0].width

    threads = [threading.Thread(target=run, args=(index,)) for index in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == {i: 100.0 + i for i in range(4)}


def test_unconnected_parts_are_set_in_rows() -> None:
    many = LayoutRequest(((300.0, 100.0), (200.0, 80.0)) * 24, tuple((2 * i, 2 * i + 1, 50, 20) for i in range(24)))
    placed = place(many)
    assert placed.width < 2.5 * placed.height
    for one, other in combinations(placed.nodes, 2):
        assert not one.meets(other)
    for (source, target, *_), route in zip(many.edges, placed.routes, strict=True):
        assert placed.nodes[source].meets(Box(*route.points[0], 0, 0), margin=3)
        assert placed.nodes[target].meets(Box(*route.tip, 0, 0), margin=3)
    rows = {round(box.y) for box in placed.nodes[::2]}
    assert 2 <= len(rows) <= 8
    assert placed.nodes[0].x < 60


def test_few_unconnected_parts_stay_side_by_side() -> None:
    placed = place(LayoutRequest(((300.0, 100.0), (200.0, 80.0)), ()))
    assert placed.nodes[0].y + placed.nodes[0].height / 2 == placed.nodes[1].y + placed.nodes[1].height / 2


def test_an_engine_that_was_started_ahead_answers_and_is_used_once(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, fresh_engine: None
) -> None:
    pytest.importorskip("pygraphviz")
    monkeypatch.setenv("PATH", str(tmp_path))
    layout_engine.warm_up()
    first = layout_engine._spare
    layout_engine.warm_up()
    assert layout_engine._spare is first, "one is enough"
    assert first is not None
    assert place(LayoutRequest(((123.0, 40.0),), ())).nodes[0].width == 123.0
    assert first.returncode == 0
    assert layout_engine._spare is None


def test_an_engine_that_is_not_needed_ends_with_its_input() -> None:
    pytest.importorskip("pygraphviz")
    script = Path(layout_engine.__file__).with_name("dot_command.py")
    done = subprocess.run([sys.executable, script, "-Kdot", "-Tjson0"], input=b"", capture_output=True, check=True)
    assert (done.stdout, done.stderr) == (b"", b"")
