"""Records what is known about a write before it runs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from flinkmagic.capturing.writes.targets import Target


def _nothing() -> None:
    pass


@dataclass(frozen=True)
class WriteFacts:
    """What is known about a write before it runs."""

    format: str
    """As shown to people."""
    mode: str
    """As shown to people."""
    target: Target
    label: str
    """The target, as readable text."""
    name: str
    """A name for the sink."""
    options: Mapping[str, str] = field(default_factory=dict)
    """Without secrets."""
    partition_by: tuple[str, ...] = ()
    overwrites: bool = False
    """Whether data at the target are gone afterwards."""
    dynamic: bool = False
    """Whether it overwrites only the partitions that there are rows for."""
    defines: bool = False
    """Whether it makes, or makes again, the table's entry in the catalog."""
    runs_now: bool = False
    """Whether plain Spark is to run it immediately, which refuses it or does what cannot be put off."""
    exists: Callable[[], bool] | None = None
    """Returns whether the target is there now; None if only the source knows, when it runs."""
    taken: Callable[[], Exception] = RuntimeError
    """Returns Spark's own error for a target that is there and must not be."""
    check: Callable[[], None] = _nothing
    """Has Spark refuse what it can refuse before it runs."""
    check_format: Callable[[], None] = _nothing
    """Has the file format do the same. The answer depends on `format`, `options`, `partition_by`, the rows' schema and
    the session's configuration alone."""
