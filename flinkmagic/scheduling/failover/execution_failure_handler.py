"""Decides what to do about a failure (Flink's `ExecutionFailureHandler`)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from flinkmagic.errors.scheduling import ExecutorRecoveryError, RecoverySuppressedError, SuppressRestartsError
from flinkmagic.scheduling.failover.exception_history import ExceptionHistory, ExceptionHistoryEntry
from flinkmagic.scheduling.failover.failover_strategy import FailoverStrategy
from flinkmagic.scheduling.failover.restart_strategy import RestartBackoffTimeStrategy


@dataclass(frozen=True)
class FailureHandlingResult:
    """Restart these vertices after this delay; or, if there is an `error`, fail the job with it."""

    vertices: list[int]
    delay_ms: float
    error: BaseException | None = None


class ExecutionFailureHandler:
    """Asks one strategy what to restart and the other whether and when to, and keeps the history."""

    def __init__(
        self,
        failover_strategy: FailoverStrategy,
        restart_strategy: RestartBackoffTimeStrategy,
        n_vertices: int,
    ) -> None:
        self._failover_strategy = failover_strategy
        self._restart_strategy = restart_strategy
        self._n_vertices = n_vertices
        self.history = ExceptionHistory()
        self.number_of_restarts = 0

    def handle(self, entry: ExceptionHistoryEntry) -> FailureHandlingResult:
        """Decide about a failure of a task, or of the job as a whole."""
        if entry.vertex is None:
            vertices = list(range(self._n_vertices))
        else:
            vertices = self._failover_strategy.tasks_needing_restart(entry.vertex, entry.error)
        if _is_unrecoverable(entry.error):
            self.history.add(entry, (), True)
            return FailureHandlingResult([], 0.0, entry.error)
        is_new_attempt = self._restart_strategy.notify_failure(entry.error)
        if not self._restart_strategy.can_restart():
            self.history.add(entry, (), True)
            suppressed = RecoverySuppressedError(str(self._restart_strategy), entry.error)
            return FailureHandlingResult([], 0.0, suppressed)
        if is_new_attempt:
            self.number_of_restarts += 1
        self.history.add(entry, vertices, is_new_attempt)
        return FailureHandlingResult(vertices, self._restart_strategy.backoff_ms())

    def note_recovery(self, entry: ExceptionHistoryEntry, vertices: Sequence[int]) -> None:
        """Record what an executor repairs by itself; entries of one loss belong together."""
        entries = self.history.entries()
        last = entries[-1].root.error if entries else None
        belongs = (
            isinstance(last, ExecutorRecoveryError)
            and isinstance(entry.error, ExecutorRecoveryError)
            and last.belongs_with(entry.error)
        )
        self.history.add(entry, vertices, not belongs)


def _is_unrecoverable(error: BaseException | None) -> bool:
    while error is not None:
        if isinstance(error, SuppressRestartsError):
            return True
        error = error.__cause__
    return False
