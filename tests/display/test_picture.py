from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from collections.abc import Callable
from dataclasses import replace
from itertools import combinations

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from flinkmagic.display.nodes import footer_text, measure
from flinkmagic.display.picture import draw_picture, to_svg
from flinkmagic.display.placement import Box
from flinkmagic.display.scene import Element, element
from flinkmagic.display.snapshot import GraphView, JobSnapshot, NodeView, OperatorLine
from flinkmagic.display.subtasks import chip_center, subtasks_size
from flinkmagic.errors.base import InvariantViolatedError
from tests.display.states import state_codes

SVG = "{http://www.w3.org/2000/svg}"
HOSTILE = [
    "<script>alert(1)</script>",
    "<img src=x onerror=alert(1)>",
    '" onload="alert(1)',
    "]]><!--",
    "&lt;b&gt; &#x41; %s {{7*7}} ${x}",
    "javascript:alert(1)",
    "](http://evil.example/) **bold**",
    "\\N \\G \\l } ; a -> b",
    "\u202etxt.exe\u2066 \x00\x1b[31m\x07",
    "שלום עולם 日本語 ﷽ 🙂",
    "x" * 5000,
    "",
    "\n\n",
]


def texts(svg: str) -> list[str]:
    return ["".join(node.itertext()) for node in ET.fromstring(svg).iter(f"{SVG}text")]


def nodes(svg: str) -> dict[str | None, ET.Element]:
    return {g.get("data-id"): g for g in ET.fromstring(svg).iter(f"{SVG}g") if g.get("class") == "fm-node"}


def boxes(svg: str) -> list[Box]:
    found = []
    for card in nodes(svg).values():
        x, y = map(float, re.findall(r"[\d.]+", card.get("transform", "")))
        border = card.find(f"{SVG}rect")
        assert border is not None
        found.append(Box(x, y, float(border.get("width", 0)), float(border.get("height", 0))))
    return found


def assert_inert(svg: str) -> None:
    """No script, no reference, no handler: whatever it says, it says as text."""
    for item in ET.fromstring(svg).iter():
        assert item.tag.removeprefix(SVG) in {"svg", "g", "rect", "path", "text", "tspan", "title"}
        for name, value in item.attrib.items():
            assert not name.lower().startswith("on")
            assert "href" not in name.lower()
            if not name.startswith(("data-", "aria-")):
                assert "url(" not in value
                assert ":" not in value


def test_every_node_edge_and_word_is_there(view: Callable[..., GraphView]) -> None:
    svg = to_svg(view())
    assert set(nodes(svg)) == {"v1", "v2", "v3", "v4", "v5"}
    edges = {
        (g.get("data-source"), g.get("data-target"))
        for g in ET.fromstring(svg).iter(f"{SVG}g")
        if g.get("class") == "fm-edge"
    }
    assert edges == {("v1", "v3"), ("v2", "v3"), ("v3", "v4"), ("v3", "v5")}
    shown = texts(svg)
    for words in (
        'where("dep_delay > 15")', "line 2 · Filter", "BROADCAST · blocking", "shared by 2", "×4", "SOURCE", "JOIN",
        "delays · Job graph", "6 operators in 5 job vertices, 17 tasks",
    ):  # fmt: skip
        assert words in shown
    assert_inert(svg)


def test_painting_changes_colours_and_words_but_moves_nothing(
    view: Callable[..., GraphView], snapshot: JobSnapshot
) -> None:
    plain, painted = view(), view().paint(snapshot)
    svg = to_svg(painted)
    assert boxes(to_svg(plain)) == boxes(svg)
    assert {name: node.get("data-state") for name, node in nodes(svg).items()} == {
        "v1": "RUNNING", "v2": "FINISHED", "v3": "FAILED", "v4": "CREATED", "v5": "CREATED",
    }  # fmt: skip
    shown = texts(svg)
    assert "2 of 4 finished · 1 running" in shown
    assert "1 failed · 0 of 4 finished" in shown
    assert "RUNNING · 4.2 s" in shown
    assert "failed" in shown, "the legend names the states that occur"


@pytest.mark.parametrize(
    ("states", "words"),
    [
        ([], "4 subtasks"),
        (["CREATED"] * 4, "4 subtasks"),
        (["FINISHED"] * 4, "4 subtasks finished"),
        (["FINISHED", "CREATED", "CREATED", "CREATED"], "1 of 4 finished"),
        (["FINISHED", "CANCELED", "CANCELED", "RUNNING"], "2 canceled · 1 of 4 finished"),
    ],
)
def test_words_under_a_card(states: list[str], words: str) -> None:
    assert footer_text(state_codes(states), 4) == words


