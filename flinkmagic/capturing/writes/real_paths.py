"""Follows symbolic links, for paths that a cell's Python code touches by the hundred.

`os.path.realpath` looks at each folder of a path. Files that are touched in a row lie in few folders: a folder is
resolved once, and is known again by its device and inode. Both mislead if a folder above it was renamed, or where a
link leads to a new folder that has a removed one's inode: `forget` is for events that may cause this.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Callable
from weakref import WeakSet

# The functions from before the hooks: resolving a path is not one of the cell's own looks at it.
_stat, _lstat = os.stat, os.lstat

_MOST_FOLDERS = 1000
_folders: dict[str, tuple[tuple[int, int], str]] = {}


def real_path(path: str) -> str:
    """Return what `os.path.realpath` gives for an absolute path, which need not exist."""
    folder, name = os.path.split(path)
    if name in ("", os.curdir, os.pardir):
        return os.path.realpath(path)
    try:
        known = _stat(folder)
    except OSError:
        return os.path.realpath(path)
    return os.path.realpath(path) if _is_link(path) else os.path.join(_real_folder(folder, known), name)


def _is_link(path: str) -> bool:
    try:
        return stat.S_ISLNK(_lstat(path).st_mode)
    except OSError:  # it does not exist
        return False


def _real_folder(folder: str, known: os.stat_result) -> str:
    identity = known.st_dev, known.st_ino
    found = _folders.get(folder)
    if found is None or found[0] != identity:
        if len(_folders) >= _MOST_FOLDERS:
            _folders.clear()
        found = _folders[folder] = (identity, os.path.realpath(folder))
    return found[1]


class Folders:
    """Folders that were judged, each recognised by its device and inode, until `forget`.

    Parameters
    ----------
    judge : callable
        Returns whether what lies in a folder, given by its real path, is of no interest.
    """

    def __init__(self, judge: Callable[[str], bool]) -> None:
        self._judge = judge
        self._verdicts: dict[str, tuple[tuple[int, int], bool]] = {}
        _judged.add(self)

    def hold(self, path: str) -> bool:
        """Return whether an absolute path is, or lies in, a folder of no interest, and is no link."""
        folder = os.path.dirname(path)
        return (self._verdict(folder) and not _is_link(path)) or self._verdict(path)

    def _verdict(self, folder: str) -> bool:
        known = self._verdicts.get(folder)
        if known is not None and not known[1]:
            return False
        try:
            found = _stat(folder)
        except OSError:
            return False
        identity = found.st_dev, found.st_ino
        if known is None or known[0] != identity:
            verdict = stat.S_ISDIR(found.st_mode) and self._judge(os.path.realpath(folder))
            known = self._verdicts[folder] = (identity, verdict)
        return known[1]

    def forget(self) -> None:
        """Judge each folder again."""
        self._verdicts.clear()


_judged: WeakSet[Folders] = WeakSet()


def forget() -> None:
    """Resolve and judge each folder again: one may have been renamed, removed, or replaced by a link."""
    _folders.clear()
    for folders in _judged:
        folders.forget()
