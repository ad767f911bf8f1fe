"""What a job finds done already, by earlier jobs or by another process."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from flinkmagic.graph.execution_graph import ExecutionGraph
from flinkmagic.reuse.retained_results import RetainedResult
from flinkmagic.scheduling.recovery.job_graph_store import FinishedTask
from flinkmagic.scheduling.recovery.recovered_job import RecoveredJob
from flinkmagic.scheduling.task_executor_gateway import TaskExecutorGateway


@dataclass(frozen=True)
class TakenUp:
    """What a job need not do.

    Attributes
    ----------
    finished : frozenset of int
        Indices of the job vertices that do not run.
    results : mapping of int to RetainedResult
        By the index of a job vertex the result that replaces its own.
    written : frozenset of int
        Indices of the job vertices of writes that were finished by the run before.
    """

    finished: frozenset[int] = frozenset()
    results: Mapping[int, RetainedResult] = field(default_factory=dict)
    written: frozenset[int] = frozenset()

    def recovered(self, graph: ExecutionGraph, holder: TaskExecutorGateway) -> RecoveredJob | None:
        """The same in the scheduler's words: what is finished, as of a job that another process began."""
        vertices = [graph.job_vertices[index] for index in sorted(self.finished)]
        tasks = [
            FinishedTask(vertex.id, subtask, 0, holder.resource_id)
            for vertex in vertices
            for subtask in range(vertex.parallelism)
        ]
        return RecoveredJob(tasks, lambda _: holder) if tasks else None

    def partition_bytes(self, graph: ExecutionGraph) -> dict[str, tuple[int, ...]]:
        """By the id of a job vertex that wrote a shuffle, the bytes of each of its partitions."""
        return {
            graph.job_vertices[index].id: result.bytes_by_partition
            for index, result in self.results.items()
            if result.bytes_by_partition is not None
        }


NOTHING = TakenUp()
