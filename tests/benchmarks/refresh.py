"""Queries again after files were added to what they read.

Five queries (two aggregations, one of them with a Python function, a join with a broadcast, one of two shuffled tables,
a distinct count) parse the texts of a table of a hundred files, with the session mode on; one more is added, and they
run again: from what was there, and, with nothing kept, in full. TPC-H's 22 queries run as graphs; of its orders a tenth
is added, with their lineitems. What runs first finds the JVM's code colder: so each query ran in full before, too, and
every other one does so first.

Figures:

- `append_ratio`: seconds until the tables are listed anew and the five queries brought up to date, to those of the same
  in full, `full_s`, both after the file was added; `append_refreshed` of them were brought up to date.
- `tpch_right`: TPC-H queries that gave the rows of plain Spark after the orders were added, of 22;
  `tpch_refreshed` of them were brought up to date, at least in part; `tpch_ratio` is their time to that of full runs.
- `decision`: the share of all queries that were brought up to date for which that took less time than the full run.
"""

from __future__ import annotations

import argparse
import gc
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import flinkmagic
from flinkmagic.scheduling.job_status import JobStatus
from flinkmagic.session import release_retained, retained
from tests import tpch
from tests.notebook_shell import NotebookShell

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

PARTS = ("append", "tpch")
FILES = 100
ADDED = 10
"""Each tenth order is added later."""

SALES = (
    "id", "id % 997 AS customer", "id % 12 AS month", "id * 7919 % 200003 AS item",
    "concat('item-', id % 1009, ';price=', id % 83, '.', id % 10, ';note=', repeat('x', 80)) AS text",
)  # fmt: skip
FUNCTION = """
def price(text):
    return float(text.split("price=")[1].split(";")[0])
"""
READ = """
sales, items = spark.read.parquet(f"{data}/sales"), spark.read.parquet(f"{data}/items")
stores = spark.read.parquet(f"{data}/stores")
priced = F.regexp_extract("text", r"price=([\\d.]+)", 1).cast("double")
"""
QUERIES = {
    "parsed": """sales.groupBy(F.regexp_extract("text", r"item-(\\d+)", 1).alias("item")).agg(
        F.count("*"), F.avg(F.regexp_extract("text", r"price=([\\d.]+)", 1).cast("double")),
        F.max(F.length(F.regexp_extract("text", r"note=(\\w+)$", 1))))""",
    "function": """sales.withColumn("price", F.udf(price, "double")("text")).groupBy("customer", "month").agg(
        F.sum("price"), F.max("price"))""",
    "broadcast": """sales.join(F.broadcast(stores), "customer").groupBy("region", "month").agg(
        F.sum("id"), F.stddev(priced))""",
    "joined": """sales.hint("merge").join(items, "item").groupBy("kind", "month").agg(
        F.sum(priced * F.col("weight")), F.count("*"))""",
    "distinct": """sales.groupBy("month").agg(F.countDistinct("customer"), F.approx_count_distinct(priced))""",
}


class Notebook:
    """A shell with the session mode on."""

    def __init__(self, shell: NotebookShell, spark: SparkSession) -> None:
        self._shell, self._spark = shell, spark

    def forget(self) -> None:
        """Let nothing be left of what ran before."""
        for graph in {one.graph for one in retained(self._spark)}:
            release_retained(self._spark, graph)
        gc.collect()

    def run(self, cell: str) -> tuple[float, Any, bool]:
        """Return the seconds that a cell took, its value, and whether its action was brought up to date."""
        started = time.perf_counter()
        left = self._shell.run(cell)
        seconds = time.perf_counter() - started
        if left.error is not None:
            raise RuntimeError(f"{cell} failed") from left.error
        return seconds, left.value, any("brought up to date" in one.note for one in left.reports)


def same(one: list[Any], other: list[Any]) -> bool:
    """Return whether rows are the same in any order, but for how sums of doubles are rounded."""

    def steady(rows: list[Any]) -> list[tuple[str, ...]]:
        return sorted(tuple(f"{x:.9g}" if isinstance(x, float) else str(x) for x in row) for row in rows)

    return steady(one) == steady(other)


def append_sales(spark: SparkSession, data: Path, first: int, files: int, rows: int) -> None:
    sales = spark.range(first, first + files * rows, 1, files).selectExpr(*SALES)
    sales.write.mode("append").parquet(str(data / "sales"))


