"""The views of the magics in JupyterLab: over the picture that is saved, and never an error in a reopened notebook."""

from __future__ import annotations

import json
import os
import re
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

pytestmark = [pytest.mark.browser, pytest.mark.timeout(240)]

VIEW = ".flinkmagic-view"
PREPARE = """\
%load_ext flinkmagic
import os, sys
os.environ["PYSPARK_PYTHON"] = sys.executable
from pyspark.sql import SparkSession, functions as F
spark = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false").getOrCreate()
"""
NAP = """\
%%flinkgraph nap
slept = F.udf(lambda value: __import__("time").sleep({seconds}) or value, "long")
numbers = spark.range(0, 4, 1, 2)
numbers.select(slept("id").alias("id")).repartition(2).write.mode("overwrite").json("{out}")
"""
WAIT = """\
%%flinkgraph gated --parallelism 2
def wait(value, gate={gate!r}):
    import os.path, time
    while not os.path.exists(gate):
        time.sleep(0.05)
    return value
spark.range(0, 4, 1, 2).select(F.udf(wait, "long")("id").alias("id")).write.mode("overwrite").json("{out}")
"""
RUNNING_TASKS = """\
def running_tasks():
    tracker = spark.sparkContext.statusTracker()
    stages = map(tracker.getStageInfo, tracker.getActiveStageIds())
    return sum(stage.numActiveTasks for stage in stages if stage is not None)
"""
SAY_PID = "print('pid', os.getpid())"


def wait_status(page: Any, status: str) -> None:
    page.wait_for_selector(f"{VIEW} .fm-job-state:has-text('{status}')")


def pid_of_kernel(page: Any) -> int:
    text = page.locator(".jp-OutputArea", has_text="pid").first.inner_text()
    return int(text.split("pid")[1].split()[0])


def places(saved: dict[str, Any]) -> list[dict[str, str]]:
    """The saved bundles in whose place a view stood."""
    bundles = [output.get("data", {}) for cell in saved["cells"] for output in cell["outputs"]]
    return [bundle for bundle in bundles if "flinkmagic-place-" in "".join(bundle.get("text/html", ""))]


def test_a_notebook_saved_while_a_job_runs_reopens_with_pictures_when_its_kernel_was_killed(
    lab: Any, open_notebook: Callable[..., Any]
) -> None:
    lab.write(
        "killed.ipynb", PREPARE + SAY_PID, NAP.format(seconds=120, out="killed"), "%flinkrun nap --detach",
        "%flinkshow nap",
    )  # fmt: skip
    notebook = open_notebook("killed.ipynb")
    page = notebook.page
    page.set_default_timeout(120_000)
    notebook.run_all()
    page.wait_for_function(f"document.querySelectorAll('{VIEW} .fm-node[data-state=RUNNING]').length >= 2")
    notebook.keep_screenshot("live-view-in-its-place")
    saved = notebook.save()
    assert len(places(saved)) == 2
    for bundle in places(saved):
        assert set(bundle) == {"image/svg+xml", "text/html", "text/plain"}
        assert "while the job ran" in "".join(bundle["text/html"])
    assert "widget-view" not in json.dumps(saved)
    os.kill(pid_of_kernel(page), signal.SIGKILL)
    notebook.close()
    lab.end_kernels()
    # An untrusted copy, as one gets from another person: its HTML is sanitized.
    (lab.root / "killed-copy.ipynb").write_text(json.dumps(saved))
    for name in ("killed.ipynb", "killed-copy.ipynb"):
        again = open_notebook(name)
        again.page.wait_for_function(
            "[...document.querySelectorAll(\".jp-OutputArea img[alt*='Job graph of nap']\")]"
            ".filter((image) => image.naturalWidth > 100).length >= 2"
        )
        assert "Error displaying widget" not in again.page.content()
        assert again.page.locator(VIEW).count() == 0
        again.keep_screenshot(name.replace(".ipynb", "-reopened"))
        again.close()


