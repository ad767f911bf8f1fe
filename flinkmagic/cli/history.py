"""Shows what applications have left in their event logs (`flinkmagic history`)."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from flinkmagic.options import COUNT, typed

SHOWN = 10


def add_parser(subparsers: Any) -> None:
    """Add the command to the console script's parser."""
    parser: argparse.ArgumentParser = subparsers.add_parser(
        "history",
        help="show the jobs of Spark's event logs, and why they took so long",
        description="Read the event logs of Spark applications (3.x and 4.x): their jobs, with graphs, timeline, "
        "critical path and findings. No Spark is started.",
    )
    add = parser.add_argument
    add("path", type=Path, metavar="PATH", help="an event log, or a folder of them")
    add("-o", "--out", type=Path, metavar="FILE", help="write one page of HTML instead of printing text")
    add(
        "--jobs",
        type=typed(COUNT),
        default=SHOWN,
        metavar="N",
        help="how many jobs, the longest ones, to show (%(default)s)",
    )


def run(arguments: argparse.Namespace) -> int:
    """Read the logs, and show them; return 0."""
    from flinkmagic.history.report import histories, page

    read = histories(arguments.path, arguments.jobs)
    if arguments.out is None:
        print("\n\n".join(history.to_text() for history in read))
    else:
        arguments.out.write_text(page(read), encoding="utf-8")
        print(f"Written to {arguments.out}")
    return 0
