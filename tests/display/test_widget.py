from __future__ import annotations

import shutil
import subprocess
import threading
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("anywidget")

from flinkmagic.display.findings import FindingsView
from flinkmagic.display.measures import StageLink, VertexMeasures
from flinkmagic.display.snapshot import GraphView, JobSnapshot, NodeView, TaskView
from flinkmagic.display.widget import JobView
from flinkmagic.errors.usage import JobFailedError


@pytest.fixture
def made(view: Callable[..., GraphView]) -> Callable[..., JobView]:
    def make(**options: Any) -> JobView:
        return JobView([view(), view("execution"), replace(view(), kind="stream")], **options)

    return make


def click(widget: JobView, kind: str) -> None:
    """What the front end sends when a button is pressed."""
    widget._handle_custom_msg({"type": kind}, [])


def test_the_open_tab_is_drawn_immediately_the_others_behind(made: Callable[..., JobView]) -> None:
    widget = made()
    assert widget._job["tree"][0] == "svg"
    widget._drawing.join(30)
    assert widget._execution["tree"][0] == widget._stream["tree"][0] == "svg"
    assert widget._regions == {}
    assert widget._collapsed == {}


def test_updates_from_a_thread(made: Callable[..., JobView], snapshot: JobSnapshot) -> None:
    widget = made()
    seen: list[int] = []
    widget.observe(lambda change: seen.append(change["new"]["done"]), "_frame")
    thread = threading.Thread(target=widget.update, args=(snapshot,))
    thread.start()
    thread.join()
    assert seen == [3]
    assert widget._frame["vertices"]["v1"]["lead"] == "RUNNING"


def test_tasks_are_merged_and_sent_less_often_than_states(made: Callable[..., JobView], snapshot: JobSnapshot) -> None:
    widget = made()
    many = tuple(TaskView("v1", i, 0, "RUNNING") for i in range(20_000))
    widget.update(replace(snapshot, tasks=many))
    assert widget._tasks["n"] == 20_000
    widget.update(replace(snapshot, tasks=(TaskView("v1", 0, 1, "RUNNING"),)))
    assert widget._tasks["n"] == 20_000, "sent a moment ago: 1.5 MB"
    widget.update(replace(snapshot, status="FINISHED"))
    assert widget._tasks["n"] == 20_001, "the end is sent immediately"


def test_findings_are_sent_as_soon_as_somebody_has_looked(
    made: Callable[..., JobView], snapshot: JobSnapshot, found: FindingsView
) -> None:
    widget = made()
    widget.update(snapshot)
    assert widget._findings == {}
    widget.update(replace(snapshot, findings=found))
    assert widget._findings["path"].startswith("of 12.0 s, ")
    assert [one["vertex"] for one in widget._findings["found"]] == ["v3", "v3", "v5"]
    assert widget._findings["found"][0]["mark"] == "19.4 s of slots lost: partition 6 of 8 has most rows"
    widget.update(snapshot)
    assert widget._findings == {}, "another run has begun"


def test_measures_of_all_vertices_are_sent_in_the_end_and_before_those_of_the_selected_one(
    made: Callable[..., JobView], snapshot: JobSnapshot, monkeypatch: pytest.MonkeyPatch
) -> None:
    widget = made()
    link = (StageLink("stage 4", "http://here/stages"), StageLink("stage 5", "javascript:alert(1)"))
    measures = {id: VertexMeasures({"computing": 5.0}, operators={7: (("rows", "1"),)}, stages=link) for id in "ab"}
    widget.update(replace(snapshot, measures=measures))
    assert widget._measures == {}
    widget.selected = "b"
    assert widget._measures == {
        "b": {
            "parts": [["computing", 5.0]], "facts": [], "operators": {"7": [["rows", "1"]]}, "above": [],
            "stages": [["stage 4", "http://here/stages"]],
        }
    }  # fmt: skip
    widget.update(replace(snapshot, status="FINISHED", measures=measures))
    assert list(widget._measures) == ["a", "b"]
    monkeypatch.setattr("flinkmagic.display.widget._MOST_MEASURED", 1)
    widget.selected = "a"
    assert list(widget._measures) == ["a"]


def test_buttons_call_back(made: Callable[..., JobView], snapshot: JobSnapshot) -> None:
    calls: list[str] = []
    widget = made(on_run=lambda: calls.append("run"), on_cancel=lambda: calls.append("cancel"))
    assert widget._frame["action"] == "run"
    click(widget, "run")
    widget.update(snapshot)
    assert widget._frame["action"] == "cancel"
    click(widget, "cancel")
    click(widget, "something else")
    assert calls == ["run", "cancel"]


def test_without_callbacks_there_are_no_buttons(made: Callable[..., JobView], snapshot: JobSnapshot) -> None:
    widget = made(snapshot=snapshot)
    assert widget._frame["action"] == "none"
    click(widget, "run")


@pytest.mark.parametrize("error", [JobFailedError("delays", ["<b>no</b>"]), RuntimeError("<b>no</b>")])
def test_a_refusal_is_shown(made: Callable[..., JobView], error: Exception) -> None:
    def refuse() -> None:
        raise error

    widget = made(on_run=refuse)
    click(widget, "run")
    assert "<b>no</b>" in widget._frame["errors"][0]["message"]


def test_large_graphs_open_collapsed() -> None:
    nodes = tuple(NodeView(f"n{i}", "operator", f"n{i}", parallelism=1, vertex_id=f"n{i}") for i in range(80))
    from flinkmagic.display.snapshot import EdgeView

    edges = tuple(EdgeView(f"n{i}", f"n{i + 1}", "HASH") for i in range(79) if i % 10 != 9)
    widget = JobView([GraphView("job", "large", nodes, edges)])
    assert widget._about["collapsible"]
    assert len(widget._about["groups"]) == 8
    assert widget._collapsed["tree"][0] == "svg"
    widget._drawing.join(30)
    assert widget._job["tree"][0] == "svg"
    widget.update(JobSnapshot("large", "RUNNING", states={node.id: b"\x05" for node in nodes}))
    assert {box["lead"] for name, box in widget._frame["vertices"].items() if name.startswith("group")} == {"FINISHED"}


def test_public_traits_are_few(made: Callable[..., JobView]) -> None:
    import anywidget

    own = set(made().trait_names()) - set(anywidget.AnyWidget().trait_names())
    assert {name for name in own if not name.startswith("_")} == {"tab", "selected"}


def test_the_front_end_files_load_nothing_and_parse_no_markup() -> None:
    script, style = JobView._esm, JobView._css
    for word in (
        "innerHTML",
        "outerHTML",
        "insertAdjacentHTML",
        "document.write",
        "eval(",
        "http:",
        "https:",
        "import ",
    ):
        assert word not in str(script).replace('"http://www.w3.org/2000/svg"', "")
    assert "url(" not in str(style)
    assert "@import" not in str(style)


def test_the_front_end_files_are_one_module(tmp_path: Path) -> None:
    node = shutil.which("node")
    if node is None:
        pytest.skip("no Node.js to check the syntax with")
    module = tmp_path / "view.mjs"
    module.write_text(str(JobView._esm))
    checked = subprocess.run([node, "--check", module], capture_output=True, text=True, check=False)
    assert checked.returncode == 0, checked.stderr
