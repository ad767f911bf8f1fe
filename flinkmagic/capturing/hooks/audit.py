"""Judges effects outside Spark: files, folders, processes, sockets and databases that a cell's Python code touches.

CPython reports them by audit events before they happen, and an audit hook that raises stops them (PEP 578; the events
were seen on 3.11, their names are in the standard library's table of audit events). A hook cannot be removed again, so
the first capture installs one, which does nothing while no cell is captured. No event reports looks at a file that do
not open it (`os.stat` and what is built on it: `os_entries`), or files that a library opens in C++.

1. A path settles what is pending only where it overlaps what a pending write reads or writes.
2. While a pending write has functions that are not known to be pure, they may touch any path. Only files of Python,
   Spark and the kernel are excepted.
3. Another process, a socket, a database may touch anything.
"""

from __future__ import annotations

import os
import signal
import sys
import sysconfig
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from flinkmagic.capturing.call_arguments import Args, Kwargs
from flinkmagic.capturing.hooks.call_hooks import Entry, Hook, anything, command
from flinkmagic.capturing.hooks.current_capture import HOOK_FILE, active, listening
from flinkmagic.capturing.source_code.code_files import CAPTURING, SPARK, STANDARD_LIBRARY
from flinkmagic.capturing.source_code.source_reader import frames_from
from flinkmagic.capturing.writes.pending import Cause, Effects
from flinkmagic.capturing.writes.real_paths import forget, real_path
from flinkmagic.capturing.writes.targets import Source, Target

if TYPE_CHECKING:
    from flinkmagic.capturing.recorder import Recorder
    from flinkmagic.capturing.writes.captured_session import CapturedSession

_WRITE_FLAGS = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
_IMPORTS = "<frozen importlib"
_KERNEL = ("ipykernel", "zmq", "tornado", "jupyter_client", "debugpy", "comm")
_OURS = (CAPTURING, HOOK_FILE)
_STANDARD = (*STANDARD_LIBRARY, "<frozen")
_LIBRARIES = tuple({os.path.realpath(path) for path in (*sysconfig.get_paths().values(), sys.prefix, sys.base_prefix)})
_HOME = os.path.realpath(os.path.expanduser("~"))
_SYSTEM = ("/dev", "/proc", "/sys", "/etc", "/usr/share", "/usr/lib")
_SETTINGS = (".cache", ".config", ".ipython", ".jupyter", ".local", ".matplotlib")
_QUESTIONS = frozenset({"uname", "fc-list", "ldconfig", "lsb_release", "file", "lscpu", "nvidia-smi", "git"})
"""Commands that libraries of Python run to learn about the machine."""

_KEEPS_FOLDERS = frozenset({"open", "os.listdir", "os.scandir", "os.walk", "os.mkdir", "os.chdir", "os.utime"})
"""Events after which each path still leads where it led before."""

_is_installed = False


def install() -> None:
    """Install the audit hook in this interpreter, for good."""
    global _is_installed
    if not _is_installed:
        _is_installed = True
        sys.addaudithook(_hear)


def _hear(event: str, args: tuple[Any, ...]) -> None:
    if not active or event not in _EVENTS:
        return
    if event not in _KEEPS_FOLDERS:
        forget()
    recorder = listening()
    if recorder is None or not recorder.pending:
        return
    if event == "open" and _is_apart(recorder, args[0]):
        return
    with recorder.threads.serving():  # what is asked and deployed from here on serves the cell's own line
        effects = _EVENTS[event](recorder, args)
        if effects is not None:
            recorder.settle(effects)


# -- files ---------------------------------------------------------------------------------------------------------


def _is_apart(captured: CapturedSession, path: Any) -> bool:
    return isinstance(path, str) and os.path.isabs(path) and captured.pending.are_apart_from(path)


def _opened(captured: CapturedSession, args: tuple[Any, ...]) -> Effects | None:
    path, mode, flags = args
    if isinstance(mode, str):
        changes = any(letter in mode for letter in "wax+")
    else:
        changes = isinstance(flags, int) and bool(flags & _WRITE_FLAGS)
    # No folder is opened for writing. `tempfile` names one when its opener opens a file in it, which raises an event.
    if changes and not isinstance(path, int) and os.path.isdir(path):
        return None
    return _changes(captured, path) if changes else _reads(captured, path)


def _listed(captured: CapturedSession, args: tuple[Any, ...]) -> Effects | None:
    """Judge a folder that is listed or made the working directory."""
    path = args[0] if args and args[0] is not None else "."
    # Imports look into every folder of `sys.path`, the working directory included.
    return None if _caller().startswith(_IMPORTS) else _reads(captured, path)


