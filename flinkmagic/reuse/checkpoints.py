"""Records on disk how far a job came, so that another process can take it up (``--checkpoint-dir``).

The rows of each boundary are written to files (`row_files`) when its stage is done, and recorded in the job's journal
(`scheduling.recovery.job_graph_store`) under the key of the rows; so is each write that is committed, and what its
target then holds. A process that runs the same graph later, and finds the journal of a job that is not over, reads the
rows from there where the keys are equal, and leaves the finished writes alone where nothing has changed: rules 2 and 5
of `retention` hold for them, too. Keys that mean something in one process only (rows of the driver, broadcast
variables) are not recorded.

The journal of a job that was finished or cancelled is worth nothing to the next one, and its rows are deleted. That
of a run of some of the sinks is worth something: it holds what is known of the others, and rows that these may need.
Who leads the job, and so may write here, is the dispatcher's to say (`scheduling.recovery.high_availability`), by a
lock on a file (`leader_election`).

The folder must be one that the driver and the executors see under the same path.
"""

from __future__ import annotations

import hashlib
import logging
import shutil
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException

from flinkmagic.capturing.writes.targets import Target, resolve_uri
from flinkmagic.planning.stage_handles import StageHandle
from flinkmagic.planning.stage_results import StageResult
from flinkmagic.reuse.finished_writes import WITHOUT_KEY, FinishedWrite
from flinkmagic.reuse.job_rows import JobRows, Kept, KeptRows
from flinkmagic.reuse.result_keys import ResultKey
from flinkmagic.reuse.retained_results import RetainedResult
from flinkmagic.reuse.row_files import NotStorableError, row_files, stored_schema
from flinkmagic.scheduling.job_status import JobStatus
from flinkmagic.scheduling.recovery.job_graph_store import (
    WORTH_NOTHING,
    StoredDataset,
    StoredJob,
    StoredWrite,
    append_dataset,
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
        Where the rows are written, in a folder of the job's.
    former : StoredJob or None
        What the job's former leader left.
    journal : JobJournal
        The leader's; it holds all that `former` knows.
    """

    def __init__(
        self, sc: SparkContext, folder: Path, graph_name: str, former: StoredJob | None, journal: JobJournal
    ) -> None:
        self._sc = sc
        self._name = graph_name
        self._rows = folder / checkpointed_job_id(graph_name)
        self._journal = journal
        self._datasets: dict[str, StoredDataset] = {}
        self._writes: dict[str, StoredWrite] = {}
        self._targets: dict[str, list[str] | None] = {}
        self._written: set[str] = set()
        self._is_part = False
        if former is not None and not former.is_worth_nothing:
            self._writes, self._targets = dict(former.writes), dict(former.targets)
            self._datasets = {
                key: dataset
                for key, dataset in former.datasets.items()
                if (self._rows / dataset.folder / "_SUCCESS").exists()
            }

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
        dataset = self._datasets.get(key.digest)
        session = result.handle.session
        if dataset is None or result.over is None or session is None:
            return None
        try:
            schema = stored_schema(result.plan.schema().json())
            files = row_files(self._sc, session)
            builder = result.over(files.read([str(self._rows / dataset.folder)], schema, dataset.partitions))
        except (Py4JError, PySparkException, NotStorableError) as error:
            _LOG.warning(
                "The rows of %r in the checkpoint of %r are not read: %s", result.handle.name, self._name, error
            )
            return None
        if builder is None:
            return None
        kept = Kept(None, KeptRows(builder, partial(builder.clearCache, False)))
        return RetainedResult(key.digest, result.kind, self._name, result.handle.name, False, kept, 0)

    # -- writing ---------------------------------------------------------------------------------------

    def write_rows(self, handle: StageHandle, key: ResultKey, kept: JobRows) -> None:
        """Write and record the rows of a boundary whose stage is done; on the stage's thread, under its tag."""
        held = kept.of(handle)
        if not key.portable or key.digest in self._datasets or held is None or held.plan is None:
            return
        folder = f"{key.digest[:32]}.parquet"
        try:
            files = row_files(self._sc, handle.session)
            rows = files.rows(held.plan)
            files.write(rows, stored_schema(held.plan.schema().json()), str(self._rows / folder))
        except (Py4JError, PySparkException, NotStorableError) as refusal:
            _LOG.warning("The rows of %r are not in the checkpoint of %r: %s", handle.name, self._name, refusal)
            return
        dataset = StoredDataset(key.digest, folder, int(rows.getNumPartitions()))
        self._datasets[key.digest] = dataset
        self._written.add(key.digest)
        self._record(append_dataset, dataset)

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

    def begin_part(self) -> None:
        """Note that the job runs some of the graph's sinks: its end is not the graph's."""
        self._is_part = True
        self._record(append_part)

    def forget(self, left_out: Collection[str]) -> None:
        """Let no job find the rows and the writes that are known, except those of these keys."""
        self._delete_rows(self._datasets.keys() - left_out)
        self._forget_writes(left_out)

    def job_over(self, status: JobStatus, left_out: Collection[str]) -> None:
        """Let no job find what a job leaves that is over for good; `left_out` are the writes that were not part of it.

        Its rows are deleted, unless it has finished some of the sinks: the others may need them.
        """
        if status not in WORTH_NOTHING:
            return
        if not self._is_part:
            shutil.rmtree(self._rows, ignore_errors=True)
            return
        self._forget_writes(left_out)
        if status is JobStatus.CANCELED:
            self._delete_rows(self._written)

    def _forget_writes(self, left_out: Collection[str]) -> None:
        for key in [key for key in self._writes if key not in left_out]:
            self._record_write(key, replace(self._writes[key], replaced_by=(WITHOUT_KEY,)))

    def _delete_rows(self, keys: Iterable[str]) -> None:
        for key in list(keys):
            shutil.rmtree(self._rows / self._datasets.pop(key).folder, ignore_errors=True)
