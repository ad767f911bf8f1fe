"""Progress of the capture and the planning of many sinks, shown while they last and removed when they are over."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Mapping
from types import TracebackType
from typing import Protocol

from IPython.display import DisplayHandle, display

from flinkmagic.display import printable
from flinkmagic.magics.live import in_notebook
from flinkmagic.magics.live_view import UPDATE_S

FEW_SINKS = 20
"""Up to so many sinks are done before a bar could be read."""

PATIENCE_S = 1.0
"""What ends sooner shows nothing."""


class _Shown(Protocol):
    def update(self, done: int, total: int | None, text: str) -> None: ...

    def close(self) -> None: ...


class CompileProgress:
    """Counts captured writes and planned sinks, and shows the counts if that takes its time.

    Use it as a context manager: what it shows is removed at the end, also after an exception.

    Parameters
    ----------
    name : str
        The graph's name.
    widget : bool
        Whether a notebook shows a bar, or else a line of text.
    clock : callable
        Returns seconds, of which only differences count.
    """

    def __init__(self, name: str, *, widget: bool = True, clock: Callable[[], float] = time.monotonic) -> None:
        self._name = name
        self._widget = widget
        self._clock = clock
        self._begun = clock()
        self._last: float | None = None
        self._shown: _Shown | None = None

    def __enter__(self) -> CompileProgress:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._shown is not None:
            self._shown.close()
            self._shown = None

    def captured(self, writes: int) -> None:
        """Note that the cell has reached its write of this number; how many there will be is unknown."""
        self._tell(writes, None, f"{self._name}: {writes} writes captured")

    def planned(self, sinks: int, of: int) -> None:
        """Note how many of all sinks are planned."""
        self._tell(sinks, of, f"{self._name}: {sinks} of {of} sinks planned")

    def _tell(self, done: int, total: int | None, text: str) -> None:
        now = self._clock()
        if (total or done) <= FEW_SINKS or now - self._begun < PATIENCE_S:
            return
        if self._last is not None and now - self._last < UPDATE_S and done != total:
            return
        self._last = now
        if self._shown is None:
            self._shown = _view(self._widget)
        self._shown.update(done, total, text)


def _view(widget: bool) -> _Shown:
    if not in_notebook():
        return _TerminalText()
    return _NotebookBar() if widget else _NotebookText()


class _NotebookText:
    """A line in a display that is emptied at the end."""

    def __init__(self) -> None:
        self._handle: DisplayHandle = display({"text/plain": ""}, raw=True, display_id=True)

    def update(self, done: int, total: int | None, text: str) -> None:
        self._handle.update(self._bundle(done, total, text), raw=True)

    def close(self) -> None:
        self._handle.update({"text/plain": ""}, raw=True)

    def _bundle(self, done: int, total: int | None, text: str) -> Mapping[str, str]:
        return {"text/plain": text}


class _NotebookBar(_NotebookText):
    """A bar of HTML: a widget would reopen as an error if the notebook is saved and the kernel dies meanwhile."""

    def _bundle(self, done: int, total: int | None, text: str) -> Mapping[str, str]:
        # While the total is unknown, the bar is empty and the text counts.
        value = f'value="{done if total else 0}" max="{total or 1}"'
        said = printable.xml(printable.visible(text))
        return {"text/html": f'<progress {value} aria-label="{said}"></progress> {said}', "text/plain": text}


class _TerminalText:
    def __init__(self) -> None:
        self._width = 0

    def update(self, done: int, total: int | None, text: str) -> None:
        sys.stdout.write("\r" + text.ljust(self._width))
        sys.stdout.flush()
        self._width = max(self._width, len(text))

    def close(self) -> None:
        sys.stdout.write("\r" + " " * self._width + "\r")
        sys.stdout.flush()
