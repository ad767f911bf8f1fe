"""Imports a package's names on first use."""

from __future__ import annotations

import ast
import importlib
import importlib.util
from collections.abc import Callable
from typing import Any


def imported_on_use(package: str) -> tuple[list[str], Callable[[str], Any]]:
    """Return the ``__all__`` and the ``__getattr__`` of a package that imports its names on first use.

    Its names are those that its ``__init__.py`` imports for type checkers, below ``if TYPE_CHECKING:``. They are read
    there, as `lazy_loader` reads them in a stub: a second list would have to be kept equal by hand.
    """
    loader: Any = importlib.util.find_spec(package).loader  # type: ignore[union-attr]
    homes = {
        name.name: statement.module
        for block in ast.parse(loader.get_source(package)).body
        if isinstance(block, ast.If) and isinstance(block.test, ast.Name) and block.test.id == "TYPE_CHECKING"
        for statement in block.body
        if isinstance(statement, ast.ImportFrom) and statement.module
        for name in statement.names
    }

    def find(name: str) -> Any:
        home = homes.get(name)
        if home is None:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        return getattr(importlib.import_module(home), name)

    return [*homes], find
