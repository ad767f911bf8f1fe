from __future__ import annotations

import json
from collections.abc import Callable

import pytest

from flinkmagic.display.dot import to_dot
from flinkmagic.display.layout_engine import render_dot
from flinkmagic.display.snapshot import ClusterView, GraphView, JobSnapshot, NodeView, OperatorLine

HOSTILE = [
    '"];evil [label="x', "\\", '\\"', "<b>bold</b>", "<<table/>>", "&amp; &beta;", "a\\nb \\N\\G", "} digraph {",
    "\u202e\x00",
]  # fmt: skip


def parsed(text: str) -> dict[str, object]:
    return json.loads(render_dot(text, "json0"))  # type: ignore[no-any-return]


def test_each_node_has_a_label_and_each_edge_its_partitioner(view: Callable[..., GraphView]) -> None:
    graph = parsed(to_dot(view()))
    objects = graph["objects"]
    assert isinstance(objects, list)
    labels = {item["name"]: item["label"] for item in objects}
    assert set(labels) == {"n0", "n1", "n2", "n3", "n4"}
    assert labels["n1"] == 'spark.read.csv("airlines")\\nline 3 · Scan csv\\n1 subtask'
    edges = graph["edges"]
    assert isinstance(edges, list)
    assert sorted((edge["tail"], edge["head"], edge["label"]) for edge in edges) == [
        (0, 2, "FORWARD · pipelined bounded"), (1, 2, "BROADCAST · blocking"), (2, 3, "HASH · blocking"),
        (2, 4, "RANGE · blocking"),
    ]  # fmt: skip


def test_execution_vertices_are_nodes_and_large_vertices_one(
    view: Callable[..., GraphView], snapshot: JobSnapshot
) -> None:
    graph = parsed(to_dot(view("execution", wide=40).paint(snapshot)))
    objects = graph["objects"]
    assert isinstance(objects, list)
    names = [item["name"] for item in objects if not item["name"].startswith("cluster")]
    assert len(names) == 4 + 1 + 4 + 4 + 1
    assert {item["label"] for item in objects if item["name"] == "n0_2"} == {"3/4 ▶ running"}


@pytest.mark.parametrize("text", HOSTILE)
def test_hostile_text_stays_a_label(text: str) -> None:
    node = NodeView("n", "source", text, (OperatorLine(text, text, text),))
    view = GraphView("job", text, (node,), clusters=(ClusterView("c", text, ("n",)),))
    graph = parsed(to_dot(view))
    objects = graph["objects"]
    assert isinstance(objects, list)
    assert [item["name"] for item in objects] == ["cluster_0", "n0"]
    assert render_dot(to_dot(view), "svg").count("<a ") <= 2
