from __future__ import annotations

from itertools import pairwise

from flinkmagic.display.collapse import collapse
from flinkmagic.display.snapshot import EdgeView, GraphView, JobSnapshot, NodeView, OperatorLine
from tests.display.states import state_codes


def graph(*edges: tuple[str, str], alone: str = "") -> GraphView:
    names = sorted({name for edge in edges for name in edge} | set(alone))
    nodes = tuple(NodeView(n, "operator", n, (OperatorLine(f"{n}()", "Op"),), 2, n) for n in names)
    return GraphView("job", "g", nodes, tuple(EdgeView(a, b, "HASH", "BLOCKING") for a, b in edges))


def boxes(view: GraphView) -> set[tuple[str, ...]]:
    return {node.members or (node.id,) for node in view.nodes}


def test_chains_become_one_box() -> None:
    small = collapse(graph(*pairwise("abcd")))
    assert boxes(small) == {("a", "b", "c", "d")}
    assert small.edges == ()
    (box,) = small.nodes
    assert box.badges == ("4 vertices",)
    assert box.parallelism == 8
    assert [line.title for line in box.operators] == ["a()", "… 2 more vertices", "d()"]


def test_siblings_become_one_box_and_what_differs_stays() -> None:
    small = collapse(graph(("a", "x"), ("b", "x"), ("c", "x"), ("x", "y"), ("x", "z"), ("q", "z")))
    assert boxes(small) == {("a", "b", "c", "x"), ("q",), ("y",), ("z",)}
    assert {(edge.source, edge.target) for edge in small.edges} == {
        ("group-0", "y"),
        ("group-0", "z"),
        ("q", "z"),
    }


def test_what_belongs_together_is_merged_first() -> None:
    view = graph(("a", "c"), ("b", "c"), ("b", "d"))
    assert boxes(collapse(view, [("a", "b")])) == {("a", "b", "c", "d")}
    assert boxes(collapse(view)) == {("a",), ("b",), ("c",), ("d",)}


def test_parts_that_nothing_connects_stay_apart() -> None:
    assert boxes(collapse(graph(("a", "b"), alone="xy"))) == {("a", "b"), ("x",), ("y",)}


def test_a_box_is_painted_with_all_its_members() -> None:
    small = collapse(graph(*pairwise("abc")))
    states = {"a": state_codes(["FINISHED"] * 2), "b": state_codes(["RUNNING", "FAILED"]), "c": b""}
    (box,) = small.paint(JobSnapshot("g", "RUNNING", states=states)).nodes
    assert box.state_counts == {"RUNNING": 1, "FINISHED": 2, "FAILED": 1}
    assert box.leading_state == "FAILED"


def test_a_cycle_does_not_hang() -> None:
    assert len(collapse(graph(("a", "b"), ("b", "a"), ("b", "c"))).nodes) <= 3
