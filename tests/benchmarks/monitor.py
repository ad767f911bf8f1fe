"""What it costs to watch: 2,000 small tasks, run as a job and run unwatched, in turn, in one session.

Both run the same stages of the same plan (a map stage of 2,000 tasks, then one of 8 that reads its shuffle), submitted
in the same way (`StageRunner`). Unwatched is that alone. Watched is the whole deployment: the listener in the driver's
JVM, the thread that drains it, the tracking of each task, and the scheduler that moves each execution through its six
states. So the difference is all that a user pays for seeing his tasks. A small task: 2,000 rows, counted by key.

CPU time of this process and of the driver's JVM (which is the executor, too), all threads, planning left out. The same
task takes a third more or less CPU time from minute to minute on a machine with neighbours, so each watched run is
compared with the mean of the unwatched runs just before and just after it, in which a steady drift cancels.

Figures: `watched_s` and `unwatched_s` (medians), `ratio` (median of the paired ratios), `lowest` and `highest` of them,
`python_s`, the part of a watched run that this process takes (median), and `added_s`, what a watched run takes more
than its neighbours beside the threads that run the tasks (median of the paired differences): nearly free of that noise.
"""

from __future__ import annotations

import argparse
import gc
import os
import statistics
import time
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import flinkmagic
from flinkmagic.deployment import SparkDeployment
from flinkmagic.deployment.stages.observations import Observations
from flinkmagic.deployment.stages.spark_jobs import JobProperties
from flinkmagic.deployment.stages.stage_place import StagePlace
from flinkmagic.deployment.stages.stage_runner import StageRun, StageRunner
from flinkmagic.graph.execution_graph import ExecutionGraph
from flinkmagic.graph.job_graph_generator import create_job_graph
from flinkmagic.options import JobOptions
from flinkmagic.planning import plan
from flinkmagic.planning.planner import PlannedJob
from flinkmagic.planning.stage_handles import StageHandle
from flinkmagic.reuse.job_rows import JobRows
from flinkmagic.scheduling.job_status import JobStatus

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

TASKS, ROWS_OF_A_TASK = 2000, 2000
TICK = os.sysconf("SC_CLK_TCK")


def planned(spark: SparkSession) -> PlannedJob:
    """The job, planned again: a finished plan's shuffles are not run again."""
    from pyspark.sql import functions as F

    numbers = spark.range(0, TASKS * ROWS_OF_A_TASK, 1, TASKS)
    return plan(
        {"counts": numbers.groupBy((F.col("id") % 1000).alias("k")).count()}, JobOptions(parallelism=8), name="tasks"
    )


def watched(spark: SparkSession, job: PlannedJob) -> None:
    """As a deployment."""
    graph = ExecutionGraph(create_job_graph(job.environment.get_stream_graph()))
    deployment = SparkDeployment(job, graph, spark=spark)
    deployment.start()
    status = deployment.wait()
    if status is not JobStatus.FINISHED or len(deployment.tasks()) != TASKS + 8:
        raise RuntimeError(f"the job ended {status} with {len(deployment.tasks())} tasks")
    deployment.release()


def unwatched(spark: SparkSession, job: PlannedJob) -> None:
    """The same stages, one after the other."""
    graph = ExecutionGraph(create_job_graph(job.environment.get_stream_graph()))
    kept = JobRows(spark)
    properties = JobProperties(spark.sparkContext, group="unwatched", pool="unwatched")
    runner = StageRunner(spark.sparkContext, job.session_clone, properties, kept, Observations(spark))
    for vertex in graph.job_vertices:
        handle = vertex.job_vertex.operator_factory
        assert isinstance(handle, StageHandle)
        place = StagePlace.of("unwatched", vertex.job_vertex, handle.kind)
        runner.run(StageRun(runner, handle, f"unwatched-{vertex.index}", "tasks", place, None, lambda *_: None))
    kept.release()


