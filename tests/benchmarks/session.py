"""A notebook's life with the session mode on, against the same cells in plain PySpark.

`ratio` is that of a notebook of 15 cells as people write them (load, look, clean, count, group, join, tables for plots,
two writes), from its first cell to its last, by pairs of runs; nothing is kept from one run to the next. `tpch_geomean`
is over TPC-H's 22 queries, each handed to pandas, with nothing kept either. `single_ms`, `driven_ms`, `driven_new_ms`
and `first_ms` are what a cell takes longer, as medians of differences by pairs: with an action of one stage; with one
of two stages over 10,000 rows that ran before, and of which nothing is kept; with one for which Spark compiles code;
with the first action of a session that has more stages, each run in a process of its own. `memory_growth` is the
driver's heap after 1,500 and 2,000 actions, each on another DataFrame, to that after 500 and 1,000, and `time_growth`
the median time of the actions between; `memory_plain` and `time_plain` are the same without the mode, and
`objects_growth` is that of Python's objects.

Figures: these, with `ratio_lowest` and `ratio_highest`, `plain_s` and `ours_s` of the notebook, `worst` and
`worst_query` of TPC-H, `equal` (whether all values and texts were the same both ways), and `load`.
"""

from __future__ import annotations

import argparse
import gc
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import flinkmagic
from flinkmagic.session import release_retained, retained
from tests import tpch
from tests.notebook_shell import NotebookShell, comparable, steady

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

FIGURES = ("ratio", "tpch", "single", "driven", "first", "memory")
STORES = 400
HEAP_AT = (500, 1000, 1500, 2000)

NOTEBOOK = [
    "from pyspark.sql import functions as F",
    "raw = spark.read.parquet(f'{data}/orders')\nraw.printSchema()",
    "raw.orderBy('line').limit(5).toPandas()",
    "raw.count()",
    """
orders = (
    raw.where("line IS NOT NULL")
    .withColumn("order_id", F.regexp_extract("line", r"order=(\\d+)", 1).cast("long"))
    .withColumn("store_id", F.regexp_extract("line", r"store=(\\d+)", 1).cast("int"))
    .withColumn("amount", F.regexp_extract("line", r"amount=(\\d+)", 1).cast("int"))
    .withColumn("month", F.regexp_extract("line", r"month=(\\d+)", 1).cast("int"))
    .dropDuplicates(["order_id"])
    .drop("line")
)
""",
    "orders.count()",
    "orders.groupBy('month').count().orderBy('month').show()",
    """
stores = spark.read.parquet(f'{data}/stores')
sales = orders.join(stores, 'store_id').withColumn('large', F.col('amount') > 900)
""",
    "sales.groupBy('region').agg(F.sum('amount').alias('sum'), F.count('*').alias('n')).orderBy('region').toPandas()",
    """
monthly = sales.groupBy('month').agg(F.sum('amount').alias('amount')).orderBy('month').toPandas()
monthly.set_index('month').cumsum().tail(3)
""",
    """
top = sales.groupBy('store_id').agg(F.sum('amount').alias('amount')).orderBy(F.desc('amount'), 'store_id').limit(10)
top.toPandas()
""",
    "sales.select('amount').summary('count', 'min', 'max').show()",
    "sales.where('large').groupBy('region').count().orderBy('region').collect()",
    """
by_region = sales.groupBy('region', 'month').agg(F.sum('amount').alias('amount'))
by_region.write.mode('overwrite').parquet(f'{out}/by_region')
""",
    "sales.groupBy('store_id').agg(F.max('amount').alias('most')).write.mode('overwrite').csv(f'{out}/most')",
]

SINGLE = "spark.range(0, 1000, 1, 2).where('id % 3 = 0').collect()"
DRIVEN = "spark.range(0, 10000, 1, 2).groupBy((F.col('id') % {}).alias('k')).agg(F.sum('id').alias('s')).collect()"
FIRST = "spark.range(0, 1000, 1, 4).groupBy((F.col('id') % 7).alias('k')).count().orderBy('k').collect()"


