"""Which subtasks share a slot: the local-input-preferred strategy.

Mirrors ``LocalInputPreferredSlotSharingStrategy``. Job vertices are taken in topological order, each in two passes:

1. a subtask joins the group of a co-located subtask, else the first free group among those of its producers, input by
   input;
2. those left over join the first free group that leftovers made, else a new one.

A group is free for a subtask if it is of the vertex's slot sharing group and holds no other subtask of the vertex.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from flinkmagic.graph.access_execution_graph import AccessExecutionGraph
from flinkmagic.graph.execution_job_vertex import ExecutionJobVertex
from flinkmagic.graph.intermediate_result import Connection
from flinkmagic.graph.job_graph import SlotSharingGroup


@dataclass(frozen=True)
class ExecutionSlotSharingGroups:
    """Which group each execution vertex is in. Mirrors ``ExecutionSlotSharingGroup``s, as a column.

    Attributes
    ----------
    group_of : array of int32
        By execution vertex; groups are numbered as they were made.
    count : int
        How many groups there are.
    slot_sharing_group_of : list of SlotSharingGroup
        By group.
    """

    group_of: npt.NDArray[np.int32]
    count: int
    slot_sharing_group_of: list[SlotSharingGroup] = field(repr=False)

    def members(self) -> list[npt.NDArray[np.int64]]:
        """The execution vertices of each group, ascending."""
        order = np.argsort(self.group_of, kind="stable")
        ends = np.cumsum(np.bincount(self.group_of, minlength=self.count))
        return np.split(order, ends[:-1]) if self.count else []


def local_input_preferred(graph: AccessExecutionGraph) -> ExecutionSlotSharingGroups:
    """Share the slots of a job out."""
    return _LocalInputPreferred(graph).build()


class _LocalInputPreferred:
    def __init__(self, graph: AccessExecutionGraph) -> None:
        self._graph = graph
        self._group_of = np.full(graph.n_vertices, -1, dtype=np.int32)
        self._made_for: list[SlotSharingGroup] = []
        self._of_constraint: dict[tuple[int, int], int] = {}

    def build(self) -> ExecutionSlotSharingGroups:
        for job_vertex in self._graph.job_vertices:
            self._assign(job_vertex)
        return ExecutionSlotSharingGroups(self._group_of, len(self._made_for), self._made_for)

    def _assign(self, job_vertex: ExecutionJobVertex) -> None:
        slot_sharing_group = job_vertex.job_vertex.slot_sharing_group
        taken: set[int] = set()
        candidates = [_Candidates(self._group_of, connection) for connection in job_vertex.inputs]
        co_location = job_vertex.job_vertex.co_location_group
        assigned: list[int] = []
        for subtask in range(job_vertex.parallelism):
            group = -1
            if co_location is not None:
                group = self._of_constraint.get((id(co_location), subtask), -1)
            if group < 0:
                group = self._of_producers(subtask, candidates, slot_sharing_group, taken)
            if group >= 0:
                taken.add(group)
            assigned.append(group)
        self._assign_leftovers(assigned, taken, slot_sharing_group)
        self._group_of[job_vertex.first : job_vertex.first + job_vertex.parallelism] = assigned
        if co_location is not None:
            for subtask, group in enumerate(assigned):
                self._of_constraint[id(co_location), subtask] = group

    def _of_producers(
        self, subtask: int, candidates: list[_Candidates], slot_sharing_group: SlotSharingGroup, taken: set[int]
    ) -> int:
        for candidate in candidates:
            for group in candidate.groups_for(subtask):
                if group not in taken and self._made_for[group] is slot_sharing_group:
                    return group
        return -1

    def _assign_leftovers(
        self, assigned: list[int], taken: set[int], slot_sharing_group: SlotSharingGroup
    ) -> None:
        free = (
            group
            for group, made_for in enumerate(tuple(self._made_for))
            if made_for is slot_sharing_group and group not in taken
        )
        for subtask, group in enumerate(assigned):
            if group < 0:
                group = next(free, -1)
                if group < 0:
                    group = len(self._made_for)
                    self._made_for.append(slot_sharing_group)
                assigned[subtask] = group


class _Candidates:
    """The groups of the producers of one input, each offered once: a group refused or taken is not free any more."""

    def __init__(self, group_of: npt.NDArray[np.int32], connection: Connection) -> None:
        producer = connection.result.producer
        self._groups = group_of[producer.first : producer.first + producer.parallelism].tolist()
        self._connection = connection
        self._left: dict[int, list[int]] = {}

    def groups_for(self, subtask: int) -> Iterator[int]:
        """Offer the groups of the producers that a subtask reads, in their order."""
        number = self._connection.group_of_consumer(subtask)
        left = self._left.get(number)
        if left is None:
            partitions = self._connection.partition_range(number)
            left = self._left[number] = self._groups[partitions.start : partitions.stop][::-1]
        while left:
            yield left.pop()
