"""Stores results in a folder, for later processes.

An entry is a file that is named by its key. It begins with a line that names the format, and one with a checksum of
all that follows: a line of JSON that describes the result, and its bytes. What Spark writes is in files of the result's
own, in a folder that the entry names (`durable_rows`). Nothing in them is executed, imported or unpickled.

Invariants:

- A file under its final name is complete: it is written under another name, synced, and renamed; so are a result's own
  files, before there is an entry. Two processes that store the same result write equal ones, and the last one stays;
  there is no lock to wait for, or to be left behind.
- What is read is what was written: an entry whose checksum, key or form is wrong is removed, and counts as absent.
- An entry, and the folder, are for their owner alone. Entries of other users are neither read nor removed.

Storing is done on threads of low priority: one for what is at hand, one for what Spark has to write, which may wait
long. What takes longer to store and read than to compute is not stored. If the folder is full, what saves least time
per byte leaves it. An entry with an owner, a job that is not over (`checkpoints`), is not counted, and leaves when its
owner says so.
"""

from __future__ import annotations

import atexit
import errno
import functools
import hashlib
import json
import logging
import os
import queue
import re
import secrets
import shutil
import stat
import sys
import threading
import time
from collections.abc import Callable, Container
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from flinkmagic.errors.durable import (
    OTHER_KEY,
    TOO_LARGE,
    WRONG_CHECKSUM,
    WRONG_DESCRIPTION,
    WRONG_TIMES,
    DamagedError,
    FolderRefusedError,
    damaged,
    not_stored,
)
from flinkmagic.jvm.block_storage import LEAST_FREE_DISK

_LOG = logging.getLogger(__name__)

DEFAULT_BYTES = 4 * 2**30
"""How much a folder holds by default."""

MOST_OF_ONE = 64 * 2**20
"""How many bytes one entry may have: twice of what the largest answer takes that is stored."""

WRITE_S = 0.02
"""What it takes to write, sync, rename, find and open a small file, at least."""

KERNEL = secrets.token_hex(8)
"""What this process is called in the entries that it stores."""

_FORMAT = b"flinkmagic durable 3"
_FOLDER = "flinkmagic-answers"
_OWN_FILES = "flinkmagic-rows"
_TEMPORARY = ".storing-"
_IN_USE = ".in-use"
_FOLDER_NAME = re.compile(r"([0-9a-f]{64})-[0-9a-f]{8}")
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
    """What `stored_answers` makes of it, or what `durable_rows` says of its files."""
    kernel: str = KERNEL
    """The process that computed it."""
    folder: str = ""
    """The name of the folder of its own files, which go when it goes; empty if it has none."""
    folder_bytes: int = 0
    """How many bytes those have."""
    owner: str = ""
    """The id of the job that alone knows its key; empty if it is any later process's."""


@dataclass(frozen=True)
class _Order:
    """A result that is to be stored."""

    make: Callable[[], DurableEntry | None]
    seconds: float
    on_stored: Callable[[], object]


