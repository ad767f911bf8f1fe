"""The job view in a real JupyterLab, with a made-up job behind it (`fake_job.py`)."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

pytestmark = [pytest.mark.browser, pytest.mark.timeout(180)]

LOAD = f"%run {Path(__file__).with_name('fake_job.py')}"
VIEW = ".flinkmagic-view"


def ready(page: Any) -> None:
    page.wait_for_selector(f"{VIEW} .fm-node .fm-call")


def state_of(page: Any, words: str) -> str:
    """State of the card that shows `words`."""
    return str(page.locator(f"{VIEW} .fm-node", has_text=words).first.get_attribute("data-state"))


def wait_status(page: Any, status: str) -> None:
    page.wait_for_selector(f"{VIEW} .fm-job-state:has-text('{status}')")


def card(page: Any, words: str) -> Any:
    return page.locator(f"{VIEW} .fm-node", has_text=words).first


def test_run_watch_select_and_cancel(lab: Any, open_notebook: Callable[..., Any]) -> None:
    lab.write("run.ipynb", LOAD, "job = FakeJob(*delays())\njob.view")
    notebook = open_notebook("run.ipynb")
    page = notebook.page
    notebook.run_all()
    ready(page)
    assert state_of(page, "spark.read.csv") == "CREATED"
    page.click(f"{VIEW} .fm-run")
    wait_status(page, "RUNNING")
    page.wait_for_selector(f"{VIEW} .fm-node[data-state=FINISHED]:has-text('spark.read.csv')")
    card(page, "join(carriers").click()
    details = page.locator(f"{VIEW} .fm-details")
    assert 'late = join(carriers, "carrier")' in details.inner_text()
    assert "BroadcastHashJoin" in details.inner_text()
    page.click(f"{VIEW} .fm-run")
    wait_status(page, "CANCELED")
    assert page.locator(f"{VIEW} .fm-run").inner_text() == "↻ Run again"
    assert notebook.kernel_says("job.clicks") == "['run', 'cancel']"
    page.click(f"{VIEW} .fm-run")
    wait_status(page, "FINISHED")
    assert state_of(page, "by_line.write") == "FINISHED"
    assert "17 / 17 tasks" in page.locator(f"{VIEW} .fm-header").inner_text()
    assert notebook.foreign_requests() == []


def test_the_same_in_notebook_7(lab: Any, open_notebook: Callable[..., Any]) -> None:
    pytest.importorskip("notebook")
    lab.write("seven.ipynb", LOAD, "job = FakeJob(*delays())\njob.view")
    notebook = open_notebook("seven.ipynb", in_lab=False)
    page = notebook.page
    notebook.run_all()
    ready(page)
    page.click(f"{VIEW} .fm-run")
    wait_status(page, "FINISHED")
    assert state_of(page, "by_line.write") == "FINISHED"
    card(page, "join(carriers").click()
    assert 'late = join(carriers, "carrier")' in page.locator(f"{VIEW} .fm-details").inner_text()


def test_every_tab_shows_its_graph(lab: Any, open_notebook: Callable[..., Any]) -> None:
    lab.write("tabs.ipynb", LOAD, "job = FakeJob(*delays())\njob.run(0.1)\njob.view")
    notebook = open_notebook("tabs.ipynb")
    page = notebook.page
    notebook.run_all()
    ready(page)
    wait_status(page, "FINISHED")
    counts = {}
    for kind in ("stream", "job", "execution", "regions"):
        page.click(f"{VIEW} [data-kind={kind}]")
        page.wait_for_selector(f"{VIEW} .fm-node")
        counts[kind] = page.locator(f"{VIEW} .fm-node").count()
        assert page.locator(f"{VIEW} .fm-node:not([data-state=FINISHED])").count() == 0
    assert counts == {"stream": 11, "job": 5, "execution": 5, "regions": 5}
    assert page.locator(f"{VIEW} .fm-subtask").count() == 17
    assert page.locator(f"{VIEW} .fm-slot").count() == 4
    page.click(f"{VIEW} [data-kind=timeline]")
    canvas = page.locator(f"{VIEW} .fm-timeline-canvas")
    assert canvas.get_attribute("aria-label").startswith("Timeline of 17 task attempts")
    page.click(f"{VIEW} [data-key=slot]")
    box = canvas.bounding_box()
    tip = page.locator(f"{VIEW} .fm-tip")
    for x in range(235, int(box["width"]), 10):
        page.mouse.move(box["x"] + x, box["y"] + 34)
        if tip.is_visible():
            break
    assert "finished, attempt 1" in tip.inner_text()
    page.mouse.down()
    page.mouse.up()
    assert page.locator(f"{VIEW} .fm-details").is_visible()


def test_findings_have_a_tab_a_mark_and_lead_to_their_vertex(lab: Any, open_notebook: Callable[..., Any]) -> None:
    lab.write("findings.ipynb", LOAD, "job = FakeJob(*delays())\njob.wait_drawn()\njob.view", "job.run(0.1)")
    notebook = open_notebook("findings.ipynb")
    page = notebook.page
    tab = page.locator(f"{VIEW} [data-kind=findings]")
    notebook.run_all()
    ready(page)
    wait_status(page, "FINISHED")
    assert tab.inner_text() == "Findings (3)"
    marks = page.locator(f"{VIEW} .fm-mark")
    assert marks.count() == 2
    marked = page.locator(f"{VIEW} .fm-node:has(.fm-mark)", has_text='groupBy("name")').last
    assert marked.locator(".fm-mark text").text_content() == "2"
    assert marked.locator(".fm-mark title").text_content().split("\n")[0] == (
        "19.4 s of slots lost: partition 4 of 4 has 31.2 times as much as the others: "
        "its task took 7.1 s, the median 420 ms"
    )
    tab.click()
    found = page.locator(f"{VIEW} .fm-findings .fm-finding")
    assert found.evaluate_all("all => all.map((one) => one.dataset.rule)") == [
        "skewed-partition", "spill", "python-functions"
    ]  # fmt: skip
    assert page.locator(f"{VIEW} .fm-findings p").all_inner_texts() == [
        "of 12.0 s, 9.8 s is the critical path, 1.1 s the driver"
    ]
    assert found.nth(2).locator(".fm-cure pre").inner_text() == "F.upper(col)"
    assert found.nth(2).locator("small").first.inner_text() == "cell 3, line 4 · BatchEvalPython"
    notebook.page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    found.nth(2).locator("button:has-text('Copy')").click()
    page.wait_for_selector(f"{VIEW} button:has-text('Copied')")
    assert page.evaluate("navigator.clipboard.readText()") == "F.upper(col)"
    found.nth(2).locator(".fm-finding-what").click()
    page.wait_for_selector(f"{VIEW} [data-kind=job][aria-selected=true]")
    chosen = page.locator(f"{VIEW} .fm-node.fm-selected")
    assert chosen.get_attribute("data-vertex") == found_vertex(notebook, 2)
    details = page.locator(f"{VIEW} .fm-details")
    assert details.locator(".fm-finding").evaluate_all("all => all.map((one) => one.dataset.rule)") == [
        "python-functions"
    ]
    page.click(f"{VIEW} .fm-run")  # a run that begins has none
    page.wait_for_function(f"document.querySelector('{VIEW} [data-kind=findings]').textContent === 'Findings'")
    assert marks.count() == 0


def found_vertex(notebook: Any, number: int) -> str:
    return str(notebook.kernel_says(f"job.findings().found[{number}].vertex_id"))


def test_where_the_time_of_a_vertex_went(lab: Any, open_notebook: Callable[..., Any]) -> None:
    lab.write("time.ipynb", LOAD, "job = FakeJob(*delays())\njob.run(0.1)\njob.view")
    notebook = open_notebook("time.ipynb")
    page = notebook.page
    notebook.run_all()
    ready(page)
    wait_status(page, "FINISHED")
    card(page, "join(carriers").click()
    time = page.locator(f"{VIEW} .fm-details .fm-time")
    assert time.locator("h4").text_content() == "Where 9.2 s of its tasks went"
    legend = {part.split(" ")[0]: part for part in time.locator(".fm-parts-legend span").all_inner_texts()}
    assert list(legend.values()) == [
        "computing 5.2 s", "Python 2.1 s", "sorting 400 ms", "shuffle read wait 900 ms", "garbage collection 300 ms",
        "serialization 60 ms", "scheduler delay 240 ms",
    ]  # fmt: skip
    widths = time.locator(".fm-parts i").evaluate_all("all => all.map((one) => one.getBoundingClientRect().width)")
    assert widths[0] / sum(widths) == pytest.approx(5.2 / 9.2, abs=0.01)
    assert page.locator(f"{VIEW} .fm-details section.fm-found table").inner_text().split("\n") == [
        "spilled (disk)\t24.0 MiB",
        "shuffle bytes written\t18.7 MiB",
    ]
    link = time.locator("a")
    assert link.get_attribute("href").startswith("http://127.0.0.1:9/stages/stage/?id=")
    assert link.get_attribute("rel") == "noopener noreferrer"
    operators = page.locator(f"{VIEW} .fm-details .fm-code li")
    measured = operators.evaluate_all("all => all.map((one) => one.querySelectorAll('.fm-measures span').length)")
    assert measured == [3] * len(measured)


def test_keyboard(lab: Any, open_notebook: Callable[..., Any]) -> None:
    lab.write("keys.ipynb", LOAD, "job = FakeJob(*delays())\njob.view")
    notebook = open_notebook("keys.ipynb")
    page = notebook.page
    notebook.run_all()
    ready(page)
    page.locator(f"{VIEW} .fm-surface-svg").focus()
    page.keyboard.press("ArrowDown")
    title = page.locator(f"{VIEW} .fm-details-title")
    assert title.inner_text() == 'spark.read.csv("data/airlines.csv", header=True)'
    page.keyboard.press("ArrowDown")
    assert title.inner_text().startswith("groupBy(")
    page.keyboard.press("ArrowUp")
    assert title.inner_text().startswith("spark.read.csv")
    page.keyboard.press("Escape")
    assert page.locator(f"{VIEW} .fm-details").count() == 0
    before = page.locator(f"{VIEW} .fm-viewport").get_attribute("transform")
    page.keyboard.press("+")
    page.wait_for_function(f"document.querySelector('{VIEW} .fm-viewport').getAttribute('transform') !== '{before}'")
    page.locator(f"{VIEW} [data-kind=job]").focus()
    page.keyboard.press("ArrowRight")
    page.wait_for_selector(f"{VIEW} [data-kind=execution][aria-selected=true]")


def test_pan_zoom_and_fit(lab: Any, open_notebook: Callable[..., Any]) -> None:
    lab.write("zoom.ipynb", LOAD, "job = FakeJob(*delays())\njob.view")
    notebook = open_notebook("zoom.ipynb")
    page = notebook.page
    notebook.run_all()
    ready(page)

    def at() -> tuple[float, ...]:
        page.wait_for_timeout(100)
        text = page.locator(f"{VIEW} .fm-viewport").get_attribute("transform")
        return tuple(map(float, re.findall(r"-?[\d.]+", text)))

    start = at()
    box = page.locator(f"{VIEW} .fm-surface-svg").bounding_box()
    x, y = box["x"] + 30, box["y"] + 30
    page.mouse.move(x, y)
    page.mouse.down()
    page.mouse.move(x + 60, y + 40, steps=4)
    page.mouse.up()
    assert at() == pytest.approx((start[0] + 60, start[1] + 40, start[2]), abs=1)
    page.keyboard.down("Control")
    page.mouse.wheel(0, -200)
    page.keyboard.up("Control")
    assert at()[2] > start[2] * 1.2
    page.click(f"{VIEW} .fm-tool:has-text('100 %')")
    assert at()[2] == pytest.approx(1.0)
    page.click(f"{VIEW} .fm-tool:has-text('Fit')")
    assert at() == pytest.approx(start, abs=1)


def test_a_failed_job_names_the_subtask_and_the_users_line(lab: Any, open_notebook: Callable[..., Any]) -> None:
    lab.write("failed.ipynb", LOAD, "job = FakeJob(*delays(), fail_at=(3, 2))\njob.run(0.1)\njob.view")
    notebook = open_notebook("failed.ipynb")
    page = notebook.page
    notebook.run_all()
    ready(page)
    wait_status(page, "FAILED")
    error = page.locator(f"{VIEW} .fm-errors").inner_text()
    assert 'groupBy("name").count() (3/4), cell 3, line 5' in error
    assert "return float(text)" in error
    assert "'<b>12,5</b>'" in error
    failed = page.locator(f"{VIEW} .fm-node[data-state=FAILED]")
    assert failed.count() == 1
    failed.click()
    details = page.locator(f"{VIEW} .fm-details")
    assert "return float(text)" in details.locator(".fm-error").inner_text()
    # Skew, of duration, bytes and rows: 1,000 to 16,000 rows, the median (upper of the middle two) 9,000.
    skew = [row.inner_text().split("\t") for row in details.locator("section:has(h4:text('Skew')) tr").all()]
    assert [row[0] for row in skew] == ["", "Duration", "Bytes", "Rows"]
    assert skew[3] == ["Rows", "9,000", "16,000", "1.8×"]
    assert skew[2] == ["Bytes", "562.5 KiB", "1.0 MiB", "1.8×"]
    # The failed subtask comes with what it failed of, and with its earlier attempt below.
    table = details.locator(".fm-tasks")
    assert table.locator("tr").count() == 1 + 4 + 1 + 2
    assert [row.inner_text().split("\t")[0] for row in table.locator("tr.fm-earlier").all()] == ["↳"]
    assert [row.inner_text().strip() for row in table.locator("tr.fm-reason").all()] == [
        "try 2: ValueError: could not convert string to float: '<b>12,5</b>'",
        "try 1: Executor lost",
    ]
    assert "562.5 → 52.7 KiB" in table.inner_text()
    assert table.locator("tr", has_text="executor 2:0").locator("td").nth(2).inner_text() == "1"


HOSTILE_CELL = (
    LOAD
    + """
