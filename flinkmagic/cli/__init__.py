"""Runs the console script `flinkmagic`: a module for each command.

Commands work on files; what needs a notebook or its session is a magic. Graphs, pictures and reports are not made here,
but in `graph`, `display`, `simulation` and `history`; only the scheduler's trace is (`scheduling_trace`).
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from flinkmagic import __version__
from flinkmagic.cli import compile as compile_command
from flinkmagic.cli import demo, history, simulate, tutorials
from flinkmagic.errors.base import UserError

COMMANDS = {
    "tutorials": tutorials,
    "demo": demo,
    "compile": compile_command,
    "simulate": simulate,
    "history": history,
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command.

    Returns
    -------
    int
        0 if it did what it was asked, 1 if it could not, 2 if the arguments were wrong (argparse).
    """
    parser = argparse.ArgumentParser(
        prog="flinkmagic", description="Flink's job manager inside a Jupyter notebook, deployed on Spark."
    )
    parser.add_argument("--version", action="version", version=f"flinkmagic {__version__}")
    subparsers = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    for command in COMMANDS.values():
        command.add_parser(subparsers)
    parsed = parser.parse_args(arguments)
    try:
        return COMMANDS[parsed.command].run(parsed)
    except UserError as error:
        print(f"flinkmagic: {error}", file=sys.stderr)
        return 1
