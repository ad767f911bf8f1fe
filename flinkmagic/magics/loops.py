"""Shows a loop in the output of its cell: its progress with its graph while it runs, and its graph in the end.

What draws it is imported with the first loop, so that loading the extension costs next to nothing.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from IPython.core.getipython import get_ipython
from IPython.display import DisplayHandle, display

from flinkmagic.capturing.source_code.source_reader import user_frame
from flinkmagic.display import printable
from flinkmagic.magics.terminal import RewrittenLine
from flinkmagic.magics.tracebacks import interrupted_in_a_call
from flinkmagic.session.iterations.watchers import watchers

if TYPE_CHECKING:
    from IPython.core.interactiveshell import InteractiveShell

    from flinkmagic.magics.live_view import Shown
    from flinkmagic.session.iterations.iteration import Iteration


class LoopViews:
    """Shows the loops of a shell's cells; one of the `watchers` of loops.

    A line that runs several loops, one after the other, shows the last one; a loop within a step is not shown.
    """

    def __init__(self) -> None:
        self._places: dict[tuple[str, int], DisplayHandle] = {}
        self._within = threading.local()

    def register(self, shell: InteractiveShell) -> None:
        """Show the loops of a shell's cells; what an earlier loading of the extension has registered is removed."""
        watchers[:] = [*(one for one in watchers if not isinstance(one, LoopViews)), self]
        for callback in shell.events.callbacks["pre_run_cell"][:]:
            if isinstance(getattr(callback, "__self__", None), LoopViews):
                shell.events.unregister("pre_run_cell", callback)
        shell.events.register("pre_run_cell", self.begin)

    def begin(self, _info: object) -> None:
        """Begin a cell (IPython's ``pre_run_cell``): its loops have displays of their own."""
        self._places.clear()

    @contextmanager
    def __call__(self, loop: Iteration) -> Iterator[None]:
        """Show a loop while the block runs, and how it ended."""
        shell = get_ipython()
        if shell is None or getattr(self._within, "loop", None) is not None:
            yield
            return
        from flinkmagic.magics.live_view import follow_beside

        watcher = follow_beside(loop, self._shown(loop))
        self._within.loop = loop
        try:
            with interrupted_in_a_call(shell):
                yield
        finally:
            self._within.loop = None
            watcher.join()

    def _shown(self, loop: Iteration) -> Shown:
        from flinkmagic.magics.live import in_notebook

        if not in_notebook():
            return _TerminalLoop(loop)
        frame = user_frame()
        place = ("", 0) if frame is None else (frame.f_code.co_filename, frame.f_lineno)
        shown = _NotebookLoop(loop, self._places.get(place))
        self._places[place] = shown.handle
        return shown


class _NotebookLoop:
    """A line over the picture of the loop's graph, which is drawn once while it runs and again in the end."""

    def __init__(self, loop: Iteration, handle: DisplayHandle | None) -> None:
        self._loop, self._picture = loop, ""
        self.handle: DisplayHandle = handle or display(self._line(), raw=True, display_id=True)

    def _line(self) -> Mapping[str, Any]:
        line = printable.visible(self._loop.progress())
        told = f'<pre style="margin:0;white-space:pre-wrap">{printable.xml(line)}</pre>'
        return {"text/html": told + self._picture, "text/plain": line}

    def update(self) -> None:
        from flinkmagic.display import layout_engine, page

        if not self._picture and self._loop.supersteps and layout_engine.engine_available():
            self._picture = page.to_html(self._loop.view())
        self.handle.update(self._line(), raw=True)

    def end(self) -> None:
        self.handle.update(self._loop._repr_mimebundle_(), raw=True)


class _TerminalLoop:
    """A line that is rewritten in place, and the loop's graph and supersteps in the end."""

    def __init__(self, loop: Iteration) -> None:
        self._loop, self._line = loop, RewrittenLine()

    def update(self) -> None:
        self._line.write(printable.visible(self._loop.progress()))

    def end(self) -> None:
        from flinkmagic.display import to_text

        self._line.wipe()
        graph = [to_text(self._loop.view())] if self._loop.supersteps else []
        print("\n".join([*graph, printable.lines_visible(self._loop.summary())]), flush=True)
