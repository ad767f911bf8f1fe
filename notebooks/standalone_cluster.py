"""A standalone Spark cluster on this machine, from the Spark that pip installed: a master and one worker.

For the tutorials. `cluster = start()` gives `cluster.url` for `flinkmagic.local_session`, `cluster.executor()` the
process of its executor, and `cluster.stop()` ends everything.
"""

import contextlib
import os
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import psutil
import pyspark

from flinkmagic.local_spark import java_home

HOME = Path(pyspark.__file__).parent
SPARE = "-XX:+UseSerialGC -XX:TieredStopAtLevel=1"
"""For JVMs that live for a few minutes: less memory, a quicker start."""


class Cluster:
    """Three kinds of processes: the master, the worker, and the executors that the worker starts for an application."""

    def __init__(self, cores, memory):
        self.folder = Path(tempfile.mkdtemp(prefix="standalone-cluster-"))
        self.master, log = self._launch("master.Master", "--port", "0")
        self.url = _wait_for(r"Starting Spark master at (spark://\S+)", log)
        room = ("--cores", str(cores), "--memory", memory, "--work-dir", str(self.folder / "work"))
        self.worker, log = self._launch("worker.Worker", "--port", "0", *room, self.url)
        _wait_for(r"(Successfully registered) with master", log)

    def _launch(self, name, *options):
        log = self.folder / f"{name}.log"
        environment = {
            **os.environ,
            "JAVA_HOME": str(java_home()),
            "SPARK_HOME": str(HOME),
            "SPARK_LOCAL_IP": "127.0.0.1",
            "SPARK_DAEMON_MEMORY": "128m",
            # Spark gives an application up whose executors died ten times in a row.
            "SPARK_DAEMON_JAVA_OPTS": f"-Dspark.deploy.maxExecutorRetries=-1 {SPARE}",
            "PYSPARK_PYTHON": sys.executable,
        }
        command = [HOME / "bin" / "spark-class", f"org.apache.spark.deploy.{name}"]
        command += ["--host", "127.0.0.1", "--webui-port", "0", *options]
        with log.open("wb") as out:
            process = subprocess.Popen(
                command, stdout=out, stderr=subprocess.STDOUT, env=environment, start_new_session=True
            )
        return process, log

    def executor(self):
        """Return the process of the worker's executor; wait until there is one."""
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline:
            for process in psutil.Process(self.worker.pid).children():
                with contextlib.suppress(psutil.ZombieProcess, psutil.NoSuchProcess):  # it has just ended
                    if "CoarseGrainedExecutorBackend" in " ".join(process.cmdline()):
                        return process
            time.sleep(0.1)
        raise TimeoutError("no executor after a minute")

    def kill_executor(self):
        """Kill the executor, as a machine does that runs out of memory; the worker starts another one."""
        self.executor().kill()

    def stop(self):
        """End the worker, which ends its executors, and the master."""
        for process in (self.worker, self.master):
            process.terminate()
            process.wait()


def start(cores=2, memory="600m"):
    """Start a master and one worker."""
    return Cluster(cores, memory)


def _wait_for(pattern, log):
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        found = re.search(pattern, log.read_text())
        if found:
            return found[1]
        time.sleep(0.1)
    raise TimeoutError(f"not after a minute: {pattern}; see {log}")
