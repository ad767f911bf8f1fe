from __future__ import annotations

import base64
import json
from collections.abc import Callable
from dataclasses import replace

import numpy as np

from flinkmagic.display import widget_data
from flinkmagic.display.collapse import collapse
from flinkmagic.display.snapshot import ErrorView, GraphView, JobSnapshot, TaskView


def test_what_does_not_change(view: Callable[..., GraphView]) -> None:
    about = widget_data.about(view(), None, ["job", "stream"])
    assert [kind for kind, _ in about["tabs"]] == ["stream", "job", "timeline", "findings"]
    assert about["order"] == ["v1", "v2", "v3", "v4", "v5"]
    assert about["edges"] == [["v1", "v3"], ["v2", "v3"], ["v3", "v4"], ["v3", "v5"]]
    assert about["vertices"]["v3"]["operators"][0]["code"] == 'x = join(carriers, "carrier")'
    assert about["look"]["names"][5] == "FINISHED"
    assert dict(map(tuple, about["search"]))["v2"].startswith("source: carriers spark.read.csv")
    assert not about["collapsible"]
    json.dumps(about)


def test_groups_of_a_collapsed_graph(view: Callable[..., GraphView]) -> None:
    small = collapse(view(), [("v4", "v5")])
    about = widget_data.about(view(), small, ["job"])
    (group,) = [node for node in small.nodes if node.members]
    assert about["groups"][group.id]["members"] == list(group.members)
    assert about["group_of"]["v4"] == group.id


def test_frame(view: Callable[..., GraphView], snapshot: JobSnapshot) -> None:
    frame = widget_data.frame(snapshot, view().nodes, can_run=True, can_cancel=True)
    assert (frame["status"], frame["tone"], frame["live"], frame["action"]) == (
        "RUNNING",
        "RUNNING",
        True,
        "cancel",
    )
    assert (frame["done"], frame["total"], frame["slots_used"], frame["slots_total"]) == (3, 17, 3, 4)
    first = frame["vertices"]["v1"]
    assert base64.b64decode(first["states"]) == snapshot.states["v1"]
    assert (first["lead"], first["words"]) == ("RUNNING", "2 of 4 finished · 1 running")
    assert first["bar"] == [["FINISHED", 0.5], ["RUNNING", 0.25], ["SCHEDULED", 0.25]]
    assert frame["facts"] == {}
    found = replace(snapshot, facts={"v1": (("join", "a\u202e side"),)})
    frame = widget_data.frame(found, view().nodes, can_run=True, can_cancel=True)
    assert frame["facts"] == {"v1": [["join", "a⟨U+202E⟩ side"]]}


def test_actions(view: Callable[..., GraphView], snapshot: JobSnapshot) -> None:
    def action(status: str | None, run: bool = True, cancel: bool = True) -> str:
        at = None if status is None else replace(snapshot, status=status)
        return str(widget_data.frame(at, (), can_run=run, can_cancel=cancel)["action"])

    assert [action(s) for s in (None, "CREATED", "RUNNING", "CANCELLING", "FAILED", "FINISHED")] == [
        "run", "cancel", "cancel", "wait", "again", "again",
    ]  # fmt: skip
    assert [action(s, False, False) for s in (None, "RUNNING", "FINISHED")] == ["none", "none", "none"]


def test_errors_are_made_visible(snapshot: JobSnapshot) -> None:
    error = ErrorView("bad\x1b[31m", "where\u202e", "v1", "line 1\nline 2\x00")
    (sent,) = widget_data.frame(replace(snapshot, errors=[error]), (), can_run=False, can_cancel=False)["errors"]
    assert sent["message"] == "bad␛[31m"
    assert sent["where"] == "where⟨U+202E⟩"
    assert sent["traceback"] == "line 1\nline 2␀"


def test_tasks_as_columns() -> None:
    log = widget_data.TaskColumns()
    running = TaskView("v1", 0, 0, "RUNNING", "e1:0", "e1", 100.0)
    assert log.add([running, TaskView("v2", 3, 1, "FAILED", error="boom", rows_in=7)])
    assert not log.add([running])
    assert log.add([replace(running, state="FINISHED", end_ms=250.5, bytes_out=1 << 40)])
    sent = log.encode()
    assert (sent["n"], sent["vertices"], sent["strings"]) == (2, ["v1", "v2"], ["e1:0", "e1", "boom"])
    floats = np.frombuffer(sent["columns"][: 8 * 6 * 2], "<f8").reshape(6, 2)
    integers = np.frombuffer(sent["columns"][8 * 6 * 2 : -2], "<i4").reshape(6, 2)
    assert floats[:, 0].tolist()[:2] == [100.0, 250.5]
    assert floats[5, 0] == 1 << 40
    assert floats[2, 1] == 7
    assert np.isnan(floats[0, 1])
    assert integers.tolist() == [[0, 1], [0, 3], [0, 1], [0, -1], [1, -1], [-1, 2]]
    assert list(sent["columns"][-2:]) == [5, 8]


def test_no_tasks_are_an_empty_table() -> None:
    assert widget_data.TaskColumns().encode() == {"n": 0, "strings": [], "vertices": [], "columns": b""}


def test_pictures_hold_no_markup(view: Callable[..., GraphView]) -> None:
    hostile = replace(view().nodes[0], name="<img onerror=x>", badges=("</text><script>",))
    sent = widget_data.picture(replace(view(), nodes=(hostile, *view().nodes[1:])))

    def walk(node: list[object]) -> None:
        tag, attributes, children = node
        assert tag in {"svg", "g", "rect", "path", "text", "tspan", "title"}
        assert isinstance(attributes, dict)
        assert not any(name.startswith("on") or "href" in name for name in attributes)
        assert isinstance(children, list)
        for child in children:
            if not isinstance(child, str):
                walk(child)

    walk(sent["tree"])
    assert "</text><script>" in json.dumps(sent)
