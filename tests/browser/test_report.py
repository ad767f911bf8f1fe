"""The report of a run, opened from a file in a real browser."""

from __future__ import annotations

import importlib.util
import os
from pathlib import Path
from typing import Any

import pytest

from flinkmagic.display.report import report_page
from flinkmagic.display.snapshot import KIND_TITLES

pytestmark = [pytest.mark.browser, pytest.mark.timeout(180)]

BAD = "</script><script>alert(1)</script><img src=http://evil.invalid/x onerror=alert(2)>"


def report(folder: Path, call: str = "") -> Path:
    """Write the report of the made-up job; `call` is the text of its last line instead of its own."""
    spec = importlib.util.spec_from_file_location("fake_job", Path(__file__).with_name("fake_job.py"))
    assert spec is not None
    assert spec.loader is not None
    fake = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(fake)
    if call:
        fake.NAME = call
    job = fake.FakeJob(*fake.delays())
    job.run(0.0)
    snapshot = job.view._snapshot
    views = [job.view.view(kind).paint(snapshot) for kind in ("stream", "job", "execution", "regions")]
    path = folder / "run.html"
    path.write_text(report_page(views, snapshot, notes=["FINISHED"], events=["0 ms  the job is CREATED"]))
    return path


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_it_is_read_without_a_network(browser: Any, tmp_path: Path, scheme: str) -> None:
    path = report(tmp_path)
    context = browser.new_context(viewport={"width": 1180, "height": 1000}, color_scheme=scheme)
    page = context.new_page()
    requests: list[str] = []
    page.on("request", lambda request: requests.append(request.url))
    page.goto(path.as_uri())
    headings = page.locator("body > div > details > summary").all_inner_texts()
    graphs = [KIND_TITLES[kind] for kind in ("stream", "job", "execution", "regions", "timeline")]
    assert headings == [*graphs, "Findings (3)", "Vertices", "Events"]
    page.evaluate("document.querySelectorAll('details').forEach((one) => (one.open = true))")
    page.wait_for_function("[...document.images].every((image) => image.complete)")
    widths = page.evaluate("[...document.images].map((image) => image.naturalWidth)")
    assert len(widths) == 5
    assert min(widths) > 300
    bars = page.locator(".bar").first.locator("i")
    shares = bars.evaluate_all("all => all.map((one) => one.getBoundingClientRect().width)")
    assert shares[0] / sum(shares) == pytest.approx(5.2 / 9.2, abs=0.02)
    assert [url for url in requests if not url.startswith("data:")] == [path.as_uri()]
    folder = os.environ.get("FLINKMAGIC_SCREENSHOTS")
    if folder:
        page.screenshot(path=str(Path(folder) / f"report-{scheme}.png"), full_page=True)
    context.close()


def test_nothing_in_it_runs_that_came_from_data(browser: Any, tmp_path: Path) -> None:
    path = report(tmp_path, BAD)
    context = browser.new_context()
    page = context.new_page()
    requests: list[str] = []
    dialogs: list[str] = []
    page.on("request", lambda request: requests.append(request.url))
    page.on("dialog", lambda dialog: (dialogs.append(dialog.message), dialog.dismiss()))
    page.goto(path.as_uri())
    page.evaluate("document.querySelectorAll('details').forEach((one) => (one.open = true))")
    page.wait_for_timeout(300)
    assert BAD in page.locator("body").inner_text()
    assert page.locator("script, a, iframe, [onload], [onerror]").count() == 0
    assert dialogs == []
    assert [url for url in requests if not url.startswith("data:")] == [path.as_uri()]
    # What the browser would have loaded, or run, had anything been overlooked, the page forbids.
    refused = page.evaluate(
        """() => new Promise((tell) => {
          document.addEventListener("securitypolicyviolation", (event) => tell(event.effectiveDirective));
          document.body.append(Object.assign(new Image(), {src: "http://127.0.0.1:9/x"}));
        })"""
    )
    assert refused == "img-src"
    context.close()