from dataclasses import replace
from flinkmagic.display.snapshot import ErrorView, JobSnapshot
BAD = '''<img src=http://evil.invalid/x onerror="alert(1)"><script>alert(2)</script>'''
MORE = "</title></text></svg><svg onload=alert(3)>"
def said(call, operator, line, variable=""):
    code = BAD + "\\u202e\\x00"
    return {"call": BAD, "operator": MORE, "line": 1, "cell": BAD, "code": code, "variable": BAD, "text": MORE}
delays.__globals__["said"] = said
job = FakeJob(*delays())
errors = [ErrorView(BAD, MORE, next(iter(job.graph.job_graph.vertices)), BAD)]
states = {v.id: bytes([8] * v.parallelism) for v in job.graph.job_vertices}
job.view.update(JobSnapshot(BAD, "FAILED", 5.0, states, errors=errors, note=MORE))
"""
)


def test_hostile_text_stays_text(lab: Any, open_notebook: Callable[..., Any]) -> None:
    lab.write(
        "hostile.ipynb",
        HOSTILE_CELL,
        "job.view",
        "display(job.saved(summary=BAD, notes=[MORE]), raw=True)",
    )
    notebook = open_notebook("hostile.ipynb")
    page = notebook.page
    notebook.run_all()
    ready(page)
    for kind in ("stream", "execution", "regions", "timeline", "job"):
        page.click(f"{VIEW} [data-kind={kind}]")
        page.wait_for_timeout(150)
    page.locator(f"{VIEW} .fm-node").first.click()
    page.wait_for_selector(f"{VIEW} .fm-details")
    assert "<script>alert(2)</script>" in page.locator(f"{VIEW} .fm-details").inner_text()
    assert "⟨U+202E⟩␀" in page.locator(f"{VIEW} .fm-details").inner_text()
    assert page.locator(f"{VIEW} script, {VIEW} img, {VIEW} a, {VIEW} [onload], {VIEW} [onerror]").count() == 0
    page.wait_for_selector(".jp-OutputArea details[open] img[src^='data:image/svg+xml']")
    assert notebook.dialogs == []
    assert notebook.foreign_requests() == []


def test_a_reopened_notebook_shows_the_picture_without_a_kernel(lab: Any, open_notebook: Callable[..., Any]) -> None:
    lab.write(
        "saved.ipynb", LOAD,
        "job = FakeJob(*delays())\nhandle = display(job.view, display_id='job')\njob.run(0.3)\n"
        "handle.update(job.saved(summary='17 tasks'), raw=True)",
    )  # fmt: skip
    notebook = open_notebook("saved.ipynb")
    notebook.run_all()
    notebook.page.wait_for_selector(".jp-OutputArea details[open] img")
    saved = notebook.save()
    (output,) = saved["cells"][1]["outputs"]
    assert set(output["data"]) == {"image/svg+xml", "text/html", "text/plain"}
    assert "FINISHED" in json.dumps(output["data"]["text/plain"])
    notebook.page.close()
    # An untrusted copy, as one gets from another person: its HTML is sanitized.
    (lab.root / "copy.ipynb").write_text(json.dumps(saved))
    for name in ("saved.ipynb", "copy.ipynb"):
        page = open_notebook(name).page
        page.wait_for_selector(".jp-OutputArea details[open] img[src^='data:image/svg+xml']")
        assert "Error displaying widget" not in page.content()
        shown = page.evaluate("[...document.querySelectorAll('.jp-OutputArea details img')].map(i => i.naturalWidth)")
        assert len(shown) == 5  # four graphs and the timeline
        assert max(shown) > 500
        page.close()


def test_two_views_of_one_job(lab: Any, open_notebook: Callable[..., Any]) -> None:
    lab.write("two.ipynb", LOAD, "job = FakeJob(*delays())\njob.view", "job.view")
    notebook = open_notebook("two.ipynb")
    page = notebook.page
    notebook.run_all()
    page.wait_for_function(f"document.querySelectorAll('{VIEW} .fm-graph .fm-viewport > g').length >= 2")
    page.locator(f"{VIEW} .fm-run").first.click()
    page.wait_for_function(
        f"[...document.querySelectorAll('{VIEW} .fm-job-state')].map(s => s.textContent).join() === "
        "'✓ FINISHED,✓ FINISHED'"
    )


def test_states_change_and_cancel_works_while_the_kernel_is_busy(lab: Any, open_notebook: Callable[..., Any]) -> None:
    lab.write(
        "busy.ipynb", LOAD, "job = FakeJob(*delays())\njob.view",
        "job.start(60.0)\nwhile job.thread.is_alive(): job.thread.join(0.05)\nprint('free again')",
    )  # fmt: skip
    notebook = open_notebook("busy.ipynb")
    page = notebook.page
    notebook.run_all()
    wait_status(page, "RUNNING")
    page.wait_for_selector(f"{VIEW} .fm-node[data-state=FINISHED]")
    page.click(f"{VIEW} .fm-run")
    wait_status(page, "CANCELED")
    page.wait_for_selector(".jp-OutputArea :text('free again')")


def test_large_graphs_can_be_read(lab: Any, open_notebook: Callable[..., Any]) -> None:
    lab.write("large.ipynb", LOAD, "job = FakeJob(*large())\njob.wait_drawn()\njob.view")
    notebook = open_notebook("large.ipynb")
    page = notebook.page
    notebook.run_all()
    ready(page)
    assert page.locator(f"{VIEW} .fm-node").count() < 60
    page.click(f"{VIEW} .fm-tool:has-text('Collapse')")
    page.wait_for_function(f"document.querySelectorAll('{VIEW} .fm-node').length > 500")
    page.fill(f"{VIEW} .fm-search", "area7_table2")
    page.wait_for_selector(f"{VIEW} .fm-found:has-text('1 of 5')")
    assert page.locator(f"{VIEW} .fm-node.fm-bright").count() == 1
    found = page.locator(f"{VIEW} .fm-node.fm-bright").bounding_box()
    stage = page.locator(f"{VIEW} .fm-stage").bounding_box()
    assert stage["x"] <= found["x"] <= stage["x"] + stage["width"]
    assert stage["y"] <= found["y"] <= stage["y"] + stage["height"]
    page.keyboard.press("Escape")
    page.click(f"{VIEW} .fm-tool:has-text('Critical path')")
    assert 3 <= page.locator(f"{VIEW} .fm-node.fm-bright").count() <= 20
    page.click(f"{VIEW} .fm-tool:has-text('Collapse')")
    page.locator(f"{VIEW} .fm-node").first.dblclick()
    page.wait_for_function(f"document.querySelectorAll('{VIEW} .fm-node').length > 500")


def test_ten_thousand_subtasks_are_a_grid(lab: Any, open_notebook: Callable[..., Any]) -> None:
    lab.write(
        "grid.ipynb", LOAD,
        "from flinkmagic.display.snapshot import JobSnapshot\njob = FakeJob(*delays(wide=10_000))\n"
        "states = {v.id: bytes([5, 4] * 5000)[: v.parallelism] for v in job.graph.job_vertices}\n"
        "job.view.update(JobSnapshot('delays', 'RUNNING', 1.0, states))\njob.view.tab = 'execution'\njob.view",
    )  # fmt: skip
    notebook = open_notebook("grid.ipynb")
    page = notebook.page
    notebook.run_all()
    ready(page)
    cells = page.evaluate(
        f"Object.fromEntries([...document.querySelectorAll('{VIEW} .fm-cells')]"
        ".map(path => [path.dataset.state, path.getAttribute('d').split('M').length - 1]))"
    )
    assert cells == {"FINISHED": 5000, "RUNNING": 5000}
    assert page.locator(f"{VIEW} .fm-surface-svg *").count() < 600
    card(page, "by_hour.write").click()
    assert page.locator(f"{VIEW} .fm-heat").is_visible()
    assert "9,950 more" in page.locator(f"{VIEW} .fm-details").inner_text()


@pytest.mark.parametrize("dark", [False, True])
def test_both_themes_have_enough_contrast(lab: Any, open_notebook: Callable[..., Any], dark: bool) -> None:
    name = f"theme_{dark}.ipynb"
    lab.write(name, LOAD, "job = FakeJob(*delays(), fail_at=(2, 1))\njob.run(0.1)\njob.view")
    notebook = open_notebook(name)
    page = notebook.page
    notebook.theme(dark)
    notebook.run_all()
    ready(page)
    pairs = page.evaluate(
        """(selectors) => {
          const rgb = (text) => text.match(/[\\d.]+/g).slice(0, 3).map(Number);
          const light = (c) => c.map((v) => v / 255).map((v) => v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4)
            .reduce((sum, v, i) => sum + v * [0.2126, 0.7152, 0.0722][i], 0);
          const ground = light(rgb(getComputedStyle(document.querySelector('.flinkmagic-view .fm-card')).fill));
          return selectors.flatMap((s) => [...document.querySelectorAll('.flinkmagic-view ' + s)].map((node) => {
            const ink = light(rgb(getComputedStyle(node).fill));
            return [s, (Math.max(ink, ground) + 0.05) / (Math.min(ink, ground) + 0.05)];
          }));
        }""",
        [".fm-call", ".fm-note", ".fm-state-text", ".fm-role-word", ".fm-edge-strong"],
    )
    assert len(pairs) > 20
    assert min(ratio for _, ratio in pairs) >= 4.5, min(pairs, key=lambda pair: pair[1])
    notebook.theme(False)