def lay_out(spark: SparkSession, folder: Path, rows: int) -> None:
    """Write the lines of orders, a tenth of them twice, and the stores."""
    from pyspark.sql import functions as F

    order = F.expr(f"id % {rows * 10 // 11}")
    line = F.format_string(
        "order=%d store=%d amount=%d month=%d channel=web",
        order,
        F.pmod(F.hash(order), F.lit(STORES)),
        F.pmod(F.hash(order * 3), F.lit(1000)) + 1,
        F.pmod(F.hash(order * 7), F.lit(12)) + 1,
    )
    spark.range(0, rows, 1, 2 * (os.cpu_count() or 1)).select(line.alias("line")).write.parquet(f"{folder}/orders")
    stores = spark.range(0, STORES, 1, 1).selectExpr(
        "CAST(id AS INT) AS store_id", "CONCAT('region ', id % 9) AS region"
    )
    stores.write.parquet(f"{folder}/stores")


class Ways:
    """Runs cells in one shell, plainly or with the mode on, with nothing kept from run to run."""

    def __init__(self, shell: NotebookShell, spark: SparkSession) -> None:
        self._shell, self._spark = shell, spark

    def run(self, way: str, cells: list[str], **names: Any) -> tuple[float, list[object]]:
        """Run the cells of a new notebook; return the seconds that they took, and what they left."""
        self._shell.begin(spark=self._spark, **names)
        for graph in {one.graph for one in retained(self._spark)}:
            release_retained(self._spark, graph)
        gc.collect()
        self._shell.run(f"%flinkgraph {'on' if way == 'ours' else 'off'}")
        seconds, answers = 0.0, []
        for cell in cells:
            start = time.perf_counter()
            left = self._shell.run(cell)
            seconds += time.perf_counter() - start
            if left.error is not None:
                raise RuntimeError(f"{way}: {cell} failed") from left.error
            answers.append((comparable(left.value), steady(left.stdout)))
        self._shell.run("%flinkgraph off")
        return seconds, answers


def notebook(ways: Ways, spark: SparkSession, folder: Path, options: argparse.Namespace) -> dict[str, Any]:
    """`ratio`, and what belongs to it."""
    lay_out(spark, folder, options.rows)
    times: dict[str, list[float]] = {"plain": [], "ours": []}
    equal = True
    for number in range(options.warmup + options.rounds):
        found = {}
        for way in ("plain", "ours") if number % 2 else ("ours", "plain"):
            seconds, found[way] = ways.run(way, NOTEBOOK, data=str(folder), out=str(folder / way))
            times[way].append(seconds)
        equal &= found["plain"] == found["ours"] and _same_files(spark, folder)
        print(f"notebook {number + 1}: plain {times['plain'][-1]:.2f} s, ours {times['ours'][-1]:.2f} s", flush=True)
    counted = {way: seconds[options.warmup :] for way, seconds in times.items()}
    ratios = [ours / plain for plain, ours in zip(counted["plain"], counted["ours"], strict=True)]
    return {
        "ratio": round(statistics.median(ratios), 3),
        "ratio_lowest": round(min(ratios), 3),
        "ratio_highest": round(max(ratios), 3),
        "plain_s": round(statistics.median(counted["plain"]), 2),
        "ours_s": round(statistics.median(counted["ours"]), 2),
        "equal": equal,
    }


def _same_files(spark: SparkSession, folder: Path) -> bool:
    rows = [
        (sorted(spark.read.parquet(f"{folder}/{way}/by_region").collect()),
         sorted(spark.read.csv(f"{folder}/{way}/most").collect()))
        for way in ("plain", "ours")
    ]  # fmt: skip
    return rows[0] == rows[1]


