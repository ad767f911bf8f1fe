"""Checks the names of graphs, and lists the words and file suffixes that the magics reserve."""

from __future__ import annotations

import keyword

from flinkmagic.errors.usage import InvalidValueError, ReservedNameError

VIEWS = ("stream", "job", "execution", "regions")
"""The graphs that can be shown alone."""

DEFAULT_NAME = "job"
"""The name of an unnamed graph."""

WHOLE = "session"
"""The name of the graph of everything that a session has defined."""

FORMATS = (".svg", ".dot", ".txt", ".json")
"""The suffixes of files that a graph can be written to."""


ON, OFF = "on", "off"
RESERVED = frozenset({ON, OFF})
"""`%flinkgraph`'s own words, which turn the session mode on and off."""


def check_name(name: str) -> str:
    """Return a graph's name, which must be usable as a variable.

    Raises
    ------
    InvalidValueError
        If it is no identifier, or a keyword.
    ReservedNameError
        If it is one of `%flinkgraph`'s own words.
    """
    if not isinstance(name, str) or not name.isidentifier() or keyword.iskeyword(name):
        expected = "a Python identifier and no keyword, such as delays"
        raise InvalidValueError(str(name), expected, "a graph's name (it becomes a variable)")
    if name in RESERVED:
        raise ReservedNameError(name)
    return name