@dataclass(frozen=True)
class _Worth:
    """What an entry takes and saves, as it says itself."""

    written_ns: int
    bytes: int
    """With the files of its own."""
    seconds: float = 0.0
    folder: str = ""
    owner: str = ""

    @property
    def per_byte(self) -> float:
        return self.seconds / max(1, self.bytes)


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
        self._entries, self._own_files = folder / _FOLDER, folder / _OWN_FILES
        self._undone = 0
        self._done = threading.Condition()
        self._queues: dict[str, queue.SimpleQueue[_Order]] = {}
        self._is_told = False
        self._storing = threading.Lock()
        self._worth: dict[str, _Worth] = {}
        """By key; used under the lock only."""

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
                raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(self._entries))
        except OSError as error:
            raise FolderRefusedError(str(self.folder), error) from error
        return self.folder

    def _make_folders(self) -> None:
        for folder in (self.folder, self._entries):
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)

    def path(self, key: str) -> Path:
        """Return the file of an entry, whether there is one or not."""
        return self._entries / key

    # -- files of a result's own -----------------------------------------------------------------------

    def files_of(self, entry: DurableEntry) -> Path:
        """Return the folder of an entry's own files."""
        return self._own_files / entry.folder

    def mark_used(self, entry: DurableEntry) -> None:
        """Keep an entry's own files for an hour, whichever process needs room: a job is going to read them."""
        with suppress(OSError):  # if they are gone, that shows when they are read
            (self.files_of(entry) / _IN_USE).touch(0o600)

    def _is_in_use(self, folder: str) -> bool:
        try:
            return not _is_left_behind((self._own_files / folder / _IN_USE).stat(follow_symlinks=False))
        except OSError:
            return False

    def key_with_files(self) -> str | None:
        """Return the key of any entry with files of its own; None if there is none."""
        try:
            with os.scandir(self._own_files) as found:
                names = (_FOLDER_NAME.fullmatch(one.name) for one in found)
                return next((name[1] for name in names if name is not None), None)
        except OSError:
            return None

    def begin_files(self) -> Path:
        """Make a folder for the files of a result; `end_files` gives it its name."""
        self._make_folders()
        self._own_files.mkdir(mode=0o700, exist_ok=True)
        folder = self._own_files / _temporary_name()
        folder.mkdir(mode=0o700)
        return folder

    def end_files(self, folder: Path, key: str) -> str:
        """Sync a folder and the files in it; return the name under which an entry with this key finds them."""
        for file in folder.iterdir():
            file.chmod(0o600)
            _sync(file)
        _sync(folder)
        name = f"{key}-{secrets.token_hex(4)}"
        folder.rename(self._own_files / name)
        _sync(self._own_files)
        return name

    def drop_files(self, folder: str) -> None:
        """Remove files that belong to no entry, or no longer."""
        if folder:
            shutil.rmtree(self._own_files / folder, ignore_errors=True)

    # -- entries ---------------------------------------------------------------------------------------

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
        """Remove an entry, if it is there, and then the files of its own."""
        worth = _told_by(self.path(key))
        with suppress(OSError):
            self.path(key).unlink()
        if worth is not None:
            self.drop_files(worth.folder)

    def drop_owned(self, owner: str, but: Container[str] = ()) -> None:
        """Remove the entries of an owner, but those with some keys."""
        with suppress(FileNotFoundError), self._storing:
            for key, worth in self._look_around().items():
                if worth.owner == owner and key not in but:
                    self.drop(key)

    def store_later(
        self,
        make: Callable[[], DurableEntry | None],
        seconds: float,
        on_stored: Callable[[], object] = lambda: None,
        *,
        may_wait: bool = False,
    ) -> None:
        """Store, when there is time, what a function makes; it took so many seconds to compute.

        Parameters
        ----------
        make : callable
            Is called on the storing thread; returns None if there is nothing that could be stored.
        on_stored : callable, optional
            Is called there once the result is stored.
        may_wait : bool
            Whether `make` may wait for long: nothing else has to wait for it then.
        """
        name = "flinkmagic-durable-rows" if may_wait else "flinkmagic-durable"
        with self._done:
            if not self._queues:
                atexit.register(self.wait, _LAST_S)
            self._undone += 1
            orders = self._queues.get(name)
            if orders is None:
                orders = self._queues[name] = queue.SimpleQueue()
                threading.Thread(target=self._store_all, args=(orders,), name=name, daemon=True).start()
        orders.put(_Order(make, seconds, on_stored))

    def wait(self, timeout: float) -> bool:
        """Wait until all is stored; return whether it is."""
        with self._done:
            return self._done.wait_for(lambda: self._undone == 0, timeout)

    def _store_all(self, orders: queue.SimpleQueue[_Order]) -> None:
        _lower_priority()
        while True:
            order = orders.get()
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
        if entry is None:
            return False
        is_stored = order.seconds > cost and self.store(entry)
        if not is_stored:
            self.drop_files(entry.folder)
        return is_stored

    def store(self, entry: DurableEntry) -> bool:
        """Store an entry now, unless it has no owner and there is no room for it among those that save more per byte.

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
        with self._storing:
            self._make_folders()
            if not entry.owner:
                size = len(data) + entry.folder_bytes
                leaving = self._leaving_for(entry.key, size, entry.seconds, on_disk=entry.folder_bytes)
                if leaving is None:
                    return False
                for key in leaving:
                    self.drop(key)
            former = _told_by(self.path(entry.key))
            self._write(entry.key, data)
        if former is not None and former.folder != entry.folder and not self._is_in_use(former.folder):
            self.drop_files(former.folder)
        return True

    def _write(self, key: str, data: bytes) -> None:
        temporary = self._entries / _temporary_name()
        descriptor = os.open(temporary, os.O_CREAT | os.O_EXCL | os.O_WRONLY | getattr(os, "O_NOFOLLOW", 0), 0o600)
        try:
            with os.fdopen(descriptor, "wb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            temporary.replace(self.path(key))
        except BaseException:
            with suppress(OSError):
                temporary.unlink()
            raise
        _sync(self._entries)

    def has_room(self, key: str, size: int, seconds: float) -> bool:
        """Return whether a result of this size that saves these seconds could be stored now."""
        with self._storing:
            self._make_folders()
            return self._leaving_for(key, size, seconds) is not None

    def _leaving_for(self, key: str, size: int, seconds: float, on_disk: int = 0) -> list[str] | None:
        """Return the entries that leave for another one; None if there would be no room for it even so."""
        if shutil.disk_usage(self._entries).free < size - on_disk + LEAST_FREE_DISK:
            return None
        worth = {other: one for other, one in self._look_around().items() if other != key and not one.owner}
        total = size + sum(one.bytes for one in worth.values())
        leaving = []
        for other, one in sorted(worth.items(), key=lambda item: item[1].per_byte):
            if total <= self.most_bytes:
                break
            if one.per_byte >= seconds / size:
                return None
            if one.folder and self._is_in_use(one.folder):
                continue
            leaving.append(other)
            total -= one.bytes
        return leaving if total <= self.most_bytes else None

    def _look_around(self) -> dict[str, _Worth]:
        """Return what the folder's entries take and save, those of other processes too; remove what is left behind."""
        there = {}
        with os.scandir(self._entries) as found:
            for file in found:
                try:
                    told = file.stat(follow_symlinks=False)
                    if file.name.startswith(_TEMPORARY) and _is_left_behind(told):
                        os.unlink(file.path)
                    elif len(file.name) == 64 and stat.S_ISREG(told.st_mode) and _is_own(told):
                        known = self._worth.get(file.name)
                        if known is None or known.written_ns != told.st_mtime_ns:
                            known = _told_by(Path(file.path)) or _Worth(told.st_mtime_ns, told.st_size)
                        there[file.name] = known
                except FileNotFoundError:
                    continue
        self._worth = there
        with suppress(FileNotFoundError), os.scandir(self._own_files) as folders:
            for folder in folders:
                name = _FOLDER_NAME.fullmatch(folder.name)
                owner = there.get(name[1]) if name is not None else None
                is_owned = owner is not None and owner.folder == folder.name
                is_old = _is_left_behind(folder.stat(follow_symlinks=False))
                if not is_owned and is_old and not self._is_in_use(folder.name):
                    self.drop_files(folder.name)
        return dict(there)


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


