"""Runs a job's master while it leads (Flink's `JobMasterServiceLeadershipRunner` and its process)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import Future
from typing import Protocol

from flinkmagic.errors.scheduling import JobSuspendedError
from flinkmagic.graph.execution_graph import ExecutionGraph, build_execution_graph
from flinkmagic.graph.job_graph import JobGraph
from flinkmagic.scheduling.job_event_log import JobEventLog
from flinkmagic.scheduling.job_listener import JobListener
from flinkmagic.scheduling.job_status import JobStatus
from flinkmagic.scheduling.main_thread import ComponentMainThreadExecutor
from flinkmagic.scheduling.recovery.job_graph_store import JobGraphStore
from flinkmagic.scheduling.recovery.journal_writer import JournalWriter
from flinkmagic.scheduling.recovery.leader_election import FileLockLeaderElection
from flinkmagic.scheduling.recovery.recovered_job import HolderOf, RecoveredJob


class JobMasterService(Protocol):
    """What runs a job while it is led from here (Flink's class of that name): a `JobMaster`, or another."""

    @property
    def job_id(self) -> str:
        """The job."""
        ...

    def start(self, recovered: RecoveredJob | None = None) -> None:
        """Begin, or go on where a former process ended."""
        ...

    def cancel(self) -> None:
        """End the job for good."""
        ...

    def suspend(self, cause: BaseException) -> None:
        """End the job here, so that another process may take it up."""
        ...


class JobMasterServiceFactory(Protocol):
    """Makes the master of a job (Flink's class of that name).

    The master's scheduler must have `listeners` (they keep the journal), and `on_over` must be called in a
    turn of its own when the job is over here.
    """

    def __call__(
        self,
        execution_graph: ExecutionGraph,
        listeners: Sequence[JobListener],
        on_over: Callable[[JobStatus], None],
    ) -> JobMasterService: ...


class JobMasterServiceProcess:
    """One term of leadership: reads how far the job came, and runs its master from there.

    Parameters
    ----------
    store : JobGraphStore
        Where the job is.
    job_id : str
        Which job.
    session_id : str
        The term's name.
    job_graph : JobGraph or None
        The job as it was submitted here, with the handles by which gateways run it; None takes it from the
        store.
    """

    def __init__(
        self,
        store: JobGraphStore,
        job_id: str,
        session_id: str,
        job_graph: JobGraph | None,
        main_thread: ComponentMainThreadExecutor,
        job_master_factory: JobMasterServiceFactory,
        holder_of: HolderOf,
        event_log: JobEventLog,
        on_over: Callable[[JobStatus], None],
    ) -> None:
        self.session_id = session_id
        self.job_master: JobMasterService | None = None
        stored, journal = store.take_up(job_id)
        if stored.is_over and stored.status is not None:
            journal.close()
            status = stored.status
            main_thread.execute(lambda: on_over(status))
            return
        try:
            execution_graph = build_execution_graph(job_graph or stored.job_graph)
            writer = JournalWriter(journal, execution_graph, main_thread, list(stored.finished))
            self.job_master = job_master_factory(execution_graph, (writer,), on_over)
        except BaseException:
            journal.close()
            raise
        recovered = None
        if stored.status is not None:
            finished = list(stored.finished.values())
            event_log.add("job manager", f"takes job {job_id} up, of which {len(finished)} tasks are finished")
            recovered = RecoveredJob(finished, holder_of)
        self.job_master.start(recovered)

    def close(self) -> None:
        """End the term: the job is suspended here."""
        if self.job_master is not None:
            self.job_master.suspend(JobSuspendedError(self.job_master.job_id, "its master leads no more"))


class JobManagerRunner:
    """Contends for a job's leadership, and runs its master when it has it (Flink's `JobManagerRunner`).

    `result` is done with the status in which the job ended here; SUSPENDED where leadership was lost or let
    go before that.
    """

    def __init__(
        self,
        job_id: str,
        election: FileLockLeaderElection,
        start_process: Callable[[str, Callable[[JobStatus], None]], JobMasterServiceProcess],
    ) -> None:
        self.job_id = job_id
        self.result: Future[JobStatus] = Future()
        self._election = election
        self._start_process = start_process
        self._process: JobMasterServiceProcess | None = None

    @property
    def job_master(self) -> JobMasterService | None:
        """The master, while this runner leads."""
        return None if self._process is None else self._process.job_master

    def start(self) -> None:
        """Contend."""
        self._election.start(self)

    def close(self) -> None:
        """Contend no more; a job that runs here is suspended."""
        self._election.stop()
        self._complete(JobStatus.SUSPENDED)

    def grant_leadership(self, session_id: str) -> None:
        """Start the master; what stands against it (a torn journal, say) is the runner's result."""
        try:
            self._process = self._start_process(session_id, self._over)
        except Exception as error:  # noqa: BLE001 - what waits for the result must hear of it
            self.result.set_exception(error)
            self._election.stop()

    def revoke_leadership(self) -> None:
        """Suspend the job."""
        process, self._process = self._process, None
        if process is not None:
            process.close()

    def _over(self, status: JobStatus) -> None:
        self._process = None
        self._election.stop()
        self._complete(status)

    def _complete(self, status: JobStatus) -> None:
        if not self.result.done():
            self.result.set_result(status)