def queries(ways: Ways, spark: SparkSession, folder: Path, options: argparse.Namespace) -> dict[str, Any]:
    """`tpch_geomean`, and the worst."""
    tpch.generate(folder / "tpch", options.scale)
    tpch.register(spark, folder / "tpch")
    ratios: dict[str, float] = {}
    equal = True
    for name, query in tpch.QUERIES.items():
        found: list[float] = []
        for number in range(1 + options.rounds):
            times, answers = {}, {}
            for way in ("plain", "ours") if number % 2 else ("ours", "plain"):
                times[way], answers[way] = ways.run(way, ["spark.sql(query).toPandas()"], query=query)
            equal &= answers["plain"] == answers["ours"]
            found.append(times["ours"] / times["plain"])
        ratios[name] = statistics.median(found[1:])
        print(f"{name}: {ratios[name]:.3f}", flush=True)
    worst = max(ratios, key=lambda name: ratios[name])
    return {
        "tpch_geomean": round(statistics.geometric_mean(ratios.values()), 3),
        "worst": round(ratios[worst], 3),
        "worst_query": worst,
        "tpch_equal": equal,
    }


def single(ways: Ways, spark: SparkSession, folder: Path, options: argparse.Namespace) -> dict[str, Any]:
    """`single_ms`."""
    differences = []
    for number in range(20 + 10 * options.rounds):
        times = {}
        for way in ("plain", "ours") if number % 2 else ("ours", "plain"):
            times[way], _ = ways.run(way, [SINGLE])
        differences.append(times["ours"] - times["plain"])
    return {"single_ms": round(1000 * statistics.median(differences[20:]), 1)}


def driven(ways: Ways, spark: SparkSession, folder: Path, options: argparse.Namespace) -> dict[str, Any]:
    """`driven_ms` and `driven_new_ms`."""
    from pyspark.sql import functions as F

    known, new = [], []
    for number in range(20 + 10 * options.rounds):
        times = {}
        order = ("plain", "ours") if number % 2 else ("ours", "plain")
        for way in order:
            times[way], _ = ways.run(way, [DRIVEN.format(7)], F=F)
        known.append(times["ours"] - times["plain"])
        for place, way in enumerate(order):  # code that is compiled for one of them is there for the other
            times[way], _ = ways.run(way, [DRIVEN.format(100 + 2 * number + place)], F=F)
        new.append(times["ours"] - times["plain"])
    return {
        "driven_ms": round(1000 * statistics.median(known[20:]), 1),
        "driven_new_ms": round(1000 * statistics.median(new[20:]), 1),
    }


