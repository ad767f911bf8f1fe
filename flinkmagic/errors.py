"""Every error that flinkmagic raises on purpose: class, parameters and text in one place.

A text says what happened, where, and what to do next. A class that a user's mistake can raise derives from
`UserError`: the magics print its text alone, without a traceback of ours.
"""

from __future__ import annotations


class FlinkMagicError(Exception):
    """Base of all errors of this package."""


class UserError(FlinkMagicError):
    """A mistake in what the user wrote; its text alone is shown, without a traceback."""


class JavaNotFoundError(UserError):
    """No Java runtime that Spark can run on."""

    def __init__(self, oldest: int, seen: list[str]) -> None:
        self.oldest, self.seen = oldest, seen
        looked = f" Looked at: {', '.join(seen)}." if seen else ""
        super().__init__(
            f"Spark needs Java {oldest} or newer, and none was found.{looked} "
            "Install one, or run: pip install 'flinkmagic[java]'"
        )
