"""The page that is sent: complete, and nothing in it runs."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from html.parser import HTMLParser

from flinkmagic.display.findings import Finding, FindingsView
from flinkmagic.display.measures import StageLink, VertexMeasures
from flinkmagic.display.report import report_page
from flinkmagic.display.snapshot import ErrorView, GraphView, JobSnapshot, OperatorLine, TaskView

BAD = "</script></style></title><script>alert(1)</script><img src=http://evil.invalid/x onerror=alert(2)>\"'\u202e\x00"
TAGS = {
    "html", "head", "meta", "title", "style", "body", "div", "strong", "pre", "details", "summary", "img", "table",
    "tr", "th", "td", "i", "b", "span", "small", "code",
}  # fmt: skip


class Page(HTMLParser):
    """What a browser makes of a page."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.attributes: dict[str, set[str]] = {}
        self.words = ""
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        for name, value in attrs:
            self.attributes.setdefault(name, set()).add(value or "")

    def handle_data(self, data: str) -> None:
        self.words += data


def ran(snapshot: JobSnapshot, found: FindingsView) -> JobSnapshot:
    measures = VertexMeasures(
        {"computing": 3000.0, "Python": 1000.0},
        (("results sent to the driver", "2.0 KiB"),),
        {7: (("number of output rows", "12,000"),)},
        (("shuffle bytes written", "18.7 MiB"),),
        (StageLink("stage 4", "http://10.0.0.1:4040/stages/stage/?id=4"),),
    )
    tasks = [
        TaskView("v3", subtask, 0, "FINISHED", "1_0", "1", 0.0, 100.0 + 100 * subtask, 10, 5, 1024, 512)
        for subtask in range(3)
    ]
    failed = TaskView("v3", 3, 1, "FAILED", "1_0", "1", 0.0, 50.0, error="ValueError: no number")
    return replace(snapshot, findings=found, measures={"v3": measures}, tasks=[*tasks, failed])


def views_of(view: Callable[..., GraphView], snapshot: JobSnapshot) -> list[GraphView]:
    lines = tuple(replace(line, node_ids=(7,)) for line in view().nodes[2].operators[:1])
    job = replace(view(), nodes=tuple(replace(one, operators=lines) if one.id == "v3" else one for one in view().nodes))
    kinds = ("stream", "execution", "regions")
    return [each.paint(snapshot) for each in (job, *(replace(view(), kind=kind) for kind in kinds))]


def test_it_has_all_tabs_each_vertex_and_the_events(
    view: Callable[..., GraphView], snapshot: JobSnapshot, found: FindingsView
) -> None:
    seen = ran(snapshot, found)
    text = report_page(views_of(view, seen), seen, notes=["FINISHED after 4.2 s"], events=["0 ms  the job is CREATED"])
    headings = re.findall(r"font-weight:600\">([^<]*)</summary>", text)
    assert headings[:5] == ["Job graph", "Stream graph", "Execution graph", "Regions and slots", "Timeline"]
    assert headings[5:7] == ["Findings (3)", "Vertices"]
    assert headings[-1] == "Events"
    assert len(headings) == 8 + 5, "no operator of these has words of Spark's"
    page = Page(text)
    for words in (
        "FINISHED after 4.2 s", "0 ms  the job is CREATED", "Where 4.0 s of its tasks went", "Python 1.0 s",
        "number of output rows 12,000", "shuffle bytes written18.7 MiB", "3 tasksmedianlargest",
        "time200 ms300 ms", "rows in1010", "bytes out512 B512 B",
        "✗ subtask 4, attempt 2, 1: ValueError: no number", "19.4 s of slots lost: partition 6 of 8 has most rows",
    ):  # fmt: skip
        assert words in page.words, words
    assert "flex:0.7500 0 0;background:#0072b2" in text


def test_nothing_of_data_runs_and_nothing_is_loaded(view: Callable[..., GraphView], snapshot: JobSnapshot) -> None:
    lines = (OperatorLine(BAD, BAD, BAD, BAD, BAD, BAD, (7,), BAD, BAD),)
    nodes = tuple(replace(one, operators=lines, name=BAD, badges=(BAD,), facts=((BAD, BAD),)) for one in view().nodes)
    finding = Finding(BAD, BAD, BAD, 7, BAD, BAD, "v3", BAD, 1.0, BAD, BAD, BAD)  # type: ignore[arg-type]
    measures = VertexMeasures({"computing": 1.0}, ((BAD, BAD),), {7: ((BAD, BAD),)}, ((BAD, BAD),))
    seen = replace(
        ran(snapshot, FindingsView(BAD, (finding,), BAD)), name=BAD, note=BAD, measures={"v3": measures},
        facts={"v3": ((BAD, BAD),)}, errors=[ErrorView(BAD, BAD, traceback=BAD)],
        tasks=[TaskView("v3", 0, error=BAD, executor=BAD, slot=BAD, start_ms=0.0, end_ms=1.0)],
    )  # fmt: skip
    views = [replace(view(), nodes=nodes, name=BAD, summary=BAD, kind=kind).paint(seen) for kind in ("job", "stream")]
    text = report_page(views, seen, notes=[BAD], events=[BAD])
    page = Page(text)
    assert page.tags == TAGS
    assert not [name for name in page.attributes if name.startswith("on") or name in ("href", "action", "id")]
    assert all(source.startswith("data:image/svg+xml;base64,") for source in page.attributes["src"])
    assert page.attributes["http-equiv"] == {"Content-Security-Policy"}
    assert "default-src 'none'; img-src data:; style-src 'unsafe-inline'" in page.attributes["content"]
    assert text.count("<script") == text.count("</script") == text.count("evil.invalid/x onerror=alert(2)>") == 0
    assert text.count("</style>") == text.count("</title>") == 1
    assert "<script>alert(1)</script><img src=http://evil.invalid/x" in page.words
    assert "⟨U+202E⟩␀" in page.words
    assert "\u202e" not in text
