"""The page of an event log, opened from a file in a real browser."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from flinkmagic.history.report import histories, page

pytestmark = [pytest.mark.browser, pytest.mark.timeout(180)]

LOG = Path(__file__).parents[1] / "history" / "logs" / "spark-3.5.zstd"
STYLES = """() => [...document.querySelectorAll("body, h2, th, td, summary, pre, div")].map((one) => {
  const style = getComputedStyle(one);
  return `${style.color} on ${style.backgroundColor}`;
})"""


@pytest.mark.parametrize(("scheme", "ink"), [("light", "rgb(0, 0, 0)"), ("dark", "rgb(255, 255, 255)")])
def test_it_has_the_colours_of_the_browsers_theme(browser: Any, tmp_path: Path, scheme: str, ink: str) -> None:
    path = tmp_path / "history.html"
    path.write_text(page(histories(LOG, 10)), encoding="utf-8")
    context = browser.new_context(color_scheme=scheme)
    shown = context.new_page()
    shown.goto(path.as_uri())
    assert set(shown.evaluate(STYLES)) == {f"{ink} on rgba(0, 0, 0, 0)"}
    context.close()