def _made(captured: CapturedSession, args: tuple[Any, ...]) -> Effects | None:
    """Judge a new folder; a folder above a target is there already, or the write makes it."""
    path = _absolute(args[0], args[2])
    return None if path is not None and os.path.isdir(path) else _changes(captured, args[0], dir_fd=args[2])


def _both_changed(captured: CapturedSession, args: tuple[Any, ...]) -> Effects | None:
    return _changes(captured, *args[:2], dir_fd=args[2:4])


def _removed(captured: CapturedSession, args: tuple[Any, ...]) -> Effects | None:
    """Judge `os.remove`, `os.rmdir`, `shutil.rmtree`: a path, and the folder that it is relative to if that is told."""
    return _changes(captured, args[0], dir_fd=args[1] if len(args) > 1 else None)


def _copied(captured: CapturedSession, args: tuple[Any, ...]) -> Effects | None:
    """Judge `shutil.copytree`: events of its own report what it reads, folder by folder."""
    return _changes(captured, args[1])


def _reads(captured: CapturedSession, *paths: Any) -> Effects | None:
    places = _places(captured, paths, (None,) * len(paths))
    if places is None:
        return Effects(unknown=True, cause=Cause.FILE)
    return Effects(reads=tuple(Source(path=place) for place in places), cause=Cause.FILE) if places else None


def _changes(captured: CapturedSession, *paths: Any, dir_fd: Any = None) -> Effects | None:
    folders = dir_fd if isinstance(dir_fd, tuple) else (dir_fd,) * len(paths)
    places = _places(captured, paths, folders)
    if places is None:
        return Effects(unknown=True, cause=Cause.FILE)
    if not places:
        return None
    return Effects(changes=tuple(Target(path=place) for place in places), cause=Cause.FILE, unseen_by_functions=True)


def _places(captured: CapturedSession, paths: tuple[Any, ...], folders: tuple[Any, ...]) -> list[str] | None:
    """Return qualified paths as Spark has them; None if a path cannot be told, or any may be touched (rule 2)."""
    found = []
    for path, folder in zip(paths, folders, strict=True):
        if isinstance(path, int):
            continue  # an open file: its opening was reported
        absolute = _absolute(path, folder)
        if absolute is None:
            return None
        real = real_path(absolute)
        if captured.pending.are_impure and not _is_harmless(real) and not _is_own():
            return None
        found.append("file:" + real)
    return found


def _absolute(path: Any, dir_fd: Any) -> str | None:
    text = os.fsdecode(path)
    if os.path.isabs(text):
        return text
    if dir_fd in (None, -1):
        return os.path.join(os.getcwd(), text)
    try:
        return os.path.join(os.readlink(f"/proc/self/fd/{dir_fd}"), text)
    except OSError:  # no such file system here
        return None


def _is_harmless(path: str) -> bool:
    """Return whether a file is Python's or the system's, or holds a program's own settings and caches."""
    folders = (*_SYSTEM, *_LIBRARIES, *(os.path.join(_HOME, name) for name in _SETTINGS))
    return any(path == folder or path.startswith(folder + os.sep) for folder in folders)


def _is_own() -> bool:
    """Return whether PySpark or the import system touches the file for the cell's code."""
    name = _caller()
    return name.startswith((_IMPORTS, *SPARK))


def _caller() -> str:
    """Return the file of the innermost frame that belongs neither to this package nor to the standard library."""
    name = ""
    for frame in frames_from(sys._getframe(1)):
        name = frame.f_code.co_filename
        if name.startswith(_IMPORTS) or not _is_passed_over(name):
            return name
    return name


def _is_passed_over(filename: str) -> bool:
    # Installed packages lie below the standard library, and so may this package.
    return filename.startswith(_OURS) or (filename.startswith(_STANDARD) and "site-packages" not in filename)


# -- what cannot be judged -----------------------------------------------------------------------------------------


def _process(captured: CapturedSession, args: tuple[Any, ...]) -> Effects | None:
    command = args[0] if args else None
    name = os.path.basename(os.fsdecode(command)) if isinstance(command, (str, bytes, os.PathLike)) else ""
    caller = _caller()
    if caller.startswith(SPARK) or (name in _QUESTIONS and caller.startswith(_LIBRARIES)):
        return None
    return Effects(unknown=True, cause=Cause.PROCESS)


def _signal(captured: CapturedSession, args: tuple[Any, ...]) -> Effects | None:
    """Judge a signal; one for which this process has a handler only makes the main thread run that."""
    pid, number = args
    if pid == os.getpid() and number in signal.valid_signals() and callable(signal.getsignal(number)):
        return None
    return Effects(unknown=True, cause=Cause.PROCESS)


def _thread_signal(captured: CapturedSession, args: tuple[Any, ...]) -> Effects | None:
    """Judge a signal to a thread of this process."""
    return _signal(captured, (os.getpid(), args[1]))