def appended(notebook: Notebook, spark: SparkSession, data: Path, rows: int) -> dict[str, tuple[float, float, bool]]:
    """Return by query the seconds from what was there, and in full, and whether it was brought up to date."""
    append_sales(spark, data, 0, FILES, rows // FILES)
    spark.range(0, 200_003, 1, 4).selectExpr("id AS item", "id % 9 AS kind", "id % 31 AS weight").write.parquet(
        str(data / "items")
    )
    spark.range(0, 997, 1, 1).selectExpr("id AS customer", "id % 20 AS region").write.parquet(str(data / "stores"))
    cells = {"read": READ, **{name: f"({query}).collect()" for name, query in QUERIES.items()}}
    notebook.run(FUNCTION)
    for cell in cells.values():
        notebook.run(cell)
    append_sales(spark, data, rows, 1, rows // FILES)
    refreshed = {name: notebook.run(cell) for name, cell in cells.items()}
    notebook.forget()
    found = {}
    for name, cell in cells.items():
        seconds, value, was_refreshed = refreshed[name]
        full, other, _ = notebook.run(cell)
        if value is not None and not same(value, other):
            raise RuntimeError(f"{name}: other rows than in full")
        found[name] = seconds, full, was_refreshed
        print(f"{name}: {seconds:.2f} s, in full {full:.2f} s", flush=True)
    return found


def register(spark: SparkSession, data: Path) -> None:
    for table in tpch.TABLES:
        spark.read.parquet(str(data / table)).createOrReplaceTempView(table)


def tpch_queries(spark: SparkSession, data: Path, scale: float) -> tuple[int, dict[str, tuple[float, float, bool]]]:
    """Return how many queries were right after orders were added, and the same as `appended`."""
    tpch.generate(data / "all", scale)

    def table(name: str) -> DataFrame:
        return spark.read.parquet(str(data / "all" / f"{name}.parquet"))

    keys = {"orders": "o_orderkey", "lineitem": "l_orderkey"}
    for name in tpch.TABLES:
        former = table(name).where(f"{keys[name]} DIV 32 % {ADDED} != 0") if name in keys else table(name)
        former.repartition(8 if name in keys else 1).write.parquet(str(data / name))

    def run(name: str, *, full: bool = False) -> tuple[float, list[Any], bool]:
        started = time.perf_counter()
        graph = f"{name}_full" if full else name  # a run in full replaces what its own graph has retained
        job = flinkmagic.compile({"rows": spark.sql(tpch.QUERIES[name])}, name=graph).run(full=full)
        if job.status is not JobStatus.FINISHED:
            raise job.exceptions()[-1].root.error
        answer = job.result("rows").collect()
        seconds = time.perf_counter() - started
        job.release()
        return seconds, answer, job.added_files > 0

    register(spark, data)
    for name in tpch.QUERIES:
        run(name)
        run(name, full=True)
    for name, key in keys.items():
        later = table(name).where(f"{key} DIV 32 % {ADDED} = 0")
        later.coalesce(1).write.mode("append").parquet(str(data / name))
    register(spark, data)
    found, right = {}, 0
    for number, (name, query) in enumerate(tpch.QUERIES.items()):
        runs = {full: run(name, full=full) for full in ([True, False] if number % 2 else [False, True])}
        (seconds, answer, was_refreshed), (full, *_) = runs[False], runs[True]
        is_right = same(answer, spark.sql(query).collect())
        right += is_right
        found[name] = seconds, full, was_refreshed
        told = "right" if is_right else "WRONG"
        print(f"{name}: {told}, {seconds:.2f} s, in full {full:.2f} s, refreshed: {was_refreshed}", flush=True)
    return right, found


def main(arguments: list[str]) -> dict[str, float | int]:
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks refresh")
    parser.add_argument("parts", nargs="*", metavar="PART", help=f"of {', '.join(PARTS)}; both, if none is given")
    parser.add_argument("--rows", type=int, default=5_000_000, help="of the table that grows (%(default)s)")
    parser.add_argument("--scale", type=float, default=0.1, help="of TPC-H (%(default)s)")
    options = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as folder, NotebookShell() as shell:
        spark = flinkmagic.local_session("refresh", config={"spark.ui.enabled": "false"})
        spark.sparkContext.setLogLevel("ERROR")
        try:
            shell.begin(spark=spark, data=folder)
            shell.run("from pyspark.sql import functions as F")
            shell.run("%flinkgraph on")
            notebook = Notebook(shell, spark)
            figures: dict[str, float | int] = {}
            five, queries = {}, {}
            if "append" in (options.parts or PARTS):
                five = appended(notebook, spark, Path(folder), options.rows)
                figures["append_ratio"], figures["full_s"] = ratio(five)
                figures["append_refreshed"] = sum(one[2] for one in five.values())
            shell.run("%flinkgraph off")
            notebook.forget()
            if "tpch" in (options.parts or PARTS):
                figures["tpch_right"], queries = tpch_queries(spark, Path(folder) / "tpch", options.scale)
                some = {name: one for name, one in queries.items() if one[2]}
                figures["tpch_refreshed"], figures["tpch_ratio"] = len(some), ratio(some)[0]
        finally:
            spark.stop()
    chosen = [seconds < full for seconds, full, was_refreshed in (*five.values(), *queries.values()) if was_refreshed]
    return {**figures, "decision": round(sum(chosen) / max(1, len(chosen)), 3), "queries": len(chosen)}


def ratio(found: dict[str, tuple[float, float, bool]]) -> tuple[float, float]:
    """Return the time of queries to that of their full runs, and the latter in seconds."""
    full = sum(one[1] for one in found.values())
    return round(sum(one[0] for one in found.values()) / max(0.001, full), 3), round(full, 2)
