"""Finds free names, and imports a package's names on first use."""

from __future__ import annotations

import importlib
import itertools
from collections.abc import Callable, Container, Mapping
from typing import Any


def free_name(name: str, taken: Container[str], stem: str | None = None) -> str:
    """Return a name if it is free; else its stem (by default the name and "_") with the first free number from 2."""
    if name not in taken:
        return name
    numbered = (f"{name}_{number}" if stem is None else f"{stem}{number}" for number in itertools.count(2))
    return next(each for each in numbered if each not in taken)


def imported_on_use(package: str, homes: Mapping[str, str]) -> Callable[[str], Any]:
    """Make the ``__getattr__`` of a package that imports its names from other modules on first use.

    Parameters
    ----------
    homes : mapping of str to str
        The module of each name.
    """

    def find(name: str) -> Any:
        home = homes.get(name)
        if home is None:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        return getattr(importlib.import_module(home), name)

    return find
