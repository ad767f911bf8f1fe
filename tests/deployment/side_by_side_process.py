"""Two writes side by side, with slots for both and for one. For `test_own_sessions`.

Prints a line of JSON: what was left.
"""

from __future__ import annotations

import json

import flinkmagic
from tests.deployment.own_sessions import FOLDER, rows, session, told

spark = session("local[4]")
store = spark.sparkContext._jsc.sc().statusStore()


def together(frame, group, tasks):
    """Let each task of a group end once so many have begun; they wait for a minute at most."""
    folder = FOLDER / "begun" / group
    folder.mkdir(parents=True, exist_ok=True)

    def wait(batches):
        import os
        import time

        (folder / str(os.getpid())).touch()
        end = time.monotonic() + 60
        while len(os.listdir(folder)) < tasks and time.monotonic() < end:
            time.sleep(0.05)
        yield from batches

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


def go(name, groups, tasks, **options):
    first = together(spark.range(0, 10, 1, 2), groups[0], tasks)
    second = together(spark.range(10, 20, 1, 2), groups[1], tasks)
    with flinkmagic.capture(spark) as program:
        first.write.parquet(f"{FOLDER}/{name}/first")
        second.write.parquet(f"{FOLDER}/{name}/second")
    job = flinkmagic.compile(program, name, **options).run(wait=False)
    counted = spark.range(0, 100, 1, 2).count()
    job.wait()
    return {**told(job), "counted": counted, "rows": [rows(FOLDER / name / which) for which in ("first", "second")]}


spark.sparkContext.setJobGroup("users", "the user's own work")
spark.range(0, 4, 1, 4).count()
free, limited = go("free", ("all", "all"), 4), go("limited", ("first", "second"), 2, slots=2)
print(json.dumps({"free": free, "limited": limited, "jobs": jobs()}))
spark.stop()
