"""Records what the next leader of a job must know (of Flink's `JobEventManager`)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from flinkmagic.graph.execution_graph import ExecutionGraph
from flinkmagic.graph.execution_state import ExecutionState
from flinkmagic.scheduling.job_status import JobStatus
from flinkmagic.scheduling.main_thread import ComponentMainThreadExecutor
from flinkmagic.scheduling.recovery.job_graph_store import FinishedTask, append_finished, append_reset, append_status
from flinkmagic.scheduling.recovery.job_journal import JobJournal

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

_FINISHED = ExecutionState.FINISHED


class JournalWriter:
    """Notes finished regions, those that run again, and the job's status (a `JobListener`).

    What happens within `sync_after_ms` is synced once; a status immediately.

    Parameters
    ----------
    journal : JobJournal
        Where to.
    graph : ExecutionGraph
        The job.
    main_thread : ComponentMainThreadExecutor
        Where syncs run.
    sync_after_ms : float
        How long finished regions may wait; they would be run again if the process died.
    """

    def __init__(
        self,
        journal: JobJournal,
        graph: ExecutionGraph,
        main_thread: ComponentMainThreadExecutor,
        sync_after_ms: float = 0.0,
    ) -> None:
        self._journal = journal
        self._graph = graph
        self._main_thread = main_thread
        self._region_of: npt.NDArray[np.int32] = graph.pipelined_regions.region_of
        self._left = {region: int(size) for region, size in enumerate(graph.pipelined_regions.sizes())}
        """By region: tasks that are not finished."""
        self._noted: set[int] = set()
        self._sync_after_ms = sync_after_ms
        self._is_sync_due = False
        self._is_closed = False

    def on_job_status_changed(self, old: JobStatus, new: JobStatus, at_ms: float, cause: BaseException | None) -> None:
        if self._is_closed or new in (JobStatus.CREATED, JobStatus.RECONCILING):
            return
        append_status(self._journal, new)
        self._journal.sync()

    def close(self) -> None:
        """Close the journal: the job is over here, and nothing of it runs."""
        self._is_closed = True
        self._journal.close()

    def on_execution_state_changed(
        self, vertices: Sequence[int], state: ExecutionState, at_ms: float, error: BaseException | None
    ) -> None:
        if self._is_closed:
            return
        if state is _FINISHED:
            for vertex in vertices:
                self._finished(vertex)
        elif state is ExecutionState.CREATED:
            self._reset(vertices)

    def _finished(self, vertex: int) -> None:
        region = int(self._region_of[vertex])
        self._left[region] -= 1
        if self._left[region] == 0:
            members = self._graph.pipelined_regions.vertices_of(region).tolist()
            new = [member for member in members if member not in self._noted]
            if new:
                append_finished(self._journal, [self._task(member) for member in new])
                self._noted.update(new)
                self._sync_soon()

    def _reset(self, vertices: Sequence[int]) -> None:
        for vertex in vertices:
            prior = self._graph.prior_executions(vertex)
            if prior and prior[-1].state is _FINISHED:
                self._left[int(self._region_of[vertex])] += 1
        again = [vertex for vertex in vertices if vertex in self._noted]
        if again:
            self._noted.difference_update(again)
            append_reset(self._journal, [self._graph.execution_vertex(vertex).id for vertex in again])
            self._sync_soon()

    def _task(self, vertex: int) -> FinishedTask:
        execution = self._graph.current_execution(vertex)
        attempt_id = execution.attempt_id
        return FinishedTask(attempt_id.job_vertex_id, attempt_id.subtask, attempt_id.attempt, execution.resource_id)

    def _sync_soon(self) -> None:
        if not self._is_sync_due:
            self._is_sync_due = True
            self._main_thread.schedule(self._sync, self._sync_after_ms)

    def _sync(self) -> None:
        self._is_sync_due = False
        if not self._is_closed:
            self._journal.sync()
