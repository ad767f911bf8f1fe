"""Provides the magics and what a cell shows: a thin shell over the Python API, for IPython and Jupyter.

Only this package knows cells, kernels and front ends. What is run, and how, is decided in `session` and below it;
pictures and widgets are drawn in `display`, from snapshots.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from IPython.core.interactiveshell import InteractiveShell

_LOG = logging.getLogger(__name__)

HINT = (
    "flinkmagic: begin a cell with %%flinkgraph NAME; %%flinkgraph? explains it, "
    "and `flinkmagic tutorials` in a terminal opens the notebooks."
)
"""Printed when the extension is loaded for the first time in a profile of IPython."""

_HINTED = "flinkmagic/hinted"


def load_ipython_extension(shell: InteractiveShell) -> None:
    """Register the magics with a shell (`%load_ext flinkmagic` calls this)."""
    from flinkmagic.magics.cell_text import CellTextTransformer
    from flinkmagic.magics.completion import register_completion
    from flinkmagic.magics.flink_magics import FlinkMagics
    from flinkmagic.magics.loops import LoopViews
    from flinkmagic.magics.not_yet_written import MissingTargetNotes
    from flinkmagic.magics.session_mode import SessionMode

    magics = FlinkMagics(shell)
    shell.register_magics(magics)
    register_completion(shell, magics)
    # The extension may be loaded again: what it registered before is removed.
    texts = shell.input_transformers_cleanup
    texts[:] = [*(one for one in texts if not isinstance(one, CellTextTransformer)), CellTextTransformer(shell)]
    SessionMode(magics).register()
    LoopViews().register(shell)
    events = shell.events
    for callback in events.callbacks["post_run_cell"][:]:
        if isinstance(callback, MissingTargetNotes):
            events.unregister("post_run_cell", callback)
    events.register("post_run_cell", MissingTargetNotes(shell, magics.graphs))
    _hint(shell)


def _hint(shell: InteractiveShell) -> None:
    if shell.db.get(_HINTED):
        return
    print(HINT)
    try:
        shell.db[_HINTED] = True
    except OSError as error:  # a home that cannot be written to
        _LOG.debug("the hint will be told again: %s", error)
