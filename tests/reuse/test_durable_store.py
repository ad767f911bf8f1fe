"""Entries of a folder: whole or absent, their owner's alone, and those that save most."""

from __future__ import annotations

import os
import random
import stat
import subprocess
import sys
import threading
import time
from dataclasses import replace
from pathlib import Path

import pytest

from flinkmagic.errors.durable import FolderRefusedError
from flinkmagic.reuse import durable_store
from flinkmagic.reuse.durable_store import KERNEL, DurableEntry, DurableStore

ROOT = Path(__file__).parents[2]


def entry(letter, *, seconds=1.0, content=b"x" * 100):
    return DurableEntry(64 * letter, f"{letter}()", seconds, 1000.5, content)


@pytest.fixture
def store(tmp_path):
    return DurableStore(tmp_path / "store")


def keys(store):
    return sorted(path.name[0] for path in store.path("").iterdir() if len(path.name) == 64)


def test_an_entry_is_found_as_it_was_stored(store, tmp_path) -> None:
    assert store.find(64 * "a") is None
    assert store.store(entry("a", content=b"\n\x00{}"))
    assert DurableStore(tmp_path / "store").find(64 * "a") == entry("a", content=b"\n\x00{}")
    assert store.find(64 * "a").kernel == KERNEL
    store.store(entry("a", content=b"other"))
    assert store.find(64 * "a").content == b"other"
    store.drop(64 * "a")
    assert store.find(64 * "a") is None


def test_what_is_made_is_the_owner_s_alone(store) -> None:
    before = os.umask(0)
    try:
        store.store(entry("a"))
    finally:
        os.umask(before)
    made = [store.folder, *store.folder.rglob("*")]
    assert [stat.S_IMODE(path.stat().st_mode) for path in made] == [0o700, 0o700, 0o600]


def test_a_changed_byte_anywhere_is_found(store, capsys) -> None:
    store.store(entry("a", content=b"content"))
    data = store.path(64 * "a").read_bytes()
    for place in range(len(data)):
        store.path(64 * "a").write_bytes(data[:place] + bytes([data[place] ^ 1]) + data[place + 1 :])
        assert store.find(64 * "a") is None, place
        assert not store.path(64 * "a").exists()
    for length in (0, 1, 30, 90, len(data) - 1):
        store.path(64 * "a").write_bytes(data[:length])
        assert store.find(64 * "a") is None, length
    assert capsys.readouterr().err.count("A stored result was damaged (") == len(data) + 5
    store.path(64 * "b").write_bytes(data)
    assert store.find(64 * "b") is None
    assert "it belongs to another key" in capsys.readouterr().err


def test_what_is_not_a_plain_file_of_the_user_s_is_left_alone(store, tmp_path, monkeypatch) -> None:
    store.store(entry("a"))
    store.path(64 * "a").rename(tmp_path / "elsewhere")
    store.path(64 * "a").symlink_to(tmp_path / "elsewhere")
    assert store.find(64 * "a") is None
    os.mkfifo(store.path(64 * "b"))
    assert store.find(64 * "b") is None
    store.path(64 * "c").mkdir()
    assert store.find(64 * "c") is None
    store.store(entry("d"))
    monkeypatch.setattr(os, "getuid", lambda: 4711)
    assert store.find(64 * "d") is None
    assert keys(store) == ["a", "b", "c", "d"]


def test_what_is_too_large_to_be_an_entry_is_not_read(store, monkeypatch, capsys) -> None:
    store.store(entry("a"))
    monkeypatch.setattr(durable_store, "MOST_OF_ONE", 50)
    assert store.find(64 * "a") is None
    assert "it is too large" in capsys.readouterr().err
    assert not store.store(entry("a"))


def test_what_saves_least_per_byte_makes_room(store) -> None:
    store.store(entry("a", seconds=1.0, content=b"x" * 1000))
    size = store.path(64 * "a").stat().st_size
    store.most_bytes = 3 * size
    store.store(entry("b", seconds=5.0, content=b"x" * 1000))
    store.store(entry("c", seconds=2.0, content=b"x" * 1000))
    other = DurableStore(store.folder, 3 * size)  # of another process, which has to look
    assert other.store(entry("d", seconds=3.0, content=b"x" * 1000))
    assert keys(store) == ["b", "c", "d"]
    assert not store.store(entry("e", seconds=1.5, content=b"x" * 1000))
    assert not store.store(entry("f", seconds=9.0, content=b"x" * 4000))
    assert keys(store) == ["b", "c", "d"]
    assert store.store(entry("b", seconds=5.0, content=b"y" * 1000))
    assert store.store(entry("g", seconds=0.1, content=b"")) is False
    store.most_bytes += 400
    assert store.store(entry("g", seconds=0.1, content=b""))
    assert keys(store) == ["b", "c", "d", "g"]


