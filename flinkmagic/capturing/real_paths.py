"""Where a path leads once symbolic links are followed, for paths that a cell's Python code touches by the hundred.

`os.path.realpath` looks at each folder of a path. Files that are touched in a row lie in few folders: a folder is
resolved once, and is known again by its device and inode. These say nothing where a folder above it was renamed, or
where a link leads to a new folder that has got a removed one's inode: `forget` is for events that may do so.
"""

from __future__ import annotations

import os
import stat

# Those of before the hooks: resolving a path is none of the cell's own looks at it.
_stat, _lstat = os.stat, os.lstat

_MOST_FOLDERS = 1000
_folders: dict[str, tuple[tuple[int, int], str]] = {}


def real_path(path: str) -> str:
    """What `os.path.realpath` gives.

    Parameters
    ----------
    path : str
        Absolute; it need not exist.
    """
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
    except OSError:  # it is not there
        return False


def _real_folder(folder: str, known: os.stat_result) -> str:
    identity = known.st_dev, known.st_ino
    found = _folders.get(folder)
    if found is None or found[0] != identity:
        if len(_folders) >= _MOST_FOLDERS:
            _folders.clear()
        found = _folders[folder] = (identity, os.path.realpath(folder))
    return found[1]


def forget() -> None:
    """Resolve each folder again: one may have been renamed, removed or made a link of."""
    _folders.clear()
