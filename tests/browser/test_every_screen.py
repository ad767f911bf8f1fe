"""Every tab in both themes: all words have enough contrast, and no two of a drawing overlap.

With $FLINKMAGIC_SCREENSHOTS each screen is kept as a picture, for people to look at.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

pytestmark = [pytest.mark.browser, pytest.mark.timeout(180)]

LOAD = f"%run {Path(__file__).with_name('fake_job.py')}"
VIEW = ".flinkmagic-view"
TABS = ("stream", "job", "execution", "regions", "timeline", "findings")

FAINT_WORDS = """
() => {
  const part = (text) => {
    const numbers = text.match(/-?[\\d.]+/g).map(Number);
    const scale = text.startsWith('color(') ? 255 : 1;
    return [...numbers.slice(0, 3).map((v) => v * scale), numbers[3] ?? 1];
  };
  const light = (c) => c.slice(0, 3).map((v) => v / 255)
    .map((v) => v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4)
    .reduce((sum, v, i) => sum + v * [0.2126, 0.7152, 0.0722][i], 0);
  const view = document.querySelector('.flinkmagic-view');
  const ground = (node, x, y) => {
    for (const at of document.elementsFromPoint(x, y)) {
      const style = getComputedStyle(at);
      if (at instanceof SVGElement && (at.tagName === 'text' || at.tagName === 'tspan')) continue;
      const paint = at instanceof SVGElement && at.tagName !== 'svg' ? style.fill : style.backgroundColor;
      if (paint === 'none' || paint.startsWith('url')) continue;
      const color = part(paint);
      if (color[3] > 0.99) return color;
    }
    return null;
  };
  const faint = [];
  let seen = 0;
  const walker = document.createTreeWalker(view, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    const text = walker.currentNode.textContent.trim();
    const node = walker.currentNode.parentElement;
    if (!text || ['TITLE', 'title', 'OPTION'].includes(node.tagName) || node.closest('.fm-hidden, [hidden]')) continue;
    const range = document.createRange();
    range.selectNodeContents(walker.currentNode);
    const box = range.getBoundingClientRect();
    const [x, y] = [box.x + box.width / 2, box.y + box.height / 2];
    if (!box.width || x < 0 || y < 0 || x > innerWidth || y > innerHeight) continue;
    const top = document.elementFromPoint(x, y);
    if (!top || !view.contains(top) || node.closest('button:disabled')) continue;
    const style = getComputedStyle(node);
    const below = ground(node, x, y);
    if (!below) continue;
    const [a, b] = [light(part(node instanceof SVGElement ? style.fill : style.color)), light(below)];
    const ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
    seen += 1;
    if (ratio < 4.5) faint.push([text.slice(0, 40), node.getAttribute('class'), Math.round(ratio * 100) / 100]);
  }
  return [seen, faint];
}
"""

OVERLAPS = """
() => {
  const texts = [...document.querySelectorAll('.flinkmagic-view .fm-surface-svg text')]
    .filter((node) => node.textContent.trim() && getComputedStyle(node).display !== 'none')
    .map((node) => [node.textContent.slice(0, 40), node.getBoundingClientRect()])
    .filter(([, box]) => box.width);
  const found = [];
  texts.forEach(([one, a], i) => texts.slice(i + 1).forEach(([other, b]) => {
    const across = Math.min(a.right, b.right) - Math.max(a.left, b.left);
    const down = Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top);
    if (across > 2 && down > 0.35 * Math.min(a.height, b.height)) found.push([one, other]);
  }));
  return [texts.length, found];
}
"""


def shown(notebook: Any, dark: bool) -> Any:
    page = notebook.page
    notebook.theme(dark)
    notebook.run_all()
    page.wait_for_selector(f"{VIEW} .fm-node .fm-call")
    # What the reader looks at: the view, from its header on.
    page.evaluate("document.querySelector('.flinkmagic-view').scrollIntoView({block: 'start'})")
    page.wait_for_timeout(400)
    return page


def check(page: Any, least: int = 16) -> None:
    page.wait_for_timeout(300)
    words, faint = page.evaluate(FAINT_WORDS)
    assert words >= least
    assert faint == []
    check_overlaps(page)


def check_themes(notebook: Any, name: str, least: int = 16) -> None:
    """Check a screen in both themes, the light one last."""
    for dark in (True, False):
        notebook.theme(dark)
        check(notebook.page, least)
        notebook.keep_screenshot(f"{name}-{'dark' if dark else 'light'}")


def check_overlaps(page: Any) -> None:
    _, overlaps = page.evaluate(OVERLAPS)
    assert overlaps == []


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("state", ["compiled", "running", "failed", "finished"])
def test_tabs(lab: Any, open_notebook: Callable[..., Any], state: str, dark: bool) -> None:
    theme = "dark" if dark else "light"
    play = {
        "compiled": "", "running": "job.run(0.3, until=0.55)", "failed": "job.run(0.3)", "finished": "job.run(0.3)",
    }[state]  # fmt: skip
    fail = "fail_at=(3, 2)" if state == "failed" else ""
    name = f"screen-{state}-{theme}.ipynb"
    lab.write(name, LOAD, f"job = FakeJob(*delays(), {fail})\n{play}\njob.wait_drawn()\njob.view")
    notebook = open_notebook(name)
    page = shown(notebook, dark)
    for tab in TABS:
        page.click(f"{VIEW} [data-kind={tab}]")
        # The findings of a job that has not run are one sentence, below the names of the tabs.
        check(page, 15 if (tab, state) == ("findings", "compiled") else 16)
        notebook.keep_screenshot(f"{tab}-{state}-{theme}")
    page.click(f"{VIEW} [data-kind=job]")
    chosen = page.locator(f"{VIEW} .fm-node[data-state=FAILED]" if state == "failed" else f"{VIEW} .fm-node").last
    chosen.click()
    page.wait_for_selector(f"{VIEW} .fm-details")
    check(page)
    notebook.keep_screenshot(f"details-{state}-{theme}")
    page.evaluate("document.querySelector('.flinkmagic-view .fm-details-body').scrollTop = 1e6")
    check(page)
    notebook.keep_screenshot(f"details-below-{state}-{theme}")
    notebook.theme(False)


def test_a_narrow_pane_shows_all_of_the_timeline_and_each_finding_s_words(
    lab: Any, open_notebook: Callable[..., Any]
) -> None:
    lab.write("screen-narrow.ipynb", LOAD, "job = FakeJob(*delays())\njob.run(0.3)\njob.wait_drawn()\njob.view")
    notebook = open_notebook("screen-narrow.ipynb")
    page = shown(notebook, dark=False)
    page.set_viewport_size({"width": 400, "height": 800})
    page.click(f"{VIEW} [data-kind=timeline]")
    page.wait_for_timeout(300)
    shown_width, width = page.evaluate(
        "(({clientWidth, scrollWidth}) => [clientWidth, scrollWidth])(document.querySelector('.fm-timeline-scroll'))"
    )
    assert shown_width == width
    assert page.locator(f"{VIEW} .fm-tools").is_hidden()
    check_themes(notebook, "narrow-timeline", least=6)
    page.click(f"{VIEW} [data-kind=findings]")
    what, cost = (page.locator(f"{VIEW} .fm-finding-{part}").first.bounding_box() for part in ("what", "cost"))
    assert cost["y"] >= what["y"] + what["height"]
    check_themes(notebook, "narrow-findings", least=6)


def test_five_hundred_vertices(lab: Any, open_notebook: Callable[..., Any]) -> None:
    lab.write(
        "screen-large.ipynb", LOAD,
        "job = FakeJob(*large(), slots=40)\njob.wait_drawn()\njob.run(0, until=0.4)\njob.view",
    )  # fmt: skip
    notebook = open_notebook("screen-large.ipynb")
    page = shown(notebook, dark=False)
    check_themes(notebook, "large-collapsed")
    page.click(f"{VIEW} .fm-tool:has-text('Critical path')")
    page.wait_for_timeout(500)
    check_overlaps(page)
    notebook.keep_screenshot("large-critical")
    page.click(f"{VIEW} .fm-tool:has-text('Critical path')")
    page.click(f"{VIEW} .fm-tool:has-text('Collapse')")
    page.wait_for_function(f"document.querySelectorAll('{VIEW} .fm-node').length > 500")
    page.click(f"{VIEW} .fm-tool:has-text('Fit')")
    page.wait_for_timeout(500)
    check_overlaps(page)
    notebook.keep_screenshot("large-whole")
    page.fill(f"{VIEW} .fm-search", "area7_table2")
    check_themes(notebook, "large-search")
    for tab in ("execution", "regions", "timeline"):
        page.click(f"{VIEW} [data-kind={tab}]")
        page.wait_for_timeout(500)
        check_overlaps(page)  # what does not match is faint on purpose
        if tab != "timeline":  # the match is looked at there too
            match = page.locator(f"{VIEW} .fm-node.fm-bright").bounding_box()
            stage = page.locator(f"{VIEW} .fm-graph").bounding_box()
            assert stage["y"] <= match["y"] <= stage["y"] + stage["height"]
        notebook.keep_screenshot(f"large-{tab}")


STREAMS = """\
%load_ext flinkmagic
import os, sys
os.environ["PYSPARK_PYTHON"] = sys.executable
from pyspark.sql import SparkSession, functions as F
spark = SparkSession.builder.master("local[4]").config("spark.ui.enabled", "false").getOrCreate()
"""
CLICKS = """\
%%flinkgraph clicks --mode streaming
rows = spark.readStream.format("rate").option("rowsPerSecond", 50).load().withWatermark("timestamp", "1 second")
windows = rows.groupBy(F.window("timestamp", "2 seconds"), (F.col("value") % 10).alias("k")).count()
query = windows.writeStream.format("memory").queryName("windows").outputMode("update").start()
other = rows.writeStream.format("noop").queryName("<b>raw").start()
"""


def test_streams_show_their_batches_live_and_in_the_saved_picture(lab: Any, open_notebook: Callable[..., Any]) -> None:
    lab.write("streams.ipynb", STREAMS, CLICKS, "%flinkrun clicks")
    notebook = open_notebook("streams.ipynb")
    page = notebook.page
    page.set_default_timeout(90_000)
    notebook.run_all()
    page.wait_for_selector(f"{VIEW} .fm-query dt:has-text('state of stateStoreSave')")
    page.wait_for_function(f"document.querySelectorAll('{VIEW} .fm-query .fm-bars')[0].textContent.length > 5")
    assert page.locator(f"{VIEW} .fm-query strong").all_inner_texts() == ["windows", "<b>raw"]
    names = page.locator(f"{VIEW} .fm-query").first.locator("dt").all_inner_texts()
    assert {"input", "processing", "batch", "addBatch", "watermark", "watermark lag"} <= set(names)
    for dark in (False, True):
        notebook.theme(dark)
        page.evaluate(f"document.querySelector('{VIEW} .fm-queries').scrollIntoView({{block: 'end'}})")
        check(page)
        notebook.keep_screenshot(f"streams-{'dark' if dark else 'light'}")
    page.locator(f"{VIEW} .fm-node", has_text="withWatermark").first.click()
    page.wait_for_selector(f"{VIEW} .fm-details .fm-cost:has-text('batch')")
    read = page.locator(f"{VIEW} .fm-details .fm-cost").inner_text()
    assert re.fullmatch(r"batch \d+ · [\d,.]+ K? ?→ [\d,.]+ K? ?rows( · [\d.]+ K?i?B)?", read), read
    assert page.locator(f"{VIEW} .fm-node .fm-state-text", has_text="batch").count() >= 2
    assert page.locator(f"{VIEW} [data-kind=findings]").is_hidden()
    notebook.keep_screenshot("streams-details-dark")
    notebook.theme(False)
    page.locator(f"{VIEW} .fm-run").last.click()
    page.wait_for_selector(f"{VIEW} .fm-job-state:has-text('CANCELED')")
    notebook.save_once(lambda saved: "state of stateStoreSave" in str([cell.get("outputs") for cell in saved["cells"]]))
