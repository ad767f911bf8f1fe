"""How well does a run tell how long the job takes on other slots?

Each of eight jobs runs on one slot and on two, after a run to warm up; from each of these runs it is told how long the
job takes on the other number of slots, and the next run on that many says how long it takes. Four jobs that sleep, so
that no core limits them, are told from two slots for four.

Figures: `whatif_error` (median over all predictions of how far they are off, as a part of the measured time),
`whatif_worst`, `whatif_calibration` (median of how far the run as it was is off when it is simulated), `jobs`,
`predictions`.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import flinkmagic
from tests.benchmarks.findings import run_cell

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_HASHED = "F.sha2(F.sha2(F.sha2(F.col('id').cast('string'), 512), 512), 512)"

BOUND_BY_CORES = {
    "map only": f"""
rows = spark.range(0, 600000, 1, 8).select({_HASHED}.alias("h"))
rows.agg(F.max("h")).write.parquet(out)
""",
    "aggregation": """
rows = spark.range(0, 4000000, 1, 8).select((F.col("id") % 50000).alias("k"), "id")
rows.groupBy("k").agg(F.sum("id"), F.max("id")).repartition(8, "k").write.parquet(out)
""",
    "join": f"""
left = spark.range(0, 400000, 1, 6).select("id", {_HASHED}.alias("h"))
right = spark.range(0, 400000, 1, 6).select("id", (F.col("id") * 3).alias("n"))
left.join(right.hint("merge"), "id").groupBy((F.col("n") % 100).alias("m")).agg(F.max("h")).write.parquet(out)
""",
    "window": """
rows = spark.range(0, 800000, 1, 8).select((F.col("id") % 2000).alias("k"), F.rand(1).alias("r"))
order = Window.partitionBy("k").orderBy("r")
rows.withColumn("rank", F.row_number().over(order)).where("rank < 5").write.parquet(out)
""",
    "skewed": f"""
k = F.when(F.col("id") % 10 < 7, 1).otherwise(F.col("id") % 100)
rows = spark.range(0, 500000, 1, 8).select(k.alias("k"), {_HASHED}.alias("h")).repartition(8, "k")
rows.select(F.sha2(F.sha2("h", 512), 512).alias("h")).agg(F.max("h")).write.parquet(out)
""",
    "sort": """
rows = spark.range(0, 1500000, 1, 8).select("id", F.rand(2).alias("r"))
rows.orderBy("r").write.parquet(out)
""",
    "two sinks": f"""
rows = spark.range(0, 300000, 1, 5).select("id", {_HASHED}.alias("h"))
rows.groupBy((F.col("id") % 10).alias("k")).agg(F.max("h")).write.parquet(out + "/one")
rows.where("id % 2 = 0").agg(F.min("h")).write.parquet(out + "/two")
""",
    "python": """
rows = spark.range(0, 400000, 1, 8)
rows.select(F.udf(lambda i: sum(range(i % 50)), "long")("id").alias("s")).agg(F.sum("s")).write.parquet(out)
""",
}
"""The cells of jobs that need a core for each slot."""

_SLEEPS = """
import time
from pyspark import TaskContext
def work(batches):
    for batch in batches:
        yield batch
    time.sleep({seconds})
"""

BOUND_BY_SLEEP = {
    "even": _SLEEPS.format(seconds="0.4") + """
spark.range(0, 1000, 1, 8).mapInPandas(work, "id long").write.parquet(out)
""",
    "uneven": _SLEEPS.format(seconds="0.2 + 0.15 * TaskContext.get().partitionId()") + """
spark.range(0, 1000, 1, 7).mapInPandas(work, "id long").write.parquet(out)
""",
    "two stages": _SLEEPS.format(seconds="0.3") + """
first = spark.range(0, 1000, 1, 6).mapInPandas(work, "id long").repartition(5)
first.mapInPandas(work, "id long").write.parquet(out)
""",
    "one long task": _SLEEPS.format(seconds="2.0 if TaskContext.get().partitionId() == 3 else 0.3") + """
spark.range(0, 1000, 1, 9).mapInPandas(work, "id long").write.parquet(out)
""",
}
"""The cells of jobs that need none."""


class Forecasts:
    """Runs jobs, tells how long they take on other slots, and looks."""

    def __init__(self, spark: SparkSession, home: Path) -> None:
        self._spark, self._home = spark, home
        self._number = 0
        self.errors: list[float] = []
        self.calibrations: list[float] = []

    def run(self, name: str, cell: str, slots: int) -> Any:
        self._number += 1
        out = self._home / f"job{self._number}"
        options = {"retain": "none", "slots": slots, "parallelism": 8}
        return run_cell(self._spark, cell, self._home, out, options)[0]

    def compare(self, name: str, cell: str, known: int, wanted: int) -> None:
        """Tell from a run on `known` slots how long one on `wanted` takes."""
        job = self.run(name, cell, known)
        measured = job.measured()
        graph = job.execution_graph.job_graph
        predicted_ms, calibration = measured.simulated_ms(graph, wanted), measured.error(graph)
        took_ms = self.run(name, cell, wanted).measured().elapsed_ms
        error = predicted_ms / took_ms - 1
        self.errors.append(abs(error))
        self.calibrations.append(abs(calibration))
        print(
            f"{name}: {known} slots took {measured.elapsed_ms:.0f} ms (simulated {100 * calibration:+.0f} %); "
            f"{wanted} slots: told {predicted_ms:.0f}, took {took_ms:.0f} ms ({100 * error:+.0f} %)",
            flush=True,
        )


def main(arguments: list[str]) -> dict[str, Any]:
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks history")
    parser.parse_args(arguments)
    settings = {"spark.ui.enabled": "false", "spark.driver.memory": "2g", "spark.ui.showConsoleProgress": "false"}
    spark = flinkmagic.local_session("history-benchmark", "local[4]", settings)
    spark.sparkContext.setLogLevel("FATAL")
    with tempfile.TemporaryDirectory() as folder:
        forecasts = Forecasts(spark, Path(folder))
        for name, cell in BOUND_BY_CORES.items():
            for slots in (2, 1, 2):
                forecasts.run(name, cell, slots)
            forecasts.compare(name, cell, 2, 1)
            forecasts.compare(name, cell, 1, 2)
        forecasts.run("even", BOUND_BY_SLEEP["even"], 4)
        for name, cell in BOUND_BY_SLEEP.items():
            forecasts.compare(name, cell, 2, 4)
    spark.stop()
    return {
        "whatif_error": round(statistics.median(forecasts.errors), 3),
        "whatif_worst": round(max(forecasts.errors), 3),
        "whatif_calibration": round(statistics.median(forecasts.calibrations), 3),
        "jobs": len(BOUND_BY_CORES) + len(BOUND_BY_SLEEP),
        "predictions": len(forecasts.errors),
    }
