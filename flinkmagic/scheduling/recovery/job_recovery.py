"""Takes up a job that another process began (what Flink's batch jobs do after their job manager failed).

What the journal says is finished is finished immediately. If its results are gone and something still needs
them, it runs again, with what follows from that.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from flinkmagic.errors.scheduling import PartitionNotFoundError
from flinkmagic.graph.execution_graph import ExecutionGraph

if TYPE_CHECKING:
    from flinkmagic.scheduling.deployment_descriptors import TaskDeploymentDescriptorFactory
    from flinkmagic.scheduling.executions import Executions
    from flinkmagic.scheduling.failover.failover_strategy import FailoverStrategy
    from flinkmagic.scheduling.partition_tracker import (
        JobMasterPartitionTracker,
        RegionPartitionGroupReleaseStrategy,
    )
    from flinkmagic.scheduling.recovery.recovered_job import HolderOf, RecoveredJob
    from flinkmagic.scheduling.scheduling_topology import SchedulingTopology


class JobRecovery:
    """Brings a scheduler to the state in which the former run's journal ends.

    1. Finished tasks are FINISHED, by the attempt and on the executor that the journal names.
    2. Their results are tracked if an executor holds them.
    3. What the failover strategy would restart for a lost result is reset, for each result that is gone and
       that a task which is not finished reads.
    """

    def __init__(
        self,
        graph: ExecutionGraph,
        topology: SchedulingTopology,
        executions: Executions,
        tracker: JobMasterPartitionTracker,
        release_strategy: RegionPartitionGroupReleaseStrategy,
        failover_strategy: FailoverStrategy,
        descriptors: TaskDeploymentDescriptorFactory,
    ) -> None:
        self._graph = graph
        self._topology = topology
        self._executions = executions
        self._tracker = tracker
        self._release_strategy = release_strategy
        self._failover_strategy = failover_strategy
        self._descriptors = descriptors

    def restore(self, recovered: RecoveredJob) -> list[int]:
        """Restore the finished tasks; return the vertices that must be reset, ascending."""
        vertices = []
        for task in recovered.finished:
            vertex = self._graph.execution_vertex_by_id(task.job_vertex_id, task.subtask).index
            self._executions.recover_finished(vertex, task.attempt, task.resource_id)
            vertices.append(vertex)
        for vertex in vertices:
            self._release_strategy.vertex_finished(vertex)
        for vertex in vertices:
            self._track(vertex, recovered.holder_of)
        return self._to_reset(vertices)

    def _track(self, vertex: int, holder_of: HolderOf) -> None:
        for partition in self._topology.produced_partitions(vertex):
            partition_id = self._descriptors.partition_id(partition)
            holder = holder_of(partition_id)
            if holder is not None:
                self._tracker.start_tracking(partition, partition_id, holder.resource_id, holder)

    def _to_reset(self, finished: Iterable[int]) -> list[int]:
        to_reset: set[int] = set()
        for vertex in finished:
            if vertex in to_reset:
                continue
            for partition in self._topology.produced_partitions(vertex):
                if not self._tracker.is_tracked(partition) and self._release_strategy.is_needed(partition):
                    result = self._topology.results[self._topology.result_of[partition]]
                    error = PartitionNotFoundError(result.id, partition - result.first_partition, "its holder is gone")
                    to_reset.update(self._failover_strategy.tasks_needing_restart(vertex, error))
        return sorted(to_reset)