def test_a_view_keeps_its_state_while_the_picture_beneath_it_changes_and_when_the_page_is_loaded_again(
    lab: Any, open_notebook: Callable[..., Any]
) -> None:
    lab.write("stays.ipynb", PREPARE, NAP.format(seconds=0.5, out="stays"), "%flinkshow nap")
    notebook = open_notebook("stays.ipynb")
    page = notebook.page
    page.set_default_timeout(120_000)
    notebook.run_all()
    page.wait_for_selector(f"{VIEW} .fm-node .fm-call")
    assert "FINISHED" not in json.dumps(places(notebook.save()))
    page.click(f"{VIEW} .fm-tool:has-text('100 %')")
    page.fill(f"{VIEW} .fm-search", "repartition")
    page.evaluate(f"document.querySelector('{VIEW}').mark = 'the same element'")
    page.click(f"{VIEW} .fm-run")
    wait_status(page, "FINISHED")
    notebook.save_once(lambda saved: "FINISHED" in "".join(places(saved)[0]["text/html"]))
    assert len(places(notebook.save())) == 1
    assert page.evaluate(f"document.querySelector('{VIEW}').mark") == "the same element"
    assert page.locator(VIEW).count() == 1
    assert page.locator(f"{VIEW} .fm-search").input_value() == "repartition"
    notebook.save()
    page.reload()
    page.wait_for_selector(f"{VIEW} .fm-job-state:has-text('FINISHED')")
    assert page.locator(VIEW).count() == 1
    # A second view of the output is a second view of the job.
    page.evaluate(
        """() => {
          const panel = window.jupyterapp.shell.currentWidget;
          panel.content.activeCellIndex = 2;
        }"""
    )
    notebook.command("notebook:create-output-view")
    page.wait_for_function(f"document.querySelectorAll('{VIEW}').length === 2")
    assert page.locator(f"{VIEW} .fm-job-state").all_inner_texts() == ["✓ FINISHED"] * 2


def test_in_notebook_7_a_view_leaves_its_picture_when_it_is_closed(lab: Any, open_notebook: Callable[..., Any]) -> None:
    pytest.importorskip("notebook")
    lab.write(
        "closed.ipynb", PREPARE + "from flinkmagic.magics import live_view",
        NAP.format(seconds=0.5, out="closed"), "%flinkshow nap",
    )  # fmt: skip
    notebook = open_notebook("closed.ipynb", in_lab=False)
    page = notebook.page
    page.set_default_timeout(120_000)
    notebook.run_all()
    page.wait_for_selector(VIEW)
    notebook.kernel_says("live_view.OPEN_VIEWS._held[-1].close()")
    page.wait_for_selector(".jp-OutputArea details[open] img[alt*='Job graph of nap'] >> nth=1")
    assert page.locator(VIEW).count() == 0


def test_a_run_that_is_over_leaves_pictures_of_all_tabs_also_in_a_copy(
    lab: Any, open_notebook: Callable[..., Any]
) -> None:
    run = NAP.format(seconds=0.2, out="over").replace("%%flinkgraph nap", "%%flinkgraph nap --run")
    lab.write("over.ipynb", PREPARE, run)
    notebook = open_notebook("over.ipynb")
    notebook.page.set_default_timeout(120_000)
    notebook.run_all()
    notebook.page.wait_for_selector(".jp-OutputArea details:has-text('Timeline')")
    saved = notebook.save()
    assert len(saved["cells"][1]["outputs"]) == 1, "the line that came first is the picture now"
    notebook.close()
    lab.end_kernels()
    (lab.root / "over-copy.ipynb").write_text(json.dumps(saved))
    for name in ("over.ipynb", "over-copy.ipynb"):
        again = open_notebook(name)
        again.page.wait_for_selector(".jp-OutputArea:has-text('%flinkshow nap') details")
        *graphs, findings = again.page.locator("details > summary").all_inner_texts()
        assert graphs == ["Stream graph", "Job graph", "Execution graph", "Regions and slots", "Timeline"]
        assert re.fullmatch(r"Findings \(\d+\)", findings), "a slow machine may lose time"
        again.page.click("details:has-text('Timeline') > summary")
        again.page.wait_for_function(
            "[...document.querySelectorAll(\"img[alt='Timeline of nap']\")].some((image) => image.naturalWidth > 500)"
        )
        again.keep_screenshot(name.replace(".ipynb", "-reopened"))
        again.close()


