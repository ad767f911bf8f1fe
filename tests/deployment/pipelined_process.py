"""Pipelined regions, in a local session or on a standalone cluster; started by `test_pipelined_regions`.

Arguments: a folder of its own, and ``local`` or ``cluster``. Prints a line of JSON: when the consumer saw its first
row, how a region waited for slots, what a killed executor, a user's own job and a cancellation did.
"""

from __future__ import annotations

import json
import sys
import threading
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tests.benchmarks._standalone_cluster import JVM_OPTIONS, StandaloneCluster, wait_until
from tests.gates import begun, held_until

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

BATCH = 10_000
BATCHES = 120
"""Of each of the two producers."""


def frame(spark: SparkSession, marks: Path, pause: float, batches: int = BATCHES, ahead: int = BATCHES) -> DataFrame:
    """Two stages; each side marks how far it came, by time.

    A producer waits after `ahead` batches until the consumer has its first row, for a minute at most.
    """
    folder = str(marks)
    marks.mkdir()

    def produce(rows):
        import os
        import time
        from pathlib import Path

        for number, batch in enumerate(rows):
            time.sleep(pause)
            end = time.time() + 60
            while number == ahead and time.time() < end and not list(Path(folder).glob("consumed-*")):
                time.sleep(pause)
            Path(folder, f"produced-{os.getpid()}-{number}").write_text(f"{time.time()} {len(batch)}")
            yield batch

    def consume(rows):
        import os
        import time
        from pathlib import Path

        for number, batch in enumerate(rows):
            if number == 0:
                Path(folder, f"consumed-{os.getpid()}").write_text(f"{time.time()} {len(batch)}")
            yield batch

    numbers = spark.range(0, 2 * batches * BATCH, 1, 2).mapInPandas(produce, "id long")
    return numbers.repartition(2).mapInPandas(consume, "id long")


def read(marks: Path, kind: str) -> list[tuple[float, int]]:
    found = [path.read_text().split() for path in marks.glob(f"{kind}-*")]
    return sorted((float(words[0]), int(words[1])) for words in found if len(words) == 2)


def sums(job: Any) -> list[int]:
    return list(job.result("rows").selectExpr("count(*)", "sum(id)").first())


def compiled(made: DataFrame, name: str, **options: Any) -> Any:
    import flinkmagic

    return flinkmagic.compile({"rows": made}, name, exchange="pipelined", retain="none", **options)


def told(job: Any) -> dict[str, Any]:
    graph = job.execution_graph
    return {
        "status": job.status.name,
        "errors": [str(entry.root.error)[:500] for entry in job.exceptions()],
        "attempts": [
            [len(graph.execution_vertex(vertex).prior_executions) for vertex in one.vertices]
            for one in graph.job_vertices
        ],
        "states": [[graph.state_of(vertex).name for vertex in one.vertices] for one in graph.job_vertices],
        "regions": int(graph.pipelined_regions.count),
        "spark_stages": len({task.stage for task in job.tasks()}),
    }


def early_rows(spark: SparkSession, folder: Path) -> dict[str, Any]:
    compiled(frame(spark, folder / "warm", 0.0, 5), "warm").run()  # starts the Python workers
    marks = folder / "early"
    job = compiled(frame(spark, marks, 0.05, ahead=8), "early").run()
    first = read(marks, "consumed")[0][0]
    before = sum(rows for at, rows in read(marks, "produced") if at < first)
    return {**told(job), "before": before, "rows": sums(job)}


def others(spark: SparkSession, folder: Path) -> dict[str, Any]:
    """A job of the user's holds three of four slots."""
    go = folder / "go"
    holding = threading.Thread(target=lambda: spark.sparkContext.parallelize(range(3), 3).foreach(held_until(go)))
    holding.start()
    wait_until(lambda: begun(go) == 3, 60, "three slots are held")
    job = compiled(frame(spark, folder / "others", 0.0, 5), "others").run(wait=False)
    wait_until(lambda: "waits for" in job.snapshot().note, 60, "the region waits")
    note = job.snapshot().note
    go.touch()
    job.wait(60)
    holding.join()
    return {**told(job), "note": note, "rows": sums(job)}


def too_few(spark: SparkSession, folder: Path, cluster: StandaloneCluster | None) -> dict[str, Any]:
    """A region of six tasks in a session of four slots; on the cluster, a worker more comes."""
    graph = compiled(spark.range(0, 1000, 1, 4).repartition(2), "few")
    job = graph.run(wait=False)
    wait_until(lambda: "waits for" in job.snapshot().note, 60, "the region waits")
    answer = {"summary": graph.summary(), "note": job.snapshot().note, "tasks": len(job.tasks())}
    if cluster is None:
        job.cancel()
    else:
        cluster.add_worker()
    job.wait(60)
    return {**told(job), **answer, "rows": sums(job) if job.status.name == "FINISHED" else []}


def killed(spark: SparkSession, folder: Path, cluster: StandaloneCluster) -> dict[str, Any]:
    marks = folder / "killed"
    job = compiled(frame(spark, marks, 0.05), "killed", restart="fixed-delay:3:100ms").run(wait=False)
    wait_until(lambda: bool(read(marks, "consumed")), 60, "the consumer has rows")
    executor = next(task.executor for task in job.tasks() if task.end_ms is None)
    cluster.kill_executor(executor)
    job.wait(120)
    return {**told(job), "rows": sums(job)}


def cancelled(spark: SparkSession, folder: Path) -> dict[str, Any]:
    marks = folder / "cancelled"
    job = compiled(frame(spark, marks, 0.05), "cancelled").run(wait=False)
    wait_until(lambda: bool(read(marks, "consumed")), 60, "the consumer has rows")
    job.cancel()
    job.wait(30)
    return told(job)


def main(folder: Path, kind: str) -> None:
    import flinkmagic

    with ExitStack() as stack:
        master, cluster = "local[4]", None
        if kind == "cluster":
            cluster = stack.enter_context(StandaloneCluster(folder / "cluster", workers=2, cores=2))
            master = cluster.url
        configuration = {
            "spark.ui.enabled": "false", "spark.driver.memory": "600m", "spark.executor.memory": "512m",
            "spark.driver.host": "127.0.0.1", "spark.executor.extraJavaOptions": JVM_OPTIONS,
        }  # fmt: skip
        spark = flinkmagic.local_session("pipelined", master, configuration)
        spark.sparkContext.setLogLevel("OFF")
        if cluster is not None:
            wait_until(lambda: spark.sparkContext.defaultParallelism == 4, 60, "two executors are there")
        story = {"early": early_rows(spark, folder), "cancelled": cancelled(spark, folder)}
        if cluster is not None:
            story["killed"] = killed(spark, folder, cluster)
        story["others"] = others(spark, folder)
        story["too_few"] = too_few(spark, folder, cluster)
        print(json.dumps(story))
        spark.stop()


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2])
