"""How soon a picture stands, what an update costs, and whether the front end keeps up.

Figures:

- ``overhead_ms``: from the end of Spark's own planning to the first picture (the job graph's), for a job of about 50
  operators, in a session that has compiled before. Of it ``planning_ms`` up to the compiled graphs, ``picture_ms`` for
  the view, its layout and the SVG, ``widget_ms`` for the live view instead of the SVG.
- ``update_ms``: processor time of one `JobView.update` with 50 vertices and 400 tasks; ``update_10k_ms`` with 10,000
  tasks in one vertex.
- ``frames_per_s``: frames that JupyterLab draws in a second while a graph of ``elements`` SVG elements is dragged and
  its states change 5 times a second. Without a browser -1.
- ``load_ext_ms``: ``%load_ext flinkmagic`` in a process that has imported pyspark and IPython.
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

BROWSER_TESTS = Path(__file__).parents[1] / "browser"

LOAD_EXT = """
import time
import pyspark.sql
from IPython.core.interactiveshell import InteractiveShell
shell = InteractiveShell.instance()
began = time.perf_counter()
shell.run_line_magic("load_ext", "flinkmagic")
print((time.perf_counter() - began) * 1000)
"""

NOTEBOOK = """
import sys, threading, time
sys.path.insert(0, {folder!r})
from fake_job import FakeJob, large
from flinkmagic.display.snapshot import JobSnapshot
job = FakeJob(*large({vertices}))
job.wait_drawn()
def keep_updating():
    turn = 0
    while True:
        turn += 1
        states = {{
            v.id: bytes((turn + i) % 9 for i in range(v.parallelism)) for v in job.graph.job_vertices
        }}
        job.view.update(JobSnapshot("warehouse", "RUNNING", turn * 200.0, states))
        time.sleep(0.2)
threading.Thread(target=keep_updating, daemon=True).start()
"""

COUNT_FRAMES = """
async (seconds) => {
  const surface = document.querySelector('.flinkmagic-view .fm-surface-svg');
  const box = surface.getBoundingClientRect();
  const send = (type, x, y) => surface.dispatchEvent(new PointerEvent(type, {
    clientX: box.x + x, clientY: box.y + y, button: 0, buttons: 1, pointerId: 1, isPrimary: true, bubbles: true,
  }));
  const first = surface.querySelector('.fm-viewport').getAttribute('transform');
  surface.setPointerCapture = () => {};
  send('pointerdown', 300, 200);
  const began = performance.now();
  let frames = 0;
  let now = began;
  while (now - began < seconds * 1000) {
    send('pointermove', 300 + 150 * Math.sin(frames / 15), 200 + 60 * Math.cos(frames / 15));
    now = await new Promise(requestAnimationFrame);
    frames += 1;
  }
  send('pointerup', 300, 200);
  if (surface.querySelector('.fm-viewport').getAttribute('transform') === first) throw new Error('nothing moved');
  return frames / ((now - began) / 1000);
}
"""


def fifty_operators(spark: SparkSession, turn: int) -> list[DataFrame]:
    """Four results of joins, aggregations and sorts; `turn` makes the plans new ones."""
    from pyspark.sql import functions as F

    results = []
    for number in range(4):
        left = spark.range(1000 + turn).withColumn("k", F.col("id") % 10).where(F.col("id") > number)
        right = spark.range(500).withColumn("k", F.col("id") % 7).where(F.col("id") > number + turn)
        counted = left.join(right, "k").groupBy("k").agg(F.count("*").alias("n"))
        results.append(counted.where("n > 1").withColumn("m", F.col("n") * turn).orderBy("n"))
    return results


def overhead(repeats: int) -> dict[str, float]:
    import flinkmagic
    from flinkmagic.display import JobView, job_view, to_svg, warm_up
    from flinkmagic.local_spark import local_session
    from flinkmagic.planning.clones import SessionClones

    quiet = {
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.driver.memory": "1g",
    }
    spark = local_session(app_name="benchmark-display", master="local[2]", config=quiet)
    plan, sparks_own = SessionClones.plan, 0.0

    def planned(self: SessionClones, *arguments: Any) -> Any:
        """Spark's own part: it plans when it is first asked for the plan."""
        nonlocal sparks_own
        began = time.perf_counter()
        query_execution = plan(self, *arguments)
        query_execution.executedPlan()
        sparks_own += time.perf_counter() - began
        return query_execution

    SessionClones.plan = planned  # type: ignore[method-assign]
    rows = []
    try:
        for turn in range(repeats + 2):
            frames = fifty_operators(spark, turn)
            sparks_own = 0.0
            forget_layouts()
            began = time.perf_counter()
            warm_up()
            graph = flinkmagic.compile(frames, parallelism=4)
            compiled = time.perf_counter()
            to_svg(job_view(graph.job_graph))
            drawn = time.perf_counter()
            ours = compiled - began - sparks_own
            rows.append((ours, drawn - compiled, ours + drawn - compiled, len(graph.stream_graph.nodes)))
        forget_layouts()
        began = time.perf_counter()
        view = JobView([job_view(graph.job_graph)])
        widget = time.perf_counter() - began
        view._drawing.join()
    finally:
        SessionClones.plan = plan  # type: ignore[method-assign]
        spark.stop()
    timed = rows[2:]  # the first ones load classes
    return {
        "overhead_ms": 1000 * statistics.median(row[2] for row in timed),
        "planning_ms": 1000 * statistics.median(row[0] for row in timed),
        "picture_ms": 1000 * statistics.median(row[1] for row in timed),
        "widget_ms": 1000 * widget,
        "operators": rows[-1][3],
    }