def test_small_vertices_show_their_subtasks_one_by_one_large_ones_a_grid(
    view: Callable[..., GraphView], snapshot: JobSnapshot
) -> None:
    states = {**snapshot.states, "v5": state_codes(["FINISHED"] * 9_000 + ["FAILED"] * 1_000)}
    svg = to_svg(view("execution", wide=10_000).paint(replace(snapshot, states=states)))
    drawn = nodes(svg)
    chips = [g.get("data-state") for g in drawn["v1"].iter(f"{SVG}g") if g.get("class") == "fm-subtask"]
    assert chips == ["FINISHED", "FINISHED", "RUNNING", "SCHEDULED"]
    cells = {
        path.get("data-state"): (path.get("d") or "").count("M")
        for path in drawn["v5"].iter(f"{SVG}path")
        if path.get("class") == "fm-cells"
    }
    assert cells == {"FINISHED": 9_000, "FAILED": 1_000}


def test_lines_between_subtasks(view: Callable[..., GraphView]) -> None:
    svg = to_svg(view("execution"))
    fans = {
        (g.get("data-source"), g.get("data-target")): (path.get("d") or "").count("M")
        for g in ET.fromstring(svg).iter(f"{SVG}g")
        for path in g.findall(f"{SVG}path")
        if path.get("class") == "fm-line fm-fan"
    }
    assert fans == {("v1", "v3"): 4, ("v2", "v3"): 4, ("v3", "v4"): 16, ("v3", "v5"): 16}


def test_cards_do_not_overlap_and_stay_inside(view: Callable[..., GraphView]) -> None:
    for kind in ("job", "execution"):
        picture = draw_picture(view(kind, wide=300))
        placed = boxes(picture.root.to_svg())
        assert len(placed) == 5
        for one, other in combinations(placed, 2):
            assert not one.meets(other)
        for card in placed:
            assert card.x >= 0
            assert card.x + card.width <= picture.width
            assert card.y + card.height <= picture.height


@pytest.mark.parametrize("text", HOSTILE)
def test_hostile_text_is_shown_as_text(text: str) -> None:
    line = OperatorLine(text, text, text, text, text)
    node = NodeView(text, "source", text, (line,), 2, text, badges=(text[:40],), facts=((text, text),))
    svg = to_svg(GraphView("execution", text, (node,), summary=text[:200]))
    assert_inert(svg)
    assert len(nodes(svg)) == 1
    if text.startswith("<script"):
        assert text in texts(svg)


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.text(max_size=80), st.text(max_size=30))
def test_any_text_makes_inert_xml_whose_words_fit_their_card(call: str, badge: str) -> None:
    card = measure(NodeView("n", "operator", call, (OperatorLine(call, badge, "line 1"),), 3, "n", badges=(badge,)))
    assert all(row.width <= card.width for row in card.rows)
    from flinkmagic.display.nodes import draw

    root = element("svg", draw(card, 0, 0), xmlns="http://www.w3.org/2000/svg")
    assert_inert(root.to_svg())
    assert re.search(r"[\x00-\x08\x0b-\x1f\u202a-\u202e]", root.to_svg()) is None


def test_only_known_elements_can_be_drawn() -> None:
    for tag, attributes in (
        ("script", {}),
        ("a", {}),
        ("g", {"onclick": "x"}),
        ("image", {}),
        ("g", {"style": "x"}),
    ):
        with pytest.raises(InvariantViolatedError, match="is drawable"):
            Element(tag, attributes)


def test_the_same_tree_as_json() -> None:
    tree = element("g", element("text", "a<b", x=1.25), class_="k")
    assert tree.to_json() == ["g", {"class": "k"}, [["text", {"x": "1.2"}, ["a<b"]]]]
    assert tree.to_svg() == '<g class="k"><text x="1.2">a&lt;b</text></g>'


def test_long_chains_keep_their_ends() -> None:
    lines = tuple(OperatorLine(f"step{i}()", "Project", f"line {i}") for i in range(9))
    card = measure(NodeView("n", "operator", "n", lines))
    ends = ["step5()", "step6()", "step7()", "step8()"]
    assert [row.title[0] for row in card.rows] == ["step0()", "… 4 more operators", *ends]
    assert "step3()" in card.rows[1].hint


def test_chips_stay_in_their_row() -> None:
    for parallelism in range(1, 17):
        width, _ = subtasks_size(parallelism)
        assert all(0 < chip_center(parallelism, subtask, width) < width for subtask in range(parallelism))


def test_an_empty_graph_is_a_picture_too() -> None:
    assert "nothing · Job graph" in texts(to_svg(GraphView("job", "nothing", ())))
