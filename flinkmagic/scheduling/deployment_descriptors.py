"""Makes task deployment descriptors (Flink's `TaskDeploymentDescriptorFactory`)."""

from __future__ import annotations

from collections.abc import Sequence

from flinkmagic.scheduling.executions import Executions
from flinkmagic.scheduling.scheduling_topology import SchedulingTopology
from flinkmagic.scheduling.slots.physical_slot_provider import PhysicalSlot
from flinkmagic.scheduling.task_executor_gateway import ResultPartitionID, TaskDeploymentDescriptor


class TaskDeploymentDescriptorFactory:
    """Describes executions to the executors that run them.

    All consumers of a group share one sequence of partition ids, which is kept until a producer runs again (as Flink
    keeps its shuffle descriptors): 16,000 consumers of 16,000 partitions need one, not 256 million ids.
    """

    def __init__(self, job_id: str, topology: SchedulingTopology, executions: Executions) -> None:
        self._job_id = job_id
        self._topology = topology
        self._executions = executions
        self._partition_ids: dict[int, Sequence[ResultPartitionID]] = {}

    def create(self, vertex: int, slot: PhysicalSlot) -> TaskDeploymentDescriptor:
        """Return the descriptor of a vertex's current execution, for a slot."""
        return TaskDeploymentDescriptor(
            job_id=self._job_id,
            attempt_id=self._executions.attempt_id(vertex),
            vertex=vertex,
            task_name=self._executions.task_name(vertex),
            allocation_id=slot.allocation_id,
            inputs=tuple(map(self._input, self._topology.consumed_groups(vertex))),
            outputs=tuple(map(self.partition_id, self._topology.produced_partitions(vertex))),
        )

    def producer_reset(self, vertex: int) -> None:
        """Forget the ids of what a vertex made: its next attempt makes others."""
        for group in self._topology.produced_groups(vertex):
            self._partition_ids.pop(group, None)

    def partition_id(self, partition: int) -> ResultPartitionID:
        """Return the id of a partition as made by its producer's current execution."""
        topology = self._topology
        result = topology.results[topology.result_of[partition]]
        producer = self._executions.attempt_id(topology.producer_of[partition])
        return ResultPartitionID(result.id, partition - result.first_partition, producer)

    def _input(self, group: int) -> Sequence[ResultPartitionID]:
        partition_ids = self._partition_ids.get(group)
        if partition_ids is None:
            partitions = range(self._topology.partition_start[group], self._topology.partition_end[group])
            partition_ids = self._partition_ids[group] = tuple(map(self.partition_id, partitions))
        return partition_ids
