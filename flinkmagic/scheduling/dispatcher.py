"""Takes jobs in, and finds those that others left (Flink's `Dispatcher`)."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future

from flinkmagic.errors.job_store import JobNotStoredError
from flinkmagic.graph.job_graph import JobGraph
from flinkmagic.scheduling.job_event_log import JobEventLog
from flinkmagic.scheduling.job_manager_runner import (
    JobManagerRunner,
    JobMasterServiceFactory,
    JobMasterServiceProcess,
)
from flinkmagic.scheduling.job_status import JobStatus
from flinkmagic.scheduling.main_thread import ComponentMainThreadExecutor
from flinkmagic.scheduling.recovery.job_graph_store import JobGraphStore
from flinkmagic.scheduling.recovery.leader_election import FileLockLeaderElection
from flinkmagic.scheduling.recovery.recovered_job import HolderOf


class Dispatcher:
    """Keeps submitted jobs in a store, and runs a job manager runner for each.

    Several processes may have a dispatcher on one folder. Each job has one leader among them; the others
    wait, and take it up when that leader is gone.

    Parameters
    ----------
    store : JobGraphStore
        The folder.
    main_thread : ComponentMainThreadExecutor
        Where all masters run.
    job_master_factory : JobMasterServiceFactory
        Makes masters.
    event_log : JobEventLog
        Where submission and takeover are noted.
    holder_of : callable
        Who holds a partition of a former run now; without it they all are gone.
    retry_ms : float
        How often those who wait for leadership try.
    """

    def __init__(
        self,
        store: JobGraphStore,
        *,
        main_thread: ComponentMainThreadExecutor,
        job_master_factory: JobMasterServiceFactory,
        event_log: JobEventLog,
        holder_of: HolderOf = lambda _partition: None,
        retry_ms: float = 500.0,
    ) -> None:
        self._store = store
        self._main_thread = main_thread
        self._job_master_factory = job_master_factory
        self._event_log = event_log
        self._holder_of = holder_of
        self._retry_ms = retry_ms
        self._runners: dict[str, JobManagerRunner] = {}

    def submit_job(self, job_graph: JobGraph) -> Future[JobStatus]:
        """Keep a new job and run it; the future is done when it is over here."""
        self._store.put_job_graph(job_graph)
        self._event_log.add("dispatcher", f"job {job_graph.job_id} ({job_graph.name}) is submitted")
        return self._run(job_graph.job_id, job_graph)

    def take_up(self, job_id: str, job_graph: JobGraph | None = None) -> Future[JobStatus]:
        """Run a job of the store as soon as no one else leads it.

        Parameters
        ----------
        job_id : str
            The job.
        job_graph : JobGraph, optional
            The same job planned again, with handles on its operators; by default the store's, without any.
        """
        if job_id not in self._store.job_ids():
            raise JobNotStoredError(job_id, str(self._store.folder))
        return self._run(job_id, job_graph)

    def recover_jobs(self) -> dict[str, Future[JobStatus]]:
        """Take up all jobs of the store that are not over and do not run here."""
        waiting = [job_id for job_id in self._store.job_ids() if job_id not in self._runners]
        return {job_id: self.take_up(job_id) for job_id in waiting if not self._store.read(job_id).is_over}

    def runner(self, job_id: str) -> JobManagerRunner | None:
        """The runner of a job, while there is one here."""
        return self._runners.get(job_id)

    def cancel_job(self, job_id: str) -> None:
        """Cancel a job that is led from here."""
        runner = self._runners.get(job_id)
        if runner is None or runner.job_master is None:
            raise JobNotStoredError(job_id, f"{self._store.folder} that is led from here")
        runner.job_master.cancel()

    def close(self) -> None:
        """Let all jobs go; those that run here are suspended, and others may take them up."""
        for runner in list(self._runners.values()):
            runner.close()
        self._runners.clear()

    def _run(self, job_id: str, job_graph: JobGraph | None) -> Future[JobStatus]:
        if job_id in self._runners:
            return self._runners[job_id].result

        def start_process(session_id: str, on_over: Callable[[JobStatus], None]) -> JobMasterServiceProcess:
            self._event_log.add("job manager", f"leads job {job_id}")
            return JobMasterServiceProcess(
                self._store,
                job_id,
                session_id,
                job_graph,
                self._main_thread,
                self._job_master_factory,
                self._holder_of,
                self._event_log,
                on_over,
            )

        election = FileLockLeaderElection(self._store.lock_path(job_id), self._main_thread, self._retry_ms)
        runner = self._runners[job_id] = JobManagerRunner(job_id, election, start_process)
        runner.result.add_done_callback(lambda _result: self._runners.pop(job_id, None))
        runner.start()
        return runner.result
