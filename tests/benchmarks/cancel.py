"""How long after `cancel()` the last task of a job has ended, by what the job is busy with; another job goes on.

Kinds: ``python`` (UDFs that sleep), ``native`` (tasks that compute in the JVM), ``write`` (a write of such),
``broadcast`` (one is being built), ``sampling`` (of a sort). The JVM's threads say what runs; a second job of the
session runs one long task all the while, and must end FINISHED with its rows.

Figures: `slowest_s`, the slowest of each kind, `runs`, and `other_finished` (1 or 0).
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import flinkmagic
from flinkmagic.scheduling.job_status import JobStatus
from flinkmagic.session import Job

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


def running_tasks(spark: SparkSession) -> int:
    """How many tasks run in the session, all jobs together: threads of the JVM, which is the executor, that run one.

    Spark's status store is up to date only with the next heartbeat.
    """
    jvm = spark.sparkContext._jvm
    assert jvm is not None
    names = [thread.getName() for thread in jvm.java.lang.Thread.getAllStackTraces().keySet()]
    return sum(name.startswith("Executor task launch worker for task ") for name in names)


def wait_for(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 120
    while not condition():
        if time.monotonic() > deadline:
            raise TimeoutError("the job did not come to where it was to be cancelled, or did not end")
        time.sleep(0.005)


def cancel_after_start(spark: SparkSession, job: Job) -> float:
    """Cancel a job once it has two tasks beside the other job's one; the seconds until only that one runs."""
    wait_for(lambda: running_tasks(spark) == 3)
    time.sleep(0.5)
    start = time.perf_counter()
    job.cancel()
    wait_for(lambda: running_tasks(spark) <= 1)
    seconds = time.perf_counter() - start
    if job.wait(60) is not JobStatus.CANCELED:
        raise RuntimeError(f"the job is {job.status}")
    return seconds


def main(arguments: list[str]) -> dict[str, float | int]:
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks cancel")
    parser.add_argument("--rounds", type=int, default=5, help="rounds of all kinds (%(default)s)")
    options = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as folder:
        return measure(options.rounds, Path(folder))


def measure(rounds: int, folder: Path) -> dict[str, float | int]:
    spark = flinkmagic.local_session("cancel-benchmark", "local[3]", {"spark.ui.enabled": "false"})
    spark.sparkContext.setLogLevel("OFF")
    slowest: dict[str, float] = {}
    kinds = frames(spark)
    end = folder / "end"
    other = flinkmagic.compile({"rows": patient(spark.range(0, 3, 1, 1), str(end))}, "other")
    going = other.run(wait=False)
    wait_for(lambda: running_tasks(spark) == 1)
    for _ in range(rounds):
        for kind, frame in kinds.items():
            if kind == "write":
                with flinkmagic.capture(spark) as program:
                    frame().write.mode("overwrite").parquet(str(folder / kind))
                graph = flinkmagic.compile(program, kind)
            else:
                graph = flinkmagic.compile({"rows": frame()}, kind)
            seconds = cancel_after_start(spark, graph.run(wait=False))
            slowest[kind] = max(slowest.get(kind, 0.0), seconds)
    end.touch()
    finished = going.wait(600) is JobStatus.FINISHED and going.result("rows").count() == 3
    spark.stop()
    return {
        "slowest_s": round(max(slowest.values()), 3),
        **{f"{kind}_s": round(seconds, 3) for kind, seconds in slowest.items()},
        "runs": rounds * len(kinds),
        "other_finished": int(finished),
    }