def test_what_has_an_owner_makes_no_room_takes_none_and_goes_with_it(store) -> None:
    store.store(entry("a", content=b"x" * 1000))
    store.most_bytes = store.path(64 * "a").stat().st_size
    for letter, owner in (("b", "one"), ("c", "one"), ("d", "other")):
        assert store.store(replace(entry(letter, seconds=0.0, content=b"x" * 9000), owner=owner))
    assert keys(store) == ["a", "b", "c", "d"]
    assert store.store(entry("e", seconds=2.0, content=b"x" * 1000))
    assert keys(store) == ["b", "c", "d", "e"]
    assert store.find(64 * "b").owner == "one"
    DurableStore(store.folder).drop_owned("one", {64 * "c"})
    assert keys(store) == ["c", "d", "e"]
    store.drop_owned("one")
    assert keys(store) == ["d", "e"]


def test_nothing_is_stored_on_a_full_disk(store, monkeypatch) -> None:
    store.store(entry("a"))
    monkeypatch.setattr(durable_store, "LEAST_FREE_DISK", 2**60)
    assert not store.store(entry("b"))
    assert keys(store) == ["a"]


def test_what_is_cheaper_to_compute_is_not_stored(store) -> None:
    made = []

    def make(letter, busy=0.0):
        def entry_of():
            made.append(letter)
            ends = time.thread_time() + busy
            while time.thread_time() < ends:
                pass
            return entry(letter)

        return entry_of

    stored = []
    for letter, seconds, busy in (("a", 0.01, 0.0), ("b", 1.0, 0.0), ("c", 0.1, 0.15), ("d", 0.4, 0.15)):
        store.store_later(make(letter, busy), seconds, lambda letter=letter: stored.append(letter))
    store.store_later(lambda: None, 5.0)
    assert store.wait(30)
    assert made == ["b", "c", "d"]
    assert stored == keys(store) == ["b", "d"]


def test_storing_is_on_a_thread_of_low_priority(store) -> None:
    found = []

    def make():
        found.append((threading.current_thread().name, os.getpriority(os.PRIO_PROCESS, threading.get_native_id())))

    store.store_later(make, 1.0)
    assert store.wait(30)
    (name, priority) = found[0]
    assert name == "flinkmagic-durable"
    assert sys.platform != "linux" or priority == 19
    assert os.getpriority(os.PRIO_PROCESS, 0) < 19


def test_a_folder_that_is_none_is_told_once_or_refused(tmp_path, capsys, monkeypatch) -> None:
    (tmp_path / "file").write_text("")
    store = DurableStore(tmp_path / "file")
    for letter in "ab":
        store.store_later(lambda letter=letter: entry(letter), 1.0)
    assert store.wait(30)
    told = capsys.readouterr().err
    assert told.startswith(f"Results are not stored in {tmp_path}/file (FileExistsError: ")
    assert told.count("\n") == 1
    assert store.find(64 * "a") is None
    with pytest.raises(FolderRefusedError, match=r"Results cannot be stored in .*file \(FileExistsError"):
        store.prepared()
    assert DurableStore(tmp_path / "new" / "one").prepared().is_dir()
    monkeypatch.setattr(os, "access", lambda *_: False)
    with pytest.raises(FolderRefusedError, match=r"new \(PermissionError: .*Permission denied: '.*flinkmagic-answers'"):
        DurableStore(tmp_path / "new").prepared()


def test_what_a_killed_process_left_behind_goes_after_a_while(store) -> None:
    store.store(entry("a"))
    for name, age in ((".storing-1-a", 10), (".storing-2-b", 7200)):
        store.path(name).write_bytes(b"half")
        os.utime(store.path(name), (time.time() - age,) * 2)
    store.store(entry("b"))
    assert sorted(path.name for path in store.path("").iterdir() if "storing" in path.name) == [".storing-1-a"]
    assert keys(store) == ["a", "b"]


