"""What can be checked of a user's words before anything is compiled."""

from __future__ import annotations

import keyword

from flinkmagic.errors.usage import InvalidValueError

VIEWS = ("stream", "job", "execution", "regions")
"""The graphs that can be shown alone."""

DEFAULT_NAME = "job"
"""What an unnamed graph is called."""

WHOLE = "session"
"""What the graph of all that a session has defined is called."""

FORMATS = (".svg", ".dot", ".txt", ".json")
"""The suffixes of files that a graph can be written to."""


def check_name(name: str) -> str:
    """Return a graph's name, which must be able to be a variable.

    Raises
    ------
    InvalidValueError
        Where it is no identifier, or a keyword.
    """
    if not isinstance(name, str) or not name.isidentifier() or keyword.iskeyword(name):
        expected = "a Python identifier and no keyword, such as delays"
        raise InvalidValueError(str(name), expected, "a graph's name (it becomes a variable)")
    return name
