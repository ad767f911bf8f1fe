"""How far a job came, on disk, so that another process can take it up (``--checkpoint-dir``).

The rows of each boundary are written as parquet when its stage is done, and recorded in the job's journal
(`scheduling.job_graph_store`) under the key of the rows; so is each write that is committed, and what its target then
holds. A process that runs the same graph later, and finds the journal of a job that is not over, reads the rows from
there where the keys are equal, and leaves the finished writes alone where nothing has changed: rules 2 and 5 of
`retention` hold for them, too. Keys that mean something in one process only (rows of the driver, broadcast variables)
are not recorded.

The journal of a job that was finished or cancelled is worth nothing to the next one, and its rows are deleted. One
process at a time may run a graph with one folder: a lock file says so.

The folder must be one that the driver and the executors see under the same path.
"""

from __future__ import annotations

import hashlib
import logging
import shutil
import threading
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from filelock import FileLock, Timeout
from py4j.protocol import Py4JError

from flinkmagic.capturing.writes.targets import Target, resolve_uri
from flinkmagic.errors.job_store import CheckpointInUseError
from flinkmagic.graph.job_graph import JobGraph
from flinkmagic.jvm.java import scala_seq, skip_commands
from flinkmagic.planning.handles import BoundaryStageHandle
from flinkmagic.planning.stage_results import StageResult
from flinkmagic.reuse.finished_writes import FinishedWrite
from flinkmagic.reuse.kept_results import KeptResults, KeptRows
from flinkmagic.reuse.result_keys import ResultKey
from flinkmagic.reuse.retained_results import RetainedResult
from flinkmagic.scheduling.job_status import JobStatus
from flinkmagic.scheduling.recovery.job_graph_codec import encode_job_graph
from flinkmagic.scheduling.recovery.job_graph_store import (
    JobGraphStore,
    StoredDataset,
    StoredWrite,
    append_dataset,
    append_status,
    append_target,
    append_write,
)
from flinkmagic.scheduling.recovery.job_journal import JobJournal, create_journal

if TYPE_CHECKING:
    from pyspark import SparkContext

_LOG = logging.getLogger(__name__)


