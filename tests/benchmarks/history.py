"""How well does a run tell how long the job takes on other slots, and how fast are event logs read?

Each of eight jobs runs on two slots and on one, after some runs to warm up; from the fastest run on either it is told
how long the job takes on the other number of slots, and the fastest run there says how long it takes. Four jobs that
sleep, so that no core limits them, are told from two slots for four. The machine has to be quiet: two slots need two
cores.

A real log of some jobs with hundreds of tasks is repeated, with numbers of their own for each copy's jobs, stages and
tasks, until it has 100 MB, and then 1 GB. Each is read by `flinkmagic history` in a process of its own, which writes
the page.

Figures: `mb_per_s` (of the log of 100 MB), `gb` (seconds for 1 GB), `gb_mib` (the most memory that this took);
`whatif_error` (median over all predictions of how far they are off, as a part of the measured time),
`whatif_worst`, `whatif_calibration` (median of how far the run as it was is off when it is simulated), `jobs`,
`predictions`, `cores` (how many of two cores were free, before and after; below 1.8 the errors are those of the load).
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from pyspark.sql import functions

import flinkmagic
from flinkmagic.graph.job_graph import JobGraph
from flinkmagic.simulation.what_if import MeasuredRun
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
rows = spark.range(0, 8000000, 1, 8).select((F.col("id") % 50000).alias("k"), "id")
rows.groupBy("k").agg(F.sum("id"), F.max("id")).repartition(8, "k").write.parquet(out)
""",
    "join": f"""
left = spark.range(0, 400000, 1, 6).select("id", {_HASHED}.alias("h"))
right = spark.range(0, 400000, 1, 6).select("id", (F.col("id") * 3).alias("n"))
left.join(right.hint("merge"), "id").groupBy((F.col("n") % 100).alias("m")).agg(F.max("h")).write.parquet(out)
""",
    "window": """
rows = spark.range(0, 1600000, 1, 8).select((F.col("id") % 2000).alias("k"), F.rand(1).alias("r"))
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
    "even": _SLEEPS.format(seconds="0.4")
    + """
spark.range(0, 1000, 1, 8).mapInPandas(work, "id long").write.parquet(out)
""",
    "uneven": _SLEEPS.format(seconds="0.2 + 0.15 * TaskContext.get().partitionId()")
    + """
spark.range(0, 1000, 1, 7).mapInPandas(work, "id long").write.parquet(out)
""",
    "two stages": _SLEEPS.format(seconds="0.3")
    + """
first = spark.range(0, 1000, 1, 6).mapInPandas(work, "id long").repartition(5)
first.mapInPandas(work, "id long").write.parquet(out)
""",
    "one long task": _SLEEPS.format(seconds="2.0 if TaskContext.get().partitionId() == 3 else 0.3")
    + """
