"""Draws the pictures of README and site: `python docs/pictures.py`."""

from __future__ import annotations

import tempfile
from pathlib import Path

import graphviz

from flinkmagic.display.engine import render_dot

try:
    import tomllib
except ImportError:  # Python 3.10
    import tomli as tomllib  # type: ignore[no-redef]

ROOT = Path(__file__).parents[1]
IMAGES = ROOT / "docs" / "images"

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


def main() -> None:
    """Draw all of them."""
    IMAGES.mkdir(exist_ok=True)
    _save(layers(), "layers")
    _save(way(), "way")
    job_graph(IMAGES / "delays.svg")


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
    for name, following in zip(names, names[1:], strict=False):
        picture.edge(name, following, label=f"  {WAY[name]}")
    return picture


def job_graph(path: Path) -> None:
    """Write the job graph of the README's cell."""
    import flinkmagic
    from flinkmagic.local_spark import local_session
    from pyspark.sql import functions as F

    spark = local_session("pictures", "local[4]", {"spark.ui.enabled": "false"})
    with tempfile.TemporaryDirectory() as folder:
        spark.range(1000).selectExpr("id AS dep_delay", "id % 24 AS hour", "string(id % 9) AS carrier").write.parquet(
            f"{folder}/flights.parquet"
        )
        spark.range(9).selectExpr("string(id) AS carrier", "concat('Line ', id) AS name").write.parquet(
            f"{folder}/airlines.parquet"
        )
        with flinkmagic.capture(spark) as program:
            flights = spark.read.parquet(f"{folder}/flights.parquet")
            carriers = spark.read.parquet(f"{folder}/airlines.parquet")
            late = flights.where("dep_delay > 15").join(carriers, "carrier")
            by_hour = late.groupBy("hour").agg(F.avg("dep_delay").alias("delay"))
            by_line = late.groupBy("name").count().orderBy(F.desc("count"))
            by_hour.write.mode("overwrite").parquet(f"{folder}/by_hour")
            by_line.write.mode("overwrite").csv(f"{folder}/by_line")
        graph = flinkmagic.compile(program, name="delays", parallelism=4)
        graph.save(path, "job")
    spark.stop()


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
    main()
