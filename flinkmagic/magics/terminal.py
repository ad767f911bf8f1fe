"""Rewrites a line of a terminal in place."""

from __future__ import annotations

import shutil
import sys


class RewrittenLine:
    """Shows one text after the other, each over the one before.

    Parameters
    ----------
    stream : {"stdout", "stderr"}
        The stream is looked up at each use, as a cell may replace it.
    """

    def __init__(self, stream: str = "stdout") -> None:
        self._stream = stream
        self._width = 0

    def write(self, text: str) -> None:
        """Show a text; a line that is wider than the window could not be rewritten, so it is cut."""
        line = text[: shutil.get_terminal_size().columns - 1]
        self._put("\r" + line.ljust(self._width))
        self._width = len(line)

    def wipe(self) -> None:
        """Remove the text."""
        if self._width:
            self._put(f"\r{' ' * self._width}\r")
            self._width = 0

    def _put(self, text: str) -> None:
        stream = getattr(sys, self._stream)
        stream.write(text)
        stream.flush()
