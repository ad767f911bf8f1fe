"""What goes wrong with jobs that are recorded on disk."""

from __future__ import annotations

from flinkmagic.errors.base import UserError


class JobStoreError(UserError):
    """A store of jobs that cannot be used in its present state."""


class ForeignJournalError(JobStoreError):
    """A file in a store of jobs that is not a journal of this program."""

    path: str
    reason: str

    template = "{path} is not used: {reason}. Nothing was changed; move the file elsewhere to continue."


class TornJournalError(JobStoreError):
    """A job's journal that is damaged."""

    path: str
    line: int
    reason: str
    intact_bytes: int

    template = (
        "{path} is damaged in line {line}: {reason}. Nothing was changed; its first {intact_bytes} bytes are "
        "in order. Restore the file, or submit the job again."
    )


class CheckpointInUseError(JobStoreError):
    """A graph is run with a checkpoint folder that another process is using."""

    name: str
    folder: str

    template = (
        "The graph {name!r} is being run with the checkpoints in {folder}, by another process or an earlier run. "
        "Wait until that has ended, or choose another folder."
    )


class JobLedElsewhereError(JobStoreError):
    """A job that another process, or an earlier submission, leads."""

    path: str

    template = "The job is led elsewhere: {path} is locked. Wait until it has ended there."


class JobNotStoredError(JobStoreError):
    """A job that the store does not have."""

    job_id: str
    folder: str

    template = "There is no job {job_id} in {folder}. Name the folder that it was submitted with."
