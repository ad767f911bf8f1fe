"""The classes that Spark loads, parsed and verified once for all JVMs of a test run (class data sharing).

`python -m tests.class_archive FOLDER` makes the archive: a small job runs in a session, and its JVM writes down what it
has loaded when it ends. That costs seven seconds of a core; each session of the run that starts with the archive is
spared four of its ten. A JVM that cannot use it (an executor with another class path) loads its classes as ever.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Mapping
from pathlib import Path

from flinkmagic.local_spark import find_java, local_session

OPTIONS = "SPARK_SUBMIT_OPTS"
"""Where Spark's launcher takes further options of the driver's JVM from."""

_READY = "ready"
_QUIET = "-Xlog:disable"
"""Texts about the archive would be the first lines of a script's output."""


def options_with(folder: Path, environ: Mapping[str, str]) -> str:
    """The value of `OPTIONS` with which a JVM maps in the archive that lies in a folder."""
    return f"{environ.get(OPTIONS, '')} -XX:SharedArchiveFile={folder / 'spark.jsa'} {_QUIET}"


def start(folder: Path) -> subprocess.Popen[bytes]:
    """Begin to make the archive in a process of its own; what it says goes to ``log``."""
    with (folder / "log").open("wb") as log:
        return subprocess.Popen(
            [sys.executable, "-m", "tests.class_archive", str(folder)],
            cwd=Path(__file__).parents[1],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
        )


def wait(folder: Path, seconds: float = 300.0) -> None:
    """Wait until the archive is there, and warn where it is not: all sessions then load their classes as ever."""
    deadline = time.monotonic() + seconds
    while not (folder / _READY).exists() and time.monotonic() < deadline:
        time.sleep(0.05)
    if not (folder / "spark.jsa").exists():
        said = (folder / "log").read_text(encoding="utf-8", errors="replace")[-2000:]
        warnings.warn(f"no archive of Spark's classes was made, so the run takes longer:\n{said}", stacklevel=2)


def make(folder: Path) -> None:
    """Run a small job in a session whose JVM archives its classes at its end."""
    runtime = find_java()
    options = [os.environ.get(OPTIONS, ""), f"-XX:ArchiveClassesAtExit={folder / 'new.jsa'}", _QUIET]
    if not (runtime.home / "lib" / "server" / "classes.jsa").exists():
        # A runtime of the `java` extra has no archive of Java's own classes, which ours builds on.
        base = f"-XX:SharedArchiveFile={folder / 'java.jsa'}"
        command = [str(runtime.home / "bin" / "java"), "-XX:+UseSerialGC", "-Xshare:dump", base]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        options.append(base)
    os.environ[OPTIONS] = " ".join(options)
    jvm = _run_small_job()
    jvm.stdin.close()  # which tells PySpark's gateway server to end
    if code := jvm.wait(60):
        raise RuntimeError(f"the JVM ended with {code}")
    (folder / "new.jsa").rename(folder / "spark.jsa")


def _run_small_job() -> subprocess.Popen[bytes]:
    """Write, read, join and aggregate, plainly and as a graph; returns the JVM's process."""
    from pyspark.sql import functions as F

    import flinkmagic

    with tempfile.TemporaryDirectory() as place:
        config = {"spark.ui.enabled": "false", "spark.sql.warehouse.dir": f"{place}/warehouse"}
        spark = local_session("class-archive", "local[2]", config)
        sums = spark.range(0, 100, 1, 2).groupBy((F.col("id") % 7).alias("k")).agg(F.sum("id").alias("s"))
        with flinkmagic.capture(spark) as program:
            sums.write.parquet(f"{place}/sums")
            sums.orderBy("k").write.json(f"{place}/sorted")
        flinkmagic.compile(program, "classes", parallelism=2).run()
        spark.read.parquet(f"{place}/sums").join(spark.read.json(f"{place}/sorted"), "k").collect()
        jvm: subprocess.Popen[bytes] = spark.sparkContext._gateway.proc
        spark.stop()
    return jvm


if __name__ == "__main__":
    try:
        make(Path(sys.argv[1]))
    finally:
        (Path(sys.argv[1]) / _READY).touch()
