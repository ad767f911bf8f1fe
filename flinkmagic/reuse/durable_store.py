"""Stores small results in a folder, for later processes.

An entry is a file that is named by its key. It begins with a line that names the format, and one with a checksum of all
that follows: a line of JSON that describes the result, and its bytes. Nothing in it is executed, imported or unpickled.

Invariants:

- A file under its final name is complete: it is written under another name, synced, and renamed. Two processes that
  store the same result write equal ones, and the last one stays; there is no lock to wait for, or to be left behind.
- What is read is what was written: an entry whose checksum, key or form is wrong is removed, and counts as absent.
- An entry, and the folder, are for their owner alone. Entries of other users are neither read nor removed.

Storing is done on one thread of low priority. What takes longer to store and read than to compute is not stored. If the
folder is full, what saves least time per byte leaves it.
"""

from __future__ import annotations

import atexit
import functools
import hashlib
import json
import logging
import os
import queue
import secrets
import shutil
import stat
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from flinkmagic.errors.durable import FolderRefusedError, damaged, not_stored
from flinkmagic.jvm.block_storage import LEAST_FREE_DISK

_LOG = logging.getLogger(__name__)

DEFAULT_BYTES = 4 * 2**30
"""How much a folder holds by default."""

MOST_OF_ONE = 16 * 2**20
"""How many bytes one entry may have: many times of what the answers take that are stored."""

WRITE_S = 0.02
"""What it takes to write, sync, rename, find and open a small file, at least."""

KERNEL = secrets.token_hex(8)
"""What this process is called in the entries that it stores."""

_FORMAT = b"flinkmagic durable 1"
_FOLDER = "flinkmagic-answers"
_TEMPORARY = ".storing-"
_LEFT_BEHIND_S = 3600
_MOST_SECONDS = 366 * 86400.0
_LAST_S = 2.0
"""How long a process that ends waits for what is being stored."""

_HEAD = 4096
"""How many bytes of an entry are read to know what it saves."""

_LONGEST_CALL = 500


@dataclass(frozen=True)
class DurableEntry:
    """A stored result."""

    key: str
    what: str
    """The call as it was written."""
    seconds: float
    """How long it took when it was computed."""
    made_at: float
    """When that was."""
    content: bytes
    """What `stored_answers` makes of it."""
    kernel: str = KERNEL
    """The process that computed it."""


@dataclass(frozen=True)
class _Order:
    """A result that is to be stored."""

    make: Callable[[], DurableEntry | None]
    seconds: float
    on_stored: Callable[[], object]


class DamagedError(Exception):
    """An entry that is not as it was written. Users are told by the store."""


