"""A session that runs FAIR and gives each task two cores: slots are its cores by two, and jobs share them."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

SCRIPT = """
import json
import flinkmagic

spark = flinkmagic.local_session("fair", "local[4]", {
    "spark.ui.enabled": "false", "spark.driver.memory": "1g", "spark.scheduler.mode": "FAIR", "spark.task.cpus": "2"})
spark.sparkContext.setLogLevel("OFF")

def slowly(frame, seconds):
    def wait(batches):
        import time
        yield from batches
        time.sleep(seconds)
    return frame.mapInArrow(wait, frame.schema)

# The workers are there before anything is compared.
slowly(spark.range(0, 2, 1, 2), 0.1).count()
long = flinkmagic.compile({"long": slowly(spark.range(0, 8, 1, 8), 1.0)}, "long").run(wait=False)
while not any(task.end_ms is None for task in long.tasks()):
    long.wait(0.05)
short = flinkmagic.compile({"short": slowly(spark.range(0, 2, 1, 2), 0.1)}, "short").run()
long.wait()
tasks = long.tasks() + short.tasks()
# Spark gives a core away before it dates the end of the task that had it.
moments = [(task.start_ms + task.end_ms) / 2 for task in tasks]
store = spark.sparkContext._jsc.sc().statusStore()
pools = {}
for job in (long, short):
    (stage,) = {task.stage for task in job.tasks()}
    pools[job.name] = store.lastStageAttempt(stage).schedulingPool()
print(json.dumps({
    "status": [long.status.name, short.status.name],
    "slots": long.snapshot().slots_total,
    "most": max(sum(task.start_ms <= at < task.end_ms for task in tasks) for at in moments),
    "short_ended_first": max(task.end_ms for task in short.tasks()) < max(task.end_ms for task in long.tasks()),
    "slot_names": sorted({task.slot for task in tasks}),
    "pools": pools,
    "users_pool": spark.sparkContext.getLocalProperty("spark.scheduler.pool"),
}))
spark.stop()
"""


@pytest.fixture(scope="module")
def told(tmp_path_factory):
    script = tmp_path_factory.mktemp("fair") / "script.py"
    script.write_text(SCRIPT)
    done = subprocess.run(
        [sys.executable, str(script)], cwd=ROOT, capture_output=True, text=True, timeout=280, check=False
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads(done.stdout.splitlines()[-1])


def test_slots_are_cores_by_the_cores_of_a_task(told):
    assert told["slots"] == 2
    assert told["most"] <= 2
    assert told["slot_names"] == ["driver_0", "driver_1"]


def test_each_job_has_a_pool_of_its_own_and_a_short_one_does_not_wait_for_a_long_one(told):
    assert told["status"] == ["FINISHED", "FINISHED"]
    assert told["short_ended_first"]
    assert all(pool.startswith("flinkmagic-") for pool in told["pools"].values())
    assert len(set(told["pools"].values())) == 2
    assert told["users_pool"] is None
