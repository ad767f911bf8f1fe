"""Names what a capture does with writes, and with the starts of streaming queries."""

from __future__ import annotations

from enum import Enum


class CaptureMode(str, Enum):
    """What a capture does with writes, and with the starts of streaming queries (`DataStreamWriter.start`)."""

    BATCH = "batch"
    """Writes are put off. A line that needs one done is refused."""
    RUN = "run"
    """Writes are put off. Those that a line needs are deployed before it."""
    FOREACH_BATCH = "foreachBatch"
    """As RUN; and a write that cannot be put off runs on its line, once what is pending has run."""
    LINES = "lines"
    """Nothing is put off: each write is deployed on its own line. What it raises is what plain Spark raises."""
    STREAMING = "streaming"
    """Starts are put off. A line that needs a query is refused, and so is a batch write."""
    STREAMING_RUN = "streaming, run"
    """Each query starts on its line. Its job is made for a line that needs it; a batch write is refused."""

    @property
    def deploys(self) -> bool:
        """Whether a line gets what it needs."""
        return self not in (CaptureMode.BATCH, CaptureMode.STREAMING)

    @property
    def is_streaming(self) -> bool:
        """Whether streaming queries are the sinks."""
        return self in (CaptureMode.STREAMING, CaptureMode.STREAMING_RUN)