LOOKS = """
() => [...document.querySelectorAll('.flinkmagic-view')].map((view) => [...view.querySelectorAll('*')]
  .filter((node) => !node.closest('.fm-surface-svg'))
  .map((node) => {
    const style = getComputedStyle(node);
    return [node.tagName, node.className.baseVal ?? node.className, ...['fontSize', 'color', 'backgroundColor',
      'padding', 'margin', 'lineHeight', 'textAlign', 'maxWidth', 'whiteSpace', 'display', 'tableLayout', 'boxSizing']
      .map((name) => style[name])].join('|');
  }))
"""


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_the_notebooks_styles_for_documents_do_not_reach_the_view(
    lab: Any, open_notebook: Callable[..., Any], dark: bool
) -> None:
    lab.write(
        "styles.ipynb", f"%run {Path(__file__).with_name('fake_job.py')}",
        "job = FakeJob(*delays(), fail_at=(3, 2))\njob.run(0.1)\n"
        "job.view.selected = [v.id for v in job.graph.job_vertices][3]\njob.view",
        "display(job.view.in_place_of({'text/plain': 'a picture'}), raw=True)",
    )  # fmt: skip
    notebook = open_notebook("styles.ipynb")
    notebook.theme(dark)
    notebook.page.set_viewport_size({"width": 1280, "height": 2600})
    notebook.run_all()
    notebook.page.wait_for_function(f"document.querySelectorAll('{VIEW} .fm-tasks td').length >= 70")
    as_widget, in_place = notebook.page.evaluate(LOOKS)
    assert notebook.page.locator(f".jp-RenderedHTML {VIEW}").count() == 1
    assert len(as_widget) > 150
    assert in_place == as_widget


def test_clicks_run_and_cancel_a_job_on_a_real_spark(lab: Any, open_notebook: Callable[..., Any]) -> None:
    gate, out = lab.root / "gate", lab.root / "clicked"
    lab.write("clicked.ipynb", PREPARE + RUNNING_TASKS, WAIT.format(gate=str(gate), out="clicked"), "%flinkshow gated")
    notebook = open_notebook("clicked.ipynb")
    page = notebook.page
    page.set_default_timeout(120_000)
    notebook.run_all()
    page.wait_for_selector(f"{VIEW} .fm-run:has-text('Run')")
    page.click(f"{VIEW} .fm-run")
    page.wait_for_selector(f"{VIEW} .fm-node[data-state=RUNNING]")
    notebook.wait_until_kernel_says("running_tasks()", "2")
    notebook.keep_screenshot("real-job-running")
    page.click(f"{VIEW} .fm-run:has-text('Cancel')")
    wait_status(page, "CANCELED")
    notebook.wait_until_kernel_says("running_tasks()", "0")  # which Spark's status store hears late
    assert notebook.kernel_says("gated.jobs[-1].status.name") == "CANCELED"
    assert not (out / "_SUCCESS").exists()
    gate.touch()
    page.click(f"{VIEW} .fm-run:has-text('Run again')")
    wait_status(page, "FINISHED")
    rows = [json.loads(line)["id"] for part in out.glob("part-*") for line in part.read_text().splitlines()]
    assert (sorted(rows), (out / "_SUCCESS").exists()) == ([0, 1, 2, 3], True)
