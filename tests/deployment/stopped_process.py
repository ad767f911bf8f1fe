"""Stops sessions while jobs run on them; prints what became of each job as JSON. For `test_stopped_session`."""

from __future__ import annotations

import json
import logging
import sys
import time
from pathlib import Path

from pyspark.sql import functions as F

import flinkmagic
from flinkmagic.errors.deployment import SessionEndedError


def stop_under_a_job(folder: Path, end: str, restart: str) -> dict[str, object]:
    def wait(value):
        import time

        (folder / "running").touch()
        time.sleep(100)
        return value

    spark = flinkmagic.local_session(
        "stopped", "local[2]", {"spark.ui.enabled": "false", "spark.driver.memory": "600m"}
    )
    spark.sparkContext.setLogLevel("OFF")
    with flinkmagic.capture(spark, name="waiting") as program:
        numbers = spark.range(0, 4, 1, 2)
        slow = numbers.select(F.udf(wait, "long")("id").alias("id"))
        slow.repartition(2).write.mode("overwrite").json(str(folder / "slow"))
    graph = flinkmagic.compile(program, parallelism=2, restart=restart)
    job = graph.run(wait=False)
    deadline = time.monotonic() + 60
    while not (folder / "running").exists():
        assert time.monotonic() < deadline, "no task has begun"
        time.sleep(0.05)
    if end == "cancelled":
        job.cancel()
    began = time.monotonic()
    spark.stop()
    status = job.wait(50)
    told = {
        "status": status.name,
        "seconds": time.monotonic() - began,
        "errors": [str(entry.root.error) for entry in job.exceptions()],
    }
    try:
        graph.run()
    except SessionEndedError as ended:
        told["again"] = str(ended)
    return told


def main(home: Path) -> None:
    logging.basicConfig()
    told = {}
    for end, restart in (("running", "none"), ("running", "fixed-delay:2:100ms"), ("cancelled", "none")):
        (folder := home / f"{end}-{len(told)}").mkdir()
        told[f"{end} {restart}"] = stop_under_a_job(folder, end, restart)
    print(json.dumps(told))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