class Checkpoints:
    """The checkpoints of one graph in one folder.

    Parameters
    ----------
    sc : SparkContext
        The session's.
    folder : Path
        Made if it is not there.
    graph_name : str
        A graph of this name goes on where the last one in this folder ended.
    """

    def __init__(self, sc: SparkContext, folder: Path, graph_name: str) -> None:
        self._sc = sc
        self._name = graph_name
        self._job_id = hashlib.sha256(graph_name.encode()).hexdigest()[:32]
        self._store = JobGraphStore(folder.absolute())
        self._rows = folder.absolute() / self._job_id
        self._lock = FileLock(str(self._store.lock_path(self._job_id)), thread_local=False)
        self._writing = threading.Lock()
        self._journal: JobJournal | None = None
        self._datasets: dict[str, StoredDataset] = {}
        self._writes: dict[str, StoredWrite] = {}
        self._targets: dict[str, list[str] | None] = {}

    @property
    def writes(self) -> Mapping[str, FinishedWrite]:
        """By their keys the writes that were committed, with the files that these and later ones left there."""
        return {
            key: FinishedWrite(self._targets[write.target], write.replaced_by) for key, write in self._writes.items()
        }

    @property
    def targets(self) -> Sequence[str]:
        """Where writes were recorded."""
        return list(self._targets)

    def open(self, job_graph: JobGraph) -> None:
        """Lead the job: no one else may run it with this folder until `close`.

        Raises
        ------
        CheckpointInUseError
            Where somebody does.
        JobStoreError
            Where the journal is damaged, or is none.
        """
        try:
            self._lock.acquire(timeout=0)
        except Timeout:
            raise CheckpointInUseError(self._name, str(self._store.folder)) from None
        try:
            self._take_up()
            path = self._store.journal_path(self._job_id)
            path.unlink(missing_ok=True)
            create_journal(path, self._job_id, {**encode_job_graph(job_graph), "job_id": self._job_id})
            self._journal = JobJournal(path, 1)
            append_status(self._journal, JobStatus.RUNNING)
            for dataset in self._datasets.values():
                append_dataset(self._journal, dataset)
            for target, files in self._targets.items():
                append_target(self._journal, target, files)
            for key, write in self._writes.items():
                append_write(self._journal, key, write)
            self._journal.sync()
        except BaseException:
            self._lock.release()
            raise

    def _take_up(self) -> None:
        """What the last job left, if it is not over for good."""
        self._datasets, self._writes, self._targets = {}, {}, {}
        if not self._store.journal_path(self._job_id).exists():
            return
        stored, journal = self._store.take_up(self._job_id)
        journal.close()
        if stored.status in (JobStatus.FINISHED, JobStatus.CANCELED):
            return
        self._writes, self._targets = dict(stored.writes), dict(stored.targets)
        self._datasets = {
            key: dataset
            for key, dataset in stored.datasets.items()
            if (self._rows / dataset.folder / "_SUCCESS").exists()
        }

    # -- reading ---------------------------------------------------------------------------------------

    def find(self, result: StageResult, key: ResultKey) -> RetainedResult | None:
        """The rows of a boundary, from disk."""
        dataset = self._datasets.get(key.digest)
        handle = result.handle
        if dataset is None or not isinstance(handle, BoundaryStageHandle):
            return None
        session = handle.query_execution.sparkSession()
        schema = self._jvm.org.apache.spark.sql.types.DataType.fromJson(dataset.schema_json)
        read = session.read().schema(schema).parquet(str(self._rows / dataset.folder))
        plan = (
            session.sessionState()
            .executePlan(read.queryExecution().analyzed(), skip_commands(self._jvm))
            .executedPlan()
        )
        builder = result.over(plan)
        rows = KeptRows(lambda: builder.clearCache(False), lambda: bool(builder.isCachedColumnBuffersLoaded()))
        return RetainedResult(key.digest, "boundary", self._name, handle.name, False, (builder, rows), 0)

    # -- writing ---------------------------------------------------------------------------------------

    def write_rows(self, handle: BoundaryStageHandle, key: ResultKey, kept: KeptResults) -> None:
        """Write and record the rows of a boundary whose stage is done; on the stage's thread, under its tag."""
        if not key.portable or key.digest in self._datasets:
            return
        rows = kept.on_session(handle, handle.query_execution.sparkSession())
        # Names that parquet can write and that are unique, whatever the user's are.
        names = [f"c{number}" for number in range(rows.schema().size())]
        renamed = rows.toDF(scala_seq(self._jvm, names))
        dataset = StoredDataset(key.digest, f"{key.digest[:32]}.parquet", renamed.schema().json())
        try:
            renamed.write().mode("overwrite").parquet(str(self._rows / dataset.folder))
        except Py4JError as refusal:
            _LOG.warning("The rows of %r are not in the checkpoint of %r: %s", handle.name, self._name, refusal)
            return
        self._datasets[key.digest] = dataset
        self._record(lambda journal: append_dataset(journal, dataset))

    def record_write(self, key: ResultKey, target: str, files: list[str] | None) -> None:
        """Record a write that is committed, and what its target then holds."""
        if key.portable:
            self.record_target(target, files)
            self._record_write(key.digest, StoredWrite(target))

    def record_overwrite(self, place: Target, key: str) -> None:
        """Record that a write of this key has overwritten what earlier ones left at a place."""
        for earlier, write in list(self._writes.items()):
            is_known = key in (earlier, *write.replaced_by)
            if not is_known and place.overlaps(Target(path=resolve_uri(write.target))):
                self._record_write(earlier, replace(write, replaced_by=(*write.replaced_by, key)))

    def _record_write(self, key: str, write: StoredWrite) -> None:
        self._writes[key] = write
        self._record(lambda journal: append_write(journal, key, write))

    def record_target(self, target: str, files: list[str] | None) -> None:
        """Record what a write has left in a target, its own or one above or below it."""
        self._targets[target] = files
        self._record(lambda journal: append_target(journal, target, files))

    def _record(self, append: Any) -> None:
        with self._writing:
            if self._journal is not None:
                append(self._journal)
                self._journal.sync()

    def close(self, status: JobStatus) -> None:
        """Let others run the graph; what is over for good leaves no rows behind."""
        with self._writing:
            journal, self._journal = self._journal, None
            if journal is None:
                return
            append_status(journal, status)
            journal.close()
            if status in (JobStatus.FINISHED, JobStatus.CANCELED):
                shutil.rmtree(self._rows, ignore_errors=True)
            self._lock.release()

    @property
    def _jvm(self) -> Any:
        assert self._sc._jvm is not None
        return self._sc._jvm
