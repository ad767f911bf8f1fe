"""Results of the ExecutionGraph and who reads which partition: groups, computed and never listed edge by edge.

In a group every consumer reads every partition. All-to-all is one group; pointwise has one for each subtask of the
narrower side, with ranges of the wider side. So nothing here grows with the product of two parallelisms.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from flinkmagic.graph.job_graph import IntermediateDataSet, JobEdge
from flinkmagic.graph.result_partition_type import DistributionPattern, ResultPartitionType

if TYPE_CHECKING:
    from flinkmagic.graph.execution_job_vertex import ExecutionJobVertex

Bounds = npt.NDArray[np.int64]


class IntermediateResult:
    """A result of an ExecutionJobVertex: one partition for each subtask. Mirrors ``IntermediateResult``."""

    __slots__ = ("consumers", "dataset", "first_partition", "index", "n_partitions", "producer")

    def __init__(
        self, dataset: IntermediateDataSet, producer: ExecutionJobVertex, index: int, first_partition: int
    ) -> None:
        self.dataset = dataset
        self.producer = producer
        self.index = index
        """Among the results of the graph."""
        self.first_partition = first_partition
        """Its partitions have the global indices ``[first_partition, first_partition + n_partitions)``."""
        self.n_partitions = producer.parallelism
        self.consumers: list[Connection] = []
        """The edges that read it."""

    @property
    def id(self) -> str:
        """The id of the data set."""
        return self.dataset.id

    @property
    def result_type(self) -> ResultPartitionType:
        """The type of the data set."""
        return self.dataset.result_type

    def n_subpartitions(self, subtask: int) -> int:
        """Return how many subpartitions the partition of a subtask has: one for each of its readers.

        Mirrors ``IntermediateResultPartition.getNumberOfSubpartitions``: the edges that share a result agree on it.
        """
        consumers = self.consumers[0]
        return len(consumers.consumer_range(consumers.group_of_partition(subtask)))

    def __repr__(self) -> str:
        return f"IntermediateResult({self.id}, {self.n_partitions} partitions, {self.result_type.name})"


class Connection:
    """A JobEdge between subtasks. Mirrors what ``EdgeManagerBuildUtil`` makes of one.

    Subtasks and partitions are relative to their vertex and result.
    """

    __slots__ = ("consumer", "first_group", "job_edge", "n_consumers", "n_groups", "n_partitions", "result")

    def __init__(
        self, job_edge: JobEdge, result: IntermediateResult, consumer: ExecutionJobVertex, first_group: int
    ) -> None:
        self.job_edge = job_edge
        self.result = result
        self.consumer = consumer
        self.first_group = first_group
        """Its groups have the global indices ``[first_group, first_group + n_groups)``."""
        self.n_partitions = result.n_partitions
        self.n_consumers = consumer.parallelism
        self.n_groups = 1 if self.is_all_to_all else min(self.n_partitions, self.n_consumers)

    @property
    def is_all_to_all(self) -> bool:
        """Whether every consumer reads every partition."""
        return self.job_edge.pattern is DistributionPattern.ALL_TO_ALL

    @property
    def partition_bounds(self) -> Bounds:
        """Group k holds the partitions ``[bounds[k], bounds[k + 1])``."""
        return _bounds(self.n_partitions, self.n_groups)

    @property
    def consumer_bounds(self) -> Bounds:
        """Group k is read by the subtasks ``[bounds[k], bounds[k + 1])``."""
        return -_bounds(-self.n_consumers, self.n_groups)

    def group_of_consumer(self, subtask: int) -> int:
        """Return the group, relative to ``first_group``, that a consumer reads."""
        return 0 if self.is_all_to_all else subtask * self.n_groups // self.n_consumers

    def group_of_partition(self, partition: int) -> int:
        """Return the group, relative to ``first_group``, that holds a partition."""
        return 0 if self.is_all_to_all else ((partition + 1) * self.n_groups - 1) // self.n_partitions

    def partition_range(self, group: int) -> range:
        """Return the partitions of a group."""
        return range(group * self.n_partitions // self.n_groups, (group + 1) * self.n_partitions // self.n_groups)

    def consumer_range(self, group: int) -> range:
        """Return the consumers of a group."""
        return range(-(-group * self.n_consumers // self.n_groups), -(-(group + 1) * self.n_consumers // self.n_groups))

    def subpartition_of(self, subtask: int) -> int:
        """Return which subpartition of each of its partitions a consumer reads."""
        if self.is_all_to_all:
            return subtask
        return subtask % len(self.consumer_range(self.group_of_consumer(subtask)))

    def __repr__(self) -> str:
        return f"Connection({self.job_edge!r}, {self.n_groups} groups)"


def _bounds(n: int, n_groups: int) -> Bounds:
    return np.arange(n_groups + 1, dtype=np.int64) * n // n_groups