def _socket(captured: CapturedSession, args: tuple[Any, ...]) -> Effects | None:
    """Judge a socket: py4j's, and those by which PySpark fetches rows, are Spark's; the kernel has its own."""
    for frame in frames_from(sys._getframe(1)):
        name = frame.f_code.co_filename
        if name.startswith(SPARK) or (f"{os.sep}site-packages{os.sep}" in name and _package(name) in _KERNEL):
            return None
        if not name.startswith((*_OURS, *_STANDARD)):
            break
    return Effects(unknown=True, cause=Cause.SOCKET)


def _package(filename: str) -> str:
    return filename.rpartition(f"{os.sep}site-packages{os.sep}")[2].split(os.sep)[0]


def _database(captured: CapturedSession, args: tuple[Any, ...]) -> Effects | None:
    """Judge `sqlite3.connect`: a file, or the database that a pending write reaches through JDBC."""
    name = os.fsdecode(args[0]) if isinstance(args[0], (str, bytes, os.PathLike)) else ""
    if name in ("", ":memory:"):
        return None
    places = [place for write in captured.pending.writes for place in (write.facts.target, *write.sources)]
    if any((place.path or "").startswith("jdbc:") for place in places) or name.startswith("file:"):
        return Effects(unknown=True, cause=Cause.DATABASE)
    return _changes(captured, name)


_EVENTS: dict[str, Callable[[CapturedSession, tuple[Any, ...]], Effects | None]] = {
    "open": _opened,
    "os.listdir": _listed,
    "os.scandir": _listed,
    "os.walk": _listed,
    "os.chdir": _listed,
    "os.mkdir": _made,
    "os.remove": _removed,
    "os.rmdir": _removed,
    "shutil.rmtree": _removed,
    "shutil.move": lambda captured, args: _changes(captured, *args[:2]),
    "shutil.copytree": _copied,
    "os.rename": _both_changed,
    "os.link": _both_changed,
    "os.symlink": lambda captured, args: _changes(captured, args[1], dir_fd=args[2]),
    "os.truncate": lambda captured, args: _changes(captured, args[0]),
    "os.chmod": lambda captured, args: _changes(captured, args[0], dir_fd=args[2]),
    "os.chown": lambda captured, args: _changes(captured, args[0], dir_fd=args[3]),
    "os.utime": lambda captured, args: _changes(captured, args[0], dir_fd=args[3]),
    "sqlite3.connect": _database,
    "os.kill": _signal,
    "signal.pthread_kill": _thread_signal,
    **dict.fromkeys(
        (
            "os.system",
            "os.killpg",
            "os.exec",
            "os.fork",
            "os.forkpty",
            "os.posix_spawn",
            "os.spawn",
            "os.startfile",
            "pty.spawn",
            "subprocess.Popen",
        ),
        _process,
    ),
    # A request may go over a connection that was opened long before.
    **dict.fromkeys(("http.client.send", "socket.bind", "socket.connect", "socket.sendmsg", "socket.sendto"), _socket),
}


# -- looks that no event reports -------------------------------------------------------------------------------------


class Look(Hook):
    """`os.stat` and the like, by which `os.path.exists`, `Path.is_dir` and `shutil` look at a path.

    Libraries look at many paths, so rule 2 does not apply. A folder above a target that exists now will still exist.
    """

    def made(self, hooked: Any) -> None:
        # `shutil` looks up functions of `os` in these to learn which arguments they take.
        for functions in (os.supports_dir_fd, os.supports_fd, os.supports_follow_symlinks, os.supports_effective_ids):
            if self.original in functions:
                functions.add(hooked)

    def before(self, recorder: Recorder, args: Args, kwargs: Kwargs) -> None:
        path = args[0] if args else kwargs.get("path")
        if not recorder.pending or kwargs.get("dir_fd") is not None or isinstance(path, int) or path is None:
            return
        if _is_apart(recorder, path):
            return
        text = os.fsdecode(path)
        real = real_path(text if os.path.isabs(text) else os.path.join(os.getcwd(), text))
        place = Source(path="file:" + real)
        touched = [write for write in recorder.pending.writes if place.overlaps(write.facts.target)]
        if touched and not (all(place.holds(write.facts.target) for write in touched) and os.path.isdir(real)):
            recorder.settle(Effects(reads=(place,), cause=Cause.FILE))


def os_entries() -> Iterator[Entry]:
    """Yield the functions of `os` and the hook factory of each."""
    for name in ("stat", "lstat", "access"):
        yield os, name, Look
    for name in ("_exit", "abort"):  # after which nothing of this process runs
        yield os, name, command(anything(Cause.PROCESS))