def with_files(store, letter):
    """Store an entry with a file of its own; return its folder."""
    folder = store.begin_files()
    (folder / "0.parquet").write_bytes(b"rows")
    name = store.end_files(folder, 64 * letter)
    assert store.store(replace(entry(letter), folder=name, folder_bytes=4))
    return store.files_of(store.find(64 * letter))


def test_files_go_with_their_entry_only(store) -> None:
    """Another process stores the same result again, in an entry of the same size."""
    first, half = with_files(store, "a"), store.begin_files()
    store.store(entry("b"))
    other = with_files(DurableStore(store.folder), "a")
    assert not first.exists()
    for folder in (other, half):
        os.utime(folder, (time.time() - 7200,) * 2)
    store.store(entry("c"))
    assert (other / "0.parquet").read_bytes() == b"rows"
    assert not half.exists()
    store.drop(64 * "a")
    assert not other.exists()


def test_files_that_a_job_reads_leave_for_nobody(store) -> None:
    used, idle = with_files(store, "a"), with_files(store, "b")
    store.mark_used(store.find(64 * "a"))
    other = DurableStore(store.folder, int(2.5 * store.path(64 * "a").stat().st_size))
    assert other.store(entry("c", seconds=1e6))
    assert (used / "0.parquet").exists()
    assert not idle.exists()
    replaced = with_files(other, "a")
    assert (used / "0.parquet").exists()
    for folder in (used, used / ".in-use"):
        os.utime(folder, (time.time() - 7200,) * 2)
    other.store(entry("c", seconds=1e6))
    assert not used.exists()
    assert replaced.exists()


def test_an_entry_cannot_name_another_ones_files(store, capsys) -> None:
    kept = with_files(store, "a")
    for name in (kept.name, "..", f"{64 * 'b'}-../../x"):
        assert store.store(replace(entry("b"), folder=name))
        store.drop(64 * "b")
        assert store.store(replace(entry("b"), folder=name))
        assert store.find(64 * "b") is None
        assert "its description is wrong" in capsys.readouterr().err
    assert (kept / "0.parquet").exists()


STORING = """
import os, sys
from pathlib import Path
from flinkmagic.reuse.durable_store import DurableEntry, DurableStore
store = DurableStore(Path(sys.argv[1]), int(sys.argv[3]))
first = int(sys.argv[4])
for turn in range(first, first + int(sys.argv[2])):
    letter = "abcdef"[turn % 6]
    store.store(DurableEntry(64 * letter, "f()", 1.0, 1.0, letter.encode() * 200_000))
    print(turn, flush=True)
"""


def storing(store, *, turns=10**6, most=2**40, first=0):
    return subprocess.Popen(
        [sys.executable, "-c", STORING, str(store.folder), str(turns), str(most), str(first)],
        stdout=subprocess.PIPE, env={**os.environ, "PYTHONPATH": str(ROOT)},
    )  # fmt: skip


def is_whole(store, letter):
    found = store.find(64 * letter)
    return found is None or found.content == letter.encode() * 200_000


@pytest.mark.long
def test_a_process_that_is_killed_while_it_stores_leaves_whole_entries(store, capsys) -> None:
    chance = random.Random(7)
    for first in range(50):
        process = storing(store, first=first)
        process.stdout.readline()
        time.sleep(chance.random() * 0.03)
        process.kill()
        process.wait()
        process.stdout.close()
        assert all(is_whole(store, letter) for letter in "abcdef")
    # Each letter was the first of eight processes at least, which were killed after they had stored it.
    assert keys(store) == list("abcdef")
    assert capsys.readouterr().err == ""


@pytest.mark.long
def test_processes_store_and_read_in_one_folder_simultaneously(store, capsys) -> None:
    """They have room for four of six entries, so each removes what the other has stored."""
    processes = [storing(store, turns=120, most=850_000) for _ in range(2)]
    try:
        while any(process.poll() is None for process in processes):
            assert all(is_whole(store, letter) for letter in "abcdef")
    finally:
        for process in processes:
            process.communicate(timeout=60)
    assert [process.returncode for process in processes] == [0, 0]
    assert set(keys(store)) <= set("abcdef")
    assert capsys.readouterr().err == ""
