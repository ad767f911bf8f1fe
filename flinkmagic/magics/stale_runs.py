"""Lists the stale cells, and executes their code again (`%flinkrun --stale`)."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from IPython.core.error import UsageError

from flinkmagic.amounts import count, cut
from flinkmagic.display.printable import lines_visible
from flinkmagic.display.text import aligned
from flinkmagic.errors.usage import StaleRunStoppedError
from flinkmagic.magics.cell_recorder import executed_again

if TYPE_CHECKING:
    from argparse import Namespace

    from pyspark.sql import SparkSession

    from flinkmagic.magics.cell_recorder import CellRecorder
    from flinkmagic.session.staleness.cell_records import CellRecord
    from flinkmagic.session.staleness.stale_cells import StaleCell

_MOST_OF_CODE = 40

BY_TEXT = (
    "This front end gives cells no lasting names, so a cell is known by its text: one that was edited or deleted since "
    "still counts as it was."
)
BY_NAME = "Cells count with the code that they last ran, also where they were edited or deleted since."


def check_stale_words(options: Namespace) -> bool:
    """Return whether `%flinkrun` is about stale cells.

    Raises
    ------
    UsageError
        If its words do not fit together.
    """
    others = [f"--{word}" for word in ("detach", "only", "full") if getattr(options, word)]
    if options.stale and (options.name or others):
        raise UsageError(f"--stale is about cells: it goes without {', '.join(filter(None, [options.name, *others]))}")
    if options.yes and not options.stale:
        raise UsageError("--yes goes with --stale")
    if not options.stale and not options.name:
        raise UsageError("the following arguments are required: name (or --stale)")
    return bool(options.stale)


def stale_text(cells: CellRecorder, stale: Sequence[StaleCell]) -> str:
    """Return the list of stale cells, in the order in which they are to run again."""
    known = len(cells.records)
    if not known:
        return (
            "No cell is known: those of %%flinkgraph are, and those that run while the session mode is on "
            "(%flinkgraph on)."
        )
    if not stale:
        return f"No cell is stale, of {known} known."
    rows = [("cell", "defines", "stale because")]
    rows += [(one.record.title, _defined(one.record), "; ".join(one.reasons)) for one in stale]
    lines = [*aligned(rows), f"{count(len(stale), 'cell is', 'cells are')} stale, of {known} known.", _note(cells)]
    lines.append("Execute their code again, in this order, with what they write: %flinkrun --stale --yes")
    return "\n".join(lines)


def run_or_list_stale(shell: Any, cells: CellRecorder, spark: SparkSession | None, *, yes: bool) -> None:
    """List the stale cells, or run them again."""
    if yes:
        run_stale(shell, cells, spark)
    else:
        print(lines_visible(stale_text(cells, cells.stale(spark))))


def run_stale(shell: Any, cells: CellRecorder, spark: SparkSession | None) -> None:
    """Execute the stale cells again, as IPython runs cells; a cell that is no longer stale by its turn is left out.

    The history does not get them: it has them already, and a cell keeps its number.

    Raises
    ------
    StaleRunStoppedError
        If one of them raises, as the cell itself has shown.
    """
    ran: dict[str, CellRecord] = {}
    stale = cells.stale(spark)
    if not stale:
        print(stale_text(cells, stale))
        return
    planned = {one.record.cell: one.record for one in stale}
    while stale := [one for one in cells.stale(spark) if one.record.cell not in ran]:
        record, left = stale[0].record, [one.record.title for one in stale[1:]]
        planned.setdefault(record.cell, record)
        if _must_wait_for_loop(shell, record.source):
            raise StaleRunStoppedError([one.title for one in ran.values()], record.title, left, awaits=True)
        print(lines_visible(f"{record.title} again: {'; '.join(stale[0].reasons)}"))
        ran[record.cell] = record
        with executed_again(record):
            result = shell.run_cell(record.source, store_history=False)
        if not result.success:
            titles = [one.title for one in ran.values()]
            raise StaleRunStoppedError(titles[:-1], titles[-1], left)
    print(f"Executed again: {', '.join(one.title for one in ran.values())}. No cell is stale now.")
    fresh = [record.title for cell, record in planned.items() if cell not in ran]
    if fresh:
        print(f"Left out, because what they have read turned out to be the same: {', '.join(fresh)}.")


def _must_wait_for_loop(shell: Any, source: str) -> bool:
    """Return whether a cell needs the event loop on which the running cell keeps it waiting."""
    try:
        asyncio.get_running_loop()
        return bool(shell.should_run_async(source, transformed_cell=shell.transform_cell(source)))
    except (RuntimeError, SyntaxError):  # there is no such loop, or the cell is going to show what is wrong
        return False


def _defined(record: CellRecord) -> str:
    """Return the names that a cell defines, or in parentheses its last line of code if it defines none; shortened."""
    told = ", ".join(record.defines)
    if not told:
        lines = [line.strip() for line in record.source.splitlines()]
        told = f"({next((line for line in reversed(lines) if line and line[0] != '#'), '')})"
    return cut(told, _MOST_OF_CODE)


def _note(cells: CellRecorder) -> str:
    return BY_NAME if all(one.is_lasting for one in cells.records.rows()) else BY_TEXT
