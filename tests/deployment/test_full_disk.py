"""A disk that is full: for shuffle files, and for what a write leaves. Sinks that do not need it finish.

A process of its own has a limit on the size of a file, which Spark meets as it meets a full disk: with an
IOException of the operating system in the middle of a file.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

SCRIPT = """
import json, resource, sys
from pathlib import Path

resource.setrlimit(resource.RLIMIT_FSIZE, (1_000_000, resource.RLIM_INFINITY))
import flinkmagic
from pyspark.sql import functions as F

folder = Path(sys.argv[1])
spark = flinkmagic.local_session("full-disk", "local[2]", {
    "spark.ui.enabled": "false", "spark.driver.memory": "1g", "spark.shuffle.compress": "false",
    "spark.local.dir": str(folder / "scratch"), "spark.sql.warehouse.dir": str(folder / "warehouse"),
    "spark.eventLog.enabled": "false"})
spark.sparkContext.setLogLevel("OFF")
jvm = spark.sparkContext._jvm.java.lang.ProcessHandle.current().pid()

def wide():
    return spark.range(0, 60_000, 1, 2).select("id", F.sha2(F.col("id").cast("string"), 512).alias("text"))

def tell(name, job):
    files = [str(path.relative_to(folder)) for path in folder.glob("out/*/_SUCCESS")]
    told = {"name": name, "status": job.status.name, "success": sorted(files),
            "errors": [str(entry.root.error) for entry in job.exceptions()],
            "finished": [line.split(":")[0].strip() for line in job.report() if line.strip().startswith("✓")],
            "vertices": sorted({entry.root.task_name for entry in job.exceptions() if entry.root.task_name})}
    print(json.dumps(told), flush=True)

def program(name):
    with flinkmagic.capture(spark) as captured:
        if name == "shuffle":
            shuffled = wide().groupBy("text").agg(F.count("*").alias("n")).where("n > 5")
            shuffled.write.mode("overwrite").parquet(str(folder / "out" / "shuffle"))
        else:
            wide().write.mode("overwrite").csv(str(folder / "out" / "write"))
        small = spark.range(0, 10, 1, 1).groupBy("id").count()
        small.write.mode("overwrite").json(str(folder / "out" / f"small_{name}"))
    return captured

for name in ("shuffle", "write"):
    graph = flinkmagic.compile(program(name), name, parallelism=2)
    tell(name, graph.run())
    # Somebody makes room.
    resource.prlimit(jvm, resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    tell(name + " mended", graph.run())
    resource.prlimit(jvm, resource.RLIMIT_FSIZE, (1_000_000, resource.RLIM_INFINITY))
print(json.dumps({"rows": spark.read.text(str(folder / "out" / "write")).count()}))
spark.stop()
"""


@pytest.fixture(scope="module")
def told(tmp_path_factory):
    """What became of each job, by name."""
    folder = tmp_path_factory.mktemp("full")
    script = folder / "script.py"
    script.write_text(SCRIPT)
    done = subprocess.run(
        [sys.executable, str(script), str(folder)], cwd=ROOT, capture_output=True, text=True, timeout=280, check=False
    )
    assert done.returncode == 0, done.stderr[-3000:]
    lines = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    return {line.get("name", "rows"): line for line in lines}


@pytest.mark.parametrize("name", ["shuffle", "write"])
def test_a_full_disk_fails_its_vertex_and_other_sinks_finish(told, name):
    job = told[name]
    assert job["status"] == "FAILED"
    (error,) = job["errors"]
    assert "File too large" in error
    assert job["finished"] == [f"✓ small_{name}"]
    assert f"out/{name}/_SUCCESS" not in job["success"]
    assert f"out/small_{name}/_SUCCESS" in job["success"]
    (failed,) = job["vertices"]
    assert failed.startswith("Source: Range")


@pytest.mark.parametrize("name", ["shuffle", "write"])
def test_with_room_the_same_graph_runs_to_its_end(told, name):
    job = told[f"{name} mended"]
    assert (job["status"], job["errors"]) == ("FINISHED", [])
    assert f"out/{name}/_SUCCESS" in job["success"]
    assert told["rows"]["rows"] == 60_000
