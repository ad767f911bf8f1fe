"""Reads the files in `cells/`: notebooks of one or more cells, as text.

``=== NAME`` begins a notebook. In it begin:

- ``--- plain`` a cell that runs plainly in every way;
- ``--- cell [GRAPH]`` one that is captured (a graph's name of ``?`` is none at all);
- ``--- departs ENTRY: REASON`` a line that names what a run under the magic is documented not to leave;
- ``--- earlier ENTRY: REASON`` one that names what a line before the refused one changes;
- ``--- refuses: REASON`` one that says that ``--run``, too, may be refused.

``@/`` in a cell is the folder of the way.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

CELLS = Path(__file__).parent / "cells"
ALSO_SESSION = ("exceptions", "law", "streams", "threads", "writes")
"""The kinds that are about where and how a write runs, or fails: the session mode has to keep that."""


@dataclass(frozen=True)
class Step:
    """One cell: `graph` is the name under which it is captured, empty where it runs plainly in every way."""

    text: str
    graph: str = ""


@dataclass(frozen=True)
class Notebook:
    """Cells that run one after the other.

    Attributes
    ----------
    name : str
        The file's name and its own.
    steps : tuple of Step
        The cells.
    departs : tuple of str
        What is left by the plain run alone, each for a documented reason.
    refuses : bool
        Whether a run may be refused as a compilation may.
    earlier : tuple of str
        What a cell that is refused has changed by then.
    """

    name: str
    steps: tuple[Step, ...]
    departs: tuple[str, ...] = ()
    refuses: bool = False
    earlier: tuple[str, ...] = ()

    @property
    def ways(self) -> tuple[str, ...]:
        """How it runs beside the plain run."""
        kind = self.name.partition("/")[0]
        if kind == "session":
            return ("session",)
        return ("run", "compile", "session") if kind in ALSO_SESSION else ("run", "compile")


def read(path: Path) -> list[Notebook]:
    """The notebooks of one file."""
    notebooks = []
    for block in ("\n" + path.read_text(encoding="utf-8")).split("\n=== ")[1:]:
        name, _, rest = block.partition("\n")
        steps: list[Step] = []
        named: dict[str, list[str]] = {"departs": [], "earlier": []}
        refuses = False
        for part in ("\n" + rest).split("\n--- ")[1:]:
            head, _, text = part.partition("\n")
            kind, _, argument = head.strip().partition(" ")
            if kind in named:
                named[kind].append(argument.partition(":")[0].strip())
            elif kind == "refuses:":
                refuses = True
            elif kind in ("plain", "cell"):
                steps.append(Step(text.strip("\n") + "\n", (argument or f"g{len(steps)}") if kind == "cell" else ""))
            else:
                raise ValueError(f"{path.name}, {name}: what is {head!r}?")
        if not any(step.graph for step in steps):
            raise ValueError(f"{path.name}, {name}: no cell is captured")
        departs, earlier = map(tuple, named.values())
        notebooks.append(Notebook(f"{path.stem}/{name.strip()}", tuple(steps), departs, refuses, earlier))
    return notebooks


def all_notebooks() -> list[Notebook]:
    """Those of all files."""
    return [notebook for path in sorted(CELLS.glob("*.txt")) for notebook in read(path)]
