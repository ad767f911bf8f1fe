"""Runs a job's master while it leads (Flink's `JobMasterServiceLeadershipRunner` and its process)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import Future
from typing import Protocol

from filelock import FileLock, Timeout

from flinkmagic.errors.job_store import JobLedElsewhereError
from flinkmagic.errors.scheduling import JobSuspendedError, MainThreadStoppedError
from flinkmagic.graph.execution_graph import ExecutionGraph
from flinkmagic.scheduling.execution_graph_info import ExecutionGraphInfo
from flinkmagic.scheduling.job_event_log import JobEventLog
from flinkmagic.scheduling.job_master import JobMaster
from flinkmagic.scheduling.job_status import JobListener, JobStatus
from flinkmagic.scheduling.main_thread import ComponentMainThreadExecutor, ask
from flinkmagic.scheduling.recovery.job_graph_store import JobGraphStore, StoredJob, append_status
from flinkmagic.scheduling.recovery.job_journal import JobJournal

ANSWER_S = 10.0
"""How long a caller waits for what it asks of a job's master."""

OnCompletion = Callable[[ExecutionGraphInfo], None]
"""Called with the end of a job (of Flink's `OnCompletionActions`)."""


class JobMasterServiceFactory(Protocol):
    """Makes the master of one submitted job (Flink's class of that name)."""

    @property
    def execution_graph(self) -> ExecutionGraph:
        """The job."""

    @property
    def main_thread(self) -> ComponentMainThreadExecutor:
        """The thread of its master."""

    @property
    def event_log(self) -> JobEventLog:
        """The log of its events."""

    def create_job_master_service(
        self,
        former: StoredJob | None,
        journal: JobJournal | None,
        listeners: Sequence[JobListener],
        on_over: OnCompletion,
    ) -> JobMaster:
        """Make the master, which knows what a former one has done; it is started when its journal is on the disk.

        Parameters
        ----------
        former : StoredJob or None
            What a former leader left behind.
        journal : JobJournal or None
            Where the job's data are recorded that outlive this process; None if there is no store.
        listeners : sequence of JobListener
            Must be called with each transition of the job.
        on_over : callable
            Must be called once, in a turn of its own, with the last snapshot of the job, when it is over here.
        """


class JobMasterServiceProcess(JobListener):
    """One term of leadership: makes the job's master, keeps its journal, and then starts it.

    It records the job's status; the rest of the journal is the master's, and what tasks made is gone with this process.
    """

    def __init__(
        self,
        factory: JobMasterServiceFactory,
        store: JobGraphStore | None,
        former: StoredJob | None,
        on_over: OnCompletion,
    ) -> None:
        self._on_over = on_over
        self._main_thread = factory.main_thread
        self._journal: JobJournal | None = None
        self.job_master: JobMaster
        if store is None:
            self.job_master = factory.create_job_master_service(None, None, (), self._over)
            return
        self._journal = journal = store.begin_journal(factory.execution_graph.job_id, former)
        try:
            self.job_master = factory.create_job_master_service(former, journal, (self,), self._over)
            # The new journal replaces the old one once it says all that is known; then the job may go on.
            journal.publish()
        except BaseException:
            journal.close()
            raise

    def start(self) -> None:
        """Start the master."""
        self._main_thread.execute(self.job_master.start)

    def on_job_status_changed(self, old: JobStatus, new: JobStatus, at_ms: float, cause: BaseException | None) -> None:
        if self._journal is not None and new not in (JobStatus.CREATED, JobStatus.RECONCILING):
            append_status(self._journal, new)
            self._journal.sync()

    def _over(self, info: ExecutionGraphInfo) -> None:
        self._close_journal()
        self._on_over(info)

    def _close_journal(self) -> None:
        journal, self._journal = self._journal, None
        if journal is not None:
            journal.close()

    def close(self) -> None:
        """End the term: the job is suspended here, and is over when its master has ended; callable from any thread."""

        def suspend() -> None:
            self.job_master.suspend(JobSuspendedError(self.job_master.job_id, "its master leads no more"))
            self._close_journal()

        ask(self._main_thread, suspend, ANSWER_S)


class JobManagerRunner:
    """Contends for a job's leadership, and runs its master when it has it (Flink's `JobManagerRunner`).

    The leader is who holds the exclusive lock on a file of the store (Flink's `LeaderElection`). The file is left
    behind; the system releases the lock when its holder dies, and no one takes it from a holder that lives. The file
    must be on a disk of this machine, or on one that locks across machines. Without a store, the runner leads.

    `result` is done with the status in which the job ended here; SUSPENDED where leadership was let go before that.

    Parameters
    ----------
    store : JobGraphStore or None
        None if the job is kept nowhere.
    """

    def __init__(self, factory: JobMasterServiceFactory, store: JobGraphStore | None) -> None:
        self.job_id = factory.execution_graph.job_id
        self.result: Future[JobStatus] = Future()
        self._factory = factory
        self._store = store
        self._lock = FileLock(str(store.lock_path(self.job_id)), thread_local=False) if store is not None else None
        self._process: JobMasterServiceProcess | None = None
        self.last_info: ExecutionGraphInfo | None = None
        """The last snapshot of the job, once it is over here."""

    @property
    def job_master(self) -> JobMaster | None:
        """The master, while this runner leads."""
        return None if self._process is None else self._process.job_master

    def start(self) -> None:
        """Lead within this call, or end because another one does."""
        if self._lock is not None:
            try:
                self._lock.acquire(timeout=0)
            except Timeout:
                self.handle_error(JobLedElsewhereError(self._lock.lock_file))
                return
        self.grant_leadership()

    def close(self) -> None:
        """Stop contending; suspend a job that runs here.

        The result is done when its master has ended, and only then another may lead (as in Flink's
        `JobMasterServiceLeadershipRunner.closeAsync`).
        """
        process = self._process
        if process is None:
            self._let_go()
            self._complete(JobStatus.SUSPENDED)
            return
        try:
            process.close()
        except MainThreadStoppedError:
            if not self.result.done():  # else the job was over first, and its thread has ended
                raise

    def grant_leadership(self) -> None:
        """Start the master; what prevents it (a torn journal, for example) is the runner's result."""
        self._factory.event_log.add("job manager", f"leads job {self.job_id}")
        try:
            former = self._store.take_up(self.job_id) if self._store is not None else None
            if former is not None and former.status is not None and not former.is_over:
                self._factory.event_log.add("job manager", f"takes job {self.job_id} up")
            self._process = JobMasterServiceProcess(self._factory, self._store, former, self._over)
            self._process.start()
        except Exception as error:  # noqa: BLE001 - what waits for the result must hear of it
            self.handle_error(error)

    def handle_error(self, error: Exception) -> None:
        """End without a status."""
        self._process = None
        self._let_go()
        self.result.set_exception(error)

    def _over(self, info: ExecutionGraphInfo) -> None:
        self.last_info = info
        self._process = None
        self._let_go()
        self._complete(info.job_status)

    def _let_go(self) -> None:
        if self._lock is not None:
            self._lock.release()

    def _complete(self, status: JobStatus) -> None:
        if not self.result.done():
            self.result.set_result(status)
