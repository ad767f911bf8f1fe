"""What it costs to watch: 2,000 small tasks, run as a job and run unwatched, in turn, in one session.

Both run the same stages of the same plan (a map stage of 2,000 tasks, then one of 8 that reads its shuffle), submitted
in the same way (`StageRunner`). Unwatched is that alone. Watched is the whole deployment: the listener in the driver's
JVM, the thread that drains it, the tracking of each task, and the scheduler that moves each execution through its six
states. So the difference is all that a user pays for seeing his tasks. A small task: 2,000 rows, counted by key.

CPU time of this process and of the driver's JVM (which is the executor, too), all threads, planning left out.
Figures: `watched_s` and `unwatched_s` (medians), `ratio` (median of the paired ratios), and `python_s`, the part of a
watched run that this process takes (median), which is nearly all that watching adds.
"""

from __future__ import annotations

import argparse
import gc
import os
import statistics
import time
from pathlib import Path
from typing import TYPE_CHECKING

import flinkmagic
from flinkmagic.deployment import SparkDeployment
from flinkmagic.deployment.kept_results import KeptResults
from flinkmagic.deployment.spark_jobs import JobProperties
from flinkmagic.deployment.stage_runner import StageRunner
from flinkmagic.graph.execution_graph import build_execution_graph
from flinkmagic.graph.job_graph_generator import create_job_graph
from flinkmagic.planning import plan
from flinkmagic.planning.handles import StageHandle
from flinkmagic.planning.planner import PlannedJob
from flinkmagic.scheduling.job_status import JobStatus

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

TASKS, ROWS_OF_A_TASK = 2000, 2000


def planned(spark: SparkSession) -> PlannedJob:
    """The job, planned anew: a finished plan's shuffles are not run again."""
    from pyspark.sql import functions as F

    numbers = spark.range(0, TASKS * ROWS_OF_A_TASK, 1, TASKS)
    return plan({"counts": numbers.groupBy((F.col("id") % 1000).alias("k")).count()}, parallelism=8, name="tasks")


def watched(spark: SparkSession, job: PlannedJob) -> None:
    """As a deployment."""
    graph = build_execution_graph(create_job_graph(job.environment.get_stream_graph()))
    deployment = SparkDeployment(job, graph, spark=spark)
    deployment.start()
    status = deployment.wait()
    if status is not JobStatus.FINISHED or len(deployment.tasks()) != TASKS + 8:
        raise RuntimeError(f"the job ended {status} with {len(deployment.tasks())} tasks")
    deployment.release()


def unwatched(spark: SparkSession, job: PlannedJob) -> None:
    """The same stages, one after the other."""
    graph = build_execution_graph(create_job_graph(job.environment.get_stream_graph()))
    kept = KeptResults(spark)
    properties = JobProperties(spark.sparkContext, group="unwatched", pool="unwatched")
    runner = StageRunner(spark.sparkContext, job.session_clone, properties, kept)
    for vertex in graph.job_vertices:
        handle = vertex.job_vertex.operator_factory
        assert isinstance(handle, StageHandle)
        runner.run(handle, f"unwatched-{vertex.index}", "tasks", None, lambda: None)
    kept.release()


def cpu_s(jvm: int) -> float:
    """The CPU time that this process and the JVM have taken so far."""
    fields = Path(f"/proc/{jvm}/stat").read_text().rpartition(")")[2].split()
    ticks = int(fields[11]) + int(fields[12])
    return time.process_time() + ticks / os.sysconf("SC_CLK_TCK")


def main(arguments: list[str]) -> dict[str, float | int]:
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks monitor")
    parser.add_argument("--pairs", type=int, default=11, help="counted pairs (%(default)s)")
    parser.add_argument("--warmup", type=int, default=4, help="pairs before them (%(default)s)")
    options = parser.parse_args(arguments)
    spark = flinkmagic.local_session(
        "monitor-benchmark",
        "local[2]",
        {"spark.ui.enabled": "false", "spark.driver.memory": "2g", "spark.driver.extraJavaOptions": "-XX:+UseSerialGC"},
    )
    spark.sparkContext.setLogLevel("ERROR")
    jvm = int(spark.sparkContext._jvm.java.lang.ProcessHandle.current().pid())  # type: ignore[union-attr]
    times: dict[str, list[float]] = {"watched": [], "unwatched": []}
    python: list[float] = []
    for pair in range(options.warmup + options.pairs):
        # Who goes first changes, so that neither always pays for the other's garbage.
        runs = [("watched", watched), ("unwatched", unwatched)]
        for name, run in runs if pair % 2 else reversed(runs):
            job = planned(spark)
            gc.collect()
            spark.sparkContext._jvm.java.lang.System.gc()  # type: ignore[union-attr]
            spark.sparkContext._jsc.sc().listenerBus().waitUntilEmpty()  # type: ignore[union-attr]
            start, of_python = cpu_s(jvm), time.process_time()
            run(spark, job)
            spark.sparkContext._jsc.sc().listenerBus().waitUntilEmpty()  # type: ignore[union-attr]
            if pair >= options.warmup:
                times[name].append(cpu_s(jvm) - start)
                if name == "watched":
                    python.append(time.process_time() - of_python)
    spark.stop()
    ratios = [a / b for a, b in zip(times["watched"], times["unwatched"], strict=True)]
    return {
        "watched_s": round(statistics.median(times["watched"]), 3),
        "unwatched_s": round(statistics.median(times["unwatched"]), 3),
        "ratio": round(statistics.median(ratios), 3),
        "python_s": round(statistics.median(python), 3),
        "lowest": round(min(ratios), 3),
        "highest": round(max(ratios), 3),
        "pairs": options.pairs,
    }
