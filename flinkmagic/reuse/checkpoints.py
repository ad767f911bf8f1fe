"""Records on disk how far a job came, so that another process can take it up (``--checkpoint-dir``).

The rows of each boundary are stored in the folder (`durable_store`) when its stage is done, by their key, as the job's
own: they are found by this job alone, and stay until it is over. Each write that is committed, and what its target then
holds, is recorded in the job's journal (`scheduling.recovery.job_graph_store`). A process that runs the same graph
later reads the rows where the keys are equal, and leaves the finished writes alone where nothing has changed: rules 2
and 5 of `retention` hold for them, too. Keys that mean something in one process only (rows of the driver, broadcast
variables) are neither stored nor recorded.

The journal of a job that was finished or cancelled is worth nothing to the next one, and its rows are deleted. That
of a run of some of the sinks is worth something: it holds what is known of the others, and their rows stay.
Who leads the job, and so may write here, is the dispatcher's to say, by a lock on a file
(`scheduling.job_manager_runner`).

The folder must be one that the driver and the executors see under the same path.
"""

from __future__ import annotations

import hashlib
import logging
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException

from flinkmagic.capturing.writes.targets import Target, resolve_uri
from flinkmagic.planning.stage_handles import StageHandle
from flinkmagic.planning.stage_results import StageResult
from flinkmagic.reuse.durable_rows import DurableRows
from flinkmagic.reuse.durable_store import DurableEntry, durable_store
from flinkmagic.reuse.finished_writes import WITHOUT_KEY, FinishedWrite
from flinkmagic.reuse.job_rows import JobRows, Kept
from flinkmagic.reuse.result_keys import ResultKey
from flinkmagic.reuse.retained_results import RetainedResult
from flinkmagic.reuse.row_files import NotStorableError
from flinkmagic.scheduling.job_status import JobStatus
from flinkmagic.scheduling.recovery.job_graph_store import (
    WORTH_NOTHING,
    StoredJob,
    StoredWrite,
    append_part,
    append_target,
    append_write,
)
from flinkmagic.scheduling.recovery.job_journal import JobJournal

if TYPE_CHECKING:
    from pyspark import SparkContext

_LOG = logging.getLogger(__name__)


def checkpointed_job_id(graph_name: str) -> str:
    """Return the id of a job with checkpoints: a graph of this name continues the last one in its folder."""
    return hashlib.sha256(graph_name.encode()).hexdigest()[:32]


class Checkpoints:
    """The checkpoints of one graph in one folder, for the leader of its job.

    Parameters
    ----------
    folder : Path
        Where the rows are stored.
    former : StoredJob or None
        What the job's former leader left.
    journal : JobJournal
        The leader's; it holds all that `former` knows.
    """

    def __init__(
        self, sc: SparkContext, folder: Path, graph_name: str, former: StoredJob | None, journal: JobJournal
    ) -> None:
        self._name, self._job_id, self._version = graph_name, checkpointed_job_id(graph_name), sc.version
        self._store = durable_store(folder)
        self._rows = DurableRows(sc, self._store)
        self._journal = journal
        self._writes: dict[str, StoredWrite] = {}
        self._targets: dict[str, list[str] | None] = {}
        self._written: set[str] = set()
        self._is_part = False
        if former is not None and not former.is_worth_nothing:
            self._writes, self._targets = dict(former.writes), dict(former.targets)

    @property
    def writes(self) -> Mapping[str, FinishedWrite]:
        """By their keys, the writes that were committed, with the files that these and later ones left there."""
        return {
            key: FinishedWrite(self._targets[write.target], write.replaced_by) for key, write in self._writes.items()
        }

    @property
    def targets(self) -> Sequence[str]:
        """The targets of recorded writes."""
        return list(self._targets)

    # -- reading ---------------------------------------------------------------------------------------

    def find(self, result: StageResult, key: ResultKey) -> RetainedResult | None:
        """Return the rows of a boundary, from disk."""
        read = self._rows.read(self._stored_as(key.digest), result)
        if read is None:
            return None
        _, kept, size = read
        return RetainedResult(
            key.digest, result.kind, self._name, result.handle.name, False, Kept(None, kept), size,
            is_there=kept.are_there,
        )  # fmt: skip

    def _stored_as(self, digest: str) -> str:
        """Return the key under which the store has rows of this job."""
        return hashlib.sha256(f"{self._job_id} {self._version} {digest}".encode()).hexdigest()

    # -- writing ---------------------------------------------------------------------------------------

    def write_rows(self, handle: StageHandle, key: ResultKey, kept: JobRows) -> None:
        """Store the rows of a boundary whose stage is done; on the stage's thread, under its tag."""
        held, stored_as = kept.of(handle), self._stored_as(key.digest)
        if not key.portable or held is None or held.plan is None or self._store.path(stored_as).exists():
            return
        entry = DurableEntry(stored_as, handle.name, 0.0, time.time(), b"", owner=self._job_id)
        try:
            self._rows.write(entry, held)
        except (NotStorableError, OSError, Py4JError, PySparkException) as refusal:
            _LOG.warning("The rows of %r are not in the checkpoint of %r: %s", handle.name, self._name, refusal)
            return
        self._written.add(stored_as)

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
        self._record(append_write, key, write)

    def record_target(self, target: str, files: list[str] | None) -> None:
        """Record what a write has left in a target, its own or one above or below it."""
        self._targets[target] = files
        self._record(append_target, target, files)

    def _record(self, append: Callable[..., None], *what: object) -> None:
        append(self._journal, *what)
        self._journal.sync()

    def begin(self, left_out: Collection[str], *, is_part: bool, is_full: bool) -> None:
        """Note whether the job runs some of the graph's sinks: its end is not the graph's.

        If it computes all of them, no job finds what is known but under the keys that it leaves out.
        """
        self._is_part = is_part
        if is_part:
            self._record(append_part)
        if is_full:
            self._forget_writes(left_out)
            self._store.drop_owned(self._job_id, {self._stored_as(digest) for digest in left_out})

    def job_over(self, status: JobStatus, left_out: Collection[str]) -> None:
        """Let no job find what a job leaves that is over for good; `left_out` are the writes that were not part of it.

        Its rows are deleted, unless it has finished some of the sinks: the others may need them.
        """
        if status not in WORTH_NOTHING:
            return
        if not self._is_part:
            self._store.drop_owned(self._job_id)
            return
        self._forget_writes(left_out)
        if status is JobStatus.CANCELED:
            for stored_as in self._written:
                self._store.drop(stored_as)

    def _forget_writes(self, left_out: Collection[str]) -> None:
        for key in [key for key in self._writes if key not in left_out]:
            self._record_write(key, replace(self._writes[key], replaced_by=(WITHOUT_KEY,)))
