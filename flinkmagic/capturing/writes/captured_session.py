"""Decides whether a line of a cell may run now, while the cell's use of a session is captured."""

from __future__ import annotations

import functools
import weakref
from collections.abc import Callable, MutableMapping
from typing import TYPE_CHECKING, Any

from flinkmagic.capturing.cell_threads import CellThreads
from flinkmagic.capturing.driver import capture_reader
from flinkmagic.capturing.session_snapshot import SessionSnapshot
from flinkmagic.capturing.source_code.source_reader import user_frame
from flinkmagic.capturing.writes.pending import Effects, PendingWrites
from flinkmagic.capturing.writes.targets import PathResolver
from flinkmagic.jvm.java import is_stopped

if TYPE_CHECKING:
    from flinkmagic.capturing.source_code.source_location import SourceLocation
    from flinkmagic.capturing.source_code.source_reader import SourceReader


class CapturedSession:
    """A session while a cell's use of it is captured.

    Parameters
    ----------
    deploy : callable, optional
        Runs all that is pending (see `PendingWrites`).
    """

    def __init__(self, spark: Any, source: SourceReader, deploy: Callable[[], None] | None) -> None:
        self.spark = spark
        self.source = source
        self.threads = CellThreads()
        self.pending = PendingWrites(spark, deploy)
        self.tables: MutableMapping[Any, str] = weakref.WeakKeyDictionary()
        """The table that each `DataFrameWriterV2` was made for, as it was written."""
        self.ended = False
        """Whether the session has been stopped: no more calls are noted then."""
        self._last: SessionSnapshot | None = None
        """Its state before it was stopped."""
        self._snapshots: dict[int, tuple[bytes, SessionSnapshot]] = {}

    @functools.cached_property
    def resolver(self) -> PathResolver:
        """Makes paths comparable, as this session understands them."""
        return PathResolver(self.spark)

    def location(self) -> SourceLocation:
        """Return the user's line that is running."""
        return self.source.location(user_frame())

    def handler(self) -> SourceLocation | None:
        """Return the ``try`` whose handlers wait for the running line to raise, in the cell or in what it calls."""
        return self.source.handler(user_frame())

    def settle(self, effects: Effects) -> bool:
        """Make sure that a line with these effects may run now; return True if pending writes were deployed for it.

        Raises
        ------
        PendingWriteError
            If they may not be deployed.
        """
        return bool(self.pending) and self.pending.settle(effects, self.location)

    def snapshot(self, spark: Any) -> SessionSnapshot:
        """Return a session's state now; the same object as before if nothing changed."""
        state = capture_reader.session_facts(spark)
        known = self._snapshots.get(id(spark))
        if known is not None and known[0] == state:
            return known[1]
        snapshot = SessionSnapshot.of_facts(state)
        self._snapshots[id(spark)] = (state, snapshot)
        return snapshot

    def close(self) -> None:
        """Note the session's state for the last time: it is about to be stopped."""
        self._last = self.snapshot(self.spark)

    def closed(self) -> None:
        """Note no more calls if the session has been stopped now."""
        self.ended = is_stopped(self.spark)
        if not self.ended:
            self._last = None

    def last_snapshot(self) -> SessionSnapshot:
        """Return the session's state now, or before it was stopped."""
        return self._last or self.snapshot(self.spark)
