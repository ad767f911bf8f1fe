"""Errors and messages about actions, and other lines, that are run as jobs."""

from __future__ import annotations

from collections.abc import Iterable

from flinkmagic.amounts import moment
from flinkmagic.errors.base import FlinkMagicError, UserError, first_line


class ActionCancelledError(UserError):
    """An action whose job was cancelled."""

    text: str
    where: str

    template = "{where}: {text} was cancelled. Run the cell again."


class ActionFailedError(FlinkMagicError):
    """An action that failed on our side after stages of it had run: a mistake of ours."""

    text: str
    where: str
    cause: BaseException

    def __str__(self) -> str:
        return (
            f"{self.where}: {self.text} failed after stages of it had run ({type(self.cause).__name__}: {self.cause}). "
            "This is a bug of flinkmagic: please report it. Plain Spark runs the line after %flinkgraph off."
        )


class PartitionsAskedError(UserError):
    """A line whose rows depend on how shuffled rows lie in partitions; plain Spark carries it out."""

    template = (
        "it asks how shuffled rows lie in partitions, which Spark itself decides (a sample, an id, a random number)"
    )


class OwnInputOverwrittenError(UserError):
    """A line that overwrites what it reads; plain Spark carries it out, or fails, as without the session mode."""

    template = "it overwrites what it reads"


def ran_plainly(text: str, where: str, cause: BaseException) -> str:
    """Return the line about a line that ran as plain Spark: because of a rule of ours, or because something failed."""
    if isinstance(cause, UserError):
        why = f"it could not be deployed: {str(cause).splitlines()[0]}"
    else:
        why = f"flinkmagic failed ({first_line(cause)}). Please report this as a bug."
    return f"{where}: {text} ran as plain Spark, because {why}"


def not_known(text: str, where: str, cause: BaseException) -> str:
    """Return the line about an action whose answer was not looked for among the known ones, or not kept."""
    return (
        f"{where}: {text} neither uses nor adds to the known answers, because flinkmagic failed ({first_line(cause)}). "
        "The same may hold for later actions; this is said once. Please report this as a bug."
    )


def not_noted(text: str, where: str, cause: BaseException) -> str:
    """Return the line about an action that is done, of which could not be noted what later actions may use."""
    return (
        f"{where}: {text} is done, but later actions may compute again what it has read, because flinkmagic failed "
        f"({first_line(cause)}). Please report this as a bug."
    )


def not_kept(names: Iterable[str], cause: BaseException) -> str:
    """Return the note on an action that was run again without keeping rows for later ones."""
    named, told = ", ".join(dict.fromkeys(names)), first_line(cause)
    return f"{named} could not be kept for later actions ({told}): this one ran again without keeping them"


def not_read(names: Iterable[str], cause: BaseException) -> str:
    """Return the note on an action that ran without the rows of other kernels, which it could not read."""
    named, told = ", ".join(dict.fromkeys(names)), first_line(cause)
    return f"stored rows of {named} could not be read ({told}): this one ran without them"


def cache_found(text: str, made_at: float, *, is_own: bool) -> str:
    """Return the note on an action before which a cache of the user's was given rows that were stored."""
    whose = "" if is_own else ", another kernel"
    return f"{text} takes the rows that were stored (from {moment(made_at)}{whose})"


CACHE_NOT_FILLED = "the cache that it reads is filled by the first action that needs its rows"
"""The note on an action that was answered as before, though its query would have filled a cache of the user's."""


def columns_kept(names: str) -> str:
    """Return the note on an action that keeps columns of text files for later ones."""
    return f"keeps the columns that it reads of {names} for later actions"


def slice_kept(names: str) -> str:
    """Return the note on an action that keeps a part of text files, as columns, for later ones."""
    return f"keeps a part of {names} as columns for later actions"


def columns_read(names: str) -> str:
    """Return the note on an action that reads kept columns of text files."""
    return f"reads kept columns of {names}"


EVICTED = "they were evicted to make room"
RELEASED = "they were released"
OTHER_SETTINGS = "a setting has changed"
OTHER_CODE = "a function has changed, or rows that it is made of were computed anew"
"""Why kept rows are not used."""
FIRST_USE = "of its first use no rows were kept, as of nothing that is used only once; now they are"


def other_file(path: str) -> str:
    """Return why kept rows are not used if a file of theirs is another one now."""
    return f"{path.rpartition('/')[2]} changed"


def not_used(name: str, why: str) -> str:
    """Return the note on a line that does not read the rows that were kept of a DataFrame."""
    return f"the kept rows of {name} are not used: {why}"


def in_full(why: str) -> str:
    """Return the note on a job that does not bring up to date what an earlier one has computed."""
    return f"not brought up to date from added files, but computed in full: {why}"


def paid_for(names: str) -> str:
    """Return the note on a line that has kept rows for later ones."""
    return f"kept {names} for later lines"


def failed_in(where: str, vertex: str) -> str:
    """Return the note on an error that Spark raised in a stage."""
    return f"{where}: raised in {vertex}"
