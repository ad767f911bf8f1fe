"""Parses what the user wrote."""

from __future__ import annotations

import ast
import threading

_PARSING = threading.Lock()
"""Two threads that parse simultaneously fail with a SystemError (Python 3.11: a depth is counted for all of them)."""


def parsed(source: str) -> ast.Module | None:
    """Return a text's syntax tree; None if the text is not what was compiled (IPython's syntax, an edited file)."""
    try:
        with _PARSING:
            return ast.parse(source)
    except (SyntaxError, ValueError):
        return None
