"""Jobs whose files may not become larger than a megabyte, and the same once there is room. For `test_full_disk`.

Prints a line of JSON: what became of each.
"""

from __future__ import annotations

import json
import resource
import sys
from pathlib import Path

from pyspark.sql import functions as F

import flinkmagic

LIMIT = (1_000_000, resource.RLIM_INFINITY)
ROOM = (resource.RLIM_INFINITY, resource.RLIM_INFINITY)

resource.setrlimit(resource.RLIMIT_FSIZE, LIMIT)
folder = Path(sys.argv[1])
spark = flinkmagic.local_session(
    "full-disk",
    "local[2]",
    {
        "spark.ui.enabled": "false",
        "spark.driver.memory": "1g",
        "spark.shuffle.compress": "false",
        "spark.local.dir": str(folder / "scratch"),
        "spark.sql.warehouse.dir": str(folder / "warehouse"),
        "spark.eventLog.enabled": "false",
    },
)
spark.sparkContext.setLogLevel("OFF")
jvm = spark.sparkContext._jvm.java.lang.ProcessHandle.current().pid()


def wide():
    return spark.range(0, 60_000, 1, 2).select("id", F.sha2(F.col("id").cast("string"), 512).alias("text"))


def what_became_of(job):
    return {
        "status": job.status.name,
        "success": sorted(str(path.relative_to(folder)) for path in folder.glob("out/*/_SUCCESS")),
        "errors": [str(entry.root.error) for entry in job.exceptions()],
        "finished": [line.split(":")[0].strip() for line in job.report() if line.strip().startswith("✓")],
        "vertices": sorted({entry.root.task_name for entry in job.exceptions() if entry.root.task_name}),
    }


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


told = {}
for name in ("shuffle", "write"):
    graph = flinkmagic.compile(program(name), name, parallelism=2)
    told[name] = what_became_of(graph.run())
    # Another program makes room.
    resource.prlimit(jvm, resource.RLIMIT_FSIZE, ROOM)
    told[f"{name} mended"] = what_became_of(graph.run())
    resource.prlimit(jvm, resource.RLIMIT_FSIZE, LIMIT)
told["rows"] = spark.read.text(str(folder / "out" / "write")).count()
spark.stop()
print(json.dumps(told))
