"""What the tasks of a vertex took, and how much of it a card has room for."""

from __future__ import annotations

from dataclasses import replace

from flinkmagic.display import to_svg
from flinkmagic.display.costs import VertexCost
from flinkmagic.display.nodes import footer_words
from flinkmagic.display.text import longest_line
from flinkmagic.display.widget_data import frame
from tests.display.states import state_codes


def test_words_say_less_and_less():
    whole = VertexCost(2100.0, 1_234_567, 950, 5 * 1024 * 1024, 2048).words()
    assert whole == (
        "2.1 s · 1.2 M → 950 rows · 5.0 MiB → 2.0 KiB",
        "2.1 s · 1.2 M → 950 · 5.0 MiB → 2.0 KiB",
        "2.1 s · 1.2 M → 950 · 5.0 MiB",
        "2.1 s · 1.2 M → 950 rows",
        "2.1 s",
    )
    assert VertexCost(30.0).words() == ("30 ms",)
    assert VertexCost(30.0, rows_out=99_960).words()[0] == "30 ms · 100 K rows"


def test_finished_cards_tell_it_in_the_picture_and_in_the_view(view, snapshot):
    boxes = view().nodes
    done = {node.vertex_id: state_codes(["FINISHED"] * node.parallelism) for node in boxes}
    known = {"v1": VertexCost(90.0, 8, 4, 2048, 1024), "v3": VertexCost(2200.0, 600_000, 3)}
    over = replace(snapshot, status="FINISHED", states=done, costs=known)
    picture = to_svg(view().paint(over))
    assert "2.2 s · 600 K → 3 rows" in picture
    assert "4 subtasks finished" in picture  # where nothing is known
    sent = frame(over, boxes, can_run=True, can_cancel=False)["vertices"]
    assert sent["v3"]["cost"][0] == "2.2 s · 600 K → 3 rows"
    assert sent["v2"]["cost"] == []
    assert longest_line(view(), over) == (
        'longest: groupBy("hour").agg(F.avg("dep_delay").alias("delay")) (2.2 s); where("dep_delay > 15") (90 ms)'
    )
    # While a vertex runs, how far it is counts more.
    running = replace(over, status="RUNNING", states={**done, "v3": state_codes(["FINISHED", "RUNNING"])})
    assert frame(running, boxes, can_run=False, can_cancel=True)["vertices"]["v3"]["cost"] == []
    assert longest_line(view(), running) == ""


def test_a_narrow_card_tells_less(view):
    node = replace(view().nodes[0], cost=VertexCost(2100.0, 1_234_567, 950, 5 * 1024 * 1024, 2048))
    assert footer_words(node, 400) == "2.1 s · 1.2 M → 950 rows · 5.0 MiB → 2.0 KiB"
    assert footer_words(node, 150) == "2.1 s"
