"""The card of a cell in JupyterLab: while its actions run, after, in both themes, and reopened without a kernel."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

pytestmark = [pytest.mark.browser, pytest.mark.timeout(240)]

CARD = ".fm-actions"
LINE = f"{CARD} .fm-action-line"
PREPARE = """\
%load_ext flinkmagic
%flinkgraph on
import os, sys
os.environ["PYSPARK_PYTHON"] = sys.executable
from pyspark.sql import SparkSession, functions as F
spark = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false").getOrCreate()
"""
NAMES = """\
def wait(value, gate={gate!r}):
    import os.path, time
    while not os.path.exists(gate):
        time.sleep(0.05)
    return value
numbers = spark.range(0, 4000, 1, 2).withColumn("k", F.col("id") % 7)
by_k = numbers.groupBy("k").count()
gated = spark.range(0, 4, 1, 2).select(F.udf(wait, "long")("id").alias("k")).groupBy("k").count()
"""
ACTIONS = """\
by_k.count()
for n in range(1, 21):
    numbers.where(f"k < {n}").groupBy("k").count().collect()
by_k.write.mode("overwrite").json("out_of_a_folder_with_a_rather_long_name/and_another_one/by_k_of_all_numbers_that_there_are")
numbers.first()
gated.toPandas()
numbers.select(F.udf(lambda value: __import__("time").sleep(0.001) or value, "long")("id")).collect()
"""
OVERFLOWS = """
(selector) => [...document.querySelectorAll(selector)].flatMap((line) => {
  const parts = line.matches('.fm-action-line') ? [...line.children] : [...line.querySelectorAll('span, code')];
  const boxes = parts.filter((node) => node.getBoundingClientRect().width)
    .map((node) => [node.className, node.getBoundingClientRect()]);
  const edge = line.getBoundingClientRect();
  return boxes.flatMap(([name, box], i) => [
    ...(box.right > edge.right + 1 ? [[name, 'beyond the card']] : []),
    ...boxes.slice(i + 1)
      .filter(([, other]) => other.left < box.right - 1 && other.top < box.top + 5 && line.matches('.fm-action-line'))
      .map(([other]) => [name, other]),
  ]);
})
"""
FAINT = """
(selector) => {
  const part = (text) => { const n = text.match(/-?[\\d.]+/g).map(Number); return [n[0], n[1], n[2], n[3] ?? 1]; };
  const light = (c) => c.slice(0, 3).map((v) => v / 255)
    .map((v) => v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4)
    .reduce((sum, v, i) => sum + v * [0.2126, 0.7152, 0.0722][i], 0);
  const found = [];
  let seen = 0;
  for (const root of document.querySelectorAll(selector)) {
    const walker = document.createTreeWalker(root, NodeFilter.SHOW_TEXT);
    while (walker.nextNode()) {
      const node = walker.currentNode.parentElement;
      if (!walker.currentNode.textContent.trim() || !node.getBoundingClientRect().width) continue;
      let ground = [255, 255, 255, 1], opacity = 1;
      for (let at = node; at; at = at.parentElement) opacity *= Number(getComputedStyle(at).opacity);
      for (let at = node; at; at = at.parentElement) {
        const color = part(getComputedStyle(at).backgroundColor);
        if (color[3] > 0.99) { ground = color; break; }
      }
      const ink = part(getComputedStyle(node).color).slice(0, 3).map((v, i) => v * opacity + ground[i] * (1 - opacity));
      const [a, b] = [light(ink), light(ground)];
      const ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
      seen += 1;
      if (ratio < 4.5) found.push([walker.currentNode.textContent.slice(0, 40), Math.round(100 * ratio) / 100]);
    }
  }
  return [seen, found];
}
"""


def look(notebook: Any, name: str, selector: str, lines: str = LINE) -> None:
    """Both themes: words have enough contrast, and no part of a line lies on another."""
    for dark in (False, True):
        notebook.theme(dark)
        notebook.page.wait_for_timeout(400)
        notebook.keep_screenshot(f"card-{name}-{'dark' if dark else 'light'}")
        seen, faint = notebook.page.evaluate(FAINT, selector)
        assert seen > 2
        assert faint == []
        assert notebook.page.evaluate(OVERFLOWS, lines) == []
    notebook.theme(False)


def test_a_card_while_its_cell_runs_and_after(lab: Any, open_notebook: Callable[..., Any]) -> None:
    gate = lab.root / "card-gate"
    lab.write("card.ipynb", PREPARE, NAMES.format(gate=str(gate)), ACTIONS)
    notebook = open_notebook("card.ipynb")
    page = notebook.page
    page.set_default_timeout(120_000)
    notebook.run_all()
    page.wait_for_selector(f"{LINE}:has-text('toPandas()') button:has-text('Cancel')")
    assert page.locator(LINE).count() == 5
    assert page.locator(f"{LINE}:has-text('line 3')").inner_text().count("20 times") == 1
    look(notebook, "running", CARD)
    page.locator(f"{LINE}:has-text('toPandas()') .fm-action-open").click()
    page.wait_for_selector(f"{CARD} .fm-action-body .fm-node[data-state=RUNNING]")
    notebook.keep_screenshot("card-opened-running")
    gate.touch()
    page.wait_for_selector(f"{LINE}:has-text('toPandas()') .fm-action-state[data-state=FINISHED]")
    page.wait_for_selector(f"{LINE}:has-text('line 7') .fm-action-state[data-state=FINISHED]")
    assert page.locator(f"{LINE} button:has-text('Cancel'):visible").count() == 0
    # The view that was opened stays when the card's picture beneath it changes, and shows the end.
    page.wait_for_selector(f"{CARD} .fm-action-body .fm-job-state:has-text('FINISHED')")
    page.locator(f"{LINE}:has-text('toPandas()') .fm-action-open").click()
    look(notebook, "after", CARD)
    page.set_viewport_size({"width": 1280, "height": 1500})
    # An action of one stage, which Spark runs by itself, opens as well.
    page.locator(f"{LINE}:has-text('line 7') .fm-action-open").click()
    page.locator(f"{CARD} .fm-action-body .fm-node[data-state=FINISHED]:visible", has_text="result").click()
    page.locator(f"{CARD} .fm-details .fm-time:visible").wait_for()
    notebook.keep_screenshot("card-opened-one-stage")
    page.locator(f"{LINE}:has-text('line 7') .fm-action-open").click()
    page.locator(f"{LINE}:has-text('line 1 ') .fm-action-open").click()
    page.wait_for_selector(f"{CARD} .fm-action-body .fm-node .fm-call")
    for tab in ("stream", "job", "execution", "timeline"):
        page.click(f"{CARD} [data-kind={tab}]")
        page.wait_for_timeout(300)
        notebook.keep_screenshot(f"card-opened-{tab}")


def test_a_saved_card_is_shown_without_its_kernel(lab: Any, open_notebook: Callable[..., Any]) -> None:
    lab.write("card-saved.ipynb", PREPARE, NAMES.format(gate=""), ACTIONS.replace("gated", "by_k"))
    notebook = open_notebook("card-saved.ipynb")
    notebook.page.set_default_timeout(120_000)
    notebook.run_all()
    notebook.page.wait_for_selector(f"{LINE}:has-text('line 7') .fm-action-state[data-state=FINISHED]")
    saved: dict[str, Any] = {}

    def holds_the_end(written: dict[str, Any]) -> bool:
        saved.update(written)
        outputs = [output.get("data", {}) for output in written["cells"][2]["outputs"]]
        (bundle,) = [data for data in outputs if "flinkmagic-place" in "".join(data.get("text/html", ""))]
        assert "20 times" in "".join(bundle["text/plain"])
        return "RUNNING" not in json.dumps(bundle)

    notebook.save_once(holds_the_end)
    notebook.close()
    lab.end_kernels()
    (lab.root / "card-copy.ipynb").write_text(json.dumps(saved))
    for name in ("card-saved.ipynb", "card-copy.ipynb"):
        again = open_notebook(name)
        again.page.wait_for_selector(".jp-OutputArea-output:has-text('20 times')")
        assert again.page.locator(CARD).count() == 0
        assert "Error displaying widget" not in again.page.content()
        saved_card = ".jp-OutputArea-output:has-text('20 times')"
        again.page.locator(saved_card).first.evaluate("(output) => output.classList.add('saved-card')")
        look(again, name.replace(".ipynb", "-reopened"), ".saved-card", ".saved-card")
        again.close()


@pytest.mark.parametrize(
    ("name", "action"),
    [
        ("job", "gated.collect()"),
        ("last-stage", "by_k.select(F.udf(wait, 'long')('k')).collect()"),  # run by the action itself
        ("one-stage", "numbers.select(F.udf(wait, 'long')('k')).collect()"),
    ],
)
def test_cancel_on_a_line_reaches_a_kernel_that_is_busy(
    lab: Any, open_notebook: Callable[..., Any], name: str, action: str
) -> None:
    gate = lab.root / f"cancel-gate-{name}"
    lab.write(f"cancel-{name}.ipynb", PREPARE, NAMES.format(gate=str(gate)), action)
    notebook = open_notebook(f"cancel-{name}.ipynb")
    page = notebook.page
    page.set_default_timeout(120_000)
    notebook.run_all()
    page.wait_for_selector(f"{LINE}:has-text('RUNNING'):has-text(' tasks')")
    notebook.keep_screenshot(f"card-{name}-running")
    page.click(f"{LINE} button:has-text('Cancel'):visible")
    page.wait_for_selector(f"{LINE} .fm-action-state[data-state=CANCELED]")
    page.wait_for_selector(".jp-OutputArea-output:has-text('ActionCancelledError')")
    look(notebook, f"cancelled-{name}", CARD, LINE)


SLOWLY = "aggregate(sequence(1, 3000), id + {chance}, (sum, n) -> (sum * 31 + n) % 1000003)"
EARLIER = f"""\
made = spark.range(0, 20_000, 1, 2).selectExpr("id", "{SLOWLY.format(chance=1)} AS sum").repartition(2, "sum")
cached = spark.range(0, 20_000, 1, 2).selectExpr("id", "{SLOWLY.format(chance=2)} AS sum").cache()
"""
ASKED = """\
made.count()
made.agg({"sum": "max"}).collect()
frame = made.toPandas()
cached.count()
"""
ASKED_LATER = """\
made.where("id % 7 = 3").count()
cached.agg({"sum": "max"}).collect()
"""


def test_a_card_tells_what_an_earlier_kernel_has_left(lab: Any, open_notebook: Callable[..., Any]) -> None:
    prepare = PREPARE.replace("%flinkgraph on", "%flinkgraph on --durable card_store")
    entries = lab.root / "card_store" / "flinkmagic-answers"
    for name, asked in (("card-earlier", ASKED), ("card-later", ASKED + ASKED_LATER)):
        lab.write(f"{name}.ipynb", prepare, EARLIER, asked, "%flinkjobs --retained")
        notebook = open_notebook(f"{name}.ipynb")
        page = notebook.page
        page.set_default_timeout(120_000)
        page.set_viewport_size({"width": 1280, "height": 1500})
        notebook.run_all()
        page.wait_for_selector(".jp-OutputArea-output:has-text('last used')")
        if name == "card-earlier":
            for _ in range(120):
                stored = [json.loads(one.read_bytes().split(b"\n", 3)[2])["what"] for one in entries.glob("[!.]*")]
                if {"made", "cache()", "toPandas()"} <= {*stored} and stored.count("count()") == 2:
                    break
                page.wait_for_timeout(500)
            else:
                pytest.fail(f"stored are {sorted(stored)}")
            lab.end_kernels()
            notebook.close()
    told = page.locator(LINE).all_inner_texts()
    assert [text.count("answered from") for text in told] == [1, 1, 1, 1, 0, 0]
    assert "the cache that it reads is filled by the first action" in told[3]
    assert "reused 2 stages from" in told[4]
    assert "cache() takes the rows that were stored" in told[4]
    assert [text.count("another kernel") for text in told] == [1, 1, 1, 1, 2, 0]
    notebook.keep_screenshot("card-durable-table")
    look(notebook, "durable", CARD)
