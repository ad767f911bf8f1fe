"""A job and cancelled jobs on two executors that are processes. For `test_own_sessions`.

Prints a line of JSON: what was left.
"""

from __future__ import annotations

import contextlib
import json
import threading
import time

from pyspark import InheritableThread
from pyspark.sql import functions as F

import flinkmagic
from flinkmagic.deployment.stages.python_workers import PythonWorkerWatch
from tests.deployment.own_sessions import FOLDER, rows, session, told


def program(out):
    numbers = spark.range(0, 3000, 1, 4).select("id", (F.col("id") % 60).alias("k"))
    weights = spark.range(0, 50, 1, 2).select(F.col("id").alias("k"), (F.col("id") * 7).alias("weight"))
    parities = spark.range(0, 2, 1, 1).select(
        F.col("id").alias("parity"), F.when(F.col("id") == 0, "even").otherwise("odd").alias("kind")
    )
    doubled = F.udf(lambda number: 2 * number, "long")
    joined = numbers.hint("merge").join(weights, "k").withColumn("double", doubled("id"))
    named = joined.join(F.broadcast(parities), F.col("id") % 2 == F.col("parity"))
    named.select("id", "weight", "double", "kind").write.parquet(f"{out}/rows")
    named.groupBy("kind").agg(F.sum("double").alias("s"), F.count("*").alias("n")).write.parquet(f"{out}/sums")
    return named


spark = session("local-cluster[2,1,1024]", **{"spark.python.task.killTimeout": "1h"})
store = spark.sparkContext._jsc.sc().statusStore()
deadline = time.monotonic() + 60
while (registered := store.executorList(True).size()) < 3:
    assert time.monotonic() < deadline, f"{registered - 1} executors"
    time.sleep(0.05)
plain = program(FOLDER / "plain")
with flinkmagic.capture(spark) as captured:
    program(FOLDER / "ours")
assert not (FOLDER / "ours").exists()
graph = flinkmagic.compile(captured, "two", parallelism=2)
job = graph.run()


def until(condition):
    deadline = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < deadline, "not so within 60 s"
        time.sleep(0.05)


def running_on():
    found = store.executorList(True)
    executors = [found.apply(number) for number in range(found.size())]
    return sorted(executor.id() for executor in executors if executor.activeTasks())


def starting():
    import os

    (FOLDER / f"started-{os.getpid()}").touch()


def waiting(batches):
    starting()
    while not (FOLDER / "go").exists():
        time.sleep(0.05)
    yield from batches


def busy(number):
    starting()
    while True:
        number += 1


def until_started(tasks):
    until(lambda: len(running_on()) == tasks and len(list(FOLDER.glob("started-*"))) >= tasks)
    for file in FOLDER.glob("started-*"):
        file.unlink()


def cancelled(frame, tasks):
    # A job of ours, while its tasks run in Python workers.
    job = flinkmagic.compile({"rows": frame}, name="cancelled").run(wait=False)
    # A worker that is still starting up cannot be ended.
    until_started(tasks)
    job.cancel()
    job.wait(60)
    return {"status": job.status.name, "states": [task.state.name for task in job.tasks()]}


def of_the_user(frame):
    counted.append(frame.count())


def cancelled_by_the_user(frame, go):
    # What still runs of a job of the user's own, some time after that.
    def count():
        sc.setJobGroup("users", "the user's own work", interruptOnCancel=True)
        with contextlib.suppress(Exception):
            frame.count()

    thread = InheritableThread(target=count)
    thread.start()
    until_started(1)
    sc.cancelJobGroup("users")
    time.sleep(1.5)
    still = len(running_on())
    go.touch()
    thread.join(60)
    until(lambda: not running_on())
    return still


one, two = (spark.range(0, number, 1, number) for number in (1, 2))
cancellations = [cancelled(two.mapInArrow(waiting, "id long"), 2)]
until(lambda: not running_on())
cancellations.append(cancelled(two.select(F.udf(busy, "long")("id").alias("id")), 2))
until(lambda: not running_on())
sc, counted = spark.sparkContext, []
users = threading.Thread(target=of_the_user, args=(one.mapInArrow(waiting, "id long"),))
users.start()
until(lambda: len(running_on()) == 1)
of_the_users = running_on()
cancellations.append(cancelled(one.mapInArrow(waiting, "id long"), 2))
until(lambda: len(running_on()) == 1)
still = running_on()
(FOLDER / "go").touch()
users.join()
until(lambda: not running_on())
(FOLDER / "go").unlink()
spared = cancelled_by_the_user(one.mapInArrow(waiting, "id long"), FOLDER / "go")
spark.sparkContext._jsc.sc().listenerBus().waitUntilEmpty()
found = store.jobsList(None)
every = [found.apply(number) for number in range(found.size())]
watch = PythonWorkerWatch.of(sc)
reached = sorted(watch._asked), sorted(watch._missed), watch._is_refused

print(
    json.dumps(
        {
            **told(job),
            "reached": reached,
            "cancellations": cancellations,
            "spared": spared,
            "user": {"before": of_the_users, "after": still, "counted": counted},
            "watch": [
                [job.numTasks(), job.numFailedTasks()] for job in every if job.jobTags().contains("flinkmagic-watch")
            ],
            "rows": [rows(FOLDER / who / "rows") for who in ("plain", "ours")],
            "sums": [rows(FOLDER / who / "sums") for who in ("plain", "ours")],
            "plan": plain._jdf.queryExecution().executedPlan().toString(),
            "shown": sorted({task.executor for task in job.snapshot().tasks}),
        }
    )
)
spark.stop()
