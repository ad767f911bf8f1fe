"""What deferring a write asks of a capture's recorder, and tells it."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Protocol

from flinkmagic.capturing.writes.captured_session import CapturedSession

if TYPE_CHECKING:
    from flinkmagic.capturing.frames import FrameRegistry
    from flinkmagic.capturing.session_snapshot import SessionSnapshot
    from flinkmagic.capturing.source_code.source_location import SourceLocation
    from flinkmagic.capturing.writes.deferred_write import SkippedWrite


class WriteRecorder(CapturedSession, Protocol):
    """What deferring a write asks of a capture's recorder, and tells it.

    Attributes
    ----------
    thread : int
        The cell's own thread.
    frames : FrameRegistry
        Numbers what is written, and keeps it.
    on_write : callable, optional
        Called for each deferred write with the number of those that are pending.
    immediate : bool
        Each write is deployed on its own line.
    never_refuses : bool
        A write that cannot be put off runs as plain Spark runs it, once what is pending has run.
    """

    thread: int
    frames: FrameRegistry
    on_write: Callable[[int], None] | None
    immediate: bool
    never_refuses: bool

    def handler(self) -> SourceLocation | None:
        """Return the ``try`` whose handlers wait for the running line to raise, in the cell or in what it calls."""
        ...

    def snapshot(self, spark: Any) -> SessionSnapshot:
        """Return the session's state now; the same object as before where nothing changed."""
        ...

    def writes_streams(self) -> bool:
        """Return whether streaming queries are the sinks of the capture, and the running line is its own."""
        ...

    def skip(self, write: SkippedWrite) -> None:
        """Note a write that has nothing to do."""
        ...

    def note_immediate(self, text: str) -> None:
        """Note that a line has changed rows already."""
        ...

    def ran_plainly(self, location: SourceLocation, text: str, refusal: Exception) -> None:
        """Note that plain Spark has done what could not be deployed."""
        ...
