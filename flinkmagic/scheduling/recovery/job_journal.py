"""Keeps one job's journal on disk: an append-only file of JSON lines, read by the process that takes the job up.

The first line says what the file is; each further one tells what became of the job. A line ends with a newline and
holds a number, counted from 0, and a checksum of the rest of it. So a line that was cut off, lost or altered is found.
A file that is not in order is refused, with its path and the reason, and is never written to: `cut_torn_tail`, which
only the owner of the lock may call, puts the torn end of a file aside into another one first.

Rejected: one file for each fact (Flink's state handles in ZooKeeper): many small files to sync, and no order
among them. A database: one more dependency, only to append lines.
"""

from __future__ import annotations

import json
import logging
import os
import threading
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from flinkmagic.errors.job_store import ForeignJournalError, TornJournalError

_LOG = logging.getLogger(__name__)

FORMAT = "flinkmagic-job-journal"
VERSION = 5

Record = dict[str, Any]


@dataclass(frozen=True)
class JournalEntry:
    """One line of a journal."""

    kind: str
    data: Record


class JobJournal:
    """Appends to a journal. Only the leader of the job has one open for writing; callable from any thread.

    `append` collects, `sync` writes what was collected in one piece and waits until it is on the disk. What
    was not synced when the process dies never happened, as far as the next one knows.

    A new journal is written beside the one that it replaces, which counts until `publish`.
    """

    def __init__(self, path: Path, job_id: str) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        header = {"format": FORMAT, "version": VERSION, "job_id": job_id}
        self.path = path
        self._pending = [json.dumps(header).encode() + b"\n"]
        self._next_number = 0
        self._lock = threading.Lock()
        self._draft: Path | None = path.with_name(f"{path.name}.draft")
        self._file: int | None = os.open(self._draft, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_TRUNC)

    def append(self, kind: str, data: Record) -> None:
        """Add an entry."""
        with self._lock:
            self._pending.append(_encode(self._next_number, kind, data))
            self._next_number += 1

    def sync(self) -> None:
        """Write all entries to the disk.

        The job itself does not need that disk. If it takes no more data, a warning says so and the journal ends: what
        comes later is not recorded, and a line that was cut off is put aside by whoever takes the job up.
        """
        with self._lock:
            try:
                self._sync()
            except OSError as refusal:
                _LOG.warning("%s cannot be written any more, the job goes on without it: %s", self.path, refusal)
                self._end()

    def publish(self) -> None:
        """Replace the former journal by this one, whole or not at all; raise `OSError` if the disk refuses it."""
        with self._lock:
            self._sync()
            if self._draft is not None:
                os.replace(self._draft, self.path)
                self._draft = None
                _sync_folder(self.path.parent)

    def close(self) -> None:
        """Sync, and write no more; a journal that was never published is deleted."""
        if self._draft is None:
            self.sync()
        with self._lock:
            if self._draft is not None:
                self._draft.unlink()
                self._draft = None
            self._end()

    def _sync(self) -> None:
        if self._file is None:
            self._pending.clear()
        elif self._pending:
            _write(self._file, b"".join(self._pending))
            os.fsync(self._file)
            self._pending.clear()

    def _end(self) -> None:
        self._pending.clear()
        if self._file is not None:
            os.close(self._file)
            self._file = None


def is_outdated(path: Path) -> bool:
    """Return whether a file is a journal of an older version."""
    try:
        with path.open("rb") as file:
            header = json.loads(file.readline())
    except ValueError:
        return False
    return isinstance(header, dict) and header.get("format") == FORMAT and header.get("version", VERSION) < VERSION


def read_journal(path: Path) -> Iterator[JournalEntry]:
    """Yield all entries of a journal; raise for the first thing that is wrong."""
    raw = path.read_bytes()
    end = raw.find(b"\n")
    _check_header(path, raw if end < 0 else raw[:end])
    if end < 0:
        raise TornJournalError(str(path), 1, "the line is cut off", 0)
    position, number = end + 1, 0
    while position < len(raw):
        end = raw.find(b"\n", position)
        if end < 0:
            raise TornJournalError(str(path), number + 2, "the line is cut off", position)
        problem, entry = _decode(raw[position:end], number)
        if entry is None:
            raise TornJournalError(str(path), number + 2, problem, position)
        yield entry
        position, number = end + 1, number + 1


def cut_torn_tail(path: Path) -> None:
    """Move a torn last line into another file, and shorten the journal by it.

    A journal that is damaged before its last line is refused as always.
    Only the holder of the job's lock may call this: its writer must be gone.
    """
    try:
        for _ in read_journal(path):
            pass
    except TornJournalError as torn:
        raw = path.read_bytes()
        rest = raw[torn.intact_bytes :]
        if torn.intact_bytes == 0 or b"\n" in rest[:-1]:
            raise
        _put_aside(path, rest)
        with path.open("r+b") as file:
            file.truncate(torn.intact_bytes)
            os.fsync(file.fileno())


def _put_aside(path: Path, rest: bytes) -> None:
    number = 0
    while True:
        aside = path.with_name(f"{path.name}.torn-{number}")
        try:
            with aside.open("xb") as file:
                file.write(rest)
                file.flush()
                os.fsync(file.fileno())
        except FileExistsError:
            number += 1
            continue
        _sync_folder(path.parent)
        return


def _check_header(path: Path, line: bytes) -> None:
    try:
        header = json.loads(line)
    except ValueError:
        raise ForeignJournalError(str(path), "its first line is no JSON") from None
    if not isinstance(header, dict) or header.get("format") != FORMAT:
        raise ForeignJournalError(str(path), "it does not say that it is a job journal")
    if header.get("version") != VERSION:
        raise ForeignJournalError(
            str(path), f"it is of version {header.get('version')}, and this program reads version {VERSION}"
        )
    if not path.name.startswith(f"{header.get('job_id')}."):
        raise ForeignJournalError(str(path), f"it is the journal of job {header.get('job_id')}")


def _encode(number: int, kind: str, data: Record) -> bytes:
    body = json.dumps([number, kind, data], separators=(",", ":"), ensure_ascii=True)
    return json.dumps({"crc": f"{zlib.crc32(body.encode()):08x}", "entry": body}).encode() + b"\n"


def _decode(line: bytes, expected: int) -> tuple[str, JournalEntry | None]:
    try:
        outer = json.loads(line)
        body = outer["entry"]
        if f"{zlib.crc32(body.encode()):08x}" != outer["crc"]:
            return "its checksum is wrong", None
        number, kind, data = json.loads(body)
    except (ValueError, KeyError, TypeError, AttributeError):
        return "it is no entry", None
    if number != expected:
        return f"it is entry {number}, where entry {expected} should be", None
    return "", JournalEntry(kind, data)


def _write(file: int, content: bytes) -> None:
    view = memoryview(content)
    while view:
        view = view[os.write(file, view) :]


def _sync_folder(folder: Path) -> None:
    if os.name == "posix":  # elsewhere folders cannot be synced
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
