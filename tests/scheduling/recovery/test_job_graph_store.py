"""Jobs on disk: what is written is read again, and what is not in order is refused and left alone."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from flinkmagic.conformance.report import report_execution_graph, report_slot_sharing
from flinkmagic.errors.job_store import ForeignJournalError, JobNotStoredError, TornJournalError
from flinkmagic.graph.execution_graph import build_execution_graph
from flinkmagic.graph.job_graph import JobGraph
from flinkmagic.graph.slot_sharing import local_input_preferred
from flinkmagic.scheduling.job_status import JobStatus
from flinkmagic.scheduling.recovery import job_journal
from flinkmagic.scheduling.recovery.job_graph_codec import decode_job_graph, encode_job_graph
from flinkmagic.scheduling.recovery.job_graph_store import (
    FinishedTask,
    JobGraphStore,
    StoredDataset,
    StoredWrite,
    append_dataset,
    append_finished,
    append_reset,
    append_status,
    append_target,
    append_write,
)

JOB_ID = "00000000000000000000000000000001"
STAGES = [("map", 2, ()), ("reduce", 3, ("map:hash",))]


@pytest.fixture
def store(tmp_path: Path) -> JobGraphStore:
    return JobGraphStore(tmp_path / "jobs")


def some_entries(store: JobGraphStore, job_graph: JobGraph) -> Path:
    journal = store.begin_journal(job_graph, None)
    journal.publish()
    vertex_id = next(iter(job_graph.vertices))
    append_status(journal, JobStatus.RUNNING)
    append_finished(journal, [FinishedTask(vertex_id, 0, 1, "tm-1"), FinishedTask(vertex_id, 1, 0, None)])
    append_reset(journal, [(vertex_id, 1)])
    journal.close()
    return journal.path


def test_what_was_written_is_read_again(store: JobGraphStore, job) -> None:
    job_graph = job(STAGES)
    some_entries(store, job_graph)
    stored = store.read(JOB_ID)
    vertex_id = next(iter(job_graph.vertices))
    assert stored.status is JobStatus.RUNNING
    assert stored.finished == {(vertex_id, 0): FinishedTask(vertex_id, 0, 1, "tm-1")}
    assert encode_job_graph(stored.job_graph) == encode_job_graph(job_graph)
    assert [path.name for path in store.folder.iterdir()] == [f"{JOB_ID}.journal"]
    assert not stored.is_over


def test_rows_and_committed_writes_are_noted_by_key(store: JobGraphStore, job) -> None:
    journal = store.begin_journal(job(STAGES), None)
    journal.publish()
    dataset = StoredDataset("a", "a.parquet", '{"type":"struct","fields":[]}')
    append_dataset(journal, dataset)
    append_target(journal, "file:/out", None)
    append_target(journal, "file:/out", ["file:/out/part-0|10|1"])
    append_write(journal, "b", StoredWrite("file:/out"))
    append_target(journal, "file:/none", None)
    append_write(journal, "c", StoredWrite("file:/none"))
    append_write(journal, "b", StoredWrite("file:/out", ("c",)))
    journal.close()
    stored = store.read(JOB_ID)
    assert stored.datasets == {"a": dataset}
    assert stored.writes == {"b": StoredWrite("file:/out", ("c",)), "c": StoredWrite("file:/none")}
    assert stored.targets == {"file:/out": ["file:/out/part-0|10|1"], "file:/none": None}


ON = (JobStatus.RUNNING, JobStatus.SUSPENDED, JobStatus.FAILED)


@pytest.mark.parametrize(
    ("status", "kept"), [*((status, 1) for status in ON), (JobStatus.FINISHED, 0), (JobStatus.CANCELED, 0)]
)
def test_the_next_leader_begins_with_the_rows_and_writes_of_the_last(store, job, status, kept) -> None:
    journal = store.begin_journal(job(STAGES), None)
    journal.publish()
    append_dataset(journal, StoredDataset("a", "a.parquet", "{}"))
    append_target(journal, "file:/out", ["file:/out/part-0|10|1"])
    append_write(journal, "b", StoredWrite("file:/out", ("c",)))
    append_finished(journal, [FinishedTask("v", 0, 0, None)])
    append_status(journal, status)
    journal.close()
    former = store.take_up(JOB_ID)
    following = store.begin_journal(job(STAGES), former)
    assert store.read(JOB_ID).status is status, "the former journal counts until the new one is published"
    following.publish()
    following.close()
    now = store.read(JOB_ID)
    assert (len(now.datasets), len(now.writes), len(now.targets)) == (kept,) * 3
    assert (now.status, now.finished) == (None, {})
    assert [path.name for path in store.folder.iterdir()] == [f"{JOB_ID}.journal"]


def test_a_journal_that_is_never_published_leaves_the_former_one(store: JobGraphStore, job) -> None:
    path = some_entries(store, job(STAGES))
    before = path.read_bytes()
    journal = store.begin_journal(job(STAGES), store.take_up(JOB_ID))
    append_status(journal, JobStatus.RUNNING)
    journal.close()
    journal.close()
    assert [each.read_bytes() for each in store.folder.iterdir()] == [before]


def test_a_journal_on_a_full_disk_ends_with_a_warning(
    store: JobGraphStore, job, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    journal = store.begin_journal(job(STAGES), None)
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


def test_what_was_not_synced_is_not_there(store: JobGraphStore, job) -> None:
    journal = store.begin_journal(job(STAGES), None)
    journal.publish()
    append_status(journal, JobStatus.RUNNING)
    assert store.read(JOB_ID).status is None
    journal.sync()
    assert store.read(JOB_ID).status is JobStatus.RUNNING
    journal.close()


def test_every_sync_reaches_the_disk(store: JobGraphStore, job, monkeypatch: pytest.MonkeyPatch) -> None:
    synced: list[int] = []
    fsync = os.fsync
    monkeypatch.setattr(job_journal.os, "fsync", lambda file: synced.append(file) or fsync(file))
    journal = store.begin_journal(job(STAGES), None)
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
    with pytest.raises(ValueError, match="no job id"):
        store.journal_path("../../etc/passwd")


@pytest.mark.parametrize("cut", range(1, 60, 7))
def test_a_torn_end_is_refused_and_left_alone(store: JobGraphStore, job, cut: int) -> None:
    path = some_entries(store, job(STAGES))
    whole = path.read_bytes()
    path.write_bytes(whole[:-cut])
    with pytest.raises(TornJournalError) as refusal:
        store.read(JOB_ID)
    assert refusal.value.path == str(path)
    assert refusal.value.line == 5
    assert str(path) in str(refusal.value)
    assert whole.startswith(path.read_bytes())
    assert path.read_bytes() == whole[:-cut]


def test_a_leader_puts_a_torn_end_aside_and_goes_on_before_it(store: JobGraphStore, job) -> None:
    path = some_entries(store, job(STAGES))
    whole = path.read_bytes()
    path.write_bytes(whole[:-10])
    stored = store.take_up(JOB_ID)
    assert stored is not None
    assert len(stored.finished) == 2  # the reset was never finished
    (aside,) = store.folder.glob("*.torn-*")
    assert path.read_bytes() + aside.read_bytes() == whole[:-10]
    # a second time the next name is taken
    path.write_bytes(path.read_bytes() + b'{"half')
    store.take_up(JOB_ID)
    assert sorted(p.suffix for p in store.folder.glob("*.torn-*")) == [".torn-0", ".torn-1"]


def test_a_cut_through_a_checksum_is_found(store: JobGraphStore, job) -> None:
    path = some_entries(store, job(STAGES))
    whole = path.read_bytes()
    path.write_bytes(whole.replace(b"tm-1", b"tm-2"))
    with pytest.raises(TornJournalError, match=r"line 4: its checksum is wrong") as refusal:
        store.read(JOB_ID)
    assert refusal.value.line == 4
    with pytest.raises(TornJournalError):
        store.take_up(JOB_ID)  # it is not the last line: nothing is put aside
    assert path.read_bytes() == whole.replace(b"tm-1", b"tm-2")


def test_a_line_that_is_missing_or_repeated_is_found(store: JobGraphStore, job) -> None:
    path = some_entries(store, job(STAGES))
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join([*lines[:3], *lines[4:]]))
    with pytest.raises(TornJournalError, match="entry 3, where entry 2 should be"):
        store.read(JOB_ID)
    path.write_bytes(b"".join([*lines, lines[-1]]))
    with pytest.raises(TornJournalError, match="entry 3, where entry 4 should be"):
        store.read(JOB_ID)


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"", "its first line is no JSON"),
        (b"PK\x03\x04 a zip file", "its first line is no JSON"),
        (b'{"name": "a topology"}\n', "it does not say that it is a job journal"),
        (b"[1, 2]\n", "it does not say that it is a job journal"),
        (json.dumps({"format": "flinkmagic-job-journal", "version": 4, "job_id": JOB_ID}).encode(), "of version 4"),
        (
            json.dumps({"format": "flinkmagic-job-journal", "version": 3, "job_id": "f" * 32}).encode() + b"\n",
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


def test_a_journal_without_a_job_graph_is_refused(store: JobGraphStore) -> None:
    header = json.dumps({"format": "flinkmagic-job-journal", "version": 3, "job_id": JOB_ID}).encode()
    for content in (header, header + b"\n"):
        store.journal_path(JOB_ID).write_bytes(content)
        with pytest.raises(TornJournalError):
            store.take_up(JOB_ID)
        assert store.journal_path(JOB_ID).read_bytes() == content


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"batch": False},
        {"shuffle_mode": "ALL_EXCHANGES_HYBRID_FULL"},
        {"reduce": {"slot_sharing_group": "wide", "uid": "me", "description": "adds up", "metadata": {"line": 3}}},
    ],
)
def test_a_job_graph_goes_to_json_and_back(job, settings) -> None:
    stages = [("a", 2, ()), ("b", 1, ()), ("reduce", 3, ("a:hash", "b:broadcast"))]
    stages += [("x", 3, ("reduce",)), ("y", 1, ("a:rescale",))]
    before = job(stages, **settings)
    after = decode_job_graph(json.loads(json.dumps(encode_job_graph(before))))
    orders = [[v.id for v in graph.vertices_in_topological_order()] for graph in (before, after)]
    assert orders[0] == orders[1]
    graphs = build_execution_graph(before), build_execution_graph(after)
    reports = [report_execution_graph(graph) for graph in graphs]
    assert reports[0] == reports[1]
    sharing = [report_slot_sharing(graph, local_input_preferred(graph)) for graph in graphs]
    assert sharing[0] == sharing[1]
    assert [r.id for r in graphs[0].results] == [r.id for r in graphs[1].results]
    node = next(v for v in after.vertices.values() if "reduce" in v.name).head
    expected = settings.get("reduce", {})
    assert (node.uid, node.description, node.metadata) == (
        expected.get("uid"), expected.get("description"), expected.get("metadata"),
    )  # fmt: skip
    assert node.operator_factory is None


def test_co_location_survives(job) -> None:
    pinned = {"co_location_group": "pinned"}
    stages = [("a", 2, ()), ("b", 2, ("a:forward",)), ("c", 2, ("b:forward",))]
    after = decode_job_graph(encode_job_graph(job(stages, batch=False, a=pinned, c=pinned)))
    (group,) = after.co_location_groups
    assert group.name == "pinned"
    assert sorted(vertex.name for vertex in group.vertices) == ["Sink: c", "Source: a"]
    assert all(vertex.co_location_group is group for vertex in group.vertices)
