from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from flinkmagic.display.collapse import collapse
from flinkmagic.display.findings import FindingsView
from flinkmagic.display.page import to_html
from flinkmagic.display.picture import draw_picture, to_svg
from flinkmagic.display.snapshot import GraphView, JobSnapshot


def test_words(found: FindingsView) -> None:
    assert found.title == "Findings (3)"
    assert found.found[0].mark == "19.4 s of slots lost: partition 6 of 8 has most rows"
    assert [one.basis for one in found.found[:2]] == [
        "skewed-partition · measured: the time for which slots idled",
        "spill, likely · estimated: by its bytes",
    ]


def test_vertices_are_marked_and_parts_of_them_are_not(
    view: Callable[..., GraphView], snapshot: JobSnapshot, found: FindingsView
) -> None:
    painted = view().paint(replace(snapshot, findings=found))
    assert {node.id: len(node.marks) for node in painted.nodes} == {"v1": 0, "v2": 0, "v3": 2, "v4": 0, "v5": 1}
    part = replace(view().nodes[2], id="7")
    assert replace(snapshot, findings=found).marks_of(part) == ()
    small = collapse(view(), [("v4", "v5")]).paint(replace(snapshot, findings=found))
    groups = [node for node in small.nodes if node.members]
    assert [len(node.marks) for node in groups] == [
        2 * ("v3" in node.members) + ("v5" in node.members) for node in groups
    ]
    assert [node.marks for node in view().paint(snapshot).nodes] == [()] * 5


def test_a_mark_has_a_number_and_says_what_was_found(
    view: Callable[..., GraphView], snapshot: JobSnapshot, found: FindingsView
) -> None:
    picture = to_svg(view().paint(replace(snapshot, findings=found)))
    assert picture.count('class="fm-mark"') == 2
    assert ">2</text>" in picture
    assert "<title>19.4 s of slots lost: partition 6 of 8 has most rows\n1.2 s of slots lost" in picture
    plain, marked = draw_picture(view().paint(snapshot)), draw_picture(view().paint(replace(snapshot, findings=found)))
    assert (plain.width, plain.height) == (marked.width, marked.height)


def test_the_page_has_them_under_a_heading_with_their_number(
    view: Callable[..., GraphView], snapshot: JobSnapshot, found: FindingsView
) -> None:
    views = [replace(view(), kind="stream"), view()]
    page = to_html(views, snapshot=replace(snapshot, findings=found))
    assert ">Findings (3)</summary><div>of 12.0 s, 9.8 s is the critical path, 1.1 s the driver</div>" in page
    assert page.count("df.repartition(&quot;key&quot;, &quot;other&quot;)</pre>") == 2
    assert "Findings" not in to_html(views, snapshot=snapshot)
    nothing = to_html(views, snapshot=replace(snapshot, findings=FindingsView("of 1 s", (), "Found: nothing.")))
    assert "Findings (0)</summary><div>of 1 s</div><div>Found: nothing.</div>" in nothing
