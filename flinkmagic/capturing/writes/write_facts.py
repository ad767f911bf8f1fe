"""What is known about a write before it runs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from flinkmagic.capturing.writes.targets import Target


def _nothing() -> None:
    pass


@dataclass(frozen=True)
class WriteFacts:
    """What is known about a write before it runs.

    Attributes
    ----------
    format, mode : str
        As people are shown them.
    target : Target
        Where it goes.
    label : str
        The target, as readable text.
    name : str
        What its sink may be called.
    options : mapping of str to str
        The writer's options, secrets left out.
    partition_by : tuple of str
        The partition columns.
    overwrites : bool
        Whether data at the target are gone afterwards.
    dynamic : bool
        Whether only those partitions are overwritten that there are rows for.
    defines : bool
        Whether it makes, or makes again, the table's entry in the catalog.
    runs_now : bool
        Whether to let plain Spark run it immediately, which refuses it or does what cannot be put off.
    exists : callable, optional
        Whether the target is there now; None if only the source knows, when it runs.
    taken : callable
        Spark's own error for a target that is there and must not be.
    check : callable
        Has Spark refuse what it can refuse before it runs.
    check_format : callable
        Has the file format do the same. The answer depends on `format`, `options`, `partition_by`, the rows' schema
        and the session's configuration alone.
    """

    format: str
    mode: str
    target: Target
    label: str
    name: str
    options: Mapping[str, str] = field(default_factory=dict)
    partition_by: tuple[str, ...] = ()
    overwrites: bool = False
    dynamic: bool = False
    defines: bool = False
    runs_now: bool = False
    exists: Callable[[], bool] | None = None
    taken: Callable[[], Exception] = RuntimeError
    check: Callable[[], None] = _nothing
    check_format: Callable[[], None] = _nothing
