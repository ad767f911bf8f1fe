"""What can be checked of a user's words before anything is compiled."""

from __future__ import annotations

import keyword
from typing import TYPE_CHECKING, Any

from flinkmagic.errors import (
    InvalidNameError,
    InvalidParallelismError,
    InvalidRetentionError,
    InvalidSharingError,
    InvalidStorageLevelError,
)

if TYPE_CHECKING:
    from flinkmagic.planning.sinks import Sharing

VIEWS = ("stream", "job", "execution", "regions")
"""The graphs that can be shown alone."""

DEFAULT_NAME = "job"
"""What a graph is called that nobody has named."""

WHOLE = "session"
"""What the graph of all that a session has defined is called."""

RETAIN = ("none", "job", "session")
"""For whom results are retained: nobody, later runs under the same name, all later graphs of the session."""

SHARING = ("auto", "always", "never")
"""What several sinks may be asked to share."""

STORAGE_LEVELS = (
    "DISK_ONLY", "DISK_ONLY_2", "DISK_ONLY_3", "MEMORY_AND_DISK", "MEMORY_AND_DISK_2", "MEMORY_AND_DISK_DESER",
    "MEMORY_ONLY", "MEMORY_ONLY_2", "OFF_HEAP",
)  # fmt: skip
"""Where shared rows may be kept, by PySpark's names."""

FORMATS = (".svg", ".dot", ".txt", ".json")
"""The suffixes of files that a graph can be written to."""


def check_name(name: str) -> str:
    """Return a graph's name, which must be able to be a variable.

    Raises
    ------
    InvalidNameError
        Where it is no identifier, or a keyword.
    """
    if not isinstance(name, str) or not name.isidentifier() or keyword.iskeyword(name):
        raise InvalidNameError(str(name))
    return name


def check_sharing(word: Any) -> Sharing:
    """Return what sinks share, which must be one of the words for it.

    Raises
    ------
    InvalidSharingError
        Where it is not.
    """
    if word not in SHARING:
        raise InvalidSharingError(word, SHARING)
    chosen: Sharing = word
    return chosen


def check_storage_level(name: Any) -> str:
    """Return a storage level's name, which must be one of PySpark's.

    Raises
    ------
    InvalidStorageLevelError
        Where it is not.
    """
    if name not in STORAGE_LEVELS:
        raise InvalidStorageLevelError(name, STORAGE_LEVELS)
    chosen: str = name
    return chosen


def check_parallelism(number: Any) -> int:
    """Return a parallelism, which must be a whole number of at least 1.

    Raises
    ------
    InvalidParallelismError
        Where it is not.
    """
    if isinstance(number, bool) or not isinstance(number, int) or number < 1:
        raise InvalidParallelismError(number)
    return number


def check_retention(retain: Any, size: Any) -> None:
    """See for whom results are retained, and how much of them.

    Raises
    ------
    InvalidRetentionError
        Where the one is none of the words for it, or the other no number of bytes.
    """
    if retain not in RETAIN:
        raise InvalidRetentionError(retain)
    if size is not None and (isinstance(size, bool) or not isinstance(size, int) or size < 0):
        raise InvalidRetentionError(size)
