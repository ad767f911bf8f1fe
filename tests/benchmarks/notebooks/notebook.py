"""An ordinary notebook, and what an expert would add to it."""

from __future__ import annotations

import importlib
import pkgutil
from dataclasses import dataclass
from types import ModuleType

from tests.benchmarks.notebooks import cells


@dataclass(frozen=True)
class Notebook:
    """Cells, as somebody wrote them who has never heard of flinkmagic.

    Attributes
    ----------
    name : str
        That of its module in `cells`.
    cells : tuple of str
        The module's CELLS.
    expert : tuple of str
        The same with `cache`, `persist` and `unpersist` where they pay: EXPERT says of a cell which lines are put in
        whose place. The same cells where nothing pays.
    unordered : frozenset of int
        Numbers of cells whose output the query does not fix: the module's UNORDERED.
    control : bool
        Whether there is nothing to reuse: each action reads other data, or asks what is asked once. CONTROL.
    """

    name: str
    cells: tuple[str, ...]
    expert: tuple[str, ...]
    unordered: frozenset[int]
    control: bool

    @property
    def has_expert(self) -> bool:
        return self.expert != self.cells


def names() -> list[str]:
    """All notebooks."""
    return sorted(module.name for module in pkgutil.iter_modules(cells.__path__))


def load(name: str) -> Notebook:
    """The notebook of this name."""
    module = importlib.import_module(f"{cells.__name__}.{name}")
    return Notebook(name, tuple(module.CELLS), _expert(module), frozenset(module.UNORDERED), hasattr(module, "CONTROL"))


def _expert(module: ModuleType) -> tuple[str, ...]:
    written = list(module.CELLS)
    for number, (place, instead) in getattr(module, "EXPERT", {}).items():
        if written[number].count(place) != 1:
            raise ValueError(f"{module.__name__}: cell {number} has {place!r} not once")
        written[number] = written[number].replace(place, instead)
    return tuple(written)
