"""Streaming queries in a job's progress: as text, in stored pictures, and as the widget gets them."""

from __future__ import annotations

from flinkmagic.display import to_html
from flinkmagic.display.queries import QueryFact, QueryView, query_lines
from flinkmagic.display.snapshot import GraphView, JobSnapshot, NodeView
from flinkmagic.display.widget_data import frame

QUERY = QueryView(
    "<b>clicks", "batch 7 took 350 ms", (QueryFact("input", "50 rows/s", (0, 50, 100)), QueryFact("watermark", "noon"))
)
SNAPSHOT = JobSnapshot("clicks", "RUNNING", queries=(QUERY,))


def test_bars_go_up_to_the_highest_of_the_last_values() -> None:
    assert QueryFact("f", "v", (0, 50, 100)).bars == "▁▅█"
    assert QueryFact("f", "v", (0.0, 0.0)).bars == "▁▁"
    assert QueryFact("f", "v", (-5.0, 10.0)).bars == "▁█"
    assert QueryFact("f", "v").bars == ""
    assert len(QueryFact("f", "v", tuple(map(float, range(100)))).bars) == 24


def test_text_and_widget_show_each_fact_with_its_bars() -> None:
    assert query_lines([QUERY]) == [
        "<b>clicks: batch 7 took 350 ms",
        "  input      50 rows/s  ▁▅█",
        "  watermark  noon",
    ]
    sent = frame(SNAPSHOT, (), can_run=False, can_cancel=True)["queries"]
    assert sent == [
        {
            "name": "<b>clicks",
            "doing": "batch 7 took 350 ms",
            "facts": [["input", "50 rows/s", "▁▅█"], ["watermark", "noon", ""]],
        }
    ]


def test_a_stored_picture_shows_queries_as_text_never_as_markup() -> None:
    html = to_html(GraphView("job", "clicks", (NodeView("a", "source", "Source"),)), snapshot=SNAPSHOT)
    assert "&lt;b&gt;clicks: batch 7 took 350 ms\n  input      50 rows/s  ▁▅█" in html
    assert "<b>" not in html
