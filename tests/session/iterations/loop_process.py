"""Loops in processes of their own; started by `test_lost_processes` in the project's folder.

``cluster FOLDER`` runs a loop on a standalone cluster; a function of its third superstep kills the executor that calls
it, once. ``kernel FOLDER`` runs one with checkpoints; with ``dies`` the process kills itself in the third superstep.
Both print what ran, and the rows, as a line of JSON.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tests.benchmarks._standalone_cluster import JVM_OPTIONS, StandaloneCluster, wait_until

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

SUPERSTEPS = 5
CONFIGURATION = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.driver.memory": "600m",
    "spark.sql.shuffle.partitions": "2",
}


def begin(spark: SparkSession) -> DataFrame:
    return spark.range(0, 60, 1, 4).selectExpr("id % 6 AS k", "id AS v", "CAST(0 AS BIGINT) AS n")


def told(result: DataFrame, **more: Any) -> None:
    """Print how the last loop went."""
    import flinkmagic

    loop = flinkmagic.iterations()[-1]
    steps = [(step.number, step.tasks) for step in loop.supersteps]
    rows = sorted(map(tuple, result.collect()))
    print(json.dumps({"status": loop.status.name, "supersteps": steps, "rows": rows, **more}), flush=True)


def on_cluster(folder: Path) -> None:
    """Lose an executor in the middle of a superstep."""
    import flinkmagic

    with StandaloneCluster(folder / "cluster", workers=2, cores=1) as cluster:
        more = {
            "spark.executor.memory": "512m",
            "spark.driver.host": "127.0.0.1",
            "spark.executor.extraJavaOptions": JVM_OPTIONS,
        }
        spark = flinkmagic.local_session("loop", cluster.url, CONFIGURATION | more)
        spark.sparkContext.setLogLevel("OFF")
        wait_until(lambda: len(cluster.executors()) == 2, 60, "two executors are there")
        before = set(cluster.executors())
        calls: list[int] = []
        step = killing(str(folder / "killed"), calls)
        result = flinkmagic.iterate(begin(spark), step, max_iterations=SUPERSTEPS, name="killed", parallelism=2)
        told(result, calls=len(calls), killed=sorted(before - set(cluster.executors())))
        spark.stop()


def killing(flag: str, calls: list[int]) -> Any:
    """Return a step whose function kills the JVM that feeds it, in the third superstep, once."""
    from pyspark.sql import functions as F

    @F.udf("bigint")
    def checked(value: int, number: int) -> int:
        import os
        import signal
        from pathlib import Path

        if number == 2:
            try:
                os.close(os.open(flag, os.O_CREAT | os.O_EXCL))
            except FileExistsError:
                return value
            daemon = Path(f"/proc/{os.getppid()}/stat").read_text()
            os.kill(int(daemon.rpartition(")")[2].split()[1]), signal.SIGKILL)
        return value

    def step(rows: DataFrame) -> DataFrame:
        calls.append(1)
        sums = rows.select("k", checked("v", "n").alias("v"), "n").groupBy("k")
        return sums.agg((F.sum("v") * 2).alias("v"), (F.max("n") + 1).alias("n"))

    return step


def with_checkpoints(folder: Path, *, dies: bool) -> None:
    """Go on from the last superstep of a kernel that was killed."""
    from pyspark.sql import functions as F

    import flinkmagic

    spark = flinkmagic.local_session("loop", "local[2]", CONFIGURATION)
    calls: list[int] = []

    def step(rows: DataFrame) -> DataFrame:
        calls.append(1)
        return rows.groupBy("k").agg((F.sum("v") * 2).alias("v"), (F.max("n") + 1).alias("n"))

    def until(before: DataFrame, after: DataFrame) -> bool:
        if dies and len(calls) == 3:
            os.kill(os.getpid(), signal.SIGKILL)
        return False

    where = {"name": "long", "checkpoint_dir": str(folder), "parallelism": 2}
    result = flinkmagic.iterate(begin(spark), step, max_iterations=SUPERSTEPS, until=until, **where)
    told(result, calls=len(calls), left=len(list(folder.iterdir())))
    spark.stop()


if __name__ == "__main__":
    if sys.argv[1] == "cluster":
        on_cluster(Path(sys.argv[2]))
    else:
        with_checkpoints(Path(sys.argv[2]), dies="dies" in sys.argv)
