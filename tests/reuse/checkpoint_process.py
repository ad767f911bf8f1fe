"""A kernel of its own: runs one cell with checkpoints, and says what ran. Started by `test_checkpoints`."""

from __future__ import annotations

import json
import sys
from pathlib import Path

from pyspark.sql import functions as F

import flinkmagic
from flinkmagic.local_spark import local_session


def cell(spark, folder):
    """Two sinks over one expensive DataFrame; one of them waits until a file is there."""
    gate = str(folder / "gate")

    def wait(x):
        import os.path
        import threading

        while not os.path.exists(gate):
            threading.Event().wait(0.1)
        return x

    df = spark.read.parquet(str(folder / "numbers"))
    sums = df.withColumn("p", F.udf(lambda x: x + 1, "long")("id")).groupBy("k").agg(F.sum("p").alias("s"))
    sums.write.mode("append").parquet(str(folder / "sound"))
    sums.withColumn("s", F.udf(wait, "long")("s")).write.mode("overwrite").parquet(str(folder / "waiting"))


def main(folder):
    spark = local_session(
        master="local[2]",
        config={"spark.ui.enabled": "false", "spark.ui.showConsoleProgress": "false", "spark.driver.memory": "600m"},
    )
    with flinkmagic.capture(spark, name="nightly") as program:
        cell(spark, folder)
    job = flinkmagic.compile(program, parallelism=2, checkpoint_dir=folder / "checkpoints").run()
    vertices = {task.vertex_id for task in job.tasks() if task.role == "task"}
    names = [vertex.name for vertex in job.execution_graph.job_vertices if vertex.id in vertices]
    answer = {"status": str(job.status), "ran": names, "note": job.snapshot().note, "log": "\n".join(job.log())}
    print(json.dumps(answer), flush=True)
    spark.stop()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
