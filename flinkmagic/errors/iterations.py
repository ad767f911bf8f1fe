"""Loops: wrong arguments, and supersteps that fail."""

from __future__ import annotations

from flinkmagic.amounts import count
from flinkmagic.errors.base import UserError
from flinkmagic.errors.usage import InvalidValueError


class IterationArgumentsError(InvalidValueError):
    """`iterate` or `co_iterate`, or a function that it was given, has something that has no meaning."""


class SuperstepFailedError(UserError):
    """A superstep whose job failed; the rows of the one before are kept until then."""

    name: str
    number: int
    """The superstep's, from 1."""
    causes: list[str]
    """What failed."""

    def __str__(self) -> str:
        remedy = "Correct the step, or what it reads, and run the loop again."
        return "\n".join([f"Superstep {self.number} of the loop {self.name!r} failed.", *self.causes, remedy])


class IterationCancelledError(UserError):
    """A loop that was cancelled, between or within its supersteps."""

    name: str
    finished: int

    def __str__(self) -> str:
        done = count(self.finished, "finished superstep")
        return f"The loop {self.name!r} was cancelled after {done}. Run it again when you want its result."


def interrupted(name: str, finished: int) -> str:
    """Return the note on the interrupt that has cancelled a loop."""
    return f"It has cancelled the loop {name!r} after {count(finished, 'finished superstep')}."