class CpuTimes(NamedTuple):
    """Seconds of CPU time: of this process and the JVM, of this alone, and of all but the JVM's task threads."""

    all: float
    python: float
    beside_tasks: float


class Clock:
    """Runs from when it is made. `jvm` is the driver's process id."""

    def __init__(self, jvm: int) -> None:
        self._jvm = Path(f"/proc/{jvm}")
        self._python, self._all = time.process_time(), ticks(self._jvm) or 0
        self._tasks = self._task_threads()

    def read(self) -> CpuTimes:
        """What was taken since."""
        python = time.process_time() - self._python
        every = python + ((ticks(self._jvm) or 0) - self._all) / TICK
        # A task thread that is gone by now did nothing: it ends when it had no task for a minute.
        tasks = sum(now - self._tasks.get(thread, 0) for thread, now in self._task_threads().items()) / TICK
        return CpuTimes(every, python, every - tasks)

    def _task_threads(self) -> dict[Path, int]:
        found = {thread: ticks(thread, "Executor task") for thread in (self._jvm / "task").iterdir()}
        return {thread: taken for thread, taken in found.items() if taken is not None}


def ticks(of: Path, name: str = "") -> int | None:
    """The kernel's ticks that a process or a thread took; None if its name begins otherwise, or if it is gone."""
    try:
        before, _, after = (of / "stat").read_text().rpartition(")")
    except (FileNotFoundError, ProcessLookupError):
        return None
    fields = after.split()
    return int(fields[11]) + int(fields[12]) if before.partition("(")[2].startswith(name) else None


def measured(spark: SparkSession, jvm: int, run: Callable[[SparkSession, PlannedJob], None]) -> CpuTimes:
    """What a run takes, from a clean heap to the last event heard."""
    job = planned(spark)
    gc.collect()
    spark.sparkContext._jvm.java.lang.System.gc()  # type: ignore[union-attr]
    bus = spark.sparkContext._jsc.sc().listenerBus()
    bus.waitUntilEmpty()
    clock = Clock(jvm)
    run(spark, job)
    bus.waitUntilEmpty()
    return clock.read()


def main(arguments: list[str]) -> dict[str, float | int]:
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks monitor")
    parser.add_argument("--pairs", type=int, default=21, help="counted pairs (%(default)s)")
    parser.add_argument("--warmup", type=int, default=6, help="pairs before them (%(default)s)")
    options = parser.parse_args(arguments)
    spark = flinkmagic.local_session(
        "monitor-benchmark",
        "local[2]",
        {"spark.ui.enabled": "false", "spark.driver.memory": "2g", "spark.driver.extraJavaOptions": "-XX:+UseSerialGC"},
    )
    spark.sparkContext.setLogLevel("ERROR")
    jvm = int(spark.sparkContext._jvm.java.lang.ProcessHandle.current().pid())  # type: ignore[union-attr]
    for _ in range(options.warmup):
        measured(spark, jvm, unwatched)
        measured(spark, jvm, watched)
    plain, seen = [measured(spark, jvm, unwatched)], []
    for _ in range(options.pairs):
        seen.append(measured(spark, jvm, watched))
        plain.append(measured(spark, jvm, unwatched))
    spark.stop()
    neighbours = list(pairwise(plain))
    ratios = [2 * one.all / (a.all + b.all) for one, (a, b) in zip(seen, neighbours, strict=True)]
    added = [
        one.beside_tasks - (a.beside_tasks + b.beside_tasks) / 2 for one, (a, b) in zip(seen, neighbours, strict=True)
    ]
    return {
        "watched_s": round(statistics.median(one.all for one in seen), 3),
        "unwatched_s": round(statistics.median(one.all for one in plain), 3),
        "ratio": round(statistics.median(ratios), 3),
        "lowest": round(min(ratios), 3),
        "highest": round(max(ratios), 3),
        "python_s": round(statistics.median(one.python for one in seen), 3),
        "added_s": round(statistics.median(added), 3),
        "pairs": options.pairs,
    }
