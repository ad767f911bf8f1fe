"""The quickstart as a reader meets it: opened in JupyterLab, run on a real Spark, saved and opened again."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

pytestmark = [pytest.mark.browser, pytest.mark.timeout(420)]

NOTEBOOKS = Path(__file__).parents[2] / "notebooks"
CELLS = "window.jupyterapp.shell.currentWidget.content.model.cells"
ALL_RAN = (
    f"() => Array.from({{length: {CELLS}.length}}, (_, i) => {CELLS}.get(i).sharedModel.toJSON())"
    ".every((cell) => cell.cell_type !== 'code' || cell.execution_count)"
    " && window.jupyterapp.shell.currentWidget.sessionContext.session.kernel.status === 'idle'"
)


def lay_out(root: Path) -> None:
    shutil.copy(NOTEBOOKS / "quickstart.ipynb", root)
    (root / "data").mkdir(exist_ok=True)
    for text in (NOTEBOOKS / "data").glob("*.txt"):
        shutil.copy(text, root / "data")


def scroll_to(page: Any, source: str) -> None:
    """Bring the cell whose source begins so into the window: JupyterLab draws only what is in it."""
    page.evaluate(
        f"(source) => {{ const cells = {CELLS}; for (let i = 0; i < cells.length; i++)"
        " if (cells.get(i).sharedModel.getSource().startsWith(source))"
        " window.jupyterapp.shell.currentWidget.content.scrollToItem(i, 'start'); }",
        source,
    )
    page.wait_for_timeout(500)


def test_the_quickstart_runs_and_is_saved_with_its_pictures(lab: Any, open_notebook: Callable[..., Any]) -> None:
    lay_out(lab.root)
    notebook = open_notebook("quickstart.ipynb")
    page = notebook.page
    page.set_default_timeout(300_000)
    notebook.run_all()
    scroll_to(page, "%flinkrun delays")
    page.wait_for_selector(".flinkmagic-view .fm-node[data-state='FINISHED']", state="attached")
    notebook.keep_screenshot("quickstart-running")
    page.wait_for_function(ALL_RAN)
    saved = notebook.save()

    outputs = [output for cell in saved["cells"] for output in cell.get("outputs", ())]
    assert [output["ename"] for output in outputs if output["output_type"] == "error"] == ["JobFailedError"]
    assert not [output for output in outputs if "application/vnd.jupyter.widget-view+json" in output.get("data", {})]
    finished = [
        "".join(output["data"]["text/plain"]) for output in outputs if "image/svg+xml" in output.get("data", {})
    ]
    # The compiled graph, its run, two of its views, the word count, the cell that fails, and the mended one.
    assert [("FINISHED after" in text) for text in finished] == [False, True, False, False, True, False, True]
    assert "shared by 2 sinks" in finished[1]
    assert "FAILED after" in finished[5]
    assert "2 job vertices reused" in finished[6]
    assert (lab.root / "out" / "by_hour" / "_SUCCESS").exists()
    assert notebook.foreign_requests() == []
    for name, text in (
        ("compiled", "%%flinkgraph delays"),
        ("ran", "%flinkrun delays"),
        ("execution", "%flinkgraph delays --view execution"),
        ("words", "%%flinkgraph word_count"),
        ("mended", "%%flinkgraph route_speeds"),
    ):
        scroll_to(page, text)
        notebook.keep_screenshot(f"quickstart-{name}")

    notebook.close()
    lab.end_kernels()
    again = open_notebook("quickstart.ipynb")
    scroll_to(again.page, "%flinkrun delays")
    again.page.wait_for_selector("img[alt*='Job graph of delays']", state="attached")
    assert "Error displaying widget" not in again.page.inner_text("body")
    again.keep_screenshot("quickstart-reopened")
