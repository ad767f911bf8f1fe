"""A long job and a short one beside it in a session that runs FAIR. For `test_fair_session`.

Prints a line of JSON: what became of them.
"""

from __future__ import annotations

import json
import os
import tempfile
from pathlib import Path

from pyspark.sql import functions as F

import flinkmagic
from tests.benchmarks._standalone_cluster import wait_until
from tests.gates import begun, held_until

spark = flinkmagic.local_session(
    "fair",
    "local[4]",
    {
        "spark.ui.enabled": "false",
        "spark.driver.memory": "1g",
        "spark.scheduler.mode": "FAIR",
        "spark.task.cpus": "2",
    },
)
spark.sparkContext.setLogLevel("OFF")
scheduler = spark.sparkContext._jsc.sc().taskScheduler()
with tempfile.TemporaryDirectory() as gates:
    # The first two tasks end once Spark has both jobs, the others once the short one is over.
    both, over = Path(gates, "both"), Path(gates, "over")
    first, others = held_until(both), held_until(over)
    held = F.udf(lambda number: (first if number < 2 else others)(number), "long")
    rows = spark.range(0, 8, 1, 8).select(held("id").alias("id"))
    long = flinkmagic.compile({"long": rows}, "long").run(wait=False)
    wait_until(lambda: begun(both) == 2, 60, "the long job has all slots")
    short = flinkmagic.compile({"short": spark.range(0, 2, 1, 2)}, "short").run(wait=False)
    wait_until(lambda: scheduler.rootPool().getSortedTaskSetQueue().size() == 2, 60, "Spark has both jobs")
    both.touch()
    is_first = short.wait(60).is_terminal
    over.touch()
    short.wait()
    long.wait()
tasks = long.tasks() + short.tasks()
# Spark may give a core away long before it dates the end of the task that had it: what counts is how long that ran. Its
# figure is a sum over the task's cores.
ran = [(task.start_ms, task.start_ms + task.run_ms / 2) for task in tasks]
store = spark.sparkContext._jsc.sc().statusStore()
pools = {}
for job in (long, short):
    (stage,) = {task.stage for task in job.tasks()}
    pools[job.name] = store.lastStageAttempt(stage).schedulingPool()


def batch_pools(pool):
    """Run a stream of two batches whose function writes; return the pools of their stages."""
    with tempfile.TemporaryDirectory() as root:
        os.mkdir(f"{root}/in")
        for number in range(2):
            with open(f"{root}/in/{number}.csv", "w") as file:
                file.write(f"{number}\n")
        spark.sparkContext.setLocalProperty("spark.scheduler.pool", pool)
        with flinkmagic.capture(spark, name="batches", mode="streaming") as program:
            stream = spark.readStream.schema("value long").option("maxFilesPerTrigger", 1).csv(f"{root}/in")
            writer = stream.writeStream.foreachBatch(lambda batch, _: batch.write.mode("append").json(f"{root}/out"))
            writer.trigger(availableNow=True).start()
        job = flinkmagic.compile(program, mode="streaming").run(wait=False)
        job.wait(60)
        spark.sparkContext.setLocalProperty("spark.scheduler.pool", None)
        (graph,) = job.batches()[-1].graphs
        stages = {task.stage for task in graph.jobs[-1].tasks()}
        return [job.status.name, *sorted({store.lastStageAttempt(stage).schedulingPool() for stage in stages})]


told = {
    "batch_pools": [batch_pools(None), batch_pools("mine")],
    "status": [long.status.name, short.status.name],
    "slots": long.snapshot().slots_total,
    "most": max(sum(start <= at < end for start, end in ran) for at, _ in ran),
    "short_ended_first": is_first,
    "slot_names": sorted({task.slot for task in tasks}),
    "pools": pools,
    "users_pool": spark.sparkContext.getLocalProperty("spark.scheduler.pool"),
}
spark.stop()
print(json.dumps(told))