class DurableStore:
    """The entries of one folder; can be used from any thread.

    Parameters
    ----------
    folder : Path
        Is made, for the user alone, when something is stored; the entries lie in a folder in it.
    most_bytes : int
        What all entries may have together.
    """

    def __init__(self, folder: Path, most_bytes: int = DEFAULT_BYTES) -> None:
        self.folder = folder
        self.most_bytes = most_bytes
        self._entries = folder / _FOLDER
        self._waiting: queue.SimpleQueue[_Order] = queue.SimpleQueue()
        self._undone = 0
        self._done = threading.Condition()
        self._thread: threading.Thread | None = None
        self._is_told = False
        self._worth: dict[str, tuple[int, float]] = {}
        """By key the bytes of an entry, and the seconds that it saves; used on the storing thread only."""

    def prepared(self) -> Path:
        """Make the folder, for the user alone, and return it.

        Raises
        ------
        FolderRefusedError
            If entries cannot be stored there.
        """
        try:
            self._make_folders()
            if not os.access(self._entries, os.R_OK | os.W_OK | os.X_OK):
                raise PermissionError(f"{self._entries} is another user's")
        except OSError as error:
            raise FolderRefusedError(str(self.folder), error) from error
        return self.folder

    def _make_folders(self) -> None:
        for folder in (self.folder, self._entries):
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)

    def path(self, key: str) -> Path:
        """Return the file of an entry, whether there is one or not."""
        return self._entries / key

    def find(self, key: str) -> DurableEntry | None:
        """Return an entry; None if there is none, or none that is whole and the user's own."""
        try:
            read = _read_own(self.path(key))
            return None if read is None else _parsed(read, key)
        except FileNotFoundError:
            return None
        except OSError as error:
            _LOG.debug("%s is not read: %s", key, error)
            return None
        except DamagedError as error:
            self.drop_damaged(key, error)
            return None

    def drop_damaged(self, key: str, why: Exception) -> None:
        """Remove an entry that cannot be what was stored, and say so in one line."""
        self.drop(key)
        print(damaged(str(self.path(key)), why), file=sys.stderr)

    def drop(self, key: str) -> None:
        """Remove an entry, if it is there."""
        with suppress(OSError):
            self.path(key).unlink()

    def store_later(
        self, make: Callable[[], DurableEntry | None], seconds: float, on_stored: Callable[[], object] = lambda: None
    ) -> None:
        """Store, when there is time, what a function makes; it took so many seconds to compute.

        Parameters
        ----------
        make : callable
            Is called on the storing thread; returns None if there is nothing that could be stored.
        on_stored : callable, optional
            Is called there once the result is stored.
        """
        with self._done:
            self._undone += 1
            if self._thread is None:
                atexit.register(self.wait, _LAST_S)
                self._thread = threading.Thread(target=self._store_all, name="flinkmagic-durable", daemon=True)
                self._thread.start()
        self._waiting.put(_Order(make, seconds, on_stored))

    def wait(self, timeout: float) -> bool:
        """Wait until all is stored; return whether it is."""
        with self._done:
            return self._done.wait_for(lambda: self._undone == 0, timeout)

    def _store_all(self) -> None:
        _lower_priority()
        while True:
            order = self._waiting.get()
            try:
                if self._is_stored(order):
                    order.on_stored()
            except Exception as error:  # noqa: BLE001 - the user has the result; that it is not stored is told
                if not self._is_told:
                    self._is_told = True
                    print(not_stored(str(self.folder), error), file=sys.stderr)
            with self._done:
                self._undone -= 1
                self._done.notify_all()

    def _is_stored(self, order: _Order) -> bool:
        """Store a result if that is worth it."""
        if order.seconds <= WRITE_S:
            return False
        began = time.thread_time()
        entry = order.make()  # which has also read it again
        cost = WRITE_S + time.thread_time() - began
        return entry is not None and order.seconds > cost and self.store(entry)

    def store(self, entry: DurableEntry) -> bool:
        """Store an entry now, unless there is no room for it among those that save more per byte.

        Returns
        -------
        bool
            Whether it is stored.

        Raises
        ------
        OSError
            If the folder cannot be made or written.
        """
        data = _bytes_of(entry)
        if len(data) > MOST_OF_ONE:
            return False
        self._make_folders()
        if not self._has_room(entry, len(data)):
            return False
        temporary = self._entries / f"{_TEMPORARY}{os.getpid()}-{secrets.token_hex(4)}"
        descriptor = os.open(temporary, os.O_CREAT | os.O_EXCL | os.O_WRONLY | getattr(os, "O_NOFOLLOW", 0), 0o600)
        try:
            with os.fdopen(descriptor, "wb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            temporary.replace(self.path(entry.key))
        except BaseException:
            with suppress(OSError):
                temporary.unlink()
            raise
        _sync_folder(self._entries)
        self._worth[entry.key] = (len(data), entry.seconds)
        return True

    def _has_room(self, entry: DurableEntry, size: int) -> bool:
        """Make room for an entry; return whether there is some."""
        if shutil.disk_usage(self._entries).free < size + LEAST_FREE_DISK:
            return False
        worth = self._look_around()
        worth.pop(entry.key, None)
        total = size + sum(one for one, _ in worth.values())
        leaving = []
        for key in sorted(worth, key=lambda key: worth[key][1] / max(1, worth[key][0])):
            if total <= self.most_bytes:
                break
            if worth[key][1] / max(1, worth[key][0]) >= entry.seconds / size:
                return False
            leaving.append(key)
            total -= worth[key][0]
        if total > self.most_bytes:
            return False
        for key in leaving:
            self.drop(key)
        return True

    def _look_around(self) -> dict[str, tuple[int, float]]:
        """Return what the folder's entries take and save, those of other processes too; remove what is left behind."""
        there = {}
        with os.scandir(self._entries) as found:
            for file in found:
                try:
                    told = file.stat(follow_symlinks=False)
                    if file.name.startswith(_TEMPORARY) and time.time() - told.st_mtime > _LEFT_BEHIND_S:
                        os.unlink(file.path)
                    elif len(file.name) == 64 and stat.S_ISREG(told.st_mode) and _is_own(told):
                        known = self._worth.get(file.name)
                        same = known is not None and known[0] == told.st_size
                        there[file.name] = known if same else (told.st_size, _seconds_of(Path(file.path)))
                except FileNotFoundError:
                    continue
        self._worth = {key: worth for key, worth in there.items() if worth is not None}
        return dict(self._worth)


@functools.lru_cache(maxsize=16)
def _store_of(folder: Path) -> DurableStore:
    return DurableStore(folder)


def durable_store(folder: str | os.PathLike[str], most_bytes: int | None = None) -> DurableStore:
    """Return the store in a folder, of which a process has one.

    Parameters
    ----------
    most_bytes : int, optional
        The new bound of the folder; by default it stays what it was, `DEFAULT_BYTES` at first.
    """
    store = _store_of(Path(folder).expanduser().absolute())
    if most_bytes is not None:
        store.most_bytes = most_bytes
    return store


def _bytes_of(entry: DurableEntry) -> bytes:
    told = {"key": entry.key, "seconds": entry.seconds, "made_at": entry.made_at, "kernel": entry.kernel}
    rest = json.dumps({**told, "what": entry.what[:_LONGEST_CALL]}).encode() + b"\n" + entry.content
    return b"\n".join([_FORMAT, hashlib.sha256(rest).hexdigest().encode(), rest])


def _parsed(data: bytes, key: str) -> DurableEntry:
    form, _, rest = data.partition(b"\n")
    checksum, _, rest = rest.partition(b"\n")
    if form != _FORMAT or checksum.decode("ascii", "replace") != hashlib.sha256(rest).hexdigest():
        raise DamagedError("its checksum is wrong")
    head, _, content = rest.partition(b"\n")
    try:
        told = json.loads(head)
        made = DurableEntry(
            str(told["key"]), str(told["what"]), float(told["seconds"]), float(told["made_at"]), content,
            str(told["kernel"]),
        )  # fmt: skip
    except (LookupError, RecursionError, TypeError, ValueError) as error:
        raise DamagedError("its description is wrong") from error
    if made.key != key:
        raise DamagedError("it belongs to another key")
    if not (0 <= made.seconds < _MOST_SECONDS and 0 <= made.made_at < time.time() + _MOST_SECONDS):
        raise DamagedError("its times are wrong")
    return made


def _read_own(path: Path) -> bytes | None:
    """Return what is in a plain file of the user's; None if it is another one's, or none."""
    flags = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
    with os.fdopen(os.open(path, flags), "rb") as file:
        told = os.fstat(file.fileno())
        if not stat.S_ISREG(told.st_mode) or not _is_own(told):
            return None
        if told.st_size > MOST_OF_ONE:
            raise DamagedError("it is too large")
        return file.read(MOST_OF_ONE)


def _is_own(told: os.stat_result) -> bool:
    return not hasattr(os, "getuid") or told.st_uid == os.getuid()


def _seconds_of(path: Path) -> float:
    """Return what an entry of another process says that it saves, which may be wrong: 0 if it says nothing."""
    try:
        with path.open("rb") as file:
            head = file.read(_HEAD).split(b"\n", 3)[2]
        return float(json.JSONDecoder().raw_decode(head.decode("utf-8", "replace"))[0]["seconds"])
    except (LookupError, OSError, RecursionError, TypeError, ValueError):
        return 0.0


def _sync_folder(folder: Path) -> None:
    """Let a rename reach the disk, where folders can be synced."""
    try:
        descriptor = os.open(folder, os.O_RDONLY)
    except OSError:  # Windows
        return
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _lower_priority() -> None:
    """Let everything else run first; on Linux a thread has a priority of its own, elsewhere only the process."""
    if sys.platform == "linux":
        with suppress(OSError):
            os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), 19)
