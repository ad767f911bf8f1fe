"""Errors and messages about results that are stored for later processes."""

from __future__ import annotations

from flinkmagic.errors.base import UserError, first_line


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
