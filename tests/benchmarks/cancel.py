"""How long after `cancel()` the last task of a job has ended, by what the job is busy with; another job goes on.

Kinds: ``python`` (UDFs that sleep), ``native`` (tasks that compute in the JVM), ``write`` (a write of such),
``broadcast`` (one is being built), ``sampling`` (of a sort). A second job of the session runs one long task all the
while, and must end FINISHED with its rows. In local mode, where the JVM's threads say what runs, and on a standalone
cluster of three executors, where Spark's scheduler does. Each executor has run Python before: a worker that is just
starting up cannot be ended, and the first one of an executor takes a second or more.

Figures: `slowest_s`, the slowest of each kind, `runs`, and `other_finished` (1 or 0); those of the cluster begin with
`cluster_`.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import flinkmagic
from flinkmagic.scheduling.job_status import JobStatus
from flinkmagic.session import Job
from tests.benchmarks._standalone_cluster import StandaloneCluster

if TYPE_CHECKING:
    import pyarrow
    from pyspark.sql import DataFrame, SparkSession

ENDLESS = 10**14


def sleepy(frame: DataFrame, seconds: float = 600) -> DataFrame:
    """The frame; each of its partitions sleeps in a Python worker."""

    def wait(batches: Iterable[pyarrow.RecordBatch]) -> Iterator[pyarrow.RecordBatch]:
        import time

        time.sleep(seconds)
        yield from batches

    return frame.mapInArrow(wait, frame.schema)


def patient(frame: DataFrame, until: str) -> DataFrame:
    """The frame; each of its partitions waits in a Python worker until a file is there."""

    def wait(batches: Iterable[pyarrow.RecordBatch]) -> Iterator[pyarrow.RecordBatch]:
        import time
        from pathlib import Path

        while not Path(until).exists():
            time.sleep(0.1)
        yield from batches

    return frame.mapInArrow(wait, frame.schema)


def frames(spark: SparkSession) -> dict[str, Callable[[], DataFrame]]:
    """By kind, a DataFrame that would take for ever."""
    from pyspark.sql import functions as F

    def broadcast() -> DataFrame:
        small = sleepy(spark.range(0, 4, 1, 2)).selectExpr("id AS k")
        return spark.range(0, 8, 1, 2).selectExpr("id", "id AS k").join(F.broadcast(small), "k")

    return {
        "python": lambda: sleepy(spark.range(0, 8, 1, 4)).groupBy("id").count(),
        "native": lambda: spark.range(0, ENDLESS, 1, 4).selectExpr("sum(hash(id) % 7) AS s"),
        "write": lambda: sleepy(spark.range(0, 8, 1, 4)),
        "broadcast": broadcast,
        "sampling": lambda: sleepy(spark.range(0, 8, 1, 2)).orderBy(F.desc("id")),
    }


def threads_of_tasks(spark: SparkSession) -> int:
    """How many tasks run in a local session, all jobs together: threads of the JVM that run one.

    Spark's status store is up to date only with the next heartbeat.
    """
    jvm = spark.sparkContext._jvm
    assert jvm is not None
    names = [thread.getName() for thread in jvm.java.lang.Thread.getAllStackTraces().keySet()]
    return sum(name.startswith("Executor task launch worker for task ") for name in names)


def scheduled_tasks(spark: SparkSession) -> int:
    """How many tasks Spark's scheduler takes for running on executors, which tell it of each end."""
    by_executor = spark.sparkContext._jsc.sc().taskScheduler().runningTasksByExecutors()  # type: ignore[union-attr]
    return sum(int(number) for number in by_executor.values().mkString(",").split(",") if number)


def wait_for(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 120
    while not condition():
        if time.monotonic() > deadline:
            raise TimeoutError("the job did not come to where it was to be cancelled, or did not end")
        time.sleep(0.005)


def cancel_after_start(running: Callable[[], int], job: Job) -> float:
    """Cancel a job once it has two tasks beside the other job's one; the seconds until only that one runs."""
    wait_for(lambda: running() == 3)
    time.sleep(0.5)
    start = time.perf_counter()
    job.cancel()
    wait_for(lambda: running() <= 1)
    seconds = time.perf_counter() - start
    if job.wait(60) is not JobStatus.CANCELED:
        raise RuntimeError(f"the job is {job.status}")
    return seconds


def main(arguments: list[str]) -> dict[str, float | int]:
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks cancel")
    parser.add_argument("--rounds", type=int, default=5, help="rounds of all kinds (%(default)s)")
    options = parser.parse_args(arguments)
    os.environ["PYSPARK_PYTHON"] = sys.executable
    with tempfile.TemporaryDirectory() as folder:
        figures = in_session("local[3]", threads_of_tasks, options.rounds, Path(folder) / "local")
        with StandaloneCluster(Path(folder) / "cluster", workers=3, cores=1) as cluster:
            on_cluster = in_session(cluster.url, scheduled_tasks, options.rounds, Path(folder) / "out")
    return figures | {f"cluster_{name}": figure for name, figure in on_cluster.items()}


def in_session(
    master: str, running: Callable[[SparkSession], int], rounds: int, folder: Path
) -> dict[str, float | int]:
    folder.mkdir()
    configuration = {"spark.ui.enabled": "false", "spark.driver.host": "127.0.0.1", "spark.executor.memory": "512m"}
    spark = flinkmagic.local_session("cancel-benchmark", master, configuration)
    spark.sparkContext.setLogLevel("OFF")
    try:
        executors = spark.sparkContext._jsc.sc().statusStore().executorList  # type: ignore[union-attr]
        if not master.startswith("local"):
            wait_for(lambda: executors(True).size() == 4)
        sleepy(spark.range(0, 3, 1, 3), 2).count()
        return measure(spark, lambda: running(spark), rounds, folder)
    finally:
        spark.stop()


def measure(spark: SparkSession, running: Callable[[], int], rounds: int, folder: Path) -> dict[str, float | int]:
    slowest: dict[str, float] = {}
    kinds = frames(spark)
    end = folder / "end"
    other = flinkmagic.compile({"rows": patient(spark.range(0, 3, 1, 1), str(end))}, "other")
    going = other.run(wait=False)
    wait_for(lambda: running() == 1)
    for _ in range(rounds):
        for kind, frame in kinds.items():
            if kind == "write":
                with flinkmagic.capture(spark) as program:
                    frame().write.mode("overwrite").parquet(str(folder / kind))
                graph = flinkmagic.compile(program, kind)
            else:
                graph = flinkmagic.compile({"rows": frame()}, kind)
            seconds = cancel_after_start(running, graph.run(wait=False))
            slowest[kind] = max(slowest.get(kind, 0.0), seconds)
    end.touch()
    finished = going.wait(600) is JobStatus.FINISHED and going.result("rows").count() == 3
    return {
        "slowest_s": round(max(slowest.values()), 3),
        **{f"{kind}_s": round(seconds, 3) for kind, seconds in slowest.items()},
        "runs": rounds * len(kinds),
        "other_finished": int(finished),
    }
