"""Records what failed, where, and what was restarted for it (Flink's `ExceptionHistoryEntry` and its root)."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass

MOST_ENTRIES = 16
"""Flink's `web.exception-history-size`."""


@dataclass(frozen=True)
class ExceptionHistoryEntry:
    """One failure (Flink's `ExceptionHistoryEntry`)."""

    error: BaseException
    at_ms: float
    vertex: int | None = None
    """None for a failure of the job as a whole."""
    task_name: str | None = None
    """None for a failure of the job as a whole."""
    attempt: int | None = None
    """None for a failure of the job as a whole."""
    resource_id: str | None = None
    """None if the task had no executor yet."""

    @property
    def is_global(self) -> bool:
        """Whether it concerns no single task."""
        return self.vertex is None

    def __str__(self) -> str:
        if self.task_name is None:
            return f"the job failed: {self.error}"
        where = f" on {self.resource_id}" if self.resource_id else ""
        text = str(self.error)
        if text.startswith(self.task_name):  # an error that names its task
            return f"{self.task_name}{where}{text.removeprefix(self.task_name)}"
        return f"{self.task_name} failed{where}: {text}"


@dataclass(frozen=True)
class RootExceptionHistoryEntry:
    """A failure that made the job restart or end, and those that came with it."""

    root: ExceptionHistoryEntry
    restarted: Sequence[int]
    """The vertices that it restarts; empty if it ended the job."""
    concurrent: tuple[ExceptionHistoryEntry, ...] = ()


class ExceptionHistory:
    """The last failures of a job, oldest first."""

    def __init__(self) -> None:
        self._entries: deque[RootExceptionHistoryEntry] = deque(maxlen=MOST_ENTRIES)

    def add(self, entry: ExceptionHistoryEntry, restarted: Sequence[int], is_new_attempt: bool) -> None:
        """Record a failure; one that belongs to a restart that is still pending joins the failure that began it."""
        if not is_new_attempt and self._entries:
            last = self._entries[-1]
            self._entries[-1] = RootExceptionHistoryEntry(
                last.root, sorted({*last.restarted, *restarted}), (*last.concurrent, entry)
            )
        else:
            self._entries.append(RootExceptionHistoryEntry(entry, tuple(restarted)))

    def entries(self) -> tuple[RootExceptionHistoryEntry, ...]:
        """Return a copy, for readers on other threads."""
        return tuple(self._entries)
