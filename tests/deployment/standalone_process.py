"""Two sinks over shared rows on a standalone cluster, with checkpoints; the second is mended and runs again.

Started by `test_standalone_cluster` in the project's folder, with a folder of its own as argument. Prints a line of
JSON: what ran in both runs, and the rows of a plain run and of ours.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tests.benchmarks._standalone_cluster import JVM_OPTIONS, StandaloneCluster, wait_until

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

LIMIT = 10**6


def program(spark: SparkSession, out: Path, limit: int) -> None:
    """The user's cell."""
    from pyspark.sql import functions as F

    def check(value):
        if value > limit:
            raise ValueError("too much")
        return value

    numbers = spark.range(0, 4000, 1, 4).withColumn("k", F.col("id") % 50)
    doubled = numbers.withColumn("double", F.udf(lambda number: 2 * number, "long")("id"))
    sums = doubled.groupBy("k").agg(F.sum("double").alias("s"))
    sums.where("s % 4 = 0").write.mode("overwrite").parquet(str(out / "even"))
    sums.select("k", F.udf(check, "long")("s").alias("s")).write.mode("overwrite").parquet(str(out / "all"))


def run(spark: SparkSession, folder: Path, limit: int) -> Any:
    import flinkmagic

    with flinkmagic.capture(spark, name="standalone") as captured:
        program(spark, folder / "ours", limit)
    # The second run has nothing but what lies on disk.
    return flinkmagic.compile(captured, parallelism=2, checkpoint_dir=folder / "checkpoints", retain="none").run()


def told(job: Any) -> dict[str, Any]:
    own = [task for task in job.tasks() if task.role == "task"]
    return {
        "status": job.status.name,
        "tasks": sorted((task.vertex, task.subtask, task.state.name) for task in own),
        "executors": sorted({task.executor for task in own}),
        "note": job.snapshot().note,
        "errors": [str(entry.root.error) for entry in job.exceptions()],
    }


def rows(spark: SparkSession, path: Path) -> list[tuple[int, int]]:
    return sorted(map(tuple, spark.read.parquet(str(path)).collect()))


def main(folder: Path) -> None:
    import flinkmagic

    with StandaloneCluster(folder / "cluster", workers=2, cores=1) as cluster:
        configuration = {
            "spark.ui.enabled": "false", "spark.driver.memory": "600m", "spark.executor.memory": "512m",
            "spark.driver.host": "127.0.0.1", "spark.sql.shuffle.partitions": "2",
            "spark.executor.extraJavaOptions": JVM_OPTIONS,
        }  # fmt: skip
        spark = flinkmagic.local_session("standalone", cluster.url, configuration)
        spark.sparkContext.setLogLevel("OFF")
        wait_until(lambda: len(cluster.executors()) == 2, 60, "two executors are there")
        program(spark, folder / "plain", LIMIT)
        failed, mended = (told(run(spark, folder, limit)) for limit in (1, LIMIT))
        found = [[rows(spark, folder / who / sink) for sink in ("even", "all")] for who in ("plain", "ours")]
        print(json.dumps({"failed": failed, "mended": mended, "rows": found}))
        spark.stop()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