def forget_layouts() -> None:
    """A layout that is known already costs nothing; a new cell's is not known."""
    from flinkmagic.display import layout

    layout._place.cache_clear()


def updates(repeats: int) -> dict[str, float]:
    from flinkmagic.display.snapshot import GraphView, JobSnapshot, NodeView, TaskView
    from flinkmagic.display.widget import JobView

    def cost(vertices: int, tasks_each: int, changed: int) -> float:
        nodes = tuple(
            NodeView(f"v{i}", "operator", f"vertex {i}", parallelism=tasks_each, vertex_id=f"v{i}")
            for i in range(vertices)
        )
        view = JobView([GraphView("job", "benchmark", nodes)])
        view._drawing.join()

        def snapshot(turn: int) -> JobSnapshot:
            states = {node.id: bytes((turn + i) % 9 for i in range(tasks_each)) for node in nodes}
            tasks = tuple(
                TaskView(
                    f"v{i % vertices}",
                    i // vertices,
                    0,
                    "RUNNING",
                    "executor 1:0",
                    "executor 1",
                    1000.0 + turn,
                )
                for i in range(changed)
            )
            return JobSnapshot("benchmark", "RUNNING", turn * 200.0, states, tasks=tasks)

        snapshots = [snapshot(turn) for turn in range(repeats + 1)]
        view.update(snapshots[0])
        return 1000 * statistics.median(cpu_of(lambda s=s: view.update(s)) for s in snapshots[1:])  # type: ignore[misc]

    return {"update_ms": cost(50, 8, 40), "update_10k_ms": cost(1, 10_000, 200)}


def cpu_of(work: Callable[[], object]) -> float:
    began = time.thread_time()
    work()
    return time.thread_time() - began


def frames(vertices: int, seconds: float) -> dict[str, float]:
    sys.path.insert(0, str(BROWSER_TESTS))
    import lab_server

    if lab_server.chromium() is None:
        return {"frames_per_s": -1.0, "elements": 0}
    from playwright.sync_api import sync_playwright

    with tempfile.TemporaryDirectory() as folder:
        lab, server = lab_server.start_lab(Path(folder))
        try:
            code = NOTEBOOK.format(folder=str(BROWSER_TESTS), vertices=vertices)
            lab.write("frames.ipynb", code, "job.view")
            with sync_playwright() as driver:
                browser = driver.chromium.launch(executable_path=lab_server.chromium(), args=lab_server.CHROMIUM_FLAGS)
                page = browser.new_page(viewport={"width": 1280, "height": 900})
                notebook = lab_server.Notebook(page, lab, "frames.ipynb")
                notebook.run_all()
                page.wait_for_selector(".flinkmagic-view .fm-job-state:has-text('RUNNING')")
                collapse = page.locator(".flinkmagic-view .fm-tool:has-text('Collapse')")
                if collapse.is_visible():
                    collapse.click()
                page.wait_for_timeout(1000)
                elements = page.evaluate("document.querySelectorAll('.flinkmagic-view .fm-surface-svg *').length")
                return {"frames_per_s": page.evaluate(COUNT_FRAMES, seconds), "elements": elements}
        finally:
            lab_server.stop_lab(server)


def load_ext(repeats: int) -> float:
    def once() -> float:
        done = subprocess.run([sys.executable, "-c", LOAD_EXT], capture_output=True, text=True, check=True)
        return float(done.stdout.split()[-1])

    once()
    return statistics.median(once() for _ in range(repeats))


def main(argv: list[str]) -> dict[str, float | int | str]:
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks display")
    parser.add_argument("--repeats", type=int, default=7)
    parser.add_argument("--seconds", type=float, default=5.0, help="how long frames are counted")
    parser.add_argument("--vertices", type=int, default=160, help="how large the dragged graph is")
    options = parser.parse_args(argv)
    figures = {
        **overhead(options.repeats),
        **updates(options.repeats * 3),
        **frames(options.vertices, options.seconds),
        "load_ext_ms": load_ext(options.repeats),
    }
    return {name: round(value, 2) for name, value in figures.items()}
