"""What values an option can have: which are allowed, how they are described, how they are read from a typed word."""

from __future__ import annotations

import argparse
import os
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from flinkmagic.errors.usage import InvalidValueError
from flinkmagic.scheduling.failover.restart_strategy import RESTART_STRATEGIES, parse_restart_strategy


@dataclass(frozen=True, kw_only=True)
class Values:
    """The values that an option can have.

    Attributes
    ----------
    expected : str
        What a value is, in words that end a sentence: "parallelism must be ...".
    allows : callable
        Whether a value is one of them.
    type : type
        What they are in Python.
    read : callable
        Makes a value from a typed word. A word that cannot be read stays as it is, and is then not allowed.
    metavar : str
        The placeholder for a value in a usage line.
    choices : tuple of str
        All of them, if they can be listed.
    suggestions : tuple of str
        What Tab offers if they cannot.
    """

    expected: str
    allows: Callable[[Any], bool]
    type: type = str
    read: Callable[[str], Any] = str
    metavar: str | None = None
    choices: tuple[str, ...] = ()
    suggestions: tuple[str, ...] = ()

    def check(self, option: str, value: Any) -> None:
        """Check that a value is allowed.

        Raises
        ------
        InvalidValueError
            If it is not.
        """
        if not self.allows(value):
            raise InvalidValueError(value, self.expected, option)


def typed(values: Values) -> Callable[[str], Any]:
    """Make the type of a command's or magic's argument whose values are these (argparse's meaning of a type)."""

    def read(text: str) -> Any:
        value = values.read(text)
        if not values.allows(value):
            raise argparse.ArgumentTypeError(f"must be {values.expected}, not {value!r}")
        return value

    # For Tab, if the values cannot be listed.
    read.suggestions = values.suggestions  # type: ignore[attr-defined]
    return read


def one_of(*choices: str, metavar: str | None = None) -> Values:
    """Make values that are words."""
    return Values(
        expected=f"one of {', '.join(choices)}", allows=lambda value: value in choices, choices=choices, metavar=metavar
    )


def _is_whole(value: Any, least: int) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= least


def _read_count(text: str) -> int | str:
    return int(text) if text.isdecimal() else text


def _read_size(text: str) -> int | str:
    match = re.fullmatch(r"(\d+)([kmgt]?)b?", text.lower())
    return text if match is None else int(match[1]) * 1024 ** " kmgt".index(match[2] or " ")


def _is_strategy(value: Any) -> bool:
    try:
        parse_restart_strategy(value)
    except InvalidValueError:
        return False
    return True


COUNT = Values(
    expected="a whole number of at least 1",
    allows=lambda value: _is_whole(value, 1),
    type=int,
    read=_read_count,
    metavar="N",
)

SIZE = Values(
    expected="a whole number of bytes (after a magic also 500m or 8g)",
    allows=lambda value: _is_whole(value, 0),
    type=int,
    read=_read_size,
    metavar="BYTES",
    suggestions=("500m", "2g", "8g"),
)

STRATEGY = Values(
    expected=RESTART_STRATEGIES,
    allows=_is_strategy,
    metavar="STRATEGY",
    suggestions=("none", "fixed-delay:3:1s", "failure-rate:3:5m:1s", "exponential-delay"),
)

FOLDER = Values(expected="a folder's path", allows=lambda value: isinstance(value, (str, os.PathLike)), metavar="DIR")
