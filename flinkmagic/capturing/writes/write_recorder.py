"""What deferring a write asks of a capture's recorder, and tells it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

from flinkmagic.capturing.writes.captured_session import CapturedSession

if TYPE_CHECKING:
    from flinkmagic.capturing.capture_mode import CaptureMode
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
    mode : CaptureMode
        What becomes of writes.
    """

    thread: int
    frames: FrameRegistry
    mode: CaptureMode

    def handler(self) -> SourceLocation | None:
        """Return the ``try`` whose handlers wait for the running line to raise, in the cell or in what it calls."""
        ...

    def snapshot(self, spark: Any) -> SessionSnapshot:
        """Return the session's state now; the same object as before where nothing changed."""
        ...

    def writes_streams(self) -> bool:
        """Return whether streaming queries are the sinks of the capture, and the running line is its own."""
        ...

    def deferred(self, pending: int) -> None:
        """Note that a write was put off, and how many are pending now."""
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
