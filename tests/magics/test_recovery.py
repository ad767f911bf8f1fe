"""A cell with `--checkpoint-dir` whose kernel dies: run in another kernel, it does the rest."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from flinkmagic.scheduling.job_status import JobStatus
from flinkmagic.scheduling.recovery.job_graph_store import JobGraphStore, StoredJob

BEGINNING = """%load_ext flinkmagic
import flinkmagic
from pyspark.sql import functions as F
spark = flinkmagic.local_session("recovery", "local[2]", {
    "spark.ui.enabled": "false", "spark.driver.memory": "600m", "spark.ui.showConsoleProgress": "false"})
"""

CELL = """%%flinkgraph nightly --run --parallelism 2 --checkpoint-dir checkpoints

@F.udf("long")
def wait(x):
    import os.path
    import threading
    while not os.path.exists(GATE):
        threading.Event().wait(0.1)
    return x

sums = spark.range(0, 200, 1, 2).selectExpr("id % 7 AS k", "id").groupBy("k").agg(F.sum("id").alias("s"))
sums.write.mode("append").json("sound")
sums.select("k", wait("s").alias("s")).write.mode("overwrite").json("waiting")
"""

ROWS = "flinkmagic-rows/[!.]*"
"""The folders of rows that are stored."""


def written(folder: Path) -> list[tuple[int, int]]:
    lines = [line for part in folder.glob("part-*") for line in part.read_text().splitlines()]
    return sorted((row["k"], row["s"]) for row in map(json.loads, lines))


@pytest.mark.long
def test_another_kernel_does_the_rest_of_a_cell(start_kernel: Callable[[], Any], tmp_path: Path) -> None:
    gate = f"GATE = {str(tmp_path / 'gate')!r}\n"
    checkpoints = tmp_path / "checkpoints"

    def stored() -> list[StoredJob]:
        return [JobGraphStore(checkpoints).read(journal.stem) for journal in checkpoints.glob("*.journal")]

    first = start_kernel()
    assert first.run(BEGINNING + gate).status == "ok"
    first.send(CELL)
    deadline = time.monotonic() + 120
    while True:
        jobs = stored()
        if jobs and len(list(checkpoints.glob(ROWS))) == 1 and len(jobs[0].writes) == 1:
            break
        assert time.monotonic() < deadline, "the shared rows and the sound write were not recorded"
        time.sleep(0.2)
    first.close()
    sound = sorted(path.name for path in (tmp_path / "sound").iterdir())
    assert not (tmp_path / "waiting" / "_SUCCESS").exists()

    (tmp_path / "gate").touch()
    second = start_kernel()
    assert second.run(BEGINNING + gate).status == "ok"
    done = second.run(CELL)
    assert done.status == "ok", done.error
    assert "1 write kept" in done.displays[0]["text/plain"]
    own = "[task for task in nightly.jobs[-1].tasks() if task.role == 'task']"
    assert second.run(f"print(len({{task.vertex for task in {own}}}))").stdout.strip() == "1"
    assert sorted(path.name for path in (tmp_path / "sound").iterdir()) == sound
    expected = [(k, sum(range(k, 200, 7))) for k in range(7)]
    assert (written(tmp_path / "sound"), written(tmp_path / "waiting")) == (expected, expected)
    assert [job.status for job in stored()] == [JobStatus.FINISHED]
    again = second.run(CELL)
    assert again.status == "ok", again.error
    assert len(written(tmp_path / "sound")) == 2 * len(expected), "a finished job is no longer taken up"
