"""Two writes side by side, with slots for both and for one. For `test_own_sessions`.

Prints a line of JSON: what was left.
"""

from __future__ import annotations

import json

import flinkmagic
from tests.deployment.own_sessions import FOLDER, rows, session, told

spark = session("local[4]")
store = spark.sparkContext._jsc.sc().statusStore()


def slowly(frame, seconds):
    def wait(batches):
        import time

        yield from batches
        time.sleep(seconds)

    return frame.mapInArrow(wait, frame.schema)


def jobs():
    spark.sparkContext._jsc.sc().listenerBus().waitUntilEmpty()
    found = store.jobsList(None)
    every = [found.apply(number) for number in range(found.size())]
    return [
        {
            "id": job.jobId(),
            "group": job.jobGroup().get(),
            "stages": [int(stage) for stage in job.stageIds().mkString(",").split(",")],
            "tags": [tag for tag in job.jobTags().mkString(",").split(",") if tag],
        }
        for job in every
    ]


def go(name, **options):
    with flinkmagic.capture(spark) as program:
        slowly(spark.range(0, 10, 1, 2), 1.0).write.parquet(f"{FOLDER}/{name}/first")
        slowly(spark.range(10, 20, 1, 2), 1.0).write.parquet(f"{FOLDER}/{name}/second")
    job = flinkmagic.compile(program, name, **options).run(wait=False)
    counted = spark.range(0, 100, 1, 2).count()
    job.wait()
    return {**told(job), "counted": counted, "rows": [rows(FOLDER / name / which) for which in ("first", "second")]}


spark.sparkContext.setJobGroup("users", "the user's own work")
# The workers are there before anything is compared.
slowly(spark.range(0, 4, 1, 4), 0.5).count()
print(json.dumps({"free": go("free"), "limited": go("limited", slots=2), "jobs": jobs()}))
spark.stop()
