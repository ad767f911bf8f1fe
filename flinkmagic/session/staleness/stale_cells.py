"""Finds the stale cells of the table, and why they are stale.

1. A cell is stale if a file that its DataFrames listed has changed, if there is a new file beside it, or if a setting
   that can affect rows has another value now.
2. A cell is stale if a name that it has read has another value now. Values with equal keys are the same: a cell that
   ran again with the same effect makes no other cell stale.
3. It is not stale if the value that it has read was only developed further under the same name
   (``df = df.where(...)``), by itself or by a later cell.
4. A cell that develops a name further is stale if its result is no longer there, because the cell before it ran again.
5. A cell is stale if it has read what a stale cell defines, or if its last run raised an exception.
6. Stale cells are in the cells' order, except that a cell follows those that define what it reads.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from flinkmagic.session.staleness.cell_records import CellRecord, CellRecords, ReadValue, ValueFact

if TYPE_CHECKING:
    from flinkmagic.reuse.result_keys import ListedFiles


@dataclass(frozen=True)
class Present:
    """The present state, with which records are compared."""

    value: Callable[[str], ValueFact | None]
    """Returns the fact of a name's value; None if there is no such name."""
    changed_file: Callable[[ListedFiles], str]
    """Returns a change of listed files, such as ``file data/x.csv changed``; empty if there is none."""
    settings: Mapping[str, str]
    """Only those that can affect rows."""


@dataclass(frozen=True)
class StaleCell:
    """A cell whose results are stale, and why."""

    record: CellRecord
    reasons: tuple[str, ...]


def stale_cells(records: CellRecords, now: Present) -> list[StaleCell]:
    """Return the stale cells, in the order in which they should run again."""
    rows = records.rows()
    reasons = {row.cell: _own_reasons(row, records, now) for row in rows}
    is_growing = True
    while is_growing:
        is_growing = False
        for row in rows:
            if not reasons[row.cell]:
                reasons[row.cell] = _inherited(row, records, reasons)
                is_growing |= bool(reasons[row.cell])
    stale = [StaleCell(row, tuple(dict.fromkeys(reasons[row.cell]))) for row in rows if reasons[row.cell]]
    return _in_order(stale)


def _own_reasons(row: CellRecord, records: CellRecords, now: Present) -> list[str]:
    found = [changed for files in row.files if (changed := now.changed_file(files))]
    for name, read in row.reads.items():
        value = now.value(name)
        if value is not None:
            found += _of_read(row, name, read, value, records)
    if row.settings:
        names = sorted(row.settings.keys() | now.settings.keys())
        found += [f"setting {name} changed" for name in names if row.settings.get(name) != now.settings.get(name)]
    if row.raised:
        found.append("its last run raised an exception")
    return found


def _of_read(row: CellRecord, name: str, read: ReadValue, value: ValueFact, records: CellRecords) -> list[str]:
    definer = records.definer(name)
    if definer is not None and not definer.defines[name].is_same(value):
        definer = None
    if value.is_same(read.fact):
        left = row.defines.get(name)
        if left is None or left.is_same(value) or definer is None or definer.run <= row.run:
            return []
        return [_run_again(definer, name)]
    if value.kind == "module":
        return [f"module {name} was edited"]
    at = definer
    seen: set[str] = set()
    while at is not None and at.cell not in seen:
        if at.cell == row.cell:
            return []
        if at.cell == read.cell:
            return [f"function {name} changed ({at.title})" if value.kind == "function" else _run_again(at, name)]
        further = at.reads.get(name)
        if further is not None and any(further.fact.is_same(one) for one in (read.fact, *_left(row, name))):
            return []
        seen.add(at.cell)
        at = records.get(further.cell) if further is not None else None
    by = definer.title if definer is not None else "what is no recorded cell"
    if value.kind == "function":
        return [f"function {name} changed ({by})"]
    return [f"{by} has replaced `{name}`"]


def _left(row: CellRecord, name: str) -> tuple[ValueFact, ...]:
    return (row.defines[name],) if name in row.defines else ()


def _run_again(definer: CellRecord, name: str) -> str:
    return f"{definer.title}, which defines `{name}`, was run again"


def _inherited(row: CellRecord, records: CellRecords, reasons: Mapping[str, Sequence[str]]) -> list[str]:
    found = []
    for name, read in row.reads.items():
        maker = records.get(read.cell)
        if maker is not None and maker.cell != row.cell and reasons[maker.cell]:
            found.append(f"{maker.title}, which defines `{name}`, is stale")
    return found


def _in_order(stale: Sequence[StaleCell]) -> list[StaleCell]:
    """Return cells in their order, but each after those that define what it has read."""
    waiting = {one.record.cell: one for one in stale}
    ordered: list[StaleCell] = []

    def put(one: StaleCell) -> None:
        if waiting.pop(one.record.cell, None) is None:
            return
        for read in one.record.reads.values():
            if read.cell in waiting:
                put(waiting[read.cell])
        ordered.append(one)

    for one in stale:
        put(one)
    return ordered
