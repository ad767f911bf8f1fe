"""Accepts jobs, runs them, and remembers those that are over (Flink's `Dispatcher`)."""

from __future__ import annotations

import threading
from collections import deque
from concurrent.futures import Future, wait
from dataclasses import dataclass

from flinkmagic.graph.execution_state import ExecutionState
from flinkmagic.scheduling.execution_graph_info import ExecutionGraphInfo
from flinkmagic.scheduling.job_manager_runner import ANSWER_S, JobManagerRunner, JobMasterServiceFactory
from flinkmagic.scheduling.job_status import JobStatus
from flinkmagic.scheduling.recovery.job_graph_store import JobGraphStore

MOST_JOBS_THAT_ARE_OVER = 100
"""How many finished jobs are remembered (Flink's `jobstore.max-capacity`)."""


@dataclass(frozen=True)
class JobDetails:
    """What an overview shows of a job (Flink's class of that name)."""

    job_id: str
    name: str
    status: JobStatus
    start_ms: float
    duration_ms: float
    finished_tasks: int
    tasks: int

    @classmethod
    def of(cls, info: ExecutionGraphInfo) -> JobDetails:
        """Return the details of a job at the instant of its snapshot."""
        graph, start_ms = info.archived_execution_graph, info.started_ms
        duration_ms = info.ended_ms - start_ms
        finished = int((graph.state == ExecutionState.FINISHED.value).sum())
        return cls(info.job_id, info.job_name, info.job_status, start_ms, duration_ms, finished, graph.n_vertices)


class Dispatcher:
    """Runs a job manager runner for each submitted job; callable from any thread.

    Several processes may submit the same job to one store. It has one leader among them; the others are refused. Once
    that leader is gone, whoever submits the job takes it up.

    Departure from Flink: a job's master and its store come with the submission. In a notebook each run chooses its own
    folder for checkpoints, and a master on Spark needs the handles that its program was planned with.
    """

    def __init__(self) -> None:
        self._runners: dict[JobManagerRunner, bool] = {}
        """The runners, and which are listed. A job that is submitted a second time has two, until that is refused."""
        self._over: deque[JobDetails] = deque(maxlen=MOST_JOBS_THAT_ARE_OVER)
        self._lock = threading.Lock()

    def submit_job(
        self,
        factory: JobMasterServiceFactory,
        store: JobGraphStore | None = None,
        *,
        listed: bool = True,
    ) -> Future[JobStatus]:
        """Run a job, from where a former leader ended if there was one; the future is done when it is over here.

        Parameters
        ----------
        store : JobGraphStore, optional
            Where it is kept, and led by the lock of its file; by default it ends with the process.
        listed : bool
            Whether `jobs` knows of it: not so if it is a part of another job.

        Returns
        -------
        Future of JobStatus
            Failed if the job cannot be led from here (`JobStoreError`) or its master cannot be made.
        """
        job_id = factory.execution_graph.job_id
        runner = JobManagerRunner(factory, store)
        factory.event_log.add("dispatcher", f"job {job_id} ({factory.execution_graph.job_graph.name}) is submitted")
        with self._lock:
            self._runners[runner] = listed
        runner.result.add_done_callback(lambda _: self._forget(runner))
        try:
            runner.start()
        except BaseException:
            # An interrupt, for example: no one may find the job led from here, and nothing of it may run on.
            runner.close()
            wait([runner.result], ANSWER_S)
            raise
        return runner.result

    def jobs(self) -> list[JobDetails]:
        """Return the jobs that are over, oldest first, then running ones (`Dispatcher.requestMultipleJobDetails`)."""
        with self._lock:
            over, runners = list(self._over), [one for one, is_listed in self._runners.items() if is_listed]
        masters = [runner.job_master for runner in runners]
        return [*over, *(JobDetails.of(master.request_job()) for master in masters if master is not None)]

    def close(self) -> None:
        """Suspend the jobs that run here; other processes may take them up."""
        with self._lock:
            runners = list(self._runners)
        for runner in runners:
            runner.close()

    def _forget(self, runner: JobManagerRunner) -> None:
        with self._lock:
            is_listed = self._runners.pop(runner)
            if is_listed and runner.last_info is not None:
                self._over.append(JobDetails.of(runner.last_info))
