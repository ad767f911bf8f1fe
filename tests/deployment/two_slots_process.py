"""Jobs whose tasks Spark tries again, and writes that wait for slots. For `test_own_sessions`.

Prints a line of JSON: what was left.
"""

from __future__ import annotations

import json

from pyspark.sql import functions as F

import flinkmagic
from flinkmagic.deployment.board import drive
from tests.deployment.own_sessions import FOLDER, rows, session, told

spark = session("local[2,4]")


def passes_the_second_time(number, marker):
    def check(value):
        if value == number:
            try:
                marker.touch(exist_ok=False)
            except FileExistsError:
                return value
            raise ValueError(f"no {number} the first time")
        return value

    return F.udf(check, "long")


def go(name, restart):
    folder = FOLDER / name
    folder.mkdir()
    with flinkmagic.capture(spark) as program:
        numbers = spark.range(0, 1000, 1, 4).select(passes_the_second_time(600, folder / "map")("id").alias("id"))
        sums = numbers.groupBy((F.col("id") % 7).alias("k")).agg(F.sum("id").alias("s"))
        sums.select(passes_the_second_time(3, folder / "write")("k").alias("k"), "s").write.parquet(f"{folder}/out")
    job = flinkmagic.compile(program, name, parallelism=2, restart=restart).run()
    graph = job.execution_graph
    return {
        **told(job),
        "rows": rows(folder / "out"),
        "files": len(list((folder / "out").glob("part-*"))),
        "errors": len(job.snapshot().errors) + len(job.exceptions()),
        "restarts": job.info().number_of_restarts,
        "attempts": [graph.current_execution(index).attempt for index in range(graph.n_vertices)],
        "order": [vertex.id for vertex in graph.job_vertices],
    }


def slowly(batches):
    import time

    yield from batches
    time.sleep(0.2)


# On a busy machine a run may take longer to prepare than others wait for it.
drive.LONGEST_TURN_MS = 60_000


def ordered(name):
    with flinkmagic.capture(spark) as program:
        for number in range(6):
            # Earlier ones take longer to prepare.
            numbers = spark.range(number * 10, number * 10 + 10, 1, 1)
            for step in range(4 * (5 - number)):
                numbers = numbers.select((F.col("id") + step - step).alias("id"))
            numbers.mapInArrow(slowly, numbers.schema).write.parquet(f"{FOLDER}/{name}/{number}")
    job = flinkmagic.compile(program, name, share="never").run()
    order = [vertex.id for vertex in job.execution_graph.job_vertices]
    stages = {task.vertex_id: task.stage for task in job.tasks()}
    return {"status": job.status.name, "stages": [stages[vertex] for vertex in order]}


retried = {"none": go("without", "none"), "fixed-delay": go("with_restarts", "fixed-delay:3:1s")}
ordered("cold")
print(json.dumps({**retried, "in order": [ordered(f"run{number}") for number in range(4)]}))
spark.stop()
