"""The magics: a thin shell over the Python API, for IPython and Jupyter."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from IPython.core.interactiveshell import InteractiveShell


def load_ipython_extension(shell: InteractiveShell) -> None:
    """Register the magics with a shell (`%load_ext flinkmagic` calls this)."""
    from flinkmagic.magics.completion import register_completion
    from flinkmagic.magics.flink_magics import FlinkMagics

    magics = FlinkMagics(shell)
    shell.register_magics(magics)
    register_completion(shell, magics)
