"""Chooses names that are not taken yet."""

from __future__ import annotations

import itertools
from collections.abc import Container


def free_name(name: str, taken: Container[str], stem: str | None = None) -> str:
    """Return a name if it is free; else its stem (by default the name and "_") with the first free number from 2."""
    if name not in taken:
        return name
    numbered = (f"{name}_{number}" if stem is None else f"{stem}{number}" for number in itertools.count(2))
    return next(each for each in numbered if each not in taken)
