"""Jobs on disk: what is written is read again, and what is not in order is refused and left alone."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from flinkmagic.errors.base import InvariantViolatedError
from flinkmagic.errors.job_store import ForeignJournalError, JobNotStoredError, TornJournalError
from flinkmagic.scheduling.job_status import JobStatus
from flinkmagic.scheduling.recovery import job_journal
from flinkmagic.scheduling.recovery.job_graph_store import (
    JobGraphStore,
    StoredWrite,
    append_part,
    append_status,
    append_target,
    append_write,
)

JOB_ID = "00000000000000000000000000000001"


@pytest.fixture
def store(tmp_path: Path) -> JobGraphStore:
    return JobGraphStore(tmp_path / "jobs")


def some_entries(store: JobGraphStore) -> Path:
    journal = store.begin_journal(JOB_ID, None)
    journal.publish()
    append_status(journal, JobStatus.RUNNING)
    append_target(journal, "file:/tm-1", None)
    append_part(journal)
    journal.close()
    return journal.path


def test_what_was_written_is_read_again(store: JobGraphStore) -> None:
    some_entries(store)
    stored = store.read(JOB_ID)
    assert stored.status is JobStatus.RUNNING
    assert stored.targets == {"file:/tm-1": None}
    assert stored.is_part
    assert [path.name for path in store.folder.iterdir()] == [f"{JOB_ID}.journal"]
    assert not stored.is_over


def test_committed_writes_are_noted_by_key(store: JobGraphStore) -> None:
    journal = store.begin_journal(JOB_ID, None)
    journal.publish()
    append_target(journal, "file:/out", None)
    append_target(journal, "file:/out", ["file:/out/part-0|10|1"])
    append_write(journal, "b", StoredWrite("file:/out"))
    append_target(journal, "file:/none", None)
    append_write(journal, "c", StoredWrite("file:/none"))
    append_write(journal, "b", StoredWrite("file:/out", ("c",)))
    journal.close()
    stored = store.read(JOB_ID)
    assert stored.writes == {"b": StoredWrite("file:/out", ("c",)), "c": StoredWrite("file:/none")}
    assert stored.targets == {"file:/out": ["file:/out/part-0|10|1"], "file:/none": None}


ON = (JobStatus.RUNNING, JobStatus.SUSPENDED, JobStatus.FAILED)


@pytest.mark.parametrize(
    ("status", "kept"), [*((status, 1) for status in ON), (JobStatus.FINISHED, 0), (JobStatus.CANCELED, 0)]
)
def test_the_next_leader_begins_with_the_writes_of_the_last(store, status, kept) -> None:
    journal = store.begin_journal(JOB_ID, None)
    journal.publish()
    append_target(journal, "file:/out", ["file:/out/part-0|10|1"])
    append_write(journal, "b", StoredWrite("file:/out", ("c",)))
    append_status(journal, status)
    journal.close()
    former = store.take_up(JOB_ID)
    following = store.begin_journal(JOB_ID, former)
    assert store.read(JOB_ID).status is status, "the former journal counts until the new one is published"
    following.publish()
    following.close()
    now = store.read(JOB_ID)
    assert (len(now.writes), len(now.targets)) == (kept,) * 2
    assert now.status is None
    assert [path.name for path in store.folder.iterdir()] == [f"{JOB_ID}.journal"]


def test_a_journal_that_is_never_published_leaves_the_former_one(store: JobGraphStore) -> None:
    path = some_entries(store)
    before = path.read_bytes()
    journal = store.begin_journal(JOB_ID, store.take_up(JOB_ID))
    append_status(journal, JobStatus.RUNNING)
    journal.close()
    journal.close()
    assert [each.read_bytes() for each in store.folder.iterdir()] == [before]


def test_a_journal_on_a_full_disk_ends_with_a_warning(
    store: JobGraphStore, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    journal = store.begin_journal(JOB_ID, None)
    journal.publish()
    append_status(journal, JobStatus.RUNNING)
    journal.sync()

    def refuse(file: int, content: bytes) -> None:
        os.write(file, content[:10])
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as full:
        full.setattr(job_journal, "_write", refuse)
        append_status(journal, JobStatus.RESTARTING)
        journal.sync()
    assert "No space left on device" in caplog.text
    append_status(journal, JobStatus.FINISHED)
    journal.close()
    former = store.take_up(JOB_ID)
    assert former is not None
    assert former.status is JobStatus.RUNNING


def test_what_was_not_synced_is_not_there(store: JobGraphStore) -> None:
    journal = store.begin_journal(JOB_ID, None)
    journal.publish()
    append_status(journal, JobStatus.RUNNING)
    assert store.read(JOB_ID).status is None
    journal.sync()
    assert store.read(JOB_ID).status is JobStatus.RUNNING
    journal.close()


def test_every_sync_reaches_the_disk(store: JobGraphStore, monkeypatch: pytest.MonkeyPatch) -> None:
    synced: list[int] = []
    fsync = os.fsync
    monkeypatch.setattr(job_journal.os, "fsync", lambda file: synced.append(file) or fsync(file))
    journal = store.begin_journal(JOB_ID, None)
    journal.publish()
    assert len(synced) == 2  # the file and its folder
    append_status(journal, JobStatus.RUNNING)
    append_status(journal, JobStatus.FINISHED)
    journal.sync()
    journal.sync()
    assert len(synced) == 3
    journal.close()


def test_unknown_jobs_and_names_that_are_no_ids_are_refused(store: JobGraphStore) -> None:
    with pytest.raises(JobNotStoredError):
        store.read("f" * 32)
    with pytest.raises(InvariantViolatedError, match="is the id of a job"):
        store.journal_path("../../etc/passwd")


@pytest.mark.parametrize("cut", range(1, 57, 7))
def test_a_torn_end_is_refused_and_left_alone(store: JobGraphStore, cut: int) -> None:
    path = some_entries(store)
    whole = path.read_bytes()
    path.write_bytes(whole[:-cut])
    with pytest.raises(TornJournalError) as refusal:
        store.read(JOB_ID)
    assert refusal.value.path == str(path)
    assert refusal.value.line == 4
    assert str(path) in str(refusal.value)
    assert whole.startswith(path.read_bytes())
    assert path.read_bytes() == whole[:-cut]


def test_a_leader_puts_a_torn_end_aside_and_goes_on_before_it(store: JobGraphStore) -> None:
    path = some_entries(store)
    whole = path.read_bytes()
    path.write_bytes(whole[:-10])
    stored = store.take_up(JOB_ID)
    assert stored is not None
    assert (len(stored.targets), stored.is_part) == (1, False)
    (aside,) = store.folder.glob("*.torn-*")
    assert path.read_bytes() + aside.read_bytes() == whole[:-10]
    # a second time the next name is taken
    path.write_bytes(path.read_bytes() + b'{"half')
    store.take_up(JOB_ID)
    assert sorted(p.suffix for p in store.folder.glob("*.torn-*")) == [".torn-0", ".torn-1"]


def test_a_cut_through_a_checksum_is_found(store: JobGraphStore) -> None:
    path = some_entries(store)
    whole = path.read_bytes()
    path.write_bytes(whole.replace(b"tm-1", b"tm-2"))
    with pytest.raises(TornJournalError, match=r"line 3: its checksum is wrong") as refusal:
        store.read(JOB_ID)
    assert refusal.value.line == 3
    with pytest.raises(TornJournalError):
        store.take_up(JOB_ID)  # it is not the last line: nothing is put aside
    assert path.read_bytes() == whole.replace(b"tm-1", b"tm-2")


def test_a_line_that_is_missing_or_repeated_is_found(store: JobGraphStore) -> None:
    path = some_entries(store)
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join([*lines[:2], *lines[3:]]))
    with pytest.raises(TornJournalError, match="entry 2, where entry 1 should be"):
        store.read(JOB_ID)
    path.write_bytes(b"".join([*lines, lines[-1]]))
    with pytest.raises(TornJournalError, match="entry 2, where entry 3 should be"):
        store.read(JOB_ID)


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"", "its first line is no JSON"),
        (b"PK\x03\x04 a zip file", "its first line is no JSON"),
        (b'{"name": "a topology"}\n', "it does not say that it is a job journal"),
        (b"[1, 2]\n", "it does not say that it is a job journal"),
        (json.dumps({"format": "flinkmagic-job-journal", "version": 6, "job_id": JOB_ID}).encode(), "of version 6"),
        (
            json.dumps({"format": "flinkmagic-job-journal", "version": 5, "job_id": "f" * 32}).encode() + b"\n",
            f"it is the journal of job {'f' * 32}",
        ),
    ],
)
def test_a_foreign_file_is_refused_and_left_alone(store: JobGraphStore, content: bytes, reason: str) -> None:
    path = store.journal_path(JOB_ID)
    path.write_bytes(content)
    for attempt in (store.read, store.take_up):
        with pytest.raises(ForeignJournalError, match=reason) as refusal:
            attempt(JOB_ID)
        assert refusal.value.path == str(path)
        assert "Nothing was changed" in str(refusal.value)
    assert path.read_bytes() == content


def test_a_journal_that_ends_in_its_first_line_is_refused(store: JobGraphStore) -> None:
    header = json.dumps({"format": "flinkmagic-job-journal", "version": 5, "job_id": JOB_ID}).encode()
    store.journal_path(JOB_ID).write_bytes(header)
    with pytest.raises(TornJournalError):
        store.take_up(JOB_ID)
    assert store.journal_path(JOB_ID).read_bytes() == header


def test_a_journal_of_an_older_version_is_worth_nothing(store: JobGraphStore, caplog: pytest.LogCaptureFixture) -> None:
    path = store.journal_path(JOB_ID)
    header = {"format": "flinkmagic-job-journal", "version": 3, "job_id": JOB_ID}
    path.write_text(f"{json.dumps(header)}\nwhat that version noted\n")
    assert store.take_up(JOB_ID) is None
    assert "older version" in caplog.text
    journal = store.begin_journal(JOB_ID, None)
    journal.publish()
    append_status(journal, JobStatus.RUNNING)
    journal.close()
    assert store.read(JOB_ID).status is JobStatus.RUNNING
    assert [one.name for one in store.folder.iterdir()] == [path.name]
