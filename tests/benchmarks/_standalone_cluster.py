"""A standalone Spark cluster of real processes on the loopback interface, whose executors and workers can be killed."""

from __future__ import annotations

import ctypes
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import pyspark

from flinkmagic.local_spark import java_home

_ADDRESS = re.compile(r"Starting Spark master at (spark://[\w.:-]+)")
_EXECUTOR = "org.apache.spark.executor.CoarseGrainedExecutorBackend"
JVM_OPTIONS = f"{os.environ.get('SPARK_SUBMIT_OPTS', '')} -XX:+UseSerialGC -XX:TieredStopAtLevel=1".lstrip()
"""Of JVMs that live for seconds: those that the driver's gets from the environment, too."""
_DAEMON_OPTIONS = f"-Dspark.deploy.maxExecutorRetries=-1 {JVM_OPTIONS}"
"""Spark gives up an application whose executors died ten times in a row; these die because they are killed."""


def wait_until(condition: Callable[[], bool], seconds: float, what: str) -> None:
    """Wait for something that other processes do."""
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            raise TimeoutError(f"not within {seconds:g} s: {what}")
        time.sleep(0.05)


class StandaloneCluster:
    """A master and workers of the pip-installed Spark; a context manager.

    Each worker has a loopback address of its own: Spark runs no copy of a slow task on the host that has it.

    Parameters
    ----------
    folder : Path
        For logs and work directories.
    workers : int
        How many workers there are.
    cores : int
        Of each worker.
    memory : str
        Of each worker, in Spark's words.
    """

    def __init__(self, folder: Path, workers: int = 2, cores: int = 2, memory: str = "1g") -> None:
        self._folder = folder
        self._n_workers, self._cores, self._memory = workers, cores, memory
        self._logs = 0
        self._master: subprocess.Popen[bytes] | None = None
        self.workers: list[subprocess.Popen[bytes]] = []
        self.url = ""

    def __enter__(self) -> StandaloneCluster:
        self._folder.mkdir(parents=True, exist_ok=True)
        try:
            self._master, log = self._launch("master.Master", "127.0.0.1", "--port", "0")
            wait_until(lambda: _ADDRESS.search(log.read_text()) is not None, 60, "the master names its address")
            found = _ADDRESS.search(log.read_text())
            assert found is not None
            self.url = found[1]
            for _ in range(self._n_workers):
                self.add_worker()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *unused: object) -> None:
        executors = [pid for worker in self.workers for pid in _executors_of(worker.pid)]
        for process in [*self.workers, *([self._master] if self._master is not None else [])]:
            process.kill()
            process.wait()
        for pid in executors:
            _kill(pid)

    def add_worker(self) -> None:
        """Start one more worker."""
        options = ("--port", "0", "--cores", str(self._cores), "--memory", self._memory)
        folder = self._folder / f"worker-{self._logs}"
        host = f"127.0.0.{1 + self._logs % 250}"
        worker, log = self._launch("worker.Worker", host, *options, "--work-dir", str(folder), self.url)
        self.workers.append(worker)
        wait_until(lambda: "Successfully registered with master" in log.read_text(), 60, "a worker registers")

    def executors(self) -> dict[str, int]:
        """The process of each executor, by Spark's id of it."""
        return {executor: pid for worker in self.workers for pid, executor in _executors_of(worker.pid).items()}

    def kill_executor(self, executor: str) -> None:
        """SIGKILL an executor; its worker starts another one."""
        os.kill(self.executors()[executor], signal.SIGKILL)

    def kill_worker_of(self, executor: str) -> None:
        """SIGKILL the worker of an executor, and with it the executor."""
        (worker,) = [one for one in self.workers if executor in _executors_of(one.pid).values()]
        pids = list(_executors_of(worker.pid))
        self.workers.remove(worker)
        worker.kill()
        worker.wait()
        for pid in pids:
            _kill(pid)

    def _launch(self, name: str, host: str, *options: str) -> tuple[subprocess.Popen[bytes], Path]:
        log = self._folder / f"{self._logs}-{name}.log"
        self._logs += 1
        home = Path(pyspark.__file__).parent
        command = [str(home / "bin" / "spark-class"), f"org.apache.spark.deploy.{name}"]
        command += ["--host", host, "--webui-port", "0", *options]
        with log.open("wb") as out:
            process = subprocess.Popen(
                command,
                stdout=out,
                stderr=subprocess.STDOUT,
                env=self._environment(home, host),
                start_new_session=True,
                preexec_fn=_end_with_parent,
            )
        return process, log

    def _environment(self, home: Path, host: str) -> Mapping[str, str]:
        return {
            **os.environ,
            "JAVA_HOME": str(java_home()),
            "SPARK_HOME": str(home),
            "SPARK_LOCAL_IP": host,
            "SPARK_DAEMON_MEMORY": "256m",
            "SPARK_DAEMON_JAVA_OPTS": _DAEMON_OPTIONS,
            "SPARK_LOCAL_DIRS": str(self._folder / "scratch"),
            "PYSPARK_PYTHON": sys.executable,
        }


def _end_with_parent() -> None:
    """Let this process be killed when the one that started it is gone, however that ended (Linux' PR_SET_PDEATHSIG)."""
    ctypes.CDLL(None).prctl(1, int(signal.SIGKILL))


def _executors_of(worker: int) -> dict[int, str]:
    """The executors that are children of a worker: process id, Spark's id."""
    return {
        pid: arguments[arguments.index("--executor-id") + 1]
        for pid, arguments in _children(worker)
        if _EXECUTOR in arguments and "--executor-id" in arguments
    }


def _children(parent: int) -> Iterator[tuple[int, list[str]]]:
    for folder in Path("/proc").iterdir():
        if not folder.name.isdigit():
            continue
        try:
            # The name of the command is in brackets and may hold anything.
            fields = (folder / "stat").read_text().rpartition(")")[2].split()
            arguments = (folder / "cmdline").read_bytes().decode(errors="replace").split("\0")
        except (FileNotFoundError, ProcessLookupError):
            continue
        if int(fields[1]) == parent:
            yield int(folder.name), arguments


def _kill(pid: int) -> None:
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        return
