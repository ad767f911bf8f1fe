"""Errors and messages about results that are stored for later processes."""

from __future__ import annotations

from flinkmagic.errors.base import FlinkMagicError, UserError, first_line

WRONG_CHECKSUM = "its checksum is wrong"
WRONG_DESCRIPTION = "its description is wrong"
WRONG_TIMES = "its times are wrong"
OTHER_KEY = "it belongs to another key"
TOO_LARGE = "it is too large"
"""Why an entry is not as it was written."""
OTHER_COLUMNS = "it has other columns"
OTHER_PARTITIONS = "it has another number of partitions"
OTHER_LAYOUT = "its rows lie in partitions, or are ordered, in another way"
"""Why its rows are not those of a plan."""


class DamagedError(FlinkMagicError):
    """An entry that is not as it was written. Users are told by the store (`damaged`)."""

    why: str

    template = "{why}"


def wrong_file(name: str, *, is_there: bool) -> str:
    """Return why an entry with a file of that name is not as it was written."""
    return f"{name} is another one" if is_there else f"{name} cannot be read"


def damaged(path: str, why: Exception) -> str:
    """Return the line about a stored result that is not as it was written."""
    return f"A stored result was damaged ({why}) and is removed; it is computed again: {path}"


def not_stored(folder: str, cause: Exception) -> str:
    """Return the line about results that could not be stored."""
    why = first_line(cause)
    return f"Results are not stored in {folder} ({why}). The same may hold for later ones; this is said once."


class FolderRefusedError(UserError):
    """A folder that results cannot be stored in."""

    folder: str
    cause: Exception

    def __str__(self) -> str:
        return f"Results cannot be stored in {self.folder} ({first_line(self.cause)}). Name another folder."
