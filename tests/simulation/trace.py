"""A run as lines of text, to be compared byte for byte."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from flinkmagic.graph.execution_state import ExecutionState
from flinkmagic.scheduling.job_event_log import JobEvent
from flinkmagic.scheduling.job_status import JobStatus


class TraceRecorder:
    """Notes each move of the job and of its executions (a `JobListener`)."""

    def __init__(self) -> None:
        self._moves: list[str] = []

    def on_job_status_changed(self, old: JobStatus, new: JobStatus, at_ms: float, cause: BaseException | None) -> None:
        self._moves.append(f"{at_ms:.6f} job {old} -> {new}{_because(cause)}")

    def on_execution_state_changed(
        self, vertices: Sequence[int], state: ExecutionState, at_ms: float, error: BaseException | None
    ) -> None:
        self._moves.append(f"{at_ms:.6f} {','.join(map(str, vertices))} -> {state.name}{_because(error)}")

    def text(self, events: Iterable[JobEvent] = ()) -> str:
        """All moves, and the events of the job's log after them."""
        return "\n".join([*self._moves, *map(str, events)])


def _because(error: BaseException | None) -> str:
    return "" if error is None else f": {error}"
