"""The timeline as a picture: bands in the order of the graph, lanes without overlap, what is too much to be kept."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace

from flinkmagic.display import timeline
from flinkmagic.display.page import to_html
from flinkmagic.display.scene import Element
from flinkmagic.display.snapshot import GraphView, JobSnapshot, TaskView
from flinkmagic.display.timeline import draw_timeline

TASKS = (
    TaskView("v3", 0, state="FAILED", start_ms=1500.0, end_ms=1600.0),
    TaskView("v1", 0, state="FINISHED", start_ms=1000.0, end_ms=1400.0),
    TaskView("v1", 1, state="FINISHED", start_ms=1100.0, end_ms=1300.0),
    TaskView("v1", 2, state="FINISHED", start_ms=1300.0, end_ms=1500.0),
    TaskView("v3", 1, state="RUNNING", start_ms=1600.0),
    TaskView("v4", 0, state="SCHEDULED"),
)


def ran(snapshot: JobSnapshot, tasks: tuple[TaskView, ...] = TASKS) -> JobSnapshot:
    return replace(snapshot, tasks=tasks, started_at_ms=900.0, elapsed_ms=1100.0)


def found(root: Element, tag: str, **attributes: str) -> list[Element]:
    """All elements below one, in their order."""
    below = [one for one in root.children if isinstance(one, Element)]
    own = [one for one in below if one.tag == tag and attributes.items() <= one.attributes.items()]
    return own + [one for child in below for one in found(child, tag, **attributes)]


def test_bands_lanes_and_bars(view: Callable[..., GraphView], snapshot: JobSnapshot) -> None:
    picture = draw_timeline(view(), ran(snapshot))
    assert picture is not None
    bands = found(picture.root, "g", **{"class": "fm-band"})
    assert [band.children[0].children[0] for band in bands] == [  # type: ignore[union-attr]
        'where("dep_delay > 15")', 'groupBy("hour").agg(F.avg("dep_de…'
    ]  # fmt: skip
    (bars,) = found(bands[0], "path")
    lefts, tops = zip(*re.findall(r"M([\d.]+) ([\d.]+)H", bars.attributes["d"]), strict=True)
    assert tops == ("0", "15", "15"), "the third begins in the lane where the second has ended"
    assert [float(left) for left in lefts] == [230.0, 299.0, 437.0], "690 pixels are 1.0 s"
    failed, running = (
        found(bands[1], "path", **{"data-state": "FAILED"}),
        found(bands[1], "path", **{"data-state": "RUNNING"}),
    )
    assert (len(failed), len(running)) == (1, 1)
    assert "H919.5" in running[0].attributes["d"], "it runs until now"
    assert "5 task attempts over 1.0 s" in picture.root.attributes["aria-label"]


def test_before_the_first_task_there_is_none(view: Callable[..., GraphView], snapshot: JobSnapshot) -> None:
    assert draw_timeline(view(), snapshot) is None
    views = [replace(view(), kind="stream"), view()]
    assert "Timeline" not in to_html(views, snapshot=snapshot)
    assert "Timeline" not in to_html(views)


def test_short_tasks_that_follow_each_other_are_one_bar(view: Callable[..., GraphView], snapshot: JobSnapshot) -> None:
    tasks = tuple(TaskView("v1", i, state="FINISHED", start_ms=float(i), end_ms=i + 0.9) for i in range(20_000))
    picture = draw_timeline(view(), ran(snapshot, tasks))
    assert picture is not None
    assert picture.root.to_svg().count("<") < 200
    assert len(picture.root.to_svg()) < 20_000


def test_too_many_bars_are_counted_instead(view: Callable[..., GraphView], snapshot: JobSnapshot) -> None:
    tasks = tuple(
        TaskView("v1", i, state="FINISHED", start_ms=float(i % 7), end_ms=1e6) for i in range(timeline.MAX_BARS + 1)
    )
    text = to_html([replace(view(), kind="stream"), view()], snapshot=ran(snapshot, tasks))
    assert "3,001 task attempts: too many for a picture that is kept in a notebook." in text


def test_it_is_the_last_of_several_pictures(view: Callable[..., GraphView], snapshot: JobSnapshot) -> None:
    text = to_html([replace(view(), kind="stream"), view()], snapshot=ran(snapshot))
    assert re.findall(r"<details( open)?><summary[^>]*>([^<]*)<", text) == [
        ("", "Stream graph"), (" open", "Job graph"), ("", "Timeline")
    ]  # fmt: skip
    assert text.count('<img alt="Timeline of delays"') == 1
    assert "Timeline" not in to_html(view(), snapshot=ran(snapshot)), "one picture stands alone"