def drop_at(path: Path) -> None:
    """Remove the entry that is a file of some store."""
    durable_store(path.parents[1]).drop(path.name)


def _bytes_of(entry: DurableEntry) -> bytes:
    told = {
        "key": entry.key, "seconds": entry.seconds, "made_at": entry.made_at, "kernel": entry.kernel,
        "folder": entry.folder, "folder_bytes": entry.folder_bytes, "owner": entry.owner,
    }  # fmt: skip
    rest = json.dumps({**told, "what": entry.what[:_LONGEST_CALL]}).encode() + b"\n" + entry.content
    return b"\n".join([_FORMAT, hashlib.sha256(rest).hexdigest().encode(), rest])


def _parsed(data: bytes, key: str) -> DurableEntry:
    form, _, rest = data.partition(b"\n")
    checksum, _, rest = rest.partition(b"\n")
    if form != _FORMAT or checksum.decode("ascii", "replace") != hashlib.sha256(rest).hexdigest():
        raise DamagedError(WRONG_CHECKSUM)
    head, _, content = rest.partition(b"\n")
    try:
        told = json.loads(head)
        made = DurableEntry(
            str(told["key"]), str(told["what"]), float(told["seconds"]), float(told["made_at"]), content,
            str(told["kernel"]), _folder_in(told, key), int(told["folder_bytes"]), str(told["owner"]),
        )  # fmt: skip
    except (LookupError, RecursionError, TypeError, ValueError) as error:
        raise DamagedError(WRONG_DESCRIPTION) from error
    if made.key != key:
        raise DamagedError(OTHER_KEY)
    if not (0 <= made.seconds < _MOST_SECONDS and 0 <= made.made_at < time.time() + _MOST_SECONDS):
        raise DamagedError(WRONG_TIMES)
    return made


def _read_own(path: Path) -> bytes | None:
    """Return what is in a plain file of the user's; None if it is another one's, or none."""
    flags = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
    with os.fdopen(os.open(path, flags), "rb") as file:
        told = os.fstat(file.fileno())
        if not stat.S_ISREG(told.st_mode) or not _is_own(told):
            return None
        if told.st_size > MOST_OF_ONE:
            raise DamagedError(TOO_LARGE)
        return file.read(MOST_OF_ONE)


def _is_own(told: os.stat_result) -> bool:
    return not hasattr(os, "getuid") or told.st_uid == os.getuid()


def _told_by(path: Path) -> _Worth | None:
    """Return what an entry says of itself, which may be wrong; None if there is none that says anything."""
    try:
        with path.open("rb") as file:
            head, on_disk = file.read(_HEAD).split(b"\n", 3)[2], os.fstat(file.fileno())
        told = json.JSONDecoder().raw_decode(head.decode("utf-8", "replace"))[0]
        size = on_disk.st_size + max(0, int(told["folder_bytes"]))
        folder, owner = _folder_in(told, path.name), str(told["owner"])
        return _Worth(on_disk.st_mtime_ns, size, float(told["seconds"]), folder, owner)
    except (LookupError, OSError, RecursionError, TypeError, ValueError):
        return None


def _folder_in(told: dict[str, object], key: str) -> str:
    """Return the name of an entry's folder, which can be none of another entry, nor elsewhere."""
    folder = str(told["folder"])
    name = _FOLDER_NAME.fullmatch(folder)
    if folder and (name is None or name[1] != key):
        raise ValueError(f"{folder!r} is no folder of {key}")
    return folder


def _temporary_name() -> str:
    return f"{_TEMPORARY}{os.getpid()}-{secrets.token_hex(4)}"


def _is_left_behind(told: os.stat_result) -> bool:
    return time.time() - told.st_mtime > _LEFT_BEHIND_S


def _sync(path: Path) -> None:
    """Let what was written reach the disk; folders where they can be synced."""
    try:
        descriptor = os.open(path, os.O_RDONLY)
    except PermissionError:  # a folder, on Windows
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
