"""Records the captured cell, lines of the user's code, and the labels of this process's cells."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class CellSource:
    """The cell that is being captured."""

    label: str
    """How the cell is named to people: ``cell 3``, or a file's name."""
    filename: str
    """The file name that the cell's frames carry (IPython's compile cache makes one for each cell)."""
    source: str
    """The text that was compiled under that name: its line numbers are those of the frames."""
    labels: Mapping[str, str] = field(default_factory=dict)
    """File names of other cells and their labels, for calls that go through functions defined there."""
    above: Mapping[str, int] = field(default_factory=dict)
    """File names under which a part of the cell is compiled that begins below its first line (`%%time` has one of its
    own), and how many lines of the cell are above that part."""


@dataclass(frozen=True)
class SourceLocation:
    """A line of the user's code."""

    cell: str
    """The label of the cell, or the file's name."""
    filename: str
    """As the frame carries it."""
    line: int
    """Counted from 1; in a method chain over many lines the one with the method's name (Python 3.11 and newer; else the
    line that Python reports)."""
    code: str
    """That line's text, stripped."""
    called_from: SourceLocation | None = None
    """The line of the captured cell that led here; None if this line is in the cell itself."""

    @property
    def line_in_cell(self) -> int:
        """The number of the captured cell's line: of this one, or of the one that led here."""
        return (self.called_from or self).line

    def __str__(self) -> str:
        here = f"{self.cell}, line {self.line}"
        return here if self.called_from is None else f"{here} (called from {self.called_from})"


_labels: dict[str, str] = {}
"""By the file names that their frames carry. A traceback that comes back from a Python worker holds those names and
nothing else of a cell. `linecache` keeps the cells' text for this process in the same way."""


def remember(cell: CellSource) -> None:
    """Remember a cell and the cells that it knows; a cell that ran again goes by its newest number."""
    _labels.update(cell.labels)
    _labels[cell.filename] = cell.label


def label_of(filename: str) -> str | None:
    """Return the label of the cell with a file name; None if it is no cell's."""
    return _labels.get(filename)
