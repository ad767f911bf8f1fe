"""Executors and workers of a real standalone cluster are killed under a job: does it end well, with exact rows?

A cluster of two workers of two cores; a job of three stages (two shuffles, Python in each, a parquet write). Kinds:

- ``map``: the executor of a finished task is killed while other tasks of the first map stage run;
- ``between``: an executor that holds outputs of the finished first stage is killed before the second one is submitted;
- ``write``: the executor of a running task of the write is killed;
- ``worker``: as ``map``, but its worker is killed first.

Not among the twenty: ``straggler``, where nothing is lost, but one task hangs and Spark runs a copy of it beside;
``retained``, where the executor dies between two runs and takes outputs with it that the second run could have used;
and ``boundary``, another job, whose executor dies when it holds rows that were just kept for two sinks.

No restart strategy: Spark recovers, and the job only has to show it. Figures: `runs`, `exact` (those that ended
FINISHED with exactly the rows that they must have, and with the loss in the execution graph), and the same by kind.
With ``--stories`` each run is told in a line of JSON.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import flinkmagic
from flinkmagic.deployment import SparkDeployment
from flinkmagic.errors.scheduling import ExecutorRecoveryError
from flinkmagic.graph.execution_graph import ExecutionGraph
from flinkmagic.graph.execution_job_vertex import ExecutionJobVertex
from flinkmagic.graph.execution_state import ExecutionState
from flinkmagic.graph.job_graph_generator import create_job_graph
from flinkmagic.options import JobOptions
from flinkmagic.planning import plan
from flinkmagic.planning.stage_handles import BoundaryStageHandle
from flinkmagic.scheduling.job_status import JobStatus
from tests.benchmarks._standalone_cluster import JVM_OPTIONS, StandaloneCluster, wait_until

if TYPE_CHECKING:
    import pyarrow
    from pyspark.sql import DataFrame, SparkSession

    from flinkmagic.session.job import Job

KINDS = ("map", "between", "write", "worker")
STRAGGLER, RETAINED, BOUNDARY = "straggler", "retained", "boundary"
ROWS, KEYS, BUCKETS = 4000, 97, 11
_CONFIGURATION = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.driver.host": "127.0.0.1",
    "spark.executor.memory": "512m",
    "spark.executor.cores": "2",
    "spark.executor.extraJavaOptions": JVM_OPTIONS,
    # A killed executor is known immediately; a reader need not ask its port for 15 seconds.
    "spark.shuffle.io.maxRetries": "1",
    "spark.shuffle.io.retryWait": "200ms",
}
_SPECULATION = {
    "spark.speculation": "true",
    "spark.speculation.interval": "100ms",
    "spark.speculation.minTaskRuntime": "2s",
    "spark.speculation.quantile": "0.5",
    "spark.speculation.multiplier": "1.5",
    "spark.speculation.efficiency.enabled": "false",
}


def slowly(frame: DataFrame, seconds: float, straggler_s: float = 0.0) -> DataFrame:
    """The frame; each of its partitions takes so long in a Python worker, and the first attempt at the first longer."""

    def wait(batches: Iterable[pyarrow.RecordBatch]) -> Iterator[pyarrow.RecordBatch]:
        import time

        from pyspark import TaskContext

        yield from batches
        task = TaskContext.get()
        assert task is not None
        time.sleep(seconds + (0 if task.partitionId() or task.attemptNumber() else straggler_s))

    return frame.mapInArrow(wait, frame.schema)


def program(spark: SparkSession, out: Path, straggler_s: float = 0.0) -> Any:
    """The job."""
    from pyspark.sql import functions as F

    with flinkmagic.capture(spark) as captured:
        numbers = slowly(spark.range(0, ROWS, 1, 8).withColumn("k", F.col("id") % KEYS), 0.3, straggler_s)
        by_key = slowly(numbers.groupBy("k").agg(F.sum("id").alias("s"), F.count("*").alias("n")), 0.3)
        by_bucket = by_key.groupBy((F.col("k") % BUCKETS).alias("b")).agg(F.sum("s").alias("s"), F.sum("n").alias("n"))
        slowly(by_bucket, 0.5).write.parquet(str(out))
    return captured


def shared(spark: SparkSession, out: Path) -> Any:
    """A job of two sinks over rows that are kept for both; the second one writes the rows of `program`."""
    from pyspark.sql import functions as F

    with flinkmagic.capture(spark) as captured:
        numbers = spark.range(0, ROWS, 1, 8).withColumn("k", F.col("id") % KEYS)
        by_key = slowly(numbers.groupBy("k").agg(F.sum("id").alias("s"), F.count("*").alias("n")), 0.3)
        slowly(by_key.where("k % 2 = 0"), 0.3).write.parquet(str(_evens(out)))
        by_bucket = by_key.groupBy((F.col("k") % BUCKETS).alias("b")).agg(F.sum("s").alias("s"), F.sum("n").alias("n"))
        by_bucket.write.parquet(str(out))
    return captured


def unhurried(spark: SparkSession, out: Path) -> Any:
    """The same rows; nothing in it that a later run could not use."""
    from pyspark.sql import functions as F

    with flinkmagic.capture(spark) as captured:
        numbers = spark.range(0, ROWS, 1, 8).withColumn("k", F.col("id") % KEYS)
        by_key = numbers.groupBy("k").agg(F.sum("id").alias("s"), F.count("*").alias("n"))
        by_bucket = by_key.groupBy((F.col("k") % BUCKETS).alias("b")).agg(F.sum("s").alias("s"), F.sum("n").alias("n"))
        by_bucket.write.parquet(str(out))
    return captured


def run_retained(spark: SparkSession, cluster: StandaloneCluster, out: Path) -> dict[str, Any]:
    """Three runs of one graph, an executor lost before the last one, told."""

    def go(number: int) -> Job:
        return flinkmagic.compile(unhurried(spark, out / str(number)), name=RETAINED, parallelism=4).run()

    go(0).release()
    reusing = go(1)
    reused = len(reusing.reused())
    # The second stage's outputs: the run that used them did not make them, so its own tasks are of the write alone.
    victim = next(task.executor for task in reusing.tasks())
    cluster.kill_executor(victim)
    wait_until(lambda: victim not in _alive(spark), 60, "the loss is known")
    wait_until(lambda: len(_alive(spark)) == 2, 60, "another executor is there")
    job = go(2)
    story = {
        "kind": RETAINED,
        "status": job.status.name,
        "exact": job.status is JobStatus.FINISHED and _rows(spark, out / "2") == expected(),
        "victim": victim,
        "reused_before": reused,
        "reused_after": len(job.reused()),
        "ran_on": sorted({task.executor for task in job.tasks()}),
        "restarts": job.info().number_of_restarts,
    }
    job.release()
    return story


def expected() -> list[tuple[int, int, int]]:
    """The rows that the job must write."""
    rows: dict[int, tuple[int, int]] = {}
    for number in range(ROWS):
        total, count = rows.get(number % KEYS % BUCKETS, (0, 0))
        rows[number % KEYS % BUCKETS] = (total + number, count + 1)
    return sorted((bucket, *values) for bucket, values in rows.items())


class Fault:
    """Kills once, at the moment of its kind (a `JobListener`: it hears of each move on the job's own thread)."""

    def __init__(self, kind: str, cluster: StandaloneCluster, graph: ExecutionGraph) -> None:
        self._kind, self._cluster, self._graph = kind, cluster, graph
        self.victim: str | None = None

    def on_job_status_changed(self, *unused: object) -> None:
        """Nothing: the moments are those of executions."""

    def on_execution_state_changed(
        self, vertices: Sequence[int], state: ExecutionState, at_ms: float, error: BaseException | None
    ) -> None:
        """Kill, if this is the moment."""
        if self.victim is None and self._is_moment(vertices[0], state):
            victim = self._graph.execution_vertex(vertices[0]).current_execution.resource_id
            assert victim is not None
            self.victim = victim
            if self._kind == "worker":
                self._cluster.kill_worker_of(victim)
            else:
                self._cluster.kill_executor(victim)

    def _is_moment(self, index: int, state: ExecutionState) -> bool:
        if self._kind == STRAGGLER:
            return False
        first, *_, last = self._graph.job_vertices
        if self._kind == BOUNDARY:
            (kept,) = [vertex for vertex in self._graph.job_vertices if _keeps_rows(vertex)]
            return index in kept.vertices and all(
                self._graph.state_of(vertex) is ExecutionState.FINISHED for vertex in kept.vertices
            )
        if self._kind == "write":
            return state is ExecutionState.RUNNING and index in last.vertices
        if state is not ExecutionState.FINISHED or index not in first.vertices:
            return False
        finished = sum(self._graph.state_of(vertex) is ExecutionState.FINISHED for vertex in first.vertices)
        return finished == (first.parallelism if self._kind == "between" else 3)


def run(kind: str, spark: SparkSession, cluster: StandaloneCluster, out: Path) -> dict[str, Any]:
    """One run, told."""
    straggler_s = 120.0 if kind == STRAGGLER else 0.0
    captured = shared(spark, out) if kind == BOUNDARY else program(spark, out, straggler_s)
    planned = plan(captured, JobOptions(parallelism=4), name=kind)
    graph = ExecutionGraph(create_job_graph(planned.environment.get_stream_graph()))
    fault = Fault(kind, cluster, graph)
    deployment = SparkDeployment(planned, graph, spark=spark, listener=fault)
    deployment.start()
    status = deployment.wait(120)
    if status is not JobStatus.FINISHED:
        deployment.cancel()
        deployment.wait(60)
    rows = _rows(spark, out) if (out / "_SUCCESS").exists() else []
    info = deployment.snapshot().job
    evens = sorted(row.k for row in spark.read.parquet(str(_evens(out))).collect()) if kind == BOUNDARY else []
    story = {
        "kind": kind,
        "status": status.name,
        "exact": rows == expected() and evens == (list(range(0, KEYS, 2)) if kind == BOUNDARY else []),
        "victim": fault.victim,
        "executions": {vertex.name: _executions(graph, vertex) for vertex in graph.job_vertices},
        "losses": [str(entry.root.error) for entry in info.exception_history],
        "restarts": info.number_of_restarts,
        "tasks": [
            [
                *(task.vertex, task.subtask, task.attempt, task.state.name, task.executor, task.role, task.reason),
                task.speculative,
            ]
            for task in deployment.tasks()
        ],
    }
    story["shown"] = any(
        isinstance(entry.root.error, ExecutorRecoveryError) for entry in info.exception_history
    ) and any(len(executions) > 1 for vertex in story["executions"].values() for executions in vertex)
    deployment.release()
    return story


def _evens(out: Path) -> Path:
    return out.with_name(f"{out.name}-even")


def _keeps_rows(vertex: ExecutionJobVertex) -> bool:
    return isinstance(vertex.job_vertex.operator_factory, BoundaryStageHandle)


def _rows(spark: SparkSession, out: Path) -> list[tuple[int, int, int]]:
    return sorted((row.b, row.s, row.n) for row in spark.read.parquet(str(out)).collect())


def _executions(graph: ExecutionGraph, vertex: ExecutionJobVertex) -> list[list[list[str | None]]]:
    """By subtask, its executions from the first: state, executor, error."""
    told = []
    for index in vertex.vertices:
        of = graph.execution_vertex(index)
        told.append(
            [
                [one.state.name, one.resource_id, str(one.error) if one.error is not None else None]
                for one in (*of.prior_executions, of.current_execution)
            ]
        )
    return told


def main(arguments: list[str]) -> dict[str, int]:
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks cluster-faults")
    parser.add_argument("--rounds", type=int, default=5, help="rounds of all kinds (%(default)s)")
    parser.add_argument("--kinds", nargs="+", choices=[*KINDS, STRAGGLER, RETAINED, BOUNDARY], default=KINDS)
    parser.add_argument("--stories", action="store_true", help="tell each run in a line of JSON")
    options = parser.parse_args(arguments)
    os.environ["PYSPARK_PYTHON"] = sys.executable
    figures = {"runs": 0, "exact": 0, **{f"exact_{kind}": 0 for kind in options.kinds}}
    with tempfile.TemporaryDirectory() as folder, StandaloneCluster(Path(folder) / "cluster") as cluster:
        configuration = {**_CONFIGURATION, **(_SPECULATION if STRAGGLER in options.kinds else {})}
        spark = flinkmagic.local_session("cluster-faults", cluster.url, configuration)
        spark.sparkContext.setLogLevel("OFF")
        try:
            for number in range(options.rounds):
                for kind in options.kinds:
                    while len(cluster.workers) < 2:
                        cluster.add_worker()
                    wait_until(lambda: len(_alive(spark)) == 2, 60, "two executors are there")
                    out = Path(folder) / f"{kind}-{number}"
                    retained = kind == RETAINED
                    story = run_retained(spark, cluster, out) if retained else run(kind, spark, cluster, out)
                    if options.stories:
                        print(json.dumps(story), flush=True)
                    is_shown = kind in (STRAGGLER, RETAINED, BOUNDARY) or story["shown"]
                    is_good = story["exact"] and is_shown and story["status"] == "FINISHED"
                    figures["runs"] += 1
                    figures["exact"] += is_good
                    figures[f"exact_{kind}"] += is_good
        finally:
            spark.stop()
    return figures


def _alive(spark: SparkSession) -> set[str]:
    """The executors that are registered and alive, the driver aside."""
    summaries = spark.sparkContext._jsc.sc().statusStore().executorList(True)  # type: ignore[union-attr]
    return {summaries.apply(number).id() for number in range(summaries.size())} - {"driver"}
