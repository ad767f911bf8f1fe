"""Shows what a cell does until its graph exists: a line immediately, and a count if there are many sinks."""

from __future__ import annotations

import sys
import time
from collections.abc import Mapping

from IPython.display import DisplayHandle

from flinkmagic.display import printable
from flinkmagic.magics.live import in_notebook
from flinkmagic.magics.live_view import UPDATE_S, shown_at
from flinkmagic.magics.terminal import RewrittenLine

FEW_SINKS = 20
"""Up to this many sinks are done before a bar could be read."""

PATIENCE_S = 1.0
"""What ends sooner shows no count."""


class CompileProgress:
    """Says what a cell is doing, counts captured writes and planned sinks, and shows the counts if that takes its time.

    Use it as a context manager: what it shows is removed at the end, also after an exception, unless the output has
    been handed over.

    Parameters
    ----------
    widget : bool
        Whether a notebook shows a bar, or else a line of text.
    """

    def __init__(self, name: str, *, widget: bool = True) -> None:
        self._name = name
        self._widget = widget
        self._begun = time.monotonic()
        self._last: float | None = None
        self._shown: _NotebookText | _TerminalText | None = None

    def __enter__(self) -> CompileProgress:
        return self

    def __exit__(self, *_exception: object) -> None:
        if self._shown is not None:
            self._shown.close()
            self._shown = None

    def say(self, doing: str) -> None:
        """Show, immediately, what the cell is doing."""
        self._view().say(f"{self._name}: {doing} …")

    def hand_over(self) -> DisplayHandle | None:
        """Return the output in which the line is shown, for what takes its place; a terminal has none."""
        handle = None if self._shown is None else self._shown.handle
        if handle is not None:
            self._shown = None
        return handle

    def captured(self, writes: int) -> None:
        """Record that the cell has reached its write of this number; how many there will be is unknown."""
        self._tell(writes, None, f"{self._name}: {writes} writes captured")

    def planned(self, sinks: int, total: int) -> None:
        """Record how many of all sinks are planned."""
        self._tell(sinks, total, f"{self._name}: {sinks} of {total} sinks planned")

    def _tell(self, done: int, total: int | None, text: str) -> None:
        now = time.monotonic()
        if (total or done) <= FEW_SINKS or now - self._begun < PATIENCE_S:
            return
        if self._last is not None and now - self._last < UPDATE_S and done != total:
            return
        self._last = now
        self._view().update(done, total, text)

    def _view(self) -> _NotebookText | _TerminalText:
        if self._shown is None:
            self._shown = _view(self._widget)
        return self._shown


def _view(widget: bool) -> _NotebookText | _TerminalText:
    if not in_notebook():
        return _TerminalText()
    return _NotebookBar() if widget else _NotebookText()


class _NotebookText:
    """A line in a display that is emptied at the end."""

    def __init__(self) -> None:
        self.handle: DisplayHandle | None = None

    def say(self, text: str) -> None:
        self._show({"text/plain": text})

    def update(self, done: int, total: int | None, text: str) -> None:
        self._show(self._bundle(done, total, text))

    def close(self) -> None:
        self._show({"text/plain": ""})

    def _show(self, bundle: Mapping[str, str]) -> None:
        self.handle = shown_at(self.handle, bundle)

    def _bundle(self, done: int, total: int | None, text: str) -> Mapping[str, str]:
        return {"text/plain": text}


class _NotebookBar(_NotebookText):
    """A bar in HTML: a widget would reopen as an error if the notebook were saved and the kernel died meanwhile."""

    def _bundle(self, done: int, total: int | None, text: str) -> Mapping[str, str]:
        # While the total is unknown, the bar is empty and the text counts.
        value = f'value="{done if total else 0}" max="{total or 1}"'
        said = printable.xml(printable.visible(text))
        return {"text/html": f'<progress {value} aria-label="{said}"></progress> {said}', "text/plain": text}


class _TerminalText:
    handle = None

    def __init__(self) -> None:
        self._line = RewrittenLine()

    def say(self, text: str) -> None:
        if sys.stdout.isatty():
            self.update(0, None, text)

    def update(self, done: int, total: int | None, text: str) -> None:
        self._line.write(text)

    def close(self) -> None:
        self._line.wipe()
