"""The runs of one notebook: plain, with the mode on, and as an expert would write it, in turn."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from tests.benchmarks.notebooks.kernel import NotebookKernel, NotedCell
from tests.benchmarks.notebooks.notebook import Notebook

EXPERT_ROUND, AGAIN_ROUND = 0, 1
"""In which round the expert's version runs, and in which all cells run a second time: not in each, for lack of time."""


def seconds(run: Sequence[NotedCell]) -> float:
    """Of all cells."""
    return sum(cell.seconds for cell in run)


@dataclass
class Runs:
    """What a notebook's runs left.

    Attributes
    ----------
    plain, on : list of list of NotedCell
        A run of all cells each round.
    expert : list of NotedCell, optional
        The expert's version, beside the first runs of the others.
    again : tuple of list of NotedCell, optional
        All cells a second time in the same kernel, plain and with the mode on.
    """

    notebook: Notebook
    plain: list[list[NotedCell]] = field(default_factory=list)
    on: list[list[NotedCell]] = field(default_factory=list)
    expert: list[NotedCell] | None = None
    again: tuple[list[NotedCell], list[NotedCell]] | None = None

    def add_round(self, data: Path, memory: str, *, again: bool, expert: bool) -> None:
        """Run each version once; who goes first changes from round to round."""
        number = len(self.plain)
        kinds = ["plain", "on", "expert"] if expert and self.notebook.has_expert else ["plain", "on"]
        found, second = {}, {}
        for kind in kinds if number % 2 == 0 else reversed(kinds):
            cells = self.notebook.expert if kind == "expert" else self.notebook.cells
            with NotebookKernel(data, on=kind == "on", memory=memory) as kernel:
                found[kind] = kernel.run(cells)
                if again and kind != "expert":
                    second[kind] = kernel.run(cells)
        self.plain.append(found["plain"])
        self.on.append(found["on"])
        self.expert = found.get("expert", self.expert)
        if second:
            self.again = (second["plain"], second["on"])

    @property
    def ratio(self) -> float:
        """On to plain, the median over the rounds."""
        return statistics.median(seconds(on) / seconds(plain) for plain, on in zip(self.plain, self.on, strict=True))

    @property
    def plain_ratio(self) -> float:
        """Plain to plain: each round to the one before, the first to the last; 1 where there is one only."""
        before = self.plain[-1:] + self.plain[:-1]
        return statistics.median(seconds(one) / seconds(other) for one, other in zip(self.plain, before, strict=True))

    @property
    def expert_ratio(self) -> float:
        """On to the expert's plain run of the same round; to plain where an expert would write the same."""
        return seconds(self.on[EXPERT_ROUND]) / seconds(self.expert) if self.expert else self.ratio

    @property
    def plain_expert_ratio(self) -> float:
        """The expert's plain run to plain; 1 where an expert would write the same."""
        return seconds(self.expert) / seconds(self.plain[EXPERT_ROUND]) if self.expert else 1.0

    @property
    def again_ratio(self) -> float | None:
        """On to plain, of the second time."""
        return seconds(self.again[1]) / seconds(self.again[0]) if self.again else None

    @property
    def under_mode(self) -> list[list[NotedCell]]:
        """All runs with the mode on."""
        return [*self.on, *(self.again or ())[1:]]

    @property
    def without(self) -> list[list[NotedCell]]:
        """All plain runs, but for the expert's."""
        return [*self.plain, *(self.again or ())[:1]]

    @property
    def worst_cell(self) -> tuple[float, int]:
        """The largest of the cells' medians to what a cell may take, 1.3 times plain or 150 ms more; and its number."""
        found = []
        for number in range(len(self.notebook.cells)):
            plain = statistics.median(run[number].seconds for run in self.plain)
            on = statistics.median(run[number].seconds for run in self.on)
            found.append((on / max(1.3 * plain, plain + 0.15), number))
        return max(found)


@dataclass
class Differences:
    """In which cells runs leave something else than another run; a line on each."""

    errors: dict[int, str] = field(default_factory=dict)
    outputs: dict[int, str] = field(default_factory=dict)

    def add(self, notebook: Notebook, plain: Sequence[NotedCell], others: Sequence[Sequence[NotedCell]]) -> None:
        """Compare runs with a plain one."""
        for number, cells in enumerate(zip(plain, *others, strict=True)):
            for cell in cells[1:]:
                self._compare(notebook, number, cells[0], cell)

    def _compare(self, notebook: Notebook, number: int, plain: NotedCell, cell: NotedCell) -> None:
        where = f"{notebook.name}[{number}]"
        if bool(plain.error) != bool(cell.error):
            self.errors[number] = f"error {where}: plain {plain.error or 'none'} | here {cell.error or 'none'}"
        elif number not in notebook.unordered and not plain.same_output(cell):
            texts = (f"{one.text}\n{one.value}".strip() for one in (plain, cell))
            self.outputs[number] = "\n".join([f"differs {where}:", *(f"{text!r:.400}" for text in texts)])
