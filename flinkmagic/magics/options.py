"""The options of a graph as they are typed behind a magic; each has a default of the same name in `%config`."""

from __future__ import annotations

import argparse
import re
from collections.abc import Callable
from typing import Any, TypeVar

from IPython.core.magic_arguments import argument

from flinkmagic.errors import InvalidParallelismError, RestartStrategyError
from flinkmagic.scheduling.scheduler_factory import SCHEDULERS, parse_restart_strategy
from flinkmagic.session.checks import RETAIN, SHARING, STORAGE_LEVELS, check_parallelism

_Magic = TypeVar("_Magic", bound=Callable[..., Any])


def parallelism(text: str) -> int:
    """A parallelism."""
    try:
        return check_parallelism(int(text) if text.isdecimal() else text)
    except InvalidParallelismError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def count(text: str) -> int:
    """A number of slots or executors."""
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"a whole number of at least 1, not {text!r}")
    return int(text)


def size(text: str) -> int:
    """A number of bytes, such as ``500m``."""
    match = re.fullmatch(r"(\d+)([kmgt]?)b?", text.lower())
    if match is None:
        raise argparse.ArgumentTypeError(f"a number of bytes such as 500m or 8g, not {text!r}")
    return int(match[1]) * 1024 ** " kmgt".index(match[2] or " ")


def restart(text: str) -> str:
    """A restart strategy."""
    try:
        parse_restart_strategy(text)
    except RestartStrategyError as error:
        raise argparse.ArgumentTypeError(str(error)) from None
    return text


# For Tab, of types whose values cannot be listed.
size.suggestions = ("500m", "2g", "8g")  # type: ignore[attr-defined]
restart.suggestions = (  # type: ignore[attr-defined]
    "none", "fixed-delay:3:1s", "failure-rate:3:5m:1s", "exponential-delay",
)  # fmt: skip


_JOB_ARGUMENTS = (
    argument("--parallelism", "-p", type=parallelism, metavar="N", help="how many partitions shuffles make"),
    argument("--slots", type=count, metavar="N", help="how many slots its vertices may hold side by side"),
    argument(
        "--share",
        choices=SHARING,
        help="what several sinks share: what is worth keeping (auto), everything but bare scans, nothing",
    ),
    argument(
        "--storage-level",
        choices=STORAGE_LEVELS,
        metavar="LEVEL",
        help="where shared rows are kept, by PySpark's names (MEMORY_AND_DISK_DESER)",
    ),
    argument(
        "--restart",
        type=restart,
        metavar="STRATEGY",
        help="of failed tasks: none, fixed-delay:3:1s, failure-rate:3:5m:1s, exponential-delay",
    ),
    argument("--scheduler", choices=sorted(SCHEDULERS), help="which of Flink's schedulers decides"),
    argument(
        "--retain",
        choices=RETAIN,
        help="for whom results are retained: nobody, later runs under the same name, all later graphs",
    ),
    argument(
        "--retain-bytes", type=size, metavar="BYTES", help="how much is retained at most, over all graphs (500m, 8g)"
    ),
    argument("--checkpoint-dir", metavar="DIR", help="record there how far a run came, for another kernel to take up"),
)

_JOB_OPTIONS = (
    "parallelism", "slots", "share", "storage_level", "restart", "scheduler", "retain", "retain_bytes",
    "checkpoint_dir",
)  # fmt: skip
"""The keywords of `flinkmagic.compile` that an option sets."""


def job_arguments(magic: _Magic) -> _Magic:
    """Give a magic the options of a graph (a decorator to stand among IPython's `argument`)."""
    for each in reversed(_JOB_ARGUMENTS):
        magic = each(magic)
    return magic


def job_options(typed: argparse.Namespace, defaults: object) -> dict[str, Any]:
    """Keywords for `flinkmagic.compile`: as typed, else as configured."""
    chosen = {name: getattr(typed, name) for name in _JOB_OPTIONS}
    return {name: getattr(defaults, name) if value is None else value for name, value in chosen.items()}
