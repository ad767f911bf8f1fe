"""Loops: wrong arguments, and supersteps that fail."""

from __future__ import annotations

from flinkmagic.amounts import count
from flinkmagic.errors.base import UserError


class IterationArgumentsError(UserError):
    """`iterate` or `co_iterate`, or a function that it was given, has something that has no meaning.

    Parameters
    ----------
    reason
        What is wrong, and what it should be.
    """

    def __init__(self, reason: str) -> None:
        self.reason = reason
        super().__init__(f"{reason}.")


class SuperstepFailedError(UserError):
    """A superstep whose job failed; the rows of the one before are kept until then.

    Parameters
    ----------
    name
        The loop's.
    number
        The superstep's, from 1.
    causes
        What failed.
    """

    def __init__(self, name: str, number: int, causes: list[str]) -> None:
        self.name, self.number, self.causes = name, number, causes
        super().__init__("\n".join([f"Superstep {number} of the loop {name!r} failed.", *causes]))


class IterationCancelledError(UserError):
    """A loop that was cancelled, between or within its supersteps."""

    def __init__(self, name: str, finished: int) -> None:
        self.name, self.finished = name, finished
        super().__init__(f"The loop {name!r} was cancelled after {count(finished, 'finished superstep')}.")


def interrupted(name: str, finished: int) -> str:
    """Return the note on the interrupt that has cancelled a loop."""
    return f"It has cancelled the loop {name!r} after {count(finished, 'finished superstep')}."
