"""Stores the jobs of a folder, and how far they came (Flink's `JobGraphStore` and `JobResultStore`).

Departure: no graph is stored, and no finished task. A process that takes a job up plans the same program again; what
the former one's tasks made is gone with it, except the writes that are recorded here, and stored rows.
"""

from __future__ import annotations

import logging
import re
from dataclasses import dataclass, field
from pathlib import Path

from flinkmagic.errors.base import InvariantViolatedError
from flinkmagic.errors.job_store import JobNotStoredError
from flinkmagic.scheduling.job_status import JobStatus
from flinkmagic.scheduling.recovery.job_journal import JobJournal, cut_torn_tail, is_outdated, read_journal

_LOG = logging.getLogger(__name__)

_SUFFIX = ".journal"
WORTH_NOTHING = (JobStatus.FINISHED, JobStatus.CANCELED)
"""The statuses of jobs that leave nothing to continue from."""


@dataclass(frozen=True)
class StoredWrite:
    """A write that is committed: where to, and the keys of later writes that overwrote what it left there."""

    target: str
    replaced_by: tuple[str, ...] = ()


@dataclass
class StoredJob:
    """What a journal says about a job."""

    status: JobStatus | None = None
    """The last status that was noted; None if the job never started."""
    writes: dict[str, StoredWrite] = field(default_factory=dict)
    """The committed writes, by key."""
    targets: dict[str, list[str] | None] = field(default_factory=dict)
    """By target, the files that the last write to it, or into it, left there; None if there were none."""
    is_part: bool = False
    """Whether the job ran only some of its graph's sinks; what is known of the others outlives its end."""

    @property
    def is_over(self) -> bool:
        """Whether the job has come to its end."""
        return self.status is not None and self.status.is_globally_terminal

    @property
    def is_worth_nothing(self) -> bool:
        """Whether the job leaves nothing to continue from."""
        return self.status in WORTH_NOTHING and not self.is_part


class JobGraphStore:
    """Keeps jobs in a folder, which is made if needed; one journal each.

    Reading needs no lock. To write, one must lead the job (hold the lock on `lock_path`).
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir(parents=True, exist_ok=True)

    def journal_path(self, job_id: str) -> Path:
        """Return the path of a job's journal."""
        if not re.fullmatch(r"[0-9a-f]{32}", job_id):
            raise InvariantViolatedError(f"{job_id!r} is the id of a job")
        return self.folder / f"{job_id}{_SUFFIX}"

    def lock_path(self, job_id: str) -> Path:
        """Return the file whose lock makes the leader of a job."""
        return self.journal_path(job_id).with_suffix(".lock")

    def read(self, job_id: str) -> StoredJob:
        """Return what is known about a job; raise if its journal is torn or foreign."""
        path = self.journal_path(job_id)
        if not path.exists():
            raise JobNotStoredError(job_id, str(self.folder))
        stored = StoredJob()
        for entry in read_journal(path):
            if entry.kind == "job_status":
                stored.status = JobStatus(entry.data["status"])
            elif entry.kind == "write_committed":
                write = StoredWrite(entry.data["target"], tuple(entry.data["replaced_by"]))
                stored.writes[entry.data["key"]] = write
            elif entry.kind == "target_listed":
                stored.targets[entry.data["target"]] = entry.data["files"]
            elif entry.kind == "part_of_graph":
                stored.is_part = True
        return stored

    def take_up(self, job_id: str) -> StoredJob | None:
        """Return what a former leader left of a job; None if there was none. Only for its leader.

        A last line that the former leader could not finish is moved aside: it never counted. A journal of an older
        version of this program is worth nothing, and is replaced by the next one.
        """
        path = self.journal_path(job_id)
        if not path.exists():
            return None
        if is_outdated(path):
            _LOG.warning("%s was written by an older version: the job begins anew", path)
            return None
        cut_torn_tail(path)
        return self.read(job_id)

    def begin_journal(self, job_id: str, former: StoredJob | None) -> JobJournal:
        """Begin the journal of a job's new leader; it counts from `JobJournal.publish` on. Only for its leader.

        The writes that `former` knows are part of it. What a job left that was finished or cancelled is worth nothing.
        """
        journal = JobJournal(self.journal_path(job_id), job_id)
        if former is not None and not former.is_worth_nothing:
            for target, files in former.targets.items():
                append_target(journal, target, files)
            for key, write in former.writes.items():
                append_write(journal, key, write)
        return journal


def append_write(journal: JobJournal, key: str, write: StoredWrite) -> None:
    """Record that a write is committed, or overwritten; `append_target` says what its target held then."""
    journal.append("write_committed", {"key": key, "target": write.target, "replaced_by": list(write.replaced_by)})


def append_target(journal: JobJournal, target: str, files: list[str] | None) -> None:
    """Record what the target of writes holds."""
    journal.append("target_listed", {"target": target, "files": files})


def append_part(journal: JobJournal) -> None:
    """Record that the job runs some of its graph's sinks."""
    journal.append("part_of_graph", {})


def append_status(journal: JobJournal, status: JobStatus) -> None:
    """Record the status of the job."""
    journal.append("job_status", {"status": status.value})
