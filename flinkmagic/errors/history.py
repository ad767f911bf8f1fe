"""Event logs of Spark that cannot be read."""

from __future__ import annotations

from pathlib import Path

from flinkmagic.errors.base import UserError


class NoEventLogError(UserError):
    """A file or folder without an event log."""

    path: Path

    template = (
        "{path} holds no event log of Spark. It is the file, or the folder eventlog_v2_..., that an application with "
        "spark.eventLog.enabled writes below spark.eventLog.dir; or that folder itself."
    )


class LogCodecError(UserError):
    """A compressed event log for which the decompressor is missing, or which is of a kind that nothing here reads."""

    path: Path
    codec: str
    cure: str

    template = "{path} is compressed with {codec}. {cure}"


class UnreadableLogError(UserError):
    """An event log that the system does not let us read."""

    path: Path
    reason: str | None

    template = "{path} cannot be read: {reason}. Name the file or folder of an event log."
