"""Recognises task failures caused by a lost executor, by the texts of Spark 3.5.9 and 4.3.0.

What the user is told of it is in `errors.scheduling` (`ExecutorRecoveryError` and its kinds). What the board then
does with the tasks is rule 7 of `board.subtask_states`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from flinkmagic.deployment.watching.task_events import RESUBMITTED, ExecutorRemoved, TaskEnded
from flinkmagic.errors.scheduling import ExecutorLostError, ExecutorRecoveryError, OutputLostError
from flinkmagic.graph.execution_job_vertex import ExecutionJobVertex

_REASON = re.compile(r"Reason: (.+)")


class Losses:
    """Keeps track of which executors are gone, and why.

    Parameters
    ----------
    makers : mapping of int to ExecutionJobVertex
        By the id of a shuffle, the vertex that writes it.
    """

    def __init__(self, makers: Mapping[int, ExecutionJobVertex]) -> None:
        self._makers = makers
        self._reasons: dict[str, str] = {}

    def executor_removed(self, event: ExecutorRemoved) -> None:
        """Record a lost executor."""
        self._reasons[event.executor] = event.reason

    def of(self, end: TaskEnded, job_vertex: ExecutionJobVertex) -> ExecutorRecoveryError | None:
        """Return what was lost if a task of a vertex ended because of that; else None."""
        executor = end.started.executor
        if end.reason == RESUBMITTED:
            return OutputLostError(executor, job_vertex.task_name(end.started.partition))
        if end.reason.startswith("ExecutorLostFailure"):
            return ExecutorLostError(executor, self._reason(executor, end.error))
        if end.reason.startswith("FetchFailed"):
            return self._of_fetch_failure(end.reason)
        return None

    def of_output(self, task: str, executor: str | None) -> OutputLostError:
        """Return the loss of a task's output; the executor is named only if it is known to be gone."""
        return OutputLostError(executor if executor in self._reasons else None, task)

    def _reason(self, executor: str, error: str) -> str:
        told = _REASON.search(error)
        reason = told[1] if told is not None else self._reasons.get(executor, "")
        return reason.splitlines()[0].strip() if reason.strip() else "Spark gave no reason"

    def _of_fetch_failure(self, reason: str) -> OutputLostError:
        _, shuffle, map_index = reason.split(":")
        maker = self._makers.get(int(shuffle))
        if maker is None:
            return OutputLostError(None, "a task upstream")
        subtask = int(map_index)
        known = 0 <= subtask < maker.parallelism
        return OutputLostError(None, maker.task_name(subtask) if known else maker.name)
