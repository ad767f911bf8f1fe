"""What a slow job on a real Spark shows in JupyterLab: findings, marks, the time of a vertex, the report."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

pytestmark = [pytest.mark.browser, pytest.mark.timeout(240)]

VIEW = ".flinkmagic-view"
PREPARE = """\
%load_ext flinkmagic
import os, sys
os.environ["PYSPARK_PYTHON"] = sys.executable
from pyspark.sql import SparkSession, Window, functions as F
spark = SparkSession.builder.master("local[2]").getOrCreate()
"""
SLOW = """\
%%flinkgraph ranks --parallelism 4
slow = F.udf(lambda value: __import__("time").sleep(0.005 if value < 900 else 0) or value, "long")
rows = spark.range(0, 1000, 1, 2).withColumn("key", F.when(F.col("id") < 900, 0).otherwise(F.col("id")))
ranked = rows.withColumn("rank", F.row_number().over(Window.partitionBy("key").orderBy("id")))
ranked.withColumn("id", slow("id")).write.mode("overwrite").parquet("ranks")
"""


def test_findings_of_a_real_job_with_its_bar_and_its_report(lab: Any, open_notebook: Callable[..., Any]) -> None:
    lab.write("slow.ipynb", PREPARE, SLOW, "%flinkrun ranks", "%flinkshow ranks")
    notebook = open_notebook("slow.ipynb")
    page = notebook.page
    page.set_default_timeout(120_000)
    notebook.run_all()
    notebook.wait_until_kernel_says("'ranks' in dir() and [str(job.status) for job in ranks.jobs]", "['FINISHED']")
    told = notebook.kernel_says("[one.rule for one in ranks.jobs[-1].findings()]")
    assert "skewed-partition" in told
    tab = page.locator(f"{VIEW} [data-kind=findings]")
    page.wait_for_selector(f"{VIEW} [data-kind=findings]:has-text('(')")
    number = int(notebook.kernel_says("len(ranks.jobs[-1].findings())"))
    assert tab.inner_text() == f"Findings ({number})"
    page.evaluate(f"document.querySelector('{VIEW}').scrollIntoView({{block: 'start'}})")
    for dark in (False, True):
        notebook.theme(dark)
        theme = "dark" if dark else "light"
        page.click(f"{VIEW} [data-kind=findings]")
        skew = page.locator(f"{VIEW} .fm-findings [data-rule=skewed-partition]")
        assert "Window.partitionBy(" in skew.locator(".fm-cure pre").inner_text()
        notebook.keep_screenshot(f"real-findings-{theme}")
        skew.locator(".fm-finding-what").click()
        page.wait_for_selector(f"{VIEW} .fm-node.fm-selected .fm-mark")
        details = page.locator(f"{VIEW} .fm-details")
        legend = details.locator(".fm-parts-legend span").evaluate_all("all => all.map((one) => one.dataset.part)")
        assert {"computing", "Python", "scheduler delay"} <= set(legend)
        measured = details.locator(".fm-measures").all_inner_texts()
        assert any("time to run Python workers" in line for line in measured)
        link = details.locator(".fm-links a").first
        assert link.get_attribute("href").startswith(notebook.kernel_says("spark.sparkContext.uiWebUrl"))
        details.locator("h4").first.scroll_into_view_if_needed()
        head = page.locator(f"{VIEW} .fm-details .fm-finding-head").first.bounding_box()
        assert head["height"] < 130  # some lines of text
        notebook.keep_screenshot(f"real-details-{theme}")
    notebook.theme(False)
    stage = notebook.page.context.new_page()
    stage.goto(link.get_attribute("href"))
    stage.wait_for_selector("h3:has-text('Details for Stage')")
    stage.close()
    notebook.kernel_says("ranks.jobs[-1].save_report('run.html')")
    for scheme in ("light", "dark"):
        report = notebook.page.context.new_page()
        report.emulate_media(color_scheme=scheme)
        report.goto((lab.root / "run.html").as_uri())
        assert f"Findings ({number})" in report.locator("summary").all_inner_texts()
        if folder := notebook.screenshots:
            report.screenshot(path=str(folder / f"real-report-{scheme}.png"), full_page=True)
        report.close()
    # A second run, and the two side by side; each is shown again.
    notebook.kernel_says("ranks.run().status")
    assert notebook.kernel_says("ranks.compare()").startswith("ranks: run 1 (FINISHED, ")
