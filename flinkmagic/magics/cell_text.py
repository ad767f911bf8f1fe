"""Changes to a `%%flinkgraph` cell's text before IPython runs it.

Synchronous code calls a cell magic, with its body as a string. Three things have to be handled before that:

1. A body that awaits at its top level: only IPython itself can await it, on the loop that runs the cells (in a kernel
   that loop is running already, so nothing called from it could wait for it). The cell becomes an ``await``.
2. A syntax error: raised here it is shown as that of any cell. From within a magic IPython would also show the magic's
   frames.
3. Another cell magic on the second line that runs the rest as Python (``%%time``): it is put around the first one.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from flinkmagic.magics.cell import compile_body, is_blank
from flinkmagic.magics.magic_line_parser import asks_for_help

if TYPE_CHECKING:
    from IPython.core.interactiveshell import InteractiveShell

_FIRST_LINE = re.compile(r"%%flinkgraph(?=\s|$)(?P<line>.*)")
_AROUND = re.compile(r"%%(capture|prun|time|timeit)\b")
"""IPython's cell magics that run the rest of the cell as a cell, whatever magic that begins with."""


class CellTextTransformer:
    """An input transformer (one of `InteractiveShell.input_transformers_cleanup`)."""

    def __init__(self, shell: InteractiveShell) -> None:
        self._shell = shell

    def __call__(self, lines: list[str]) -> list[str]:
        """Return the lines of a cell; for a `%%flinkgraph` cell, the lines to run instead.

        Raises
        ------
        SyntaxError
            As for any cell.
        """
        first = _FIRST_LINE.match(lines[0]) if lines else None
        if first is None:
            return lines
        line, body = first["line"].strip(), "".join(lines[1:])
        if is_blank(body):
            # IPython refuses an empty body before it calls the magic.
            helps = f"get_ipython().run_cell_magic('flinkgraph', {line!r}, '\\n')\n"
            return [helps] if asks_for_help(line) else lines
        around = _take_around(lines)
        if around:
            return [*around, *lines]
        try:
            compiled = compile_body(self._shell, f"%%flinkgraph {line}", body, self._shell.execution_count)
        except SyntaxError as error:
            raise error.with_traceback(None) from None
        if compiled.awaits_at is None or not self._shell.autoawait:
            return lines
        magics = "get_ipython().find_cell_magic('flinkgraph').__self__"
        return [f"await {magics}.flinkgraph_awaiting({line!r}, {body!r})\n"]


def _take_around(lines: list[str]) -> list[str]:
    """Return the cell magics to put around ours; comments take their places, so that line numbers stay."""
    found = []
    for number, line in enumerate(lines[1:], start=1):
        if _AROUND.match(line):
            found.append(line)
            lines[number] = f"# {line}"
        elif line.strip():
            break
    return found