def first(options: argparse.Namespace) -> dict[str, Any]:
    """`first_ms`."""
    differences = []
    for number in range(options.rounds):
        times = {}
        for way in ("plain", "ours") if number % 2 else ("ours", "plain"):
            command = [sys.executable, "-m", "tests.benchmarks.session", way]
            done = subprocess.run(command, check=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
            times[way] = float(done.stdout.splitlines()[-1])
        print(f"first {number + 1}: plain {times['plain']:.3f} s, ours {times['ours']:.3f} s", flush=True)
        differences.append(times["ours"] - times["plain"])
    return {"first_ms": round(1000 * statistics.median(differences))}


def memory(options: argparse.Namespace) -> dict[str, Any]:
    """`memory_growth` and what belongs to it; each way in a process of its own."""
    figures: dict[str, Any] = {}
    for way, ending in (("ours", "growth"), ("plain", "plain")):
        command = [sys.executable, "-m", "tests.benchmarks.session", way, "heap"]
        done = subprocess.run(command, check=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        found = json.loads(done.stdout.splitlines()[-1])
        print(f"{way}, after {HEAP_AT} actions: {found}", flush=True)
        growth = {name: round(sum(one[2:]) / sum(one[:2]), 3) for name, one in found.items() if name != "seconds"}
        figures[f"memory_{ending}"] = growth["heap"]
        figures[f"time_{ending}"] = round(found["seconds"][3] / found["seconds"][1], 3)
        if way == "ours":
            figures["objects_growth"] = growth["objects"]
    return figures


def _spark(name: str) -> SparkSession:
    quiet = {"spark.ui.enabled": "false", "spark.ui.showConsoleProgress": "false", "spark.driver.memory": "4g"}
    return flinkmagic.local_session(name, config=quiet)


def _first_action(way: str) -> float:
    """The seconds that the first action takes in a session that was just begun."""
    spark = _spark("session-benchmark")
    with NotebookShell() as shell:
        shell.begin(spark=spark)
        if way == "ours":
            shell.run("%flinkgraph on")
        shell.run("from pyspark.sql import functions as F")
        start = time.perf_counter()
        left = shell.run(FIRST)
        seconds = time.perf_counter() - start
        assert left.error is None, left.error
        assert len(left.value) == 7
    return seconds


def _heap(way: str) -> dict[str, list[float]]:
    """The driver's heap in use (MB) and Python's objects after so many actions, and the median time of those since."""
    spark = _spark("session-benchmark")
    found: dict[str, list[float]] = {"heap": [], "objects": [], "seconds": []}
    seconds = []
    with NotebookShell() as shell:
        shell.begin(spark=spark)
        if way == "ours":
            shell.run("%flinkgraph on")
        shell.run("from pyspark.sql import functions as F")
        for number in range(1, HEAP_AT[-1] + 1):
            start = time.perf_counter()
            left = shell.run(
                f"df = spark.range(0, 1000, 1, 4).groupBy((F.col('id') % {number + 2}).alias('k')).count()\ndf.count()"
            )
            seconds.append(time.perf_counter() - start)
            assert left.value == min(number + 2, 1000), left.error
            if number in HEAP_AT:
                found["heap"].append(round(_used(spark), 1))
                found["objects"].append(len(gc.get_objects()))
                found["seconds"].append(round(statistics.median(seconds), 4))
                seconds.clear()
    return found


def _used(spark: SparkSession) -> float:
    gc.collect()
    jvm: Any = spark._jvm
    runtime = jvm.java.lang.Runtime.getRuntime()
    for _ in range(3):  # Spark's cleaner drops what the collection before has found
        jvm.java.lang.System.gc()
        time.sleep(1.0)
    return float(runtime.totalMemory() - runtime.freeMemory()) / 2**20


def main(arguments: list[str]) -> dict[str, Any]:
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks session")
    parser.add_argument("--rows", type=int, default=3_000_000, help="of the notebook's data (%(default)s)")
    parser.add_argument("--scale", type=float, default=0.1, help="of TPC-H's data (%(default)s)")
    parser.add_argument("--rounds", type=int, default=5, help="pairs of runs that count (%(default)s)")
    parser.add_argument("--warmup", type=int, default=2, help="pairs before them (%(default)s)")
    parser.add_argument("--only", nargs="*", choices=FIGURES, default=FIGURES, help="only these figures")
    options = parser.parse_args(arguments)
    figures: dict[str, Any] = {}
    in_session: dict[str, Callable[..., dict[str, Any]]] = {
        "ratio": notebook, "tpch": queries, "single": single, "driven": driven,
    }  # fmt: skip
    with tempfile.TemporaryDirectory() as folder, NotebookShell() as shell:
        if wanted := [name for name in in_session if name in options.only]:
            spark = _spark("session-benchmark")
            for name in wanted:
                figures |= in_session[name](Ways(shell, spark), spark, Path(folder), options)
            spark.stop()
    if "first" in options.only:
        figures |= first(options)
    if "memory" in options.only:
        figures |= memory(options)
    return {**figures, "rounds": options.rounds, "load": round(os.getloadavg()[0], 1)}


if __name__ == "__main__":
    print(json.dumps(_heap(sys.argv[1])) if sys.argv[2:] else _first_action(sys.argv[1]))
