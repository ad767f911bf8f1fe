"""Describes each option of a graph once.

`%config`, the magics' arguments, their help and completion, `compile` and the README's table are made from `OPTIONS`.
To add an option, add a field with its description to `JobOptions`, and the code that uses it.
"""

from __future__ import annotations

import argparse
import functools
import inspect
import os
import re
from collections.abc import Callable
from dataclasses import Field, dataclass, field, fields
from typing import Any, Literal, TypeVar, get_args

from flinkmagic.errors.usage import InvalidValueError
from flinkmagic.scheduling.failover.restart_strategy import RESTART_STRATEGIES, parse_restart_strategy

_Function = TypeVar("_Function", bound=Callable[..., Any])

Sharing = Literal["auto", "always", "never"]
"""What several sinks share: what is worth keeping, all that is not a bare scan, or nothing."""

NO_RESTART = "none"
BATCH = "batch"
STREAMING = "streaming"
BLOCKING, PIPELINED = "blocking", "pipelined"
NO_RETENTION = "none"
REFRESH_ADDED, REFRESH_FULL = "added", "full"
DEFAULT_STORAGE_LEVEL = "MEMORY_AND_DISK_DESER"

_STORAGE_LEVELS = (
    "DISK_ONLY", "DISK_ONLY_2", "DISK_ONLY_3", "MEMORY_AND_DISK", "MEMORY_AND_DISK_2", "MEMORY_AND_DISK_DESER",
    "MEMORY_ONLY", "MEMORY_ONLY_2", "OFF_HEAP",
)  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class Values:
    """The values that an option can take."""

    expected: str
    """What a value must be; ends the sentence "parallelism must be ..."."""
    allows: Callable[[Any], bool]
    type: type = str
    read: Callable[[str], Any] = str
    """Converts a typed word. A word that it cannot read stays as it is, and is then not allowed."""
    metavar: str | None = None
    """The placeholder for a value in a usage line."""
    choices: tuple[str, ...] = ()
    """All values, if they can be listed."""
    suggestions: tuple[str, ...] = ()
    """What Tab offers if they cannot be listed."""

    def check(self, option: str, value: Any) -> None:
        """Check that a value is allowed.

        Raises
        ------
        InvalidValueError
            If it is not.
        """
        if not self.allows(value):
            raise InvalidValueError(value, self.expected, option)


def typed(values: Values) -> Callable[[str], Any]:
    """Make the argparse type of an argument that takes these values."""

    def read(text: str) -> Any:
        value = values.read(text)
        if not values.allows(value):
            raise argparse.ArgumentTypeError(f"must be {values.expected}, not {value!r}")
        return value

    # For Tab, if the values cannot be listed.
    read.suggestions = values.suggestions  # type: ignore[attr-defined]
    return read


def one_of(*choices: str, metavar: str | None = None) -> Values:
    """Make values that are one of several words."""
    return Values(
        expected=f"one of {', '.join(choices)}", allows=lambda value: value in choices, choices=choices, metavar=metavar
    )


def _is_whole(value: Any, least: int) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= least


def _read_count(text: str) -> int | str:
    return int(text) if text.isdecimal() else text


def _read_size(text: str) -> int | str:
    match = re.fullmatch(r"(\d+)([kmgt]?)b?", text.lower())
    return text if match is None else int(match[1]) * 1024 ** " kmgt".index(match[2] or " ")


def _is_strategy(value: Any) -> bool:
    try:
        parse_restart_strategy(value)
    except InvalidValueError:
        return False
    return True


COUNT = Values(
    expected="a whole number of at least 1",
    allows=lambda value: _is_whole(value, 1),
    type=int,
    read=_read_count,
    metavar="N",
)

SIZE = Values(
    expected="a whole number of bytes (after a magic also 500m or 8g)",
    allows=lambda value: _is_whole(value, 0),
    type=int,
    read=_read_size,
    metavar="BYTES",
    suggestions=("500m", "2g", "8g"),
)

STRATEGY = Values(
    expected=RESTART_STRATEGIES,
    allows=_is_strategy,
    metavar="STRATEGY",
    suggestions=("none", "fixed-delay:3:1s", "failure-rate:3:5m:1s", "exponential-delay"),
)

FOLDER = Values(expected="a folder's path", allows=lambda value: isinstance(value, (str, os.PathLike)), metavar="DIR")


@dataclass(frozen=True, kw_only=True)
class Option:
    """Describes one option of a graph."""

    name: str
    """The keyword of `compile`, and the name in `%config`."""
    what: str
    """What it sets: a sentence in lower case, without its full stop."""
    default: Any
    """None if there is no single default."""
    by_default: str
    """What happens if the option is not given."""
    values: Values
    annotation: str
    """Its Python type, as source text."""
    short: str | None = None
    """The short form of its flag."""

    @property
    def flags(self) -> tuple[str, ...]:
        """The flags as typed after a magic."""
        long = f"--{self.name.replace('_', '-')}"
        return (long,) if self.short is None else (long, self.short)

    @property
    def sentence(self) -> str:
        """What it sets, and what happens without it, as sentences."""
        return f"{self.what[0].upper()}{self.what[1:]}. By default {self.by_default}."

    def check(self, value: Any) -> None:
        """Check that a value is allowed. None is, if the option has no single default.

        Raises
        ------
        InvalidValueError
            If it is not.
        """
        if value is not None or self.default is not None:
            self.values.check(self.name, value)


def _told(values: Values, what: str, by_default: str = "", short: str | None = None) -> dict[str, Any]:
    return {"values": values, "what": what, "by_default": by_default, "short": short}


