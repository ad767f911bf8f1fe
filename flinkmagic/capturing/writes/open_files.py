"""Finds files that this process has open for writing: no audit event reports what it writes to them from now on."""

from __future__ import annotations

import os
from collections.abc import Iterator

from flinkmagic.capturing.writes.targets import Target

_DESCRIPTORS = "/proc/self/fd"


def files_open_for_writing() -> Iterator[Target]:
    """Return the files, as places; none if the system does not tell (only Linux does)."""
    if not os.path.isdir(_DESCRIPTORS):
        return
    for name in os.listdir(_DESCRIPTORS):
        path = os.path.join(_DESCRIPTORS, name)
        try:
            if os.lstat(path).st_mode & 0o200:  # the link may be written through
                file = os.readlink(path)
                if os.path.isfile(file):
                    yield Target(path="file:" + file)
        except FileNotFoundError:  # the descriptor that listed the folder
            continue
