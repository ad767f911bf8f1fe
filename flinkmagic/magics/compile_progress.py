"""How far the capture and the planning of many sinks have come, shown while they last and gone when they are over."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from types import TracebackType
from typing import Any, Protocol

from IPython.display import DisplayHandle, display

from flinkmagic.magics.live import in_notebook
from flinkmagic.magics.live_view import UPDATE_S

FEW_SINKS = 20
"""Up to so many are over before a bar could be read."""

PATIENCE_S = 1.0
"""What is over sooner shows nothing."""


class _Shown(Protocol):
    def update(self, done: int, total: int | None, text: str) -> None: ...

    def close(self) -> None: ...


class CompileProgress:
    """Hears of each captured write and each planned sink, and shows it where that takes its time.

    To be used as a context manager: what it shows is gone at the end, also where something was raised.

    Parameters
    ----------
    name : str
        The graph's name.
    widget : bool
        Whether a notebook shows a bar, or else a line of text.
    clock : callable
        Seconds, of which only differences count.
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
        """The cell has come to its write of this number; how many there will be nobody knows."""
        self._tell(writes, None, f"{self._name}: {writes} writes captured")

    def planned(self, sinks: int, of: int) -> None:
        """So many sinks of all are planned."""
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
        return _TerminalLine()
    return _Bar() if widget else _NotebookLine()


class _InNotebook:
    """A display that is emptied at the end: of a widget a notebook would save a view without its state."""

    def __init__(self, first: Any, **options: Any) -> None:
        self._handle: DisplayHandle = display(first, display_id=True, **options)

    def close(self) -> None:
        self._handle.update({"text/plain": ""}, raw=True)


class _Bar(_InNotebook):
    def __init__(self) -> None:
        from ipywidgets import HBox, IntProgress, Label

        self._bar, self._label = IntProgress(value=0, min=0, max=1), Label()
        self._box = HBox([self._bar, self._label])
        super().__init__(self._box)

    def update(self, done: int, total: int | None, text: str) -> None:
        # While nobody knows how many there will be, the bar stays empty and the text counts.
        self._bar.max, self._bar.value = total or 1, done if total else 0
        self._label.value = text

    def close(self) -> None:
        super().close()
        for each in (self._bar, self._label, self._box):
            each.close()


class _NotebookLine(_InNotebook):
    def __init__(self) -> None:
        super().__init__({"text/plain": ""}, raw=True)

    def update(self, done: int, total: int | None, text: str) -> None:
        self._handle.update({"text/plain": text}, raw=True)


class _TerminalLine:
    def __init__(self) -> None:
        self._width = 0

    def update(self, done: int, total: int | None, text: str) -> None:
        sys.stdout.write("\r" + text.ljust(self._width))
        sys.stdout.flush()
        self._width = max(self._width, len(text))

    def close(self) -> None:
        sys.stdout.write("\r" + " " * self._width + "\r")
        sys.stdout.flush()