@dataclass(frozen=True, kw_only=True)
class JobOptions:
    """The options of a graph and of its runs, checked.

    Raises
    ------
    InvalidValueError
        If an option has a value that it does not allow.
    """

    parallelism: int | None = field(
        default=None,
        metadata=_told(
            COUNT,
            "how many partitions shuffles make",
            "the smaller of spark.sql.shuffle.partitions and twice the slots (half the slots with pipelined exchanges)",
            short="-p",
        ),
    )
    mode: str = field(
        default=BATCH,
        metadata=_told(
            one_of(BATCH, STREAMING),
            "whether the cell's writes, or its streaming queries (`writeStream`), are the sinks",
        ),
    )
    exchange: str = field(
        default=BLOCKING,
        metadata=_told(
            one_of(BLOCKING, PIPELINED),
            "whether consumers read a shuffle when it is written, or (Spark 4.3 and newer) while it is written: the "
            "stages on both sides then run as one region",
        ),
    )
    slots: int | None = field(
        default=None,
        metadata=_told(
            COUNT, "how many slots the job's vertices may hold simultaneously", "all of the session's cores"
        ),
    )
    share: Sharing = field(
        default="auto",
        metadata=_told(
            one_of(*get_args(Sharing)),
            "what several sinks share and is computed once: what is worth keeping, every DataFrame that is not a bare "
            "scan, or nothing",
        ),
    )
    storage_level: str = field(
        default=DEFAULT_STORAGE_LEVEL,
        metadata=_told(
            one_of(*_STORAGE_LEVELS, metavar="LEVEL"),
            "where the rows of shared DataFrames are kept: one of PySpark's storage levels",
        ),
    )
    restart: str = field(
        default=NO_RESTART,
        metadata=_told(STRATEGY, "whether failed tasks are restarted, in Flink's words: " + STRATEGY.expected),
    )
    retain: str = field(
        default="job",
        metadata=_told(
            one_of(NO_RETENTION, "job", "session"),
            "for which runs the results of finished stages are retained: for none, for later runs under the same name, "
            "or for all later graphs of the session",
        ),
    )
    retain_bytes: int | None = field(
        default=None,
        metadata=_told(
            SIZE,
            "how many bytes of results are retained at most, over all graphs of the session; the least recently used "
            "go first",
            "the current bound, initially 8 GiB",
        ),
    )
    refresh: str = field(
        default=REFRESH_ADDED,
        metadata=_told(
            one_of(REFRESH_ADDED, REFRESH_FULL),
            "whether retained results are brought up to date from files that were added since, where that gives the "
            "same rows, or computed in full",
        ),
    )
    checkpoint_dir: str | os.PathLike[str] | None = field(
        default=None,
        metadata=_told(
            FOLDER,
            "a folder with one path for driver and executors, where a run records its progress for another kernel to "
            "take up",
            "nothing is recorded",
        ),
    )
    durable: str | os.PathLike[str] | None = field(
        default=None,
        metadata=_told(
            FOLDER,
            "a folder where shared rows, and small answers of the session mode, are stored for later kernels to find",
            "nothing outlives the kernel",
        ),
    )
    durable_bytes: int | None = field(
        default=None,
        metadata=_told(
            SIZE,
            "how many bytes that folder holds at most; what saves least time per byte goes first",
            "the current bound, initially 4 GiB",
        ),
    )

    def __post_init__(self) -> None:
        for option in OPTIONS:
            option.check(getattr(self, option.name))
        for name in ("checkpoint_dir", "durable"):
            if getattr(self, name) is not None:
                object.__setattr__(self, name, os.fspath(getattr(self, name)))


def _described(one: Field[Any]) -> Option:
    told = {**one.metadata, "by_default": one.metadata["by_default"] or str(one.default)}
    return Option(name=one.name, default=one.default, annotation=str(one.type), **told)


OPTIONS = tuple(map(_described, fields(JobOptions)))
"""All options, in the order of the fields of `JobOptions`."""


def with_job_options(function: _Function) -> _Function:
    """Put the names, defaults and descriptions of the options into a function's signature and docstring (a decorator).

    The docstring's entry ``**options`` is replaced by one entry for each option.
    """
    written = inspect.signature(function)
    own = [one for one in written.parameters.values() if one.kind is not inspect.Parameter.VAR_KEYWORD]
    added = [
        inspect.Parameter(each.name, inspect.Parameter.KEYWORD_ONLY, default=each.default, annotation=each.annotation)
        for each in OPTIONS
        if each.name not in written.parameters
    ]
    signature = written.replace(parameters=[*own, *added])

    @functools.wraps(function)
    def call(*arguments: Any, **options: Any) -> Any:
        __tracebackhide__ = True
        try:
            signature.bind(*arguments, **options)
        except TypeError as error:
            raise TypeError(f"{function.__name__}() {error}") from None
        return function(*arguments, **options)

    call.__signature__ = signature  # type: ignore[attr-defined]
    if function.__doc__:  # there is none under `python -OO`
        call.__doc__ = re.sub(r"( *)\*\*options\n(?:\1 .*\n)*", _documented, function.__doc__)
    return call  # type: ignore[return-value]


def _documented(place: re.Match[str]) -> str:
    entries = []
    for each in OPTIONS:
        words = ", ".join(f'"{choice}"' for choice in each.values.choices)
        kind = f"{{{words}}}" if words else each.annotation
        entries.append(f"{place[1]}{each.name} : {kind}\n{place[1]}    {each.sentence}\n")
    return "".join(entries)
