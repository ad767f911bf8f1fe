"""Records, in a table, the facts of what each cell that has run has read and defined.

Each cell has one row, for its last run; a cell that runs again replaces its row and keeps its place. No row refers to
an object of the user's.

| column   | what it holds                                                                     |
| -------- | --------------------------------------------------------------------------------- |
| cell     | the front end's lasting name for it, or a digest of its text where there is none   |
| number   | the number of its last run, as its prompt shows it                                 |
| run      | when it ran: runs are counted                                                      |
| place    | when it ran first: the cells' order                                                |
| source   | its text                                                                           |
| reads    | by name, the value that it found, and which run of which cell had defined it       |
| defines  | by name, the value that it left                                                    |
| files    | what its DataFrames listed                                                         |
| settings | those that can affect rows; empty for a cell that has used no DataFrame            |
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from flinkmagic.reuse.result_keys import ListedFiles

MOST_CELLS = 1000
"""At most so many cells are known; the one that ran longest ago is forgotten first."""


@dataclass(frozen=True)
class ValueFact:
    """What is known about a value."""

    kind: str
    """``DataFrame``, ``function``, ``module``, ``value`` (compared by its contents) or ``object``."""
    identity: int = 0
    """The object's number."""
    version: int = 0
    """How often cells have changed the object in place."""
    key: str = ""
    """Equal for equal values; empty if only the object itself is known to be equal."""

    def is_same(self, other: ValueFact) -> bool:
        """Return whether two values are known to be equal."""
        if self.key or other.key:
            return (self.kind, self.key) == (other.kind, other.key)
        return (self.identity, self.version) == (other.identity, other.version)


@dataclass(frozen=True)
class ReadValue:
    """A value that a cell found under a name."""

    fact: ValueFact
    cell: str = ""
    """The cell that had defined it; empty if none is known."""
    run: int = 0
    """Which run of that cell."""


@dataclass(frozen=True)
class CellRecord:
    """One row of the table; see the module."""

    cell: str
    number: int
    source: str
    is_lasting: bool = True
    run: int = 0
    place: int = 0
    reads: Mapping[str, ReadValue] = field(default_factory=dict)
    defines: Mapping[str, ValueFact] = field(default_factory=dict)
    files: tuple[ListedFiles, ...] = ()
    settings: Mapping[str, str] = field(default_factory=dict)
    raised: bool = False
    """Whether its last run raised an exception; False if that was its first run."""

    @property
    def title(self) -> str:
        """Such as ``cell 3``, as in its prompt."""
        return f"cell {self.number}"


def cell_of_text(source: str) -> str:
    """Return the id of a cell for which the front end has no lasting name."""
    return hashlib.sha256(source.encode("utf-8", "surrogatepass")).hexdigest()[:16]


class CellRecords:
    """The rows by cell, the one that ran longest ago first."""

    def __init__(self, most: int = MOST_CELLS) -> None:
        self._most = most
        self._rows: dict[str, CellRecord] = {}
        self._definers: dict[str, str] = {}
        self._files: dict[ListedFiles, ListedFiles] = {}
        self._settings: Mapping[str, str] = {}
        self._runs = 0

    def __len__(self) -> int:
        return len(self._rows)

    def rows(self) -> list[CellRecord]:
        """Return the rows in the cells' order."""
        return sorted(self._rows.values(), key=lambda row: row.place)

    def get(self, cell: str) -> CellRecord | None:
        """Return a cell's row."""
        return self._rows.get(cell)

    def definer(self, name: str) -> CellRecord | None:
        """Return the last cell that defined a name."""
        return self._rows.get(self._definers.get(name, ""))

    def found(self, name: str, fact: ValueFact) -> ReadValue:
        """Return a value that a cell finds under a name, with the cell that left it there."""
        maker = self.definer(name)
        if maker is None or not maker.defines[name].is_same(fact):
            return ReadValue(fact)
        return ReadValue(fact, maker.cell, maker.run)

    def add(self, record: CellRecord) -> CellRecord:
        """Add a run of a cell; return its row."""
        former = self._rows.pop(record.cell, None)
        self._runs += 1
        raised = record.raised and former is not None
        if record.raised and former is None:
            # It has no results that could be stale, but is known to have defined its names.
            record = replace(record, files=(), reads={})
        row = replace(
            record,
            run=self._runs,
            place=self._runs if former is None else former.place,
            raised=raised,
            files=tuple(self._files.setdefault(one, one) for one in record.files),
            settings=self._shared(record.settings),
        )
        for name in former.defines if former is not None else ():
            if name not in row.defines and self._definers.get(name) == row.cell:
                del self._definers[name]
        self._rows[row.cell] = row
        self._definers.update(dict.fromkeys(row.defines, row.cell))
        if len(self._rows) > self._most:
            self._forget(next(iter(self._rows)))
        return row

    def note_exception(self, cell: str) -> None:
        """Note that the last run of a cell raised an exception, and left nothing else to record."""
        if cell in self._rows:
            self._rows[cell] = replace(self._rows[cell], raised=True)

    def _shared(self, settings: Mapping[str, str]) -> Mapping[str, str]:
        """Return equal settings as one object: most cells run under the same ones."""
        if settings and settings != self._settings:
            self._settings = dict(settings)
        return self._settings if settings else {}

    def _forget(self, cell: str) -> None:
        gone = self._rows.pop(cell)
        for name in gone.defines:
            if self._definers.get(name) == cell:
                del self._definers[name]
        held = {one for row in self._rows.values() for one in row.files}
        for files in gone.files:
            if files not in held:
                del self._files[files]
