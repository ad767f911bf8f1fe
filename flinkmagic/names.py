"""Names: those that are free, and those that a package offers and imports on first use."""

from __future__ import annotations

import importlib
import itertools
from collections.abc import Callable, Container, Mapping
from typing import Any


def free_name(name: str, taken: Container[str], stem: str | None = None) -> str:
    """Return a name if it is not taken; else its stem (the name and "_") with the first number from 2 that is free."""
    if name not in taken:
        return name
    numbered = (f"{name}_{number}" if stem is None else f"{stem}{number}" for number in itertools.count(2))
    return next(each for each in numbered if each not in taken)


def imported_on_use(package: str, homes: Mapping[str, str]) -> Callable[[str], Any]:
    """Make the ``__getattr__`` of a package whose names live in other modules, so that importing it costs nothing.

    Parameters
    ----------
    package : str
        Its ``__name__``.
    homes : mapping of str to str
        By name, the module in which it lives.
    """

    def find(name: str) -> Any:
        home = homes.get(name)
        if home is None:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        return getattr(importlib.import_module(home), name)

    return find
