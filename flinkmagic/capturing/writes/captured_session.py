"""What decides whether a line of a cell may run now: the cell's session, and its pending writes."""

from __future__ import annotations

from collections.abc import MutableMapping
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from flinkmagic.capturing.source_code.source_location import SourceLocation
    from flinkmagic.capturing.writes.pending import Effects, PendingWrites
    from flinkmagic.capturing.writes.targets import PathResolver


class CapturedSession(Protocol):
    """A session while a cell's use of it is captured.

    Attributes
    ----------
    spark : SparkSession
        The session.
    pending : PendingWrites
        The writes that nothing has run yet.
    tables : mutable mapping of DataFrameWriterV2 to str
        The table that each writer was made for, as it was written.
    """

    spark: Any
    pending: PendingWrites
    tables: MutableMapping[Any, str]

    @property
    def resolver(self) -> PathResolver:
        """Makes paths comparable, as this session understands them."""
        ...

    def location(self) -> SourceLocation:
        """Return the user's line that is running."""
        ...

    def settle(self, effects: Effects) -> bool:
        """Make sure that a line with these effects may run now; True if pending writes were deployed for it."""
        ...