spark.range(0, 1000, 1, 9).mapInPandas(work, "id long").write.parquet(out)
""",
}
"""The cells of jobs that need none."""


MANY_TASKS = (
    "spark.range(0, 400000, 1, 200).groupBy((F.col('id') % 1000).alias('k')).count().orderBy('k').write.parquet(out)",
    "spark.range(0, 100000, 1, 300).join(spark.range(0, 100000, 1, 100), 'id').write.parquet(out)",
)
"""The cells of jobs whose log is repeated."""

SETTINGS = {"spark.ui.enabled": "false", "spark.driver.memory": "2g", "spark.ui.showConsoleProgress": "false"}


class Runs:
    """Runs jobs in sessions of as many slots as are asked for."""

    def __init__(self, home: Path) -> None:
        self._home = home
        self._number = 0

    def measured(self, cells: Mapping[str, str], slots: int, times: int, warm: int = 1) -> dict[str, list[Run]]:
        """The runs of each job, in a session of its own for all, after some to warm up."""
        spark = flinkmagic.local_session("history-benchmark", f"local[{slots}]", SETTINGS)
        spark.sparkContext.setLogLevel("FATAL")
        for cell in cells.values():
            for _ in range(warm):
                self._run(spark, cell)
        found = {name: [self._run(spark, cell) for _ in range(times)] for name, cell in cells.items()}
        spark.stop()
        return found

    def _run(self, spark: SparkSession, cell: str) -> Run:
        self._number += 1
        options = {"retain": "none", "parallelism": 8}
        job, _ = run_cell(spark, cell, self._home, self._home / f"job{self._number}", options)
        measured = job.measured()
        assert measured is not None  # it is no stream
        return Run(measured, job.execution_graph.job_graph)


class Run(NamedTuple):
    """A run, and the graph with which it is simulated."""

    measured: MeasuredRun
    job_graph: JobGraph


class Errors:
    """Compares what is told with what is measured."""

    def __init__(self) -> None:
        self.told: list[float] = []
        self.calibrations: list[float] = []

    def compare(self, name: str, known: list[Run], wanted: list[Run]) -> None:
        """Tell from the fastest of some runs, which least else has disturbed, how long the fastest of others takes."""
        run, other = (min(runs, key=lambda one: one.measured.elapsed_ms) for runs in (known, wanted))
        slots, took_ms = other.measured.slots, other.measured.elapsed_ms
        told_ms = run.measured.simulated_ms(run.job_graph, slots)
        calibration, error = run.measured.error(run.job_graph), told_ms / took_ms - 1
        self.told.append(abs(error))
        self.calibrations.append(abs(calibration))
        print(
            f"{name}: {run.measured.slots} slots took {run.measured.elapsed_ms:.0f} ms (simulated "
            f"{100 * calibration:+.0f} %); {slots} slots: told {told_ms:.0f}, took {took_ms:.0f} ms "
            f"({100 * error:+.0f} %)",
            flush=True,
        )


def real_log(home: Path) -> Path:
    """Write the log of jobs with many tasks."""
    logs = home / "logs"
    logs.mkdir()
    own = {
        "spark.eventLog.enabled": "true",
        "spark.eventLog.dir": logs.as_uri(),
        "spark.eventLog.rolling.enabled": "false",
        "spark.eventLog.compress": "false",
        "spark.sql.shuffle.partitions": "200",
        "spark.sql.adaptive.coalescePartitions.enabled": "false",
        "spark.sql.autoBroadcastJoinThreshold": "-1",
    }
    spark = flinkmagic.local_session("logged", "local[2]", {**SETTINGS, **own})
    spark.sparkContext.setLogLevel("FATAL")
    for number, cell in enumerate(MANY_TASKS):
        exec(cell, {"spark": spark, "F": functions, "out": str(home / f"logged{number}")})
    spark.stop()
    (log,) = logs.iterdir()
    return log


_NUMBER = re.compile(
    rb'("(?:(?:Job |Stage |Task |RDD )?ID|executionId|rootExecutionId|accumulatorId)":|"spark.sql.execution.id":")(\d+)'
)
_NUMBERS = re.compile(rb'("(?:Parent IDs|Stage IDs)":\[)([\d,]*)\]')


def repeated(log: Path, target: Path, size: int) -> Path:
    """Write a log that repeats the jobs of another one until it has so many bytes."""

    def numbered(text: bytes) -> bytes:
        return b"\0%06d" % int(text)

    head, body, tail = [], [], []
    for line in log.read_bytes().splitlines(keepends=True):
        if b'"SparkListenerApplicationEnd"' in line[:60]:
            tail.append(line)
        elif (
            b"SQLExecution" in line[:90]
            or b"Accum" in line[:90]
            or b"AdaptiveExecution" in line[:90]
            or (
                line.startswith(
                    (b'{"Event":"SparkListenerJob', b'{"Event":"SparkListenerStage', b'{"Event":"SparkListenerTask')
                )
            )
        ):
            line = _NUMBERS.sub(lambda m: m[1] + b",".join(map(numbered, filter(None, m[2].split(b",")))) + b"]", line)
            body.append(_NUMBER.sub(lambda m: m[1] + numbered(m[2]), line))
        else:
            head.append(line)
    copy = b"".join(body)
    with target.open("wb") as file:
        file.writelines(head)
        number = 0
        while file.tell() < size:
            number += 1
            file.write(copy.replace(b"\0", b"%d" % number))
        file.writelines(tail)
    return target


def read_in_process(log: Path, page: Path) -> tuple[float, float]:
    """How long `flinkmagic history` takes, in seconds, and its memory in MiB."""
    call = (
        f"import sys; from flinkmagic.cli import main; sys.exit(main(['history', {str(log)!r}, '-o', {str(page)!r}]))"
    )
    start = time.perf_counter()
    process = subprocess.Popen([sys.executable, "-c", call], stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    if status:
        raise RuntimeError(f"flinkmagic history has ended with {status}")
    return time.perf_counter() - start, usage.ru_maxrss / 1024


def main(arguments: list[str]) -> dict[str, Any]:
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks history")
    parser.add_argument("--times", type=int, default=3, help="runs of each job on each number of slots (%(default)s)")
    parser.add_argument("--only", choices=("logs", "whatif"), help="only this part")
    options = parser.parse_args(arguments)
    figures = {} if options.only == "whatif" else logs()
    return figures if options.only == "logs" else {**figures, **what_ifs(options.times)}


def spun(seconds: float) -> int:
    """How far a process counts meanwhile."""
    end, counted = time.perf_counter() + seconds, 0
    while time.perf_counter() < end:
        counted += 1
    return counted


def free_cores() -> float:
    """How many times as far as one process two of them count: 2 where two cores have nothing else to do."""
    with multiprocessing.get_context("spawn").Pool(2) as pool:
        (alone,) = pool.map(spun, [1.0])
        return sum(pool.map(spun, [1.0, 1.0], chunksize=1)) / alone


def logs() -> dict[str, Any]:
    """How fast logs are read."""
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        log = real_log(home)
        print(f"the real log has {log.stat().st_size / 1e6:.1f} MB", flush=True)
        hundred, _ = read_in_process(repeated(log, home / "hundred", 100_000_000), home / "hundred.html")
        print(f"100 MB: {hundred:.1f} s", flush=True)
        (home / "hundred").unlink()
        gigabyte, memory = read_in_process(repeated(log, home / "gigabyte", 1_000_000_000), home / "gigabyte.html")
    return {"mb_per_s": round(100 / hundred, 1), "gb": round(gigabyte, 1), "gb_mib": round(memory)}


def what_ifs(times: int) -> dict[str, Any]:
    """How well runs tell how long jobs take on other slots."""
    errors, cores = Errors(), [free_cores()]
    with tempfile.TemporaryDirectory() as folder:
        runs = Runs(Path(folder))
        # The JVM compiles for long: what runs first takes longer, and slows down whatever runs beside it.
        runs.measured(BOUND_BY_CORES, 2, times=1, warm=3)
        one = runs.measured(BOUND_BY_CORES, 1, times)
        two = runs.measured({**BOUND_BY_CORES, **BOUND_BY_SLEEP}, 2, times)
        cores.append(free_cores())
        four = runs.measured(BOUND_BY_SLEEP, 4, times)
    for name in BOUND_BY_CORES:
        errors.compare(name, two[name], one[name])
        errors.compare(name, one[name], two[name])
    for name in BOUND_BY_SLEEP:
        errors.compare(name, two[name], four[name])
    return {
        "whatif_error": round(statistics.median(errors.told), 3),
        "whatif_worst": round(max(errors.told), 3),
        "whatif_calibration": round(statistics.median(errors.calibrations), 3),
        "jobs": len(BOUND_BY_CORES) + len(BOUND_BY_SLEEP),
        "predictions": len(errors.told),
        "cores": round(min(cores), 2),
    }
