"""Remembers the labels of this process's cells, by the file names that their frames carry.

A traceback that comes back from a Python worker holds those names and nothing else of a cell. `linecache` keeps the
cells' text for this process in the same way.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from flinkmagic.capturing.source_code.source_location import CellSource

_labels: dict[str, str] = {}


def remember(cell: CellSource) -> None:
    """Remember a cell and the cells that it knows; a cell that ran again goes by its newest number."""
    _labels.update(cell.labels)
    _labels[cell.filename] = cell.label


def label_of(filename: str) -> str | None:
    """Return the label of the cell with a file name; None if it is no cell's."""
    return _labels.get(filename)
